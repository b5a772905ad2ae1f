//! A graph of vectors that a search walks from neighbour to neighbour (HNSW, Malkov and Yashunin, 2018).
//!
//! Every vector is a node of the lowest layer; of each layer's nodes a random few are in the one above.
//! A search goes down greedily, from the few far-reaching links on top, and in the lowest layer keeps the
//! best nodes it has met, up to its width, until it has looked at the neighbours of all of them.
//!
//! The graph knows nodes by number; their vectors are arguments. So it never copies them, and a node's
//! unseen neighbours are compared with a query all at once, which hides how far they lie apart in memory.

use ngame_nn::Rows;

/// The nodes a graph can have: one bit of a number says whether a search has been there.
pub(super) const MOST_NODES: usize = 1 << 31;

/// Nodes and their links, which lie in rows of one length: how many there are, then the links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    /// The most links of a node in an upper layer; in the lowest it may have twice that.
    pub(super) connectivity: usize,
    /// Where searches begin: a node of the highest layer. Means nothing while there are no nodes.
    pub(super) entry: u32,
    pub(super) lowest: Vec<u32>, // (nodes, 1 + 2 connectivity)
    pub(super) upper: Vec<u32>,  // (rows, 1 + connectivity)
    /// Where in the rows of `upper` a node's begin, lowest layer first; one more than there are nodes.
    pub(super) upper_begin: Vec<u32>,
}

impl Graph {
    /// A graph without nodes.
    pub(super) fn new(connectivity: usize) -> Self {
        Self { connectivity, entry: 0, lowest: Vec::new(), upper: Vec::new(), upper_begin: vec![0] }
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.upper_begin.len() - 1
    }

    /// The highest layer of a node, counted from 0.
    pub(super) fn top_layer(&self, node: u32) -> usize {
        (self.upper_begin[node as usize + 1] - self.upper_begin[node as usize]) as usize
    }

    /// The most links of a node in a layer.
    pub(super) fn room(&self, layer: usize) -> usize {
        if layer == 0 { 2 * self.connectivity } else { self.connectivity }
    }

    /// The links of a node.
    pub(super) fn links(&self, node: u32, layer: usize) -> &[u32] {
        let (rows, begin) = self.row(node, layer);
        let count = rows[begin] as usize;
        &rows[begin + 1..begin + 1 + count]
    }

    /// How many links a node says that it has.
    pub(super) fn count(&self, node: u32, layer: usize) -> usize {
        let (rows, begin) = self.row(node, layer);
        rows[begin] as usize
    }

    /// Gives a node other links.
    pub(super) fn set_links(&mut self, node: u32, layer: usize, links: &[u32]) {
        debug_assert!(links.len() <= self.room(layer));
        let begin = self.row(node, layer).1;
        let rows = if layer == 0 { &mut self.lowest } else { &mut self.upper };
        rows[begin] = links.len() as u32;
        rows[begin + 1..begin + 1 + links.len()].copy_from_slice(links);
    }

    /// Adds a node that has no links yet.
    pub(super) fn add_node(&mut self, top_layer: usize) {
        self.lowest.resize(self.lowest.len() + 1 + self.room(0), 0);
        self.upper.resize(self.upper.len() + top_layer * (1 + self.connectivity), 0);
        self.upper_begin.push((self.upper.len() / (1 + self.connectivity)) as u32);
    }

    /// Where a node's links in a layer lie.
    fn row(&self, node: u32, layer: usize) -> (&[u32], usize) {
        if layer == 0 {
            (&self.lowest, node as usize * (1 + 2 * self.connectivity))
        } else {
            let row = self.upper_begin[node as usize] as usize + layer - 1;
            (&self.upper, row * (1 + self.connectivity))
        }
    }

    /// Walks down to `layer` and gathers the `width` best nodes there, with room for what a search needs;
    /// they are in `walk` afterwards. A graph without nodes has none.
    pub(super) fn search(&self, target: &Target<'_>, layer: usize, width: usize, walk: &mut Walk) {
        walk.found.clear();
        if self.n_nodes() == 0 {
            return;
        }
        walk.begin(self.n_nodes());
        walk.meet_unseen(&[self.entry], target, width);
        for layer in (layer + 1..=self.top_layer(self.entry)).rev() {
            self.search_layer(target, layer, 1, walk);
            walk.begin(self.n_nodes());
        }
        self.search_layer(target, layer, width, walk);
    }

    /// Gathers the `width` best nodes of a layer, beginning with those in `walk`.
    pub(super) fn search_layer(
        &self,
        target: &Target<'_>,
        layer: usize,
        width: usize,
        walk: &mut Walk,
    ) {
        walk.start_again();
        let mut next = 0;
        while let Some(found) = walk.found.get_mut(next) {
            if found.was_expanded() {
                next += 1;
                continue;
            }
            *found = found.expanded();
            let node = found.node();
            next = walk.meet_unseen(self.links(node, layer), target, width).min(next + 1);
        }
    }
}

/// What nodes are compared with, and the vectors of the nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) vector: &'a [f32],
    /// One more number of every row, and of the target; none where there are no rows.
    pub(super) lift: (&'a [f32], f32),
}

impl Target<'_> {
    /// Writes the inner products of some nodes' vectors with the target's.
    pub(super) fn scores(&self, nodes: &[u32], scores: &mut Vec<f32>) {
        scores.resize(nodes.len(), 0.0);
        self.rows.dots(nodes, self.vector, scores);
        let (lifts, own) = self.lift;
        if !lifts.is_empty() {
            for (score, &node) in scores.iter_mut().zip(nodes) {
                *score += lifts[node as usize] * own;
            }
        }
    }
}

/// A node, its score, and whether its neighbours have been looked at, in a number that is smaller the
/// better the node: comparing whole numbers is several times faster than comparing floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found(u64);

impl Found {
    pub(super) fn new(node: u32, score: f32) -> Self {
        const SIGN: u32 = 1 << 31;
        // The bits of positive floats ascend with their value and those of negative ones descend,
        // which is what is wanted of the latter; the former are turned round. What is no number is
        // worse than all numbers.
        let bits = score.to_bits();
        let descending = match (score.is_nan(), bits & SIGN) {
            (true, _) => u32::MAX,
            (false, 0) => !bits & !SIGN,
            _ => bits,
        };
        Self(u64::from(descending) << 32 | u64::from(node) << 1)
    }

    pub(super) fn node(self) -> u32 {
        (self.0 as u32) >> 1
    }

    pub(super) fn score(self) -> f32 {
        let descending = (self.0 >> 32) as u32;
        f32::from_bits(if descending >> 31 == 0 { !descending & !(1 << 31) } else { descending })
    }

    fn was_expanded(self) -> bool {
        self.0 & 1 == 1
    }

    fn expanded(self) -> Self {
        Self(self.0 | 1)
    }

    /// As if its neighbours had not been looked at.
    pub(super) fn fresh(self) -> Self {
        Self(self.0 & !1)
    }
}

/// What a search remembers. Its memory is worth keeping from search to search: it marks every node.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// The best so far, best first.
    pub(super) found: Vec<Found>,
    /// The mark of the nodes that this search has met; nodes with other marks are from other searches.
    mark: u8,
    marks: Vec<u8>,
    unseen: Vec<u32>,
    scores: Vec<f32>,
}

impl Walk {
    /// Forgets which nodes it has met, but not what it has found.
    fn begin(&mut self, n_nodes: usize) {
        if self.mark == u8::MAX {
            self.marks.fill(0);
            self.mark = 0;
        }
        if self.marks.len() < n_nodes {
            self.marks.resize(n_nodes, 0);
        }
        self.mark += 1;
        for found in &self.found {
            self.marks[found.node() as usize] = self.mark;
        }
    }

    /// Makes a walk of the next layer out of the one above: from its best node, as if never been there.
    pub(super) fn descend(&mut self, n_nodes: usize) {
        self.found.truncate(1);
        self.begin(n_nodes);
    }

    /// The neighbours of what was found in another layer are to be looked at in this one too.
    fn start_again(&mut self) {
        self.found.iter_mut().for_each(|found| *found = found.fresh());
    }

    /// Compares nodes that were not met before with the target; returns the first place that changed.
    fn meet_unseen(&mut self, nodes: &[u32], target: &Target<'_>, width: usize) -> usize {
        let mut unseen = std::mem::take(&mut self.unseen);
        unseen.clear();
        for &node in nodes {
            let mark = &mut self.marks[node as usize];
            if *mark != self.mark {
                *mark = self.mark;
                unseen.push(node);
            }
        }
        let first = self.meet(&unseen, target, width);
        self.unseen = unseen;
        first
    }

    /// Compares nodes with the target and keeps the `width` best; returns the first place that changed.
    fn meet(&mut self, nodes: &[u32], target: &Target<'_>, width: usize) -> usize {
        target.scores(nodes, &mut self.scores);
        let mut first = usize::MAX;
        for (&node, &score) in nodes.iter().zip(&self.scores) {
            let new = Found::new(node, score);
            if self.found.len() >= width {
                if self.found.last().is_some_and(|&worst| worst <= new) {
                    continue;
                }
                self.found.truncate(width - 1);
            }
            let place = self.found.partition_point(|&better| better < new);
            self.found.insert(place, new);
            first = first.min(place);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_nodes_are_ordered_by_score_and_give_it_back() {
        let scores = [f32::INFINITY, 2.5, 1e-30, 0.0, -0.0, -1e-30, -7.0, f32::NEG_INFINITY];
        let found: Vec<Found> = scores.iter().map(|&score| Found::new(9, score)).collect();
        assert!(found.is_sorted());
        for (found, score) in found.iter().zip(scores) {
            assert_eq!((found.node(), found.score().to_bits()), (9, score.to_bits()));
            assert!(found.expanded().was_expanded() && !found.was_expanded());
            assert_eq!(found.expanded().score().to_bits(), score.to_bits());
        }
        assert!(Found::new(0, f32::NAN) > Found::new(1, f32::NEG_INFINITY));
        assert!(
            Found::new(3, 1.0) < Found::new(4, 1.0),
            "of equal scores the lower node comes first"
        );
        assert_eq!(Found::new((MOST_NODES - 1) as u32, 0.5).node(), (MOST_NODES - 1) as u32);
    }

    #[test]
    fn a_walk_of_a_ring_finds_the_best_wherever_it_begins() {
        // Nodes on a circle, each linked to the two beside it.
        let n = 300u32;
        let mut graph = Graph::new(1);
        let mut numbers = Vec::new();
        for node in 0..n {
            graph.add_node(0);
            let angle = node as f32 / n as f32 * std::f32::consts::TAU;
            numbers.extend([angle.cos(), angle.sin()]);
        }
        for node in 0..n {
            graph.set_links(node, 0, &[(node + 1) % n, (node + n - 1) % n]);
        }
        let rows = Rows::f32(&numbers, 2);
        let mut walk = Walk::default();
        // More searches than there are marks.
        for entry in 0..n {
            graph.entry = entry;
            let target = Target { rows, vector: &numbers[..2], lift: (&[], 0.0) };
            graph.search(&target, 0, 3, &mut walk);
            let mut found: Vec<u32> = walk.found.iter().map(|found| found.node()).collect();
            assert_eq!(found[0], 0);
            found.sort_unstable();
            assert_eq!(found, [0, 1, n - 1]);
        }
    }
}
