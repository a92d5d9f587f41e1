//! Zero bubble with one chunk per stage (Qi et al., 2023): gradients of weights are put off to where
//! a stage would wait.

use super::task::Task;

/// How far stage `s` of `p` goes ahead, and how long it puts weights off.
pub(super) trait Delay {
    /// Forward passes before the first backward one.
    fn ahead(&self, stage: u32, depth: u32) -> u32;
    /// Backward passes before the first gradient of weights, beside the first.
    fn put_off(&self, stage: u32) -> u32;
}

/// As much memory as 1F1B's first stage needs: `p - s` ahead, weights put off by `s`.
pub(super) struct Same;
/// Twice that: no gap is left between a stage's first and last pass.
pub(super) struct Twice;

impl Delay for Same {
    fn ahead(&self, stage: u32, depth: u32) -> u32 {
        depth - stage
    }
    fn put_off(&self, stage: u32) -> u32 {
        stage
    }
}

impl Delay for Twice {
    fn ahead(&self, stage: u32, depth: u32) -> u32 {
        2 * (depth - stage) - 1
    }
    fn put_off(&self, stage: u32) -> u32 {
        2 * stage
    }
}

pub(super) fn split(depth: u32, micro_batches: u32, delay: &impl Delay) -> Vec<Vec<Task>> {
    let stages = (0..depth).map(|stage| {
        let ahead = delay.ahead(stage, depth).min(micro_batches);
        let put_off = delay.put_off(stage);
        let mut tasks = Vec::with_capacity(3 * micro_batches as usize);
        tasks.extend((0..ahead).map(|micro_batch| Task::forward(micro_batch, 0)));
        let (mut forward, mut weights) = (ahead, 0);
        for backward in 0..micro_batches {
            tasks.push(Task::backward(backward, 0));
            if backward - weights >= put_off {
                tasks.push(Task::weights(weights, 0));
                weights += 1;
            }
            if forward < micro_batches {
                tasks.push(Task::forward(forward, 0));
                forward += 1;
            }
        }
        tasks.extend((weights..micro_batches).map(|micro_batch| Task::weights(micro_batch, 0)));
        tasks
    });
    stages.collect()
}
