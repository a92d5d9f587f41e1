//! Horovod's fusion buffer.

use foretrain_core::{Bytes, Nanos, Result};

use super::fused;
use crate::strategy::draft::{Draft, Exchange};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "horovod",
    stage: Stage::Fuse,
    about: "A background thread wakes at each end of a cycle, agrees with the other ranks on the gradients that are ready everywhere, and fuses them up to the size of its buffer.",
    source: "Horovod's operations.cc: 128 MiB and 1 ms; older releases 64 MiB and 5 ms (recalled)",
    parameters: &[
        Parameter::new("buffer", Kind::Size, "128MiB", "Size of the fusion buffer."),
        Parameter::new("cycle", Kind::Time, "1ms", "Time between wake-ups."),
        Parameter::new("negotiation", Kind::Time, "100us", "Agreeing on what is ready (assumed)."),
    ],
    build: &|values| {
        let cycle = values.time("cycle").unwrap_or(Nanos::from_millis(1));
        Ok(Box::new(Horovod {
            buffer: values.size("buffer").unwrap_or(Bytes::from_mib(128)),
            cycle: cycle.max(Nanos::from_nanos(1)),
            negotiation: values.time("negotiation").unwrap_or_default(),
        }))
    },
};

struct Horovod {
    buffer: Bytes,
    cycle: Nanos,
    negotiation: Nanos,
}

impl Pass for Horovod {
    /// Cycles are counted from the first ready gradient, by recorded ready times. A gradient waits
    /// half a cycle on average and so does the first; the delay to the wake-up is that to the end
    /// of the cycle in which the last gradient of a buffer became ready.
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let half = self.cycle.scale(0.5);
        let Some(first) = draft.exchanges.first().map(|one| ready_at(draft, one)) else {
            return Ok(());
        };
        let cycle_of = |draft: &Draft<'_>, one: &Exchange| {
            (ready_at(draft, one) - first + half).nanos() / self.cycle.nanos()
        };
        let mut fusions: Vec<Exchange> = Vec::new();
        let mut from = 0;
        while from < draft.exchanges.len() {
            let cycle = cycle_of(draft, &draft.exchanges[from]);
            let (mut to, mut bytes) = (from, Bytes::ZERO);
            while let Some(next) = draft.exchanges.get(to) {
                let fits = bytes + next.bytes <= self.buffer || to == from;
                let is_of_same = next.micro_step == draft.exchanges[from].micro_step;
                if cycle_of(draft, next) != cycle || !fits || !is_of_same {
                    break;
                }
                bytes += next.bytes;
                to += 1;
            }
            if let Some(mut one) = fused(&draft.exchanges[from..to]) {
                let end = first - half + Nanos::from_nanos((cycle + 1) * self.cycle.nanos());
                one.delay += (end - ready_at(draft, &one)).clamp_positive() + self.negotiation;
                fusions.push(one);
            }
            from = to;
        }
        draft.exchanges = fusions;
        Ok(())
    }
}

/// When the last gradient of an exchange is ready in the recording.
fn ready_at(draft: &Draft<'_>, exchange: &Exchange) -> Nanos {
    let last = exchange.gradients.end.saturating_sub(1);
    draft.gradients[exchange.micro_step].get(last).map_or(Nanos::ZERO, |gradient| gradient.at)
}
