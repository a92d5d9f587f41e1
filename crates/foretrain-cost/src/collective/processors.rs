//! Measured processor time of collectives, carried to sizes and ranks nearby.

use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::collectives::ProcessorSweep;

use super::fabric::Library;

/// Processor times by collective and ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Processors {
    sweeps: Vec<Line>,
}

/// One sweep, by growing size.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    kind: Kind,
    many_nodes: bool,
    ranks: u32,
    /// Bytes and nanoseconds.
    points: Vec<(f64, f64)>,
}

impl Processors {
    pub(super) fn new(sweeps: Vec<(Kind, &ProcessorSweep)>) -> Self {
        let line = |(kind, sweep): (Kind, &ProcessorSweep)| Line {
            kind,
            many_nodes: sweep.nodes > 1,
            ranks: sweep.ranks,
            points: sweep
                .sizes
                .iter()
                .zip(&sweep.times_us)
                .map(|(size, us)| (size.as_f64().max(1.0), 1e3 * us))
                .collect(),
        };
        Self { sweeps: sweeps.into_iter().map(line).collect() }
    }

    /// Nanoseconds of one rank's processor; `None` if the collective was not measured on one node,
    /// or on several, whichever is asked.
    ///
    /// A rank's work is that of its messages. A ring among more ranks has more of them, each with a
    /// smaller part of the data, so the time is looked up at the size whose messages were as large,
    /// and multiplied by how many more there are.
    pub(super) fn at(
        &self,
        kind: Kind,
        bytes: f64,
        ranks: u32,
        many_nodes: bool,
        library: Library,
    ) -> Option<f64> {
        let kind = if kind == Kind::Unknown { Kind::AllReduce } else { kind };
        let away = |line: &&Line| (f64::from(line.ranks) / f64::from(ranks)).ln().abs();
        let alike = |line: &&Line| line.kind == kind && line.many_nodes == many_nodes;
        let near = |a: &&Line, b: &&Line| away(a).total_cmp(&away(b));
        let line = self.sweeps.iter().filter(alike).min_by(near)?;
        let (asked, known) = (messages(kind, ranks, library), messages(kind, line.ranks, library));
        let size = bytes * asked.part / known.part;
        Some(line.at(size) * asked.count / known.count)
    }
}

/// What a rank sends: how many messages, and which part of the data is in each.
struct Messages {
    count: f64,
    part: f64,
}

fn messages(kind: Kind, ranks: u32, library: Library) -> Messages {
    let ranks = f64::from(ranks.max(2));
    let (rounds, whole) = match kind {
        Kind::AllReduce => (2.0, false),
        // Gloo's reduce-scatter is an all-reduce.
        Kind::ReduceScatter if library == Library::Gloo => (2.0, false),
        Kind::Broadcast | Kind::Reduce => {
            return Messages { count: ranks.log2().ceil(), part: 1.0 };
        }
        Kind::Send | Kind::Recv | Kind::SendRecv => (1.0, true),
        _ => (1.0, false),
    };
    if whole {
        return Messages { count: rounds, part: 1.0 };
    }
    Messages { count: rounds * (ranks - 1.0), part: ranks.recip() }
}

impl Line {
    /// Between sizes along a straight line of logarithms. Smaller calls take what the smallest does;
    /// larger ones more by the last two sizes' difference.
    fn at(&self, size: f64) -> f64 {
        let after = self.points.partition_point(|(known, _)| *known <= size);
        let Some(&(last, longest)) = self.points.last() else { return 0.0 };
        match after {
            0 => self.points[0].1,
            _ if after < self.points.len() => {
                let ((a, from), (b, to)) = (self.points[after - 1], self.points[after]);
                let part = (size / a).ln() / (b / a).ln();
                (from.ln() + part * (to / from).ln()).exp()
            }
            1 => longest * size / last,
            _ => {
                let (before, shorter) = self.points[after - 2];
                longest + (size - last) * ((longest - shorter) / (last - before)).max(0.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Bytes;

    use super::*;

    fn sweep(ranks: u32, points: &[(u64, f64)]) -> ProcessorSweep {
        ProcessorSweep {
            collective: "all-reduce".into(),
            ranks,
            nodes: ranks,
            sizes: points.iter().map(|(size, _)| Bytes::new(*size)).collect(),
            times_us: points.iter().map(|(_, us)| *us).collect(),
        }
    }

    fn micros(sweeps: &[ProcessorSweep], kind: Kind, bytes: f64, ranks: u32) -> Option<f64> {
        let known = Processors::new(sweeps.iter().map(|one| (Kind::AllReduce, one)).collect());
        known.at(kind, bytes, ranks, true, Library::Gloo).map(|ns| ns.round() / 1e3)
    }

    #[test]
    fn sizes_lie_between_those_measured_or_beyond() {
        let own = [sweep(2, &[(1000, 100.0), (4000, 200.0), (8000, 240.0)])];
        for (bytes, want) in [
            (1.0, 100.0),
            (1000.0, 100.0),
            (2000.0, 100.0 * 2f64.sqrt()),
            (8000.0, 240.0),
            (12000.0, 280.0),
        ] {
            let found = micros(&own, Kind::AllReduce, bytes, 2).expect("measured");
            assert!((found - want).abs() < 1e-3, "{bytes} bytes: {found}, not {want}");
        }
        assert_eq!(micros(&[sweep(2, &[(1000, 10.0)])], Kind::AllReduce, 3000.0, 2), Some(30.0));
        assert_eq!(micros(&own, Kind::AllGather, 1000.0, 2), None);
        assert_eq!(micros(&own, Kind::Unknown, 1000.0, 2), Some(100.0));
    }

    /// Four ranks send six messages of a quarter each, where two send two of a half.
    #[test]
    fn more_ranks_send_more_and_smaller_messages() {
        let own = [sweep(2, &[(1000, 100.0), (4000, 200.0), (8000, 240.0)])];
        assert_eq!(micros(&own, Kind::AllReduce, 8000.0, 4), Some(600.0));
        assert_eq!(micros(&own, Kind::AllReduce, 100.0, 4), Some(300.0));
        // The nearest number of ranks tells.
        let both = [own[0].clone(), sweep(4, &[(8000, 500.0)])];
        assert_eq!(micros(&both, Kind::AllReduce, 8000.0, 4), Some(500.0));
    }
}
