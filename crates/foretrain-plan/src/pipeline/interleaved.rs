//! One forward, one backward, plain and interleaved (Narayanan et al., 2021; Megatron-LM).

use foretrain_core::{InputError, Result};

use super::task::Task;

/// Forward passes before the first backward one.
pub(super) fn warm_up(stage: u32, depth: u32, chunks: u32, micro_batches: u32) -> u64 {
    let below = u64::from(depth - stage - 1);
    let all = u64::from(micro_batches) * u64::from(chunks);
    let wanted =
        if chunks == 1 { below } else { 2 * below + u64::from(chunks - 1) * u64::from(depth) };
    wanted.min(all)
}

pub(super) fn interleaved(depth: u32, chunks: u32, micro_batches: u32) -> Result<Vec<Vec<Task>>> {
    if chunks > 1 && !micro_batches.is_multiple_of(depth) {
        return Err(InputError::new(format!(
            "interleaving deals micro-batches out in groups of {depth} stages, \
             and {micro_batches} is no multiple of {depth}"
        ))
        .hint("change the global batch or the micro-batch, or leave vpp out"));
    }
    let all = u64::from(micro_batches) * u64::from(chunks);
    let group = u64::from(depth) * u64::from(chunks);
    // Groups of `depth` micro-batches go through chunk 0, then through chunk 1, and so on.
    let at = |k: u64| {
        if chunks == 1 {
            return (k as u32, 0);
        }
        let inside = k % group;
        let micro_batch = k / group * u64::from(depth) + inside % u64::from(depth);
        (micro_batch as u32, (inside / u64::from(depth)) as u32)
    };
    let stages = (0..depth).map(|stage| {
        let ahead = warm_up(stage, depth, chunks, micro_batches);
        let mut tasks = Vec::with_capacity(2 * all as usize);
        let forward = |k| {
            let (micro_batch, chunk) = at(k);
            Task::forward(micro_batch, chunk)
        };
        let backward = |k| {
            let (micro_batch, chunk) = at(k);
            Task::backward(micro_batch, chunks - 1 - chunk)
        };
        tasks.extend((0..ahead).map(forward));
        for k in ahead..all {
            tasks.push(forward(k));
            tasks.push(backward(k - ahead));
        }
        tasks.extend((all - ahead..all).map(backward));
        tasks
    });
    Ok(stages.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warm-up counts of p = 4, v = 2, m = 8 (Megatron-LM issue 169).
    #[test]
    fn warm_ups_of_plain_and_interleaved() {
        let plain: Vec<_> = (0..4).map(|stage| warm_up(stage, 4, 1, 8)).collect();
        assert_eq!(plain, [3, 2, 1, 0]);
        let interleaved: Vec<_> = (0..4).map(|stage| warm_up(stage, 4, 2, 8)).collect();
        assert_eq!(interleaved, [10, 8, 6, 4]);
        assert_eq!(warm_up(0, 4, 2, 4), 8);
    }

    #[test]
    fn interleaving_wants_whole_groups() {
        assert!(interleaved(4, 2, 6).unwrap_err().to_string().contains("multiple"));
        assert!(interleaved(4, 1, 6).is_ok());
    }
}
