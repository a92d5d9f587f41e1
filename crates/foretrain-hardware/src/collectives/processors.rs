//! What communication takes of a cluster's processors, as measured.

use foretrain_core::Bytes;
use serde::{Deserialize, Serialize};

use super::calibration::check_shape;

/// Processor time that one collective took of each of a number of ranks, by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorSweep {
    /// The collective's name, "all-reduce".
    pub collective: String,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// The larger of a rank's input and output buffer, growing.
    pub sizes: Vec<Bytes>,
    /// Microseconds of processor time of one rank at each size.
    pub times_us: Vec<f64>,
}

/// No call takes more than a day.
const LONGEST_US: f64 = 86_400e6;

impl ProcessorSweep {
    /// # Errors
    /// What no measurement can be.
    pub(super) fn check(&self) -> Result<(), String> {
        check_shape((self.ranks, self.nodes), &self.sizes, self.times_us.len(), "times")?;
        match self.times_us.iter().find(|time| !(**time > 0.0 && **time <= LONGEST_US)) {
            Some(time) => Err(format!("{time} us is no processor time of a call")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_measures_is_refused() {
        let good = ProcessorSweep {
            collective: "all-reduce".into(),
            ranks: 2,
            nodes: 1,
            sizes: vec![Bytes::new(1024), Bytes::new(4096)],
            times_us: vec![10.0, 20.0],
        };
        assert_eq!(good.check(), Ok(()));
        for bad in [
            ProcessorSweep { ranks: 1, ..good.clone() },
            ProcessorSweep { nodes: 3, ..good.clone() },
            ProcessorSweep { times_us: vec![10.0], ..good.clone() },
            ProcessorSweep { times_us: vec![10.0, 0.0], ..good.clone() },
            ProcessorSweep { times_us: vec![10.0, f64::NAN], ..good.clone() },
            ProcessorSweep { times_us: vec![10.0, f64::INFINITY], ..good.clone() },
            ProcessorSweep { sizes: vec![Bytes::new(4096); 2], ..good.clone() },
            ProcessorSweep { sizes: Vec::new(), times_us: Vec::new(), ..good.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
