//! Zero bubble with two chunks per stage in a V (Qi et al., 2024): down through chunk 0, back up
//! through chunk 1, with the memory of 1F1B.

use foretrain_core::{InputError, Result};

use super::task::Task;

pub(super) fn there_and_back(depth: u32, micro_batches: u32) -> Result<Vec<Vec<Task>>> {
    let least = 2 * depth - 1;
    if micro_batches < least {
        return Err(InputError::new(format!(
            "zb-v on {depth} stages needs at least {least} micro-batches, found {micro_batches}"
        )));
    }
    Ok((0..depth).map(|stage| Stage::default().list(stage, depth, micro_batches)).collect())
}

/// A stage's list, and how many of each pass of each chunk it has.
#[derive(Default)]
struct Stage {
    forward: [u32; 2],
    backward: [u32; 2],
    weights: [u32; 2],
    tasks: Vec<Task>,
}

impl Stage {
    fn forward(&mut self, chunk: usize) {
        self.tasks.push(Task::forward(self.forward[chunk], chunk as u32));
        self.forward[chunk] += 1;
    }
    fn backward(&mut self, chunk: usize) {
        self.tasks.push(Task::backward(self.backward[chunk], chunk as u32));
        self.backward[chunk] += 1;
    }
    fn weights(&mut self, chunk: usize) {
        self.tasks.push(Task::weights(self.weights[chunk], chunk as u32));
        self.weights[chunk] += 1;
    }
    fn both(&mut self, chunk: usize) {
        self.backward(chunk);
        self.weights(chunk);
    }

    fn list(mut self, stage: u32, depth: u32, micro_batches: u32) -> Vec<Task> {
        for _ in 0..2 * (depth - stage) - 1 {
            self.forward(0);
        }
        for _ in 0..stage {
            self.forward(1);
            self.forward(0);
        }
        for _ in 0..depth - stage {
            self.forward(1);
            self.both(1);
        }
        while self.forward[1] < self.forward[0] || self.forward[0] < micro_batches {
            if self.forward[0] < micro_batches {
                self.forward(0);
            }
            self.both(0);
            self.forward(1);
            self.both(1);
        }
        for _ in 0..stage {
            self.backward(0);
            if self.backward[1] < micro_batches {
                self.backward(1);
            }
        }
        while self.backward[0] < micro_batches {
            self.both(0);
        }
        for chunk in [1, 0] {
            while self.weights[chunk] < micro_batches {
                self.weights(chunk);
            }
        }
        self.tasks
    }
}
