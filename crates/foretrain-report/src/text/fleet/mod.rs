//! The answers of `fleet` as tables.

mod audit;

pub use audit::fleet_audit;

use foretrain_core::diagnostics::Coverage;

use super::units::percent;

/// `13 of 1000 (1.3 %)`.
fn of(coverage: Coverage) -> String {
    let Coverage { used, total } = coverage;
    match total {
        0 => "0 of 0".into(),
        _ => format!("{used} of {total} ({})", percent(used as f64 / total as f64)),
    }
}
