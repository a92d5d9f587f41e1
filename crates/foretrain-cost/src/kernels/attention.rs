//! Fused attention: blocks of queries that walk over the keys they see.

use serde::Deserialize;

use super::curve::{Limits, both};
use super::operation::{Attention, Pass};

/// How a device's attention kernel performs in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AttentionCurve {
    /// Shortest kernel.
    pub(super) floor_us: f64,
    /// Share of the peak over long sequences, by width of a head.
    pub(super) width_32: f64,
    pub(super) width_64: f64,
    pub(super) width_128: f64,
    pub(super) width_256: f64,
    /// What starting and ending a block of queries costs, in keys.
    pub(super) overhead_keys: f64,
    /// Share of the longest block of queries that the others cannot hide.
    pub(super) tail: f64,
}

/// Queries that a block holds.
const BLOCK: f64 = 128.0;
/// Heads are widened to a multiple of this.
const WIDTH_STEP: u64 = 32;
/// Share of the memory's rate.
const MEMORY: f64 = 0.8;
/// How little the limits hinder each other.
const SHARPNESS: f64 = 3.0;

impl AttentionCurve {
    /// The backward curve of a device that has only a forward one, from a device that has both.
    pub(super) fn backward_like(&self, forward: &Self, backward: &Self) -> Self {
        Self {
            floor_us: backward.floor_us,
            width_32: self.width_32 * backward.width_32 / forward.width_32,
            width_64: self.width_64 * backward.width_64 / forward.width_64,
            width_128: self.width_128 * backward.width_128 / forward.width_128,
            width_256: self.width_256 * backward.width_256 / forward.width_256,
            ..*self
        }
    }

    /// Seconds on a device with these limits and this peak in FLOP per second, at `slowdown` times
    /// the curve's time per pair.
    pub(super) fn seconds(
        &self,
        attention: &Attention,
        limits: &Limits,
        peak: f64,
        slowdown: f64,
    ) -> f64 {
        let width = attention.head_dim.max(1).next_multiple_of(WIDTH_STEP) as f64;
        // Value heads as wide as the others count as the forward pass's half.
        let widths = 0.5 * (width + attention.value_dim.max(1).next_multiple_of(WIDTH_STEP) as f64);
        let products = if attention.pass == Pass::Forward { 4.0 } else { 10.0 };
        let per_pair = slowdown * products * widths / (peak * self.efficiency(width));
        let heads = attention.batch as f64 * attention.heads as f64;
        let compute = heads * self.block_pairs(attention) * per_pair;
        let keys = attention.window.map_or(attention.keys, |window| window.min(attention.keys));
        let longest = BLOCK * (keys as f64 + self.overhead_keys) * per_pair * limits.processors;
        let memory = attention.bytes().as_f64() / (limits.bandwidth * MEMORY);
        let compute = both(compute, longest * self.tail, SHARPNESS);
        self.floor_us * 1e-6 + both(compute, memory, SHARPNESS)
    }

    /// Pairs of a head that are worked on: whole blocks, of which the mask wastes half at the edge.
    fn block_pairs(&self, attention: &Attention) -> f64 {
        let queries = attention.queries.max(1) as f64;
        let blocks = (queries / BLOCK).ceil();
        let edge = if attention.causal { 0.5 * BLOCK } else { 0.0 };
        blocks * BLOCK * (attention.pairs() / queries + edge + self.overhead_keys)
    }

    /// Share of the peak at a width, along straight lines in its logarithm.
    fn efficiency(&self, width: f64) -> f64 {
        let known = [self.width_32, self.width_64, self.width_128, self.width_256];
        let place = (width / 32.0).log2().clamp(0.0, 3.0);
        let below = (place as usize).min(known.len() - 2);
        let part = place - below as f64;
        known[below].powf(1.0 - part) * known[below + 1].powf(part)
    }
}
