//! Adding nodes to a graph: the graph depends on the vectors, their order and the options, and on nothing
//! else, however many threads there are.
//!
//! A new node is linked to the best nodes that a search for it finds, less those that are closer to a
//! node it is linked to already than to it: links in all directions lead further than many in one.
//! Links go both ways; a node whose room is used up chooses again in the same manner.
//!
//! Nodes come in batches of one size. Those of a batch search the graph as it was before the batch, on
//! all threads at once, and each is compared with every node of the batch before it: what it would have
//! found of them had they come one after the other.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ngame_nn::Rows;
use rayon::prelude::*;

use super::graph::{Found, Graph, Target, Walk};
use super::hnsw::HnswOptions;
use crate::progress::{Event, Observer};
use crate::random::mix;
use crate::{Error, Result};

/// No node is in more layers than this above the lowest: with 2 links a node, 2³¹ nodes need no more.
const MOST_LAYERS: usize = 32;

/// Links of a node are compared with a candidate so many at a time; often the first few refuse it.
const COMPARED: usize = 8;

/// Nodes of a batch: enough for many threads, and few beside the thousand or more that a search compares
/// a node with. It may not depend on the threads.
const BATCH: usize = 128;

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
        vectors: Vectors { rows, lifts: &lifts },
        build_width: options.build_width.max(1),
        scratches: Mutex::default(),
    };
    let total = Some(n_rows as u64);
    observer.event(Event::Started { task: "building the index", total, unit: "vectors" });
    for begin in (0..n_rows).step_by(BATCH) {
        if observer.cancelled() {
            return Err(Error::Cancelled);
        }
        let end = n_rows.min(begin + BATCH);
        builder.add(begin as u32..end as u32);
        observer.event(Event::Advanced((end - begin) as u64));
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
    vectors: Vectors<'a>,
    build_width: usize,
    /// As many as threads ever searched at once.
    scratches: Mutex<Vec<Scratch>>,
}

/// The links that a node of a batch has chosen.
struct Linked {
    node: u32,
    layer: usize,
    links: Vec<u32>,
}

/// A node of the batch has chosen a neighbour in a layer, which is to be linked to it in return.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinkBack {
    layer: usize,
    neighbour: u32,
    node: u32,
}

impl Builder<'_> {
    /// Adds the next nodes.
    fn add(&mut self, batch: Range<u32>) {
        let linked: Vec<Linked> =
            batch.clone().into_par_iter().flat_map_iter(|node| self.links(node, &batch)).collect();
        for node in batch {
            let top = self.top_layer(node);
            let is_first = self.graph.n_nodes() == 0;
            self.graph.add_node(top);
            if is_first || top > self.graph.top_layer(self.graph.entry) {
                self.graph.entry = node;
            }
        }
        let mut back = Vec::new();
        for Linked { node, layer, links } in linked {
            self.graph.set_links(node, layer, &links);
            back.extend(links.into_iter().map(|neighbour| LinkBack { layer, neighbour, node }));
        }
        back.sort_unstable();
        let of_one: Vec<&[LinkBack]> =
            back.chunk_by(|a, b| (a.layer, a.neighbour) == (b.layer, b.neighbour)).collect();
        let relinked: Vec<Linked> =
            of_one.into_par_iter().map(|back| self.linked_back(back)).collect();
        for Linked { node, layer, links } in relinked {
            self.graph.set_links(node, layer, &links);
        }
    }

    /// The links of a new node in all of its layers: to nodes of the graph, and to those of its batch that
    /// come before it.
    fn links(&self, node: u32, batch: &Range<u32>) -> Vec<Linked> {
        let mut scratch = self.scratch();
        let Scratch { walk, choice, vector, before, scores } = &mut scratch;
        let target = self.vectors.target(node, vector);
        let top = self.top_layer(node);
        before.clear();
        before.extend(batch.start..node);
        target.scores(before, scores);
        let mut linked = Vec::with_capacity(top + 1);
        let n_nodes = self.graph.n_nodes();
        // Layers above all of the graph's have nodes of the batch alone.
        let highest = (n_nodes > 0).then(|| self.graph.top_layer(self.graph.entry));
        for layer in (0..=top).rev() {
            choice.candidates.clear();
            if let Some(highest) = highest.filter(|&highest| layer <= highest) {
                if layer == top.min(highest) {
                    self.graph.search(&target, layer, self.build_width, walk);
                } else {
                    walk.descend(n_nodes);
                    self.graph.search_layer(&target, layer, self.build_width, walk);
                }
                choice.candidates.extend(walk.found.iter().map(|found| found.fresh()));
            }
            let of_batch = before.iter().zip(scores.iter());
            let of_batch = of_batch.filter(|&(&other, _)| self.top_layer(other) >= layer);
            choice.candidates.extend(of_batch.map(|(&other, &score)| Found::new(other, score)));
            choice.candidates.sort_unstable();
            choice.candidates.truncate(self.build_width);
            choice.choose(self.vectors, self.graph.connectivity);
            linked.push(Linked { node, layer, links: choice.chosen.clone() });
        }
        self.give_back(scratch);
        linked
    }

    /// The links of a node that nodes of the batch have linked to; it chooses among all its links if it has
    /// no room for so many.
    fn linked_back(&self, back: &[LinkBack]) -> Linked {
        let LinkBack { layer, neighbour: node, .. } = back[0];
        let mut links = self.graph.links(node, layer).to_vec();
        links.extend(back.iter().map(|back| back.node));
        let room = self.graph.room(layer);
        if links.len() > room {
            let mut scratch = self.scratch();
            let Scratch { choice, vector, scores, .. } = &mut scratch;
            self.vectors.target(node, vector).scores(&links, scores);
            let candidates = &mut choice.candidates;
            candidates.clear();
            let scored = links.iter().zip(scores.iter());
            candidates.extend(scored.map(|(&link, &score)| Found::new(link, score)));
            candidates.sort_unstable();
            choice.choose(self.vectors, room);
            links.clone_from(&choice.chosen);
            self.give_back(scratch);
        }
        Linked { node, layer, links }
    }

    /// The highest layer of a node: of those in a layer, one in `connectivity` is in the next.
    fn top_layer(&self, node: u32) -> usize {
        // 53 random bits make a number above 0 and at most 1.
        let share = ((mix(0, &[u64::from(node)]) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let layer = -share.ln() / (self.graph.connectivity.max(2) as f64).ln();
        (layer as usize).min(MOST_LAYERS)
    }

    /// Buffers that no other thread uses.
    fn scratch(&self) -> Scratch {
        // They are only memory, whatever happened to the thread that had them.
        self.scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, scratch: Scratch) {
        self.scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    walk: Walk,
    choice: Choice,
    vector: Vec<f32>,
    before: Vec<u32>,
    scores: Vec<f32>,
}

/// The vectors of all nodes, those to come included, and what makes them equally long, where that is asked.
#[derive(Clone, Copy)]
struct Vectors<'a> {
    rows: Rows<'a>,
    lifts: &'a [f32],
}

impl Vectors<'_> {
    /// What a node's vector, which is written to `vector`, is compared with others by.
    fn target<'a>(&'a self, node: u32, vector: &'a mut Vec<f32>) -> Target<'a> {
        vector.resize(self.rows.dim(), 0.0);
        self.rows.gather(&[node], vector);
        let lift = self.lifts.get(node as usize).copied().unwrap_or(0.0);
        Target { rows: self.rows, vector, lift: (self.lifts, lift) }
    }
}

/// Buffers of a choice of links.
#[derive(Default)]
struct Choice {
    candidates: Vec<Found>,
    chosen: Vec<u32>,
    vector: Vec<f32>,
    scores: Vec<f32>,
}

impl Choice {
    /// Chooses links among the candidates, best first: those that are closer to the node they are
    /// candidates of than to any chosen before.
    fn choose(&mut self, vectors: Vectors<'_>, most: usize) {
        self.chosen.clear();
        for candidate in &self.candidates {
            if self.chosen.len() == most {
                return;
            }
            let node = candidate.node();
            let target = vectors.target(node, &mut self.vector);
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
