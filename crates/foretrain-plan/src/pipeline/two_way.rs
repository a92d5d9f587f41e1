//! Two directions at once: DualPipe (DeepSeek-AI, 2024).
//!
//! Each rank holds stage `s` of one copy of the model and stage `p - 1 - s` of another. Half of
//! the micro-batches enter at either end. The eight parts of a rank's list, and how long each is,
//! follow from its distance to the nearer end.

use foretrain_core::{InputError, Result};

use super::task::Task;

pub(super) fn two_way(depth: u32, micro_batches: u32) -> Result<Vec<Vec<Task>>> {
    if !depth.is_multiple_of(2) {
        return Err(InputError::new(format!(
            "dualpipe needs an even number of stages, found {depth}"
        )));
    }
    if !micro_batches.is_multiple_of(2) || micro_batches < 2 * depth {
        return Err(InputError::new(format!(
            "dualpipe on {depth} stages needs an even number of at least {} micro-batches, found \
             {micro_batches}",
            2 * depth
        )));
    }
    Ok((0..depth).map(|stage| Rank::new(stage, depth, micro_batches / 2).list()).collect())
}

struct Rank {
    half_depth: u32,
    /// Distance to the nearer end.
    near: u32,
    /// Micro-batches per direction.
    half: u32,
    depth: u32,
    /// The chunk whose micro-batches enter nearer to this rank.
    first: u32,
    forward: [u32; 2],
    backward: [u32; 2],
    weights_owed: std::collections::VecDeque<Task>,
    tasks: Vec<Task>,
}

impl Rank {
    fn new(stage: u32, depth: u32, half: u32) -> Self {
        let near = stage.min(depth - 1 - stage);
        Self {
            half_depth: depth / 2,
            near,
            half,
            depth,
            first: u32::from(stage >= depth / 2),
            forward: [0; 2],
            backward: [0; 2],
            weights_owed: std::collections::VecDeque::new(),
            tasks: Vec::new(),
        }
    }

    fn chunk(&self, direction: u32) -> u32 {
        direction ^ self.first
    }

    fn forward(&mut self, direction: u32) {
        let chunk = self.chunk(direction);
        let next = &mut self.forward[chunk as usize];
        // The two directions have micro-batches of their own: even ones go down, odd ones up.
        self.tasks.push(Task::forward(2 * *next + chunk, chunk));
        *next += 1;
    }

    fn backward(&mut self, direction: u32, postpone: bool) {
        let chunk = self.chunk(direction);
        let next = &mut self.backward[chunk as usize];
        let micro_batch = 2 * *next + chunk;
        *next += 1;
        self.tasks.push(Task::backward(micro_batch, chunk));
        let weights = Task::weights(micro_batch, chunk);
        if postpone {
            self.weights_owed.push_back(weights);
        } else {
            self.tasks.push(weights);
        }
    }

    fn weights(&mut self) {
        self.tasks.extend(self.weights_owed.pop_front());
    }

    fn list(mut self) -> Vec<Task> {
        let above = self.half_depth - self.near - 1;
        for _ in 0..2 * above {
            self.forward(0);
        }
        for _ in 0..=self.near {
            self.forward(0);
            self.forward(1);
        }
        for _ in 0..above {
            self.backward(1, true);
            self.weights();
            self.forward(1);
        }
        for _ in 0..self.half - self.depth + self.near + 1 {
            self.forward(0);
            self.backward(1, false);
            self.forward(1);
            self.backward(0, false);
        }
        for _ in 0..above {
            self.backward(1, false);
            self.forward(1);
            self.backward(0, false);
        }
        let mut postpone = false;
        for round in 0..=self.near {
            if round == self.near.div_ceil(2) && self.near % 2 == 1 {
                postpone = true;
            }
            self.backward(1, postpone);
            if round == self.near.div_ceil(2) && self.near.is_multiple_of(2) {
                postpone = true;
            }
            self.backward(0, postpone);
        }
        for _ in 0..above {
            self.weights();
            self.backward(0, true);
        }
        for _ in 0..=self.near {
            self.weights();
        }
        while !self.weights_owed.is_empty() {
            self.weights();
        }
        self.tasks
    }
}
