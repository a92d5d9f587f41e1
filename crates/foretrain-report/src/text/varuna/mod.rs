//! The answers of `varuna` as tables.

mod morph;
mod plan;
mod simulate;
mod timeline;

use foretrain_plan::varuna::profile::Filled;
use foretrain_plan::varuna::simulate::Jitter;

pub use morph::varuna_morph;
pub use plan::varuna_plan;
pub use simulate::varuna_simulate;

use super::sheet::Sheet;
use super::units::{counted, name, whole_time};

/// What a profile did not hold and was filled in.
fn filled(filled: &Filled, sheet: &mut Sheet) {
    for (kind, what) in &filled.notes {
        sheet.paragraph("filled in: ", &format!("{kind}, as in: {}", name(what, 200)));
    }
}

/// What was drawn, and whose defaults it is by.
fn drawn(jitter: &Jitter, draws: u32) -> String {
    let by = |own, varuna| if own == varuna { " (Varuna's)" } else { "" };
    format!(
        "{} of truncated normal offsets, sigma {}{} of tasks and {}{} of messages, seed {}",
        counted(draws as usize, "draw"),
        whole_time(jitter.compute()),
        by(jitter.compute(), Jitter::VARUNA_COMPUTE),
        whole_time(jitter.network()),
        by(jitter.network(), Jitter::VARUNA_NETWORK),
        jitter.seed()
    )
}

/// A count of micro-batches.
fn micro_batches(count: u32) -> String {
    if count == 1 { "1 micro-batch".into() } else { format!("{count} micro-batches") }
}
