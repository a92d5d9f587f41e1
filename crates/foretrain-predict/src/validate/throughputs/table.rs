//! Rows of `fleet/scaling_throughput.csv.gz`.

use std::io::Read;
use std::path::Path;

use foretrain_core::stats::median;
use foretrain_core::{InputError, Result};

use super::super::measured::unreadable;

/// The table has 2 MB unpacked; more is some other file.
const LARGEST: u64 = 64 << 20;

/// One measured row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) source: String,
    pub(super) device: String,
    pub(super) model: String,
    /// Nodes; 0 where GPUs were spread over an unknown number of them.
    pub(super) nodes: u32,
    pub(super) gpus: u32,
    pub(super) batch: f64,
    pub(super) placement: String,
    /// Of a step.
    pub(super) seconds: f64,
    /// What of it is synchronisation.
    pub(super) synchronisation: Option<f64>,
}

impl Measured {
    pub(super) fn is_alone(&self) -> bool {
        self.nodes == 1
    }
    pub(super) fn what(&self) -> String {
        let Self { gpus, nodes, placement, batch, .. } = self;
        match placement.as_str() {
            "" => format!("{gpus} GPUs on {nodes} nodes, batch {batch} each"),
            placement => format!("{gpus} GPUs as {placement}, batch {batch} each"),
        }
    }
}

/// Rows that were measured and tell all of this.
pub(super) fn read(path: &Path) -> Result<Vec<Measured>> {
    let file = std::fs::File::open(path).map_err(|error| InputError::io(&error, path))?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .take(LARGEST)
        .read_to_string(&mut text)
        .map_err(|error| InputError::io(&error, path))?;
    parse(&text).map_err(|error| error.in_file(path))
}

fn parse(text: &str) -> Result<Vec<Measured>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let heads = reader.headers().map_err(|error| unreadable(&error))?.clone();
    let at = |name: &str| {
        let found = heads.iter().position(|head| head == name);
        found.ok_or_else(|| InputError::new(format!("no column \"{name}\"")))
    };
    let columns = [
        "source",
        "gpu",
        "model",
        "nodes",
        "total_gpus",
        "local_batch",
        "placement",
        "step_time_or_throughput",
        "unit",
        "sync_time_s",
        "measured",
    ];
    let columns: Vec<usize> = columns.into_iter().map(at).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(&error))?;
        let cell = |i: usize| record.get(columns[i]).unwrap_or_default();
        let number = |i: usize| cell(i).parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        let seconds = match (cell(8), number(7)) {
            ("s/step", Some(seconds)) => seconds,
            ("steps/s", Some(rate)) => 1.0 / rate,
            _ => continue,
        };
        let (Some(gpus), Some(batch), "yes") = (number(4), number(5), cell(10)) else { continue };
        rows.push(Measured {
            source: cell(0).to_owned(),
            device: cell(1).to_owned(),
            model: cell(2).to_owned(),
            // Up to eight GPUs in one place are one node of those studies.
            nodes: match (number(3), cell(6)) {
                (Some(nodes), _) => nodes as u32,
                (None, "consolidated") => 1,
                (None, _) => 0,
            },
            gpus: gpus as u32,
            batch,
            placement: cell(6).to_owned(),
            seconds,
            synchronisation: number(9),
        });
    }
    Ok(rows)
}

/// A value by batch: medians over rows of equal batch.
pub(super) struct ByBatch(Vec<(f64, f64)>);

impl ByBatch {
    pub(super) fn new<'a>(
        rows: impl Iterator<Item = &'a Measured>,
        value: impl Fn(&Measured) -> Option<f64>,
    ) -> Self {
        let mut points: Vec<(f64, f64)> =
            rows.filter_map(|row| Some((row.batch, value(row)?))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let median_of = |same: &[(f64, f64)]| {
            let values: Vec<f64> = same.iter().map(|point| point.1).collect();
            Some((same.first()?.0, median(&values)?))
        };
        Self(points.chunk_by(|a, b| a.0 == b.0).filter_map(median_of).collect())
    }

    /// Between batches on a line. Beyond them on the line through the outermost two, as far as a part
    /// of the value stays fixed and the rest grows with the batch.
    pub(super) fn at(&self, batch: f64) -> Option<f64> {
        let points = &self.0;
        let above = points.partition_point(|point| point.0 < batch);
        let nearest = points.get(above).or(points.last())?;
        // Two points around the batch, or the outermost two.
        let from = above.saturating_sub(1).min(points.len().saturating_sub(2));
        let [a, b, ..] = points[from..] else { return Some(nearest.1) };
        let on_line = a.1 + (batch - a.0) / (b.0 - a.0) * (b.1 - a.1);
        let inside = (a.0..=b.0).contains(&batch);
        let (fixed, proportional) = (nearest.1, nearest.1 * batch / nearest.0);
        let (low, high) = (fixed.min(proportional), fixed.max(proportional));
        Some(if inside { on_line } else { on_line.clamp(low, high) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "model,gpu,nodes,local_batch,step_time_or_throughput,unit,source,total_gpus,placement,sync_time_s,measured\n";

    #[test]
    fn only_complete_measured_rows_are_taken() {
        let rows = "bert,T4,1,4,0.5,s/step,s,1,1,0.1,yes\nbert,T4,,4,2,steps/s,s,2,spread,,yes\n\
            bert,T4,1,4,0.5,s/step,s,1,1,0.1,no\nbert,T4,1,,0.5,s/step,s,1,1,,yes\n";
        let rows = parse(&format!("{HEAD}{rows}")).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].nodes, rows[1].seconds, rows[1].synchronisation), (0, 0.5, None));
        assert!(parse("a,b\n1,2\n").is_err());
    }

    #[test]
    fn values_lie_on_lines_through_batches() {
        let rows = parse(&format!(
            "{HEAD}m,T4,1,4,1,s/step,s,1,1,,yes\nm,T4,1,4,3,s/step,s,1,1,,yes\nm,T4,1,8,3,s/step,s,1,1,,yes\n"
        ))
        .unwrap();
        let values = ByBatch::new(rows.iter(), |row| Some(row.seconds));
        let at = [4.0, 6.0, 8.0, 12.0, 2.0].map(|batch| values.at(batch));
        assert_eq!(at, [Some(2.0), Some(2.5), Some(3.0), Some(4.0), Some(1.5)]);
        assert_eq!(ByBatch::new(std::iter::empty(), |row| Some(row.seconds)).at(1.0), None);
    }

    #[test]
    fn no_line_leads_below_nothing_or_past_proportion() {
        let of = |points: &[(f64, f64)], batch| ByBatch(points.to_vec()).at(batch);
        // A line through the origin's other side is held at proportion, a falling one at the nearest.
        assert_eq!(of(&[(4.0, 2.0), (8.0, 6.0)], 1.0), Some(0.5));
        assert_eq!(of(&[(4.0, 2.0), (8.0, 6.0)], 100.0), Some(75.0));
        assert_eq!(of(&[(4.0, 3.0), (8.0, 2.0)], 16.0), Some(2.0));
        assert_eq!(of(&[(4.0, 3.0)], 16.0), Some(3.0));
    }
}
