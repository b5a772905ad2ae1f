//! Balanced hierarchical k-means: points are halved again and again until clusters have the size
//! wanted, in O(N D log(N / C)).
//!
//! A half is made by two centroids: points are ordered by how much closer they are to one than to the
//! other, and the order is cut where both sides get the points that their clusters need; the centroids
//! move to the unit means of their sides, and so on until they gain nothing. As the difference of two
//! inner products is one inner product with the difference of the centroids, a round reads every
//! vector once, and half of them once more for the sums.
//!
//! What makes it fast is that rounds run in the processor's cache. Sets that fit are copied there once
//! and halved to the end; larger ones settle their centroids on a sample that fits, and then read every
//! vector once. Everything is spread over threads, in blocks of fixed size, so that the result is the
//! same on any number of them.

use std::ops::Range;

use ngame_nn::Rows;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;

use super::clusters::{Clusters, places};
use crate::encoder::VectorMatrix;
use crate::random::generator;

/// The bytes of vectors that are copied together to be halved in the processor's cache. Larger sets
/// settle their centroids on a sample of this size: the mean of a thousand vectors hardly differs from
/// that of all.
const CACHED: usize = 2 << 20;

/// The fewest points of a sample, whatever their length.
const LEAST_SAMPLE: usize = 256;

/// Points of a block, which one thread works on in one go.
const BLOCK: usize = 1_024;

/// How clusters are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KMeansOptions {
    /// Where random choices come from.
    pub seed: u64,
    /// The most rounds that two centroids get.
    pub max_iterations: usize,
    /// Rounds end when the mean similarity of points to their centroid grows by less.
    pub tolerance: f64,
}

impl Default for KMeansOptions {
    fn default() -> Self {
        Self { seed: 0, max_iterations: 16, tolerance: 5e-5 }
    }
}

/// Puts all points, given by their unit vectors, into ⌈N / `cluster_size`⌉ clusters whose sizes differ
/// by at most one. Nothing is copied but what fits a cache.
///
/// # Panics
/// If the size is zero.
pub fn cluster(vectors: &VectorMatrix, cluster_size: usize, options: &KMeansOptions) -> Clusters {
    assert!(cluster_size > 0, "a cluster has points");
    let n_points = vectors.n_rows();
    let n_clusters = n_points.div_ceil(cluster_size);
    let points = Clusters::singletons(n_points);
    if cluster_size == 1 || n_points == 0 {
        return points;
    }
    let mut order = points.into_order();
    Halving { n_points, n_clusters, options }.run(vectors.as_rows(), &mut order, 0..n_clusters);
    Clusters::new(order, n_clusters)
}

/// What halving a set of points has to know.
struct Halving<'a> {
    n_points: usize,
    n_clusters: usize,
    options: &'a KMeansOptions,
}

impl Halving<'_> {
    /// Puts points, in ascending order, into the order of these clusters.
    fn run(&self, rows: Rows<'_>, points: &mut [u32], clusters: Range<usize>) {
        if clusters.len() < 2 {
            return;
        }
        let n_cached = (CACHED / (rows.dim() * size_of::<f32>())).max(LEAST_SAMPLE);
        if points.len() <= n_cached {
            let copy = Copied::new(rows, points);
            let mut places: Vec<u32> = (0..points.len() as u32).collect();
            self.run_in_cache(copy.rows(), &mut places, clusters);
            places.iter_mut().for_each(|place| *place = points[*place as usize]);
            points.copy_from_slice(&places);
            return;
        }
        let (middle, left) = self.middle(&clusters);
        let mut random = self.random(&clusters);
        // One from every stretch of the same length: ascending, and none twice.
        let sample: Vec<u32> = (0..n_cached)
            .map(|at| points[random.random_range(places(points.len(), n_cached, at..at + 1))])
            .collect();
        let share = left as f64 / points.len() as f64;
        let sample_left = ((n_cached as f64 * share).round() as usize).clamp(1, n_cached - 1);
        let copy = Copied::new(rows, &sample);
        let places: Vec<u32> = (0..n_cached as u32).collect();
        let (_, direction) = self.settle(copy.rows(), &places, sample_left, &mut random);
        let mut keys = vec![0.0; points.len()];
        direction.project(rows, points, &mut keys);
        divide(points, &keys, left);
        let (ours, theirs) = points.split_at_mut(left);
        rayon::join(
            || self.run(rows, ours, clusters.start..middle),
            || self.run(rows, theirs, middle..clusters.end),
        );
    }

    /// The same for rows that lie in the cache.
    fn run_in_cache(&self, rows: Rows<'_>, points: &mut [u32], clusters: Range<usize>) {
        if clusters.len() < 2 {
            return;
        }
        let (middle, left) = self.middle(&clusters);
        let (keys, _) = self.settle(rows, points, left, &mut self.random(&clusters));
        divide(points, &keys, left);
        let (ours, theirs) = points.split_at_mut(left);
        self.run_in_cache(rows, ours, clusters.start..middle);
        self.run_in_cache(rows, theirs, middle..clusters.end);
    }

    /// Where some clusters are halved, and how many points the first half has.
    fn middle(&self, clusters: &Range<usize>) -> (usize, usize) {
        let middle = clusters.start + clusters.len() / 2;
        (middle, places(self.n_points, self.n_clusters, clusters.start..middle).len())
    }

    fn random(&self, clusters: &Range<usize>) -> ChaCha8Rng {
        generator(self.options.seed, &[clusters.start as u64, clusters.end as u64])
    }

    /// Two centroids that start at random points and move until they gain nothing: how far along their
    /// difference every point lies, and that difference.
    fn settle(
        &self,
        rows: Rows<'_>,
        points: &[u32],
        left: usize,
        random: &mut ChaCha8Rng,
    ) -> (Vec<f32>, Direction) {
        let first = random.random_range(0..points.len());
        let second = (first + random.random_range(1..points.len())) % points.len();
        let mut direction = Direction::new(rows, points[first], points[second]);
        let mut keys = vec![0.0; points.len()];
        let total = sum(rows, points, |_| true);
        let mut best = f64::NEG_INFINITY;
        for round in 0..self.options.max_iterations.max(1) {
            direction.project(rows, points, &mut keys);
            if round + 1 == self.options.max_iterations {
                break;
            }
            let side = Side::new(&keys, left);
            // The smaller side is added up; the other one's sum is what is left of the total.
            let is_smaller = left <= points.len() - left;
            let mut ours = sum(rows, points, |at| side.has(at, keys[at]) == is_smaller);
            let mut theirs: Vec<f64> =
                total.iter().zip(&ours).map(|(all, part)| all - part).collect();
            if !is_smaller {
                std::mem::swap(&mut ours, &mut theirs);
            }
            let similarity = (norm(&ours) + norm(&theirs)) / points.len() as f64;
            if similarity < best + self.options.tolerance {
                break;
            }
            best = similarity;
            direction.point(&ours, &theirs);
        }
        (keys, direction)
    }
}

/// Some vectors, copied together.
struct Copied {
    numbers: Vec<f32>, // (points, dim)
    dim: usize,
}

impl Copied {
    fn new(rows: Rows<'_>, points: &[u32]) -> Self {
        let mut numbers = vec![0.0; points.len() * rows.dim()];
        rows.gather(points, &mut numbers);
        Self { numbers, dim: rows.dim() }
    }

    fn rows(&self) -> Rows<'_> {
        Rows::f32(&self.numbers, self.dim)
    }
}

/// Brings the `left` points with the largest keys to the front; both sides keep the order of points.
fn divide(points: &mut [u32], keys: &[f32], left: usize) {
    let side = Side::new(keys, left);
    let mut others = Vec::with_capacity(points.len() - left);
    let mut kept = 0;
    for at in 0..points.len() {
        match side.has(at, keys[at]) {
            true => {
                points[kept] = points[at];
                kept += 1;
            }
            false => others.push(points[at]),
        }
    }
    points[left..].copy_from_slice(&others);
}

/// The difference of two unit centroids.
struct Direction(Vec<f32>); // (dim)

impl Direction {
    /// From one point's vector to another's.
    fn new(rows: Rows<'_>, to: u32, from: u32) -> Self {
        let mut vectors = vec![0.0; 2 * rows.dim()];
        rows.gather(&[to, from], &mut vectors);
        let (to, from) = vectors.split_at(rows.dim());
        Self(to.iter().zip(from).map(|(to, from)| to - from).collect())
    }

    /// From the mean of some points to that of others, given by their sums.
    fn point(&mut self, to: &[f64], from: &[f64]) {
        let inverse = |sum: &[f64]| 1.0 / norm(sum).max(f64::MIN_POSITIVE);
        let (to_scale, from_scale) = (inverse(to), inverse(from));
        for (value, (to, from)) in self.0.iter_mut().zip(to.iter().zip(from)) {
            *value = (to * to_scale - from * from_scale) as f32;
        }
    }

    /// How far along the direction every point lies.
    fn project(&self, rows: Rows<'_>, points: &[u32], keys: &mut [f32]) {
        points
            .par_chunks(BLOCK)
            .zip(keys.par_chunks_mut(BLOCK))
            .for_each(|(points, keys)| rows.dots(points, &self.0, keys));
    }
}

/// The points that lie farthest along a direction; of those equally far, the first.
struct Side {
    last: u64,
}

impl Side {
    fn new(keys: &[f32], n_points: usize) -> Self {
        let mut ranks: Vec<u64> = keys.iter().enumerate().map(|(at, &key)| rank(at, key)).collect();
        Self { last: *ranks.select_nth_unstable(n_points - 1).1 }
    }

    fn has(&self, at: usize, key: f32) -> bool {
        rank(at, key) <= self.last
    }
}

/// A number that is smaller the larger the key, and of equal keys the sooner the place.
fn rank(at: usize, key: f32) -> u64 {
    // The bits of floats ascend with their values when those of negative ones are turned over.
    let bits = key.to_bits();
    let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    u64::from(!ascending) << 32 | at as u64
}

/// The sum of the vectors of those points whose place in the list is chosen. Blocks are added in
/// order, so that the number of threads never shows.
fn sum(rows: Rows<'_>, points: &[u32], chosen: impl Fn(usize) -> bool + Sync) -> Vec<f64> {
    let mut total = vec![0.0f64; rows.dim()];
    let partial: Vec<Vec<f32>> = points
        .par_chunks(BLOCK)
        .enumerate()
        .map(|(block, points)| {
            let begin = block * BLOCK;
            let ids: Vec<u32> = points
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen(begin + at))
                .map(|(_, &point)| point)
                .collect();
            let mut sum = vec![0.0; rows.dim()];
            rows.add_to(&ids, &mut sum);
            sum
        })
        .collect();
    for partial in partial {
        total.iter_mut().zip(partial).for_each(|(total, sum)| *total += f64::from(sum));
    }
    total
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::encoder::VectorType;

    /// Unit vectors around some centres.
    fn vectors(n: usize, dim: usize, n_centres: u64, vector_type: VectorType) -> VectorMatrix {
        let mut matrix = VectorMatrix::zeros(n, dim, vector_type);
        let rows = matrix.rows_mut(0..n).unwrap();
        for (point, mut row) in rows.into_iter().enumerate() {
            let mut noise = ChaCha8Rng::seed_from_u64(point as u64);
            let mut centre = ChaCha8Rng::seed_from_u64(1000 + point as u64 % n_centres);
            let mut vector: Vec<f32> = (0..dim)
                .map(|_| {
                    let (a, b): (f32, f32) = (centre.random(), noise.random());
                    (a - 0.5) + 0.3 * (b - 0.5)
                })
                .collect();
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= norm);
            row.set(&vector);
        }
        matrix
    }

    fn check(clusters: &Clusters, n_points: usize, cluster_size: usize) {
        assert_eq!(clusters.n_clusters(), n_points.div_ceil(cluster_size));
        let mut points: Vec<u32> = clusters.iter().flatten().copied().collect();
        points.sort_unstable();
        assert!(points.into_iter().eq(0..n_points as u32), "every point is in one cluster");
        let sizes: Vec<usize> = clusters.iter().map(<[u32]>::len).collect();
        let least = sizes.iter().min().copied().unwrap_or(0);
        let most = sizes.iter().max().copied().unwrap_or(0);
        assert!(most - least <= 1 && most <= cluster_size, "sizes from {least} to {most}");
    }

    proptest! {
        #[test]
        fn clusters_partition_the_points_and_balance(
            n in 0..600usize, size in 1..80usize, n_centres in 1..40u64, seed in 0..5u64,
            half in any::<bool>(),
        ) {
            let vector_type = if half { VectorType::F16 } else { VectorType::F32 };
            let vectors = vectors(n, 8, n_centres, vector_type);
            let options = KMeansOptions { seed, ..Default::default() };
            let clusters = cluster(&vectors, size, &options);
            check(&clusters, n, size);
            prop_assert_eq!(&cluster(&vectors, size, &options), &clusters);
        }
    }

    #[test]
    fn one_cluster_and_points_alone() {
        let vectors = vectors(10, 4, 3, VectorType::F32);
        let options = KMeansOptions::default();
        assert_eq!(cluster(&vectors, 10, &options).n_clusters(), 1);
        assert_eq!(cluster(&vectors, 1000, &options).n_clusters(), 1);
        assert_eq!(cluster(&vectors, 1, &options), Clusters::singletons(10));
    }

    #[test]
    fn points_that_are_all_the_same_are_shared_out_all_the_same() {
        let mut same = VectorMatrix::zeros(1000, 4, VectorType::F32);
        for mut row in same.rows_mut(0..1000).unwrap() {
            row.set(&[0.5; 4]);
        }
        check(&cluster(&same, 7, &KMeansOptions::default()), 1000, 7);
        let zeros = VectorMatrix::zeros(100, 4, VectorType::F16);
        check(&cluster(&zeros, 9, &KMeansOptions::default()), 100, 9);
    }

    #[test]
    fn the_number_of_threads_never_shows_even_where_sets_are_sampled() {
        let n_points = 40_000; // More than fit the cache.
        let vectors = vectors(n_points, 32, 500, VectorType::F32);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| cluster(&vectors, 16, &KMeansOptions::default()))
        };
        let clusters = on(1);
        check(&clusters, n_points, 16);
        assert_eq!(clusters, on(3));
    }

    #[test]
    fn close_points_find_together() {
        let vectors = vectors(4096, 32, 128, VectorType::F32);
        let found = cluster(&vectors, 32, &KMeansOptions::default());
        let random = Clusters::new((0..4096).collect(), 128); // Centres take turns.
        let (found, random) = (found.mean_similarity(&vectors), random.mean_similarity(&vectors));
        assert!(found > 0.85 && random < 0.3, "{found} and {random}");
    }
}
