//! Adding nodes to a graph, one after the other, on one thread: the graph depends on the vectors, their
//! order and the options, and on nothing else.
//!
//! A new node is linked to the best nodes that a search for it finds, less those that are closer to a
//! node it is linked to already than to it: links in all directions lead further than many in one.
//! Links go both ways; a node whose room is used up chooses again in the same manner.

use ngame_nn::Rows;

use super::graph::{Found, Graph, Target, Walk};
use super::hnsw::HnswOptions;
use crate::progress::{Event, Observer};
use crate::random::mix;
use crate::{Error, Result};

/// No node is in more layers than this above the lowest: with 2 links a node, 2³¹ nodes need no more.
const MOST_LAYERS: usize = 32;

/// Links of a node are compared with a candidate so many at a time; often the first few refuse it.
const COMPARED: usize = 8;

/// Builds a graph of all rows.
pub(super) fn build(
    rows: Rows<'_>,
    n_rows: usize,
    options: &HnswOptions,
    observer: &dyn Observer,
) -> Result<Graph> {
    let lifts = if options.equal_lengths { lifts(rows, n_rows) } else { Vec::new() };
    let mut builder = Builder {
        graph: Graph::new(options.connectivity),
        rows,
        lifts: &lifts,
        build_width: options.build_width.max(1),
        walk: Walk::default(),
        choice: Choice { vector: vec![0.0; rows.dim()], ..Choice::default() },
    };
    let total = Some(n_rows as u64);
    observer.event(Event::Started { task: "building the index", total, unit: "vectors" });
    for node in 0..n_rows as u32 {
        if observer.cancelled() {
            return Err(Error::Cancelled);
        }
        builder.add(node);
        observer.event(Event::Advanced(1));
    }
    observer.event(Event::Finished);
    Ok(builder.graph)
}

/// One more number for every row, which makes all as long as the longest: sqrt(longest² − length²).
/// With a zero for a query's, inner products stay what they are (Bachrach and others, 2014), but
/// neighbours in the graph are rows close to each other and no longer those with the long ones.
fn lifts(rows: Rows<'_>, n_rows: usize) -> Vec<f32> {
    let mut row = vec![0.0; rows.dim()];
    let squares: Vec<f32> = (0..n_rows as u32)
        .map(|id| {
            rows.gather(&[id], &mut row);
            ngame_nn::dot(&row, &row)
        })
        .collect();
    let longest = squares.iter().copied().fold(0.0, f32::max);
    squares.iter().map(|square| (longest - square).max(0.0).sqrt()).collect()
}

struct Builder<'a> {
    graph: Graph,
    rows: Rows<'a>,
    lifts: &'a [f32],
    build_width: usize,
    walk: Walk,
    choice: Choice,
}

/// Buffers of a choice of links.
#[derive(Default)]
struct Choice {
    candidates: Vec<Found>,
    chosen: Vec<u32>,
    vector: Vec<f32>,
    scores: Vec<f32>,
}

impl Builder<'_> {
    /// Adds the next node.
    fn add(&mut self, node: u32) {
        let top = random_layer(node, self.graph.connectivity);
        let mut vector = vec![0.0; self.rows.dim()];
        self.rows.gather(&[node], &mut vector);
        if self.graph.n_nodes() == 0 {
            self.graph.add_node(top);
            self.graph.entry = node;
            return;
        }
        let target = target(self.rows, self.lifts, node, &vector);
        let highest = self.graph.top_layer(self.graph.entry);
        let first = top.min(highest);
        self.graph.search(&target, first, self.build_width, &mut self.walk);
        let entry = self.graph.entry;
        self.graph.add_node(top);
        for layer in (0..=first).rev() {
            if layer < first {
                self.walk.descend(self.graph.n_nodes());
                self.graph.search_layer(&target, layer, self.build_width, &mut self.walk);
            }
            self.choice.candidates.clone_from(&self.walk.found);
            self.choice.choose(self.rows, self.lifts, self.graph.connectivity);
            self.graph.set_links(node, layer, &self.choice.chosen);
            for at in 0..self.graph.links(node, layer).len() {
                let neighbour = self.graph.links(node, layer)[at];
                self.link_back(neighbour, node, layer);
            }
        }
        if top > self.graph.top_layer(entry) {
            self.graph.entry = node;
        }
    }

    /// Adds a link to a node, which chooses among all its links if it has no room for one more.
    fn link_back(&mut self, node: u32, new: u32, layer: usize) {
        let room = self.graph.room(layer);
        let mut links = self.graph.links(node, layer).to_vec();
        links.push(new);
        if links.len() > room {
            let mut vector = vec![0.0; self.rows.dim()];
            self.rows.gather(&[node], &mut vector);
            let mut scores = Vec::new();
            target(self.rows, self.lifts, node, &vector).scores(&links, &mut scores);
            let candidates = &mut self.choice.candidates;
            candidates.clear();
            candidates
                .extend(links.iter().zip(scores).map(|(&link, score)| Found::new(link, score)));
            candidates.sort_unstable();
            self.choice.choose(self.rows, self.lifts, room);
            self.graph.set_links(node, layer, &self.choice.chosen);
        } else {
            self.graph.set_links(node, layer, &links);
        }
    }
}

impl Choice {
    /// Chooses links among the candidates, best first: those that are closer to the node they are
    /// candidates of than to any chosen before.
    fn choose(&mut self, rows: Rows<'_>, lifts: &[f32], most: usize) {
        self.chosen.clear();
        for candidate in &self.candidates {
            if self.chosen.len() == most {
                return;
            }
            let node = candidate.node();
            rows.gather(&[node], &mut self.vector);
            let target = target(rows, lifts, node, &self.vector);
            let closer = self.chosen.chunks(COMPARED).any(|chosen| {
                target.scores(chosen, &mut self.scores);
                self.scores.iter().any(|&score| score > candidate.score())
            });
            if !closer {
                self.chosen.push(node);
            }
        }
    }
}

/// What a node's vector is compared with others by.
fn target<'a>(rows: Rows<'a>, lifts: &'a [f32], node: u32, vector: &'a [f32]) -> Target<'a> {
    Target { rows, vector, lift: (lifts, lifts.get(node as usize).copied().unwrap_or(0.0)) }
}

/// The highest layer of a node: of those in a layer, one in `connectivity` is in the next.
fn random_layer(node: u32, connectivity: usize) -> usize {
    // 53 random bits make a number above 0 and at most 1.
    let share = ((mix(0, &[u64::from(node)]) >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let layer = -share.ln() / (connectivity.max(2) as f64).ln();
    (layer as usize).min(MOST_LAYERS)
}
