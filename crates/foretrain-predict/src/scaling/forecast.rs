//! Sizes and accumulations that were not measured.

use foretrain_core::{Estimate, Nanos};

use super::answer::Predicted;
use super::exposed::{Exposed, Size};
use super::normal::{Normal, Normalised};
use super::outlook::{BACKWARD, inverse};

/// Half-width of what is interpolated within a node.
const WITHIN: f64 = 0.05;
/// Half-width of what is carried beyond the largest point of a node.
const BEYOND: f64 = 0.1;
/// Share of a NIC's nominal rate that collectives usually reach.
pub(super) const REACHED: f64 = 0.8;

/// What predictions rest on.
pub(super) struct Basis<'a> {
    pub(super) normal: &'a Normalised<'a>,
    /// Cost of work on one node.
    pub(super) node_cost: Option<f64>,
    pub(super) exposed: Option<Exposed>,
    /// The same from accumulation: cost of a micro-step.
    pub(super) is_line: bool,
}

impl Basis<'_> {
    /// Predicts what was asked; what cannot be is said.
    pub(super) fn answer(&self, way_and_micro: Size) -> (Vec<Predicted>, Vec<String>) {
        let series = self.normal.series;
        let sizes: Vec<u32> = match &series.ask[..] {
            [] if series.ask_accumulation.is_empty() && !self.is_line => Vec::new(),
            [] => vec![way_and_micro.gpus],
            asked => asked.to_vec(),
        };
        let between = self.between_measured();
        let accumulations: Vec<u32> = match &series.ask_accumulation[..] {
            [] if series.ask.is_empty() => between,
            [] => vec![way_and_micro.micro],
            asked => asked.to_vec(),
        };
        let (mut predicted, mut unanswered) = (Vec::new(), Vec::new());
        for gpus in sizes {
            if series.per_node().is_none() && gpus > self.normal.first().gpus {
                unanswered.push(format!(
                    "{gpus} GPUs: how many of them share a node is unknown; give gpus_per_node"
                ));
                continue;
            }
            for &micro in &accumulations {
                let nodes = if gpus == way_and_micro.gpus {
                    way_and_micro.nodes
                } else {
                    series.nodes(gpus)
                };
                let size = Size { gpus, nodes, micro, ..way_and_micro };
                match self.one(size) {
                    Ok(one) => predicted.push(one),
                    Err(why) => unanswered.push(format!("{gpus} GPUs: {why}")),
                }
            }
        }
        unanswered.dedup();
        (predicted, unanswered)
    }

    /// Powers of two between the accumulations that were measured, where these give a line.
    fn between_measured(&self) -> Vec<u32> {
        let measured = || self.normal.trusted().map(|point| point.micro);
        let (Some(least), Some(most)) = (measured().min(), measured().max()) else {
            return Vec::new();
        };
        let powers = (0..u32::BITS).map(|exponent| 1_u32 << exponent);
        let is_new = |micro: &u32| {
            (least + 1..most).contains(micro) && !measured().any(|other| other == *micro)
        };
        powers.filter(|micro| self.is_line && is_new(micro)).collect()
    }

    fn one(&self, size: Size) -> Result<Predicted, String> {
        let normal = self.normal;
        let work = self.work(size);
        let (cost, basis) = if size.nodes <= 1 {
            within(normal, size.gpus)?
        } else {
            let (lost, basis) = self.lost(size, work)?;
            let node_cost = self.node_cost.ok_or("no point on one node")?;
            (lost.map(|lost: f64| node_cost + lost / work), basis)
        };
        let throughput = normal.throughput(size.gpus, 1.0).map(|at_first| inverse(cost, at_first));
        let step = normal.unit.map(|unit| cost.map::<Nanos>(|cost| cost * work * unit * 1e9));
        Ok(Predicted {
            gpus: size.gpus,
            nodes: size.nodes,
            accumulation: size.micro,
            efficiency: inverse(cost, 1.0),
            throughput,
            step,
            basis,
        })
    }

    /// Work per GPU and step at a size, in micro-steps of the smallest point.
    pub(super) fn work(&self, size: Size) -> f64 {
        let first = self.normal.first();
        let micro = f64::from(size.micro.max(1));
        // The batch per GPU is that of this size, else that of the largest.
        let of_size = |point: &&Normal<'_>| (point.gpus, point.nodes) == (size.gpus, size.nodes);
        let like = self.normal.trusted().find(of_size).or_else(|| self.normal.largest());
        let like = like.unwrap_or(first);
        if self.normal.series.known.same_global_batch {
            let share = f64::from(first.gpus) / f64::from(size.gpus);
            return first.work * share * micro / f64::from(first.micro);
        }
        like.work * micro / f64::from(like.micro)
    }

    fn lost(&self, size: Size, work: f64) -> Result<(Estimate<f64>, String), String> {
        let normal = self.normal;
        if let Some(exposed) = &self.exposed {
            let basis = match exposed.points {
                _ if self.is_line => "points of different accumulation".to_owned(),
                1 => "1 point on several nodes; bytes of a ring barely grow".to_owned(),
                n => format!("{n} points on several nodes"),
            };
            return Ok((exposed.between(normal, size), basis));
        }
        if normal.spread().next().is_some() {
            return Ok((
                Estimate::between(0.0, 0.0, 0.1 * work * self.node_cost.unwrap_or(1.0)),
                "points on several nodes lose nothing".into(),
            ));
        }
        let (Some(nic), Some(unit)) = (normal.series.known.nic, normal.unit) else {
            return Err(
                "no point on several nodes; give one, or the NIC rate and step times".into()
            );
        };
        if !normal.has_bytes() {
            return Err("give the gradient bytes, or parameters and their dtype".into());
        }
        let at_line_rate = Exposed::from_rate(nic.get() * REACHED * unit, 0.0).at(normal, size);
        let hidden = work * self.node_cost.unwrap_or(1.0) * BACKWARD;
        let lost = Estimate::between(
            at_line_rate,
            (at_line_rate * REACHED - hidden).max(0.0),
            at_line_rate * 1.6,
        );
        Ok((
            lost,
            format!(
                "{:.0} % of the NICs' nominal rate, nothing hidden behind the backward pass (the low end hides all it can)",
                REACHED * 100.0
            ),
        ))
    }
}

/// Cost within one node, between its points on a logarithmic axis.
fn within(normal: &Normalised<'_>, gpus: u32) -> Result<(Estimate<f64>, String), String> {
    let alone = || normal.trusted().filter(|point| point.nodes == 1);
    let below = alone().filter(|point| point.gpus <= gpus).max_by_key(|point| point.gpus);
    let above = alone().filter(|point| point.gpus >= gpus).min_by_key(|point| point.gpus);
    let around = |cost: f64, by: f64| Estimate::between(cost, cost * (1.0 - by), cost * (1.0 + by));
    match (below, above) {
        (Some(a), Some(b)) if a.gpus == b.gpus => Ok((around(a.cost, WITHIN), "measured".into())),
        (Some(a), Some(b)) => {
            let log = |n: u32| f64::from(n).ln();
            let share = (log(gpus) - log(a.gpus)) / (log(b.gpus) - log(a.gpus));
            let cost = a.cost + share * (b.cost - a.cost);
            Ok((around(cost, WITHIN), "between points of one node".into()))
        }
        (Some(near), None) | (None, Some(near)) => {
            Ok((around(near.cost, BEYOND), "nearest point of one node".into()))
        }
        (None, None) => Err("no point on one node".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::{Known, ScalingInput, Series};
    use super::super::{read, scaling};

    /// A step of a fixed global batch whose synchronisation grows with the ranks.
    fn step(gpus: u32) -> f64 {
        let gpus = f64::from(gpus);
        if gpus > 8.0 { 0.8 / gpus + 3e-4 * gpus } else { 0.8 / gpus }
    }

    #[test]
    fn a_measured_size_is_predicted_as_it_was_measured_at_its_own_batch() {
        let unit = "img/s".parse().expect("unit");
        let points = ["8=100,batch=32", "16=150,batch=64"];
        let points = points.map(|text| read::point(text, &unit).expect("point")).to_vec();
        let known = Known { gpus_per_node: Some(8), ..Known::default() };
        let series = Series { known, points, ask: vec![8, 16], ..Series::default() };
        let input = ScalingInput { series: vec![series], ..ScalingInput::default() };
        let answer = scaling(&input).expect("answer");
        let rates = answer.series[0].predictions.iter().map(|one| {
            let batch = one.gpus * if one.gpus == 8 { 32 } else { 64 };
            let step = one.step.expect("a time").value.secs_f64();
            (one.throughput.expect("a rate").value, f64::from(batch) / step)
        });
        for ((rate, by_step), measured) in rates.zip([100.0, 150.0]) {
            assert!((rate / measured - 1.0).abs() < 1e-6, "{rate} of {measured}");
            assert!((by_step / measured - 1.0).abs() < 1e-6, "{by_step} of {measured}");
        }
    }

    #[test]
    fn strong_scaling_peaks_where_the_truth_does() {
        let points: String = [8, 16, 24, 40]
            .map(|gpus| format!("[[point]]\ngpus = {gpus}\nvalue = {}\n", step(gpus)))
            .concat();
        let text = format!(
            "unit = \"s/step\"\nask = [48, 64, 96, 128]\n[job]\ngpus_per_node = 8\n\
             same_global_batch = true\ngradient_bytes = \"100 MB\"\n{points}"
        );
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("runs.toml");
        std::fs::write(&path, text).expect("file");
        let input = read::read(&path, &Known::default()).expect("input");
        let answer = scaling(&input).expect("answer");
        let predicted: Vec<(u32, f64)> = answer.series[0]
            .predictions
            .iter()
            .map(|one| (one.gpus, one.step.expect("a time").value.secs_f64()))
            .collect();
        assert_eq!(predicted.len(), 4);
        for (gpus, seconds) in &predicted {
            assert!((seconds / step(*gpus) - 1.0).abs() < 0.05, "{gpus}: {seconds}");
        }
        // The truth is fastest at 48 GPUs and slower with each larger number.
        assert!(predicted.is_sorted_by(|a, b| a.1 < b.1), "{predicted:?}");
    }
}
