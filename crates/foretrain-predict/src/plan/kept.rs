//! What a plan from a recording keeps as it was recorded, and why.

use crate::answer::Recorded;

/// Something that is not planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What is kept.
    pub what: &'static str,
    /// Why the recording does not tell what another choice would cost.
    pub why: String,
}

/// All that a layout of a described model decides and a recording does not tell.
pub(super) fn kept(recorded: &Recorded) -> Vec<Kept> {
    let division = match recorded.replica_size {
        1 => "every kernel was recorded whole, on one GPU; what a part of it takes on several is not \
              in the recording"
            .to_owned(),
        ranks => format!(
            "kernels were recorded as {ranks} GPUs divide them; what they take divided otherwise is \
             not in the recording"
        ),
    };
    let of = |what, why: &str| Kept { what, why: why.to_owned() };
    vec![
        Kept { what: "tensor, pipeline, context and expert parallelism", why: division },
        of(
            "samples per pass",
            "kernels were recorded at one batch; whatif --change 'batch x2' assumes how they grow",
        ),
        of("recomputation, offloading", "the kernels and copies they add were not recorded"),
        of(
            "number format",
            "kernels were recorded in one; whatif --change precision=bf16 assumes what another buys",
        ),
        of("memory", "the recording does not tell what is kept, so no choice is checked to fit"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_division_that_was_recorded() {
        let mut recorded = Recorded {
            sources: Vec::new(),
            rank: 0,
            simulated_ranks: Vec::new(),
            world_size: 8,
            replica_size: 1,
            device: String::new(),
            step_source: String::new(),
            steps: 1,
            step_time: foretrain_core::Nanos::ZERO,
            replayed: foretrain_core::Nanos::ZERO,
        };
        assert!(kept(&recorded)[0].why.contains("on one GPU"));
        recorded.replica_size = 4;
        assert!(kept(&recorded)[0].why.contains("as 4 GPUs divide them"));
    }
}
