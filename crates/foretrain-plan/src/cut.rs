//! Which layers go to which chunk of the pipeline.

use std::sync::Arc;

use foretrain_core::{InputError, Result};
use foretrain_workload::model::{Layer, Model, Role};

use crate::layout::{Layout, Schedule};

/// The layers of a model that differ, and the chunks' contents by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// Layers that differ, each once.
    pub layers: Vec<Arc<Layer>>,
    /// Per chunk in the order in which a micro-batch meets them: runs of equal layers.
    pub chunks: Vec<Vec<Run>>,
}

/// Equal layers one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Which of the differing layers.
    pub layer: usize,
    /// How many.
    pub count: u32,
}

impl Cut {
    /// Deals `model` out to the chunks of `layout`.
    ///
    /// Without a wish, body layers are dealt evenly; what is left over goes to chunks in the middle,
    /// since the first holds the embedding and the last the head.
    ///
    /// # Errors
    /// If there are fewer body layers than chunks, or the wish does not add up to the layers.
    pub fn new(model: &Model, layout: &Layout) -> Result<Self> {
        let chunks = match layout.schedule {
            Schedule::DualPipe => layout.pipeline,
            _ => layout.chunks(),
        };
        let body = model.body_layers();
        let counts = match &layout.stage_layers {
            Some(wish) => wished(wish, chunks, body)?,
            None => even(body, chunks)?,
        };
        Ok(Self::deal(model, &counts))
    }

    fn deal(model: &Model, counts: &[u32]) -> Self {
        let mut layers: Vec<Arc<Layer>> = Vec::new();
        let mut chunks: Vec<Vec<Run>> = vec![Vec::new(); counts.len()];
        let mut at = 0;
        let mut room = counts.first().copied().unwrap_or(0);
        for block in &model.blocks {
            let known = layers.iter().position(|layer| Arc::ptr_eq(layer, &block.layer));
            let layer = known.unwrap_or_else(|| {
                layers.push(Arc::clone(&block.layer));
                layers.len() - 1
            });
            if block.layer.role != Role::Body {
                // An input belongs to what comes after it, an output to what came before.
                let next = block.layer.role == Role::Input && room == 0;
                let chunk = if next { (at + 1).min(counts.len() - 1) } else { at };
                push(&mut chunks[chunk], layer, block.repeat);
                continue;
            }
            let mut left = block.repeat;
            while left > 0 {
                while room == 0 && at + 1 < counts.len() {
                    at += 1;
                    room = counts[at];
                }
                let taken = if room == 0 { left } else { left.min(room) };
                push(&mut chunks[at], layer, taken);
                left -= taken;
                room = room.saturating_sub(taken);
            }
        }
        Self { layers, chunks }
    }

    /// Body layers of each chunk.
    pub fn body_counts(&self) -> Vec<u32> {
        let body = |run: &&Run| self.layers[run.layer].role == Role::Body;
        let of = |runs: &Vec<Run>| runs.iter().filter(body).map(|run| run.count).sum();
        self.chunks.iter().map(of).collect()
    }
}

fn push(runs: &mut Vec<Run>, layer: usize, count: u32) {
    match runs.last_mut() {
        Some(last) if last.layer == layer => last.count += count,
        _ if count > 0 => runs.push(Run { layer, count }),
        _ => {}
    }
}

fn wished(wish: &[u32], chunks: u32, body: u32) -> Result<Vec<u32>> {
    let sum: u64 = wish.iter().map(|&layers| u64::from(layers)).sum();
    if wish.len() == chunks as usize && sum == u64::from(body) {
        return Ok(wish.to_vec());
    }
    Err(InputError::new(format!(
        "stages lists {} chunks with {sum} layers, but the layout has {chunks} and the model {body}",
        wish.len()
    )))
}

fn even(body: u32, chunks: u32) -> Result<Vec<u32>> {
    if chunks == 0 || (chunks > 1 && body < chunks) {
        return Err(InputError::new(format!(
            "{body} layers cannot fill {chunks} chunks of a pipeline"
        ))
        .hint("lower pp or vpp"));
    }
    let (each, over) = (body / chunks, body % chunks);
    let mut counts = vec![each; chunks as usize];
    // Left-over layers go to the middle, outwards.
    let middle = (chunks - over) / 2;
    for count in counts.iter_mut().skip(middle as usize).take(over as usize) {
        *count += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_left_over_go_to_the_middle() {
        assert_eq!(even(12, 4).unwrap(), [3, 3, 3, 3]);
        assert_eq!(even(14, 4).unwrap(), [3, 4, 4, 3]);
        assert_eq!(even(126, 16).unwrap().iter().sum::<u32>(), 126);
        assert_eq!(even(126, 16).unwrap()[0], 7);
        assert!(even(3, 4).is_err());
        assert_eq!(even(0, 1).unwrap(), [0]);
    }

    #[test]
    fn a_wish_must_add_up() {
        assert_eq!(wished(&[7, 9, 9, 9], 4, 34).unwrap(), [7, 9, 9, 9]);
        assert!(wished(&[7, 9], 4, 34).is_err());
        assert!(wished(&[1, 1, 1, 1], 4, 34).is_err());
    }
}
