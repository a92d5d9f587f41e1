//! Sailor's runs on GH200 nodes, from its profiles of layers.

mod described;

use std::collections::BTreeMap;

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_cost::GroupPlacement;
use foretrain_cost::kernels::KernelModel;
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_plan::layout::Schedule;
use foretrain_plan::pipeline::{Durations, evaluate, orders};
use foretrain_plan::times::Machine;

use super::runs::{Reasons, Runs, left_out};
use crate::validate::ValidationSet;
use crate::validate::columns::{Line, Table, table};
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome, Skipped};
use crate::validate::roots::Root;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[&Sailor, &described::STEPS, &described::MEMORY];

/// Where constants may be learnt from.
pub(super) const SOURCES: &[&Runs] = &[&described::STEPS];

/// Iterations from measured layers.
struct Sailor;

const RUNS: &str = "measured/e2e_sailor_validation.csv";
const PROFILES: &str = "measured/kernels_sailor_layer_profiles.csv.gz";

impl ValidationSet for Sailor {
    fn name(&self) -> &'static str {
        "e2e-sailor"
    }
    fn about(&self) -> &'static str {
        "Iterations of OPT-350M on 4 to 128 GH200 (Alps) from the authors' own profile of each layer \
         (forward, backward and update on as many tensor-parallel ranks; communication among them is in \
         it), the plan (layers per stage, micro-batches, replicas) and the catalogue's network. Stages run \
         one forward, one backward; activations travel between nodes; gradients in 16 bits follow the last \
         backward pass. Left out: GPT-Neo, whose profile for this device is a copy of OPT-350M's, and runs on \
         several kinds of devices over Ethernet of unknown rate. Nothing is fitted to these rows."
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        scored(corpus.root()).unwrap_or_else(|error| SetOutcome {
            skipped: vec![Skipped { what: RUNS.into(), why: error.to_string() }],
            ..SetOutcome::default()
        })
    }
}

fn scored(root: &Root) -> Result<SetOutcome> {
    let mut outcome = SetOutcome::default();
    let (Some(runs), Some(profiles)) = (table(root, RUNS)?, table(root, PROFILES)?) else {
        return Ok(outcome);
    };
    let profiles = Profiles::of(&profiles);
    let cluster = alps()?;
    let mut reasons = Reasons::default();
    for line in runs.lines() {
        let row = Run::of(line).and_then(|run| run.row(&profiles, &cluster));
        match row {
            Ok(row) => outcome.rows.push(row),
            Err(error) => reasons.add(line.text("case").to_owned(), &error),
        }
    }
    outcome.rows.sort_by(|a, b| a.group.cmp(&b.group));
    outcome.skipped = reasons.into_skipped();
    Ok(outcome)
}

/// Four GH200 with NVLink to each other, and a Slingshot port of 200 Gbit/s each.
fn alps() -> Result<Cluster> {
    const ENTRY: &str = "[nodes.alps-gh200]\n\
        based_on = \"vista-gh200\"\n\
        description = \"Alps node: four GH200, NVLink, four Slingshot 11 ports\"\n\
        devices = 4\n\
        intra = \"nvlink\"\n\
        intra_generation = 4\n\
        links_per_device = 18\n\
        intra_bandwidth = \"450 GB/s\"\n\
        nics = 4\n\
        nic = \"slingshot\"\n\
        nic_bandwidth = \"200 Gbit/s\"\n\
        source = \"recalled\"\n";
    let mut catalogue = Catalogue::builtin().clone();
    catalogue.load_str(ENTRY, "alps")?;
    catalogue.cluster("alps-gh200")
}

/// Seconds of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LayerTimes {
    forward: f64,
    backward: f64,
    update: f64,
}

/// Layers of a model on a device by tensor-parallel ranks and micro-batch, in order.
#[derive(Debug, Default)]
struct Profiles(BTreeMap<(String, String, u64, u64), BTreeMap<u64, LayerTimes>>);

impl Profiles {
    fn of(table: &Table) -> Self {
        let mut profiles = Self::default();
        for line in table.lines() {
            let (Some(tensor), Some(micro_batch)) = (line.whole("tp"), line.whole("micro_batch"))
            else {
                continue;
            };
            let index = line.text("layer_index").parse::<u64>();
            let times =
                [line.number("fwd_s"), line.number("bwd_s"), line.number("optimizer_update_s")];
            let (Ok(index), [Some(forward), Some(backward), Some(update)]) = (index, times) else {
                continue;
            };
            let (model, gpu) = (line.text("model").to_owned(), line.text("gpu").to_owned());
            profiles
                .0
                .entry((model, gpu, tensor, micro_batch))
                .or_default()
                .insert(index, LayerTimes { forward, backward, update });
        }
        profiles
    }

    fn layers(&self, run: &Run) -> Result<Vec<LayerTimes>> {
        let key = (run.model.clone(), DEVICE.to_owned(), run.tensor, run.micro_batch);
        let layers = self.0.get(&key).map(|layers| layers.values().copied().collect::<Vec<_>>());
        let layers =
            layers.ok_or_else(|| left_out("no profile of this division and micro-batch"))?;
        let wanted: usize = run.stages.iter().sum();
        if layers.len() == wanted {
            Ok(layers)
        } else {
            let found = layers.len();
            Err(left_out(format!("the plan has {wanted} layers, the profile {found}")))
        }
    }
}

/// The device as the profiles call it.
const DEVICE: &str = "GH-96";

/// One run.
struct Run {
    case: String,
    model: String,
    hidden: u64,
    sequence: u64,
    vocabulary: u64,
    tensor: u64,
    replicas: u64,
    micro_batch: u64,
    micro_batches: u32,
    /// Layers of each stage, embedding and head counted.
    stages: Vec<usize>,
    measured: f64,
}

impl Run {
    fn of(line: Line<'_>) -> Result<Self> {
        if line.text("homogeneous") != "1" {
            return Err(left_out("several kinds of devices over Ethernet of unknown rate"));
        }
        if line.text("model") != "OPT-350" {
            return Err(left_out("the profile for this device is a copy of OPT-350M's"));
        }
        let whole = |column: &str| {
            line.whole(column).ok_or_else(|| left_out(format!("the row gives no {column}")))
        };
        let stages = line.text("layers_per_stage").split('/').map(|layers| layers.trim().parse());
        let stages = stages.collect::<std::result::Result<Vec<usize>, _>>();
        let stages = stages.map_err(|_| left_out("the row does not list layers per stage"))?;
        let (replicas, micro_batch, batch) = (whole("dp")?, whole("mbs")?, whole("gbs")?);
        let micro_batches = u32::try_from(batch / (replicas * micro_batch).max(1));
        let micro_batches = micro_batches.ok().filter(|&count| count > 0);
        Ok(Self {
            case: line.text("case").to_owned(),
            model: line.text("model").to_owned(),
            hidden: whole("hidden")?,
            sequence: whole("seq_len")?,
            vocabulary: whole("vocab")?,
            tensor: whole("tp")?,
            replicas,
            micro_batch,
            micro_batches: micro_batches
                .ok_or_else(|| left_out("the batch cannot be dealt out to the replicas"))?,
            stages,
            measured: line.number("measured_iter_s").ok_or_else(|| left_out("no time is given"))?,
        })
    }

    fn row(&self, profiles: &Profiles, cluster: &Cluster) -> Result<Row> {
        let layers = profiles.layers(self)?;
        let predicted = self.predict(&layers, cluster)?;
        Ok(Row {
            group: format!("{} stages", self.stages.len()),
            what: format!(
                "{}: tp={}, dp={}, {} micro-batches of {}",
                self.case, self.tensor, self.replicas, self.micro_batches, self.micro_batch
            ),
            predicted,
            measured: self.measured,
            low: Some(predicted / (1.0 + SPREAD)),
            high: Some(predicted * (1.0 + SPREAD)),
            reference: None,
        })
    }

    fn predict(&self, layers: &[LayerTimes], cluster: &Cluster) -> Result<f64> {
        let machine = Machine::new(cluster, KernelModel::for_device(&cluster.node.device));
        let count = |n: u64| u32::try_from(n).map_err(|_| left_out("more ranks than there are"));
        let (tensor, replicas) = (count(self.tensor)?, count(self.replicas)?);
        let depth = count(self.stages.len() as u64)?;
        // Each rank sends its part of the activations to its peer in the next stage.
        let boundary = 2 * self.micro_batch * self.sequence * self.hidden / self.tensor;
        let neighbours = GroupPlacement::strided(2, tensor * replicas);
        let transfer = if depth > 1 {
            machine.collective(CollectiveKind::SendRecv, Bytes::new(boundary), &neighbours)?.time
        } else {
            Nanos::ZERO
        };
        let mut from = 0;
        let mut durations = Vec::new();
        let mut last = Vec::new();
        for &length in &self.stages {
            let stage = &layers[from..from + length];
            let sum = |of: fn(&LayerTimes) -> f64| -> f64 { stage.iter().map(of).sum() };
            durations.push(Durations {
                forward: Nanos::from_secs_f64(sum(|layer| layer.forward)),
                backward: Nanos::from_secs_f64(sum(|layer| layer.backward)),
                send_forward: transfer,
                send_backward: transfer,
                ..Durations::default()
            });
            let gradients = Bytes::new(2 * self.parameters(from, length) / self.tensor);
            let group = GroupPlacement::strided(replicas, tensor);
            let reduce = machine.collective(CollectiveKind::AllReduce, gradients, &group)?.time;
            last.push(reduce.secs_f64() + sum(|layer| layer.update));
            from += length;
        }
        let orders = orders(Schedule::OneFOneB, depth, 1, self.micro_batches)?;
        let times = evaluate(&orders, &durations, true)
            .ok_or_else(|| left_out("the stages wait for each other for ever"))?;
        let ends =
            times.computed.iter().zip(last).map(|(computed, last)| computed.secs_f64() + last);
        Ok(ends.fold(0.0, f64::max))
    }

    /// Parameters of `length` layers from `from` on: embedding, blocks of twelve squares, head.
    fn parameters(&self, from: usize, length: usize) -> u64 {
        let end: usize = self.stages.iter().sum();
        let block = 12 * self.hidden * self.hidden;
        let of = |index: usize| {
            if index == 0 || index + 1 == end { self.vocabulary * self.hidden } else { block }
        };
        (from..from + length).map(of).sum()
    }
}

/// Half of an 80 % interval: profiles were taken one layer at a time.
const SPREAD: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stages: Vec<usize>, replicas: u64, micro_batches: u32) -> Run {
        Run {
            case: String::new(),
            model: "OPT-350".into(),
            hidden: 1024,
            sequence: 2048,
            vocabulary: 50272,
            tensor: 4,
            replicas,
            micro_batch: 8,
            micro_batches,
            stages,
            measured: 1.0,
        }
    }

    #[test]
    fn one_stage_takes_its_layers_once_per_micro_batch() {
        let layers = vec![LayerTimes { forward: 0.001, backward: 0.002, update: 0.0001 }; 26];
        let cluster = alps().unwrap();
        let one = run(vec![26], 1, 4).predict(&layers, &cluster).unwrap();
        assert!((one - (4.0 * 26.0 * 0.003 + 26.0 * 0.0001)).abs() < 1e-6, "{one}");
        // Replicas add the exchange of gradients, stages a bubble.
        assert!(run(vec![26], 4, 4).predict(&layers, &cluster).unwrap() > one);
        let two = run(vec![13, 13], 1, 4).predict(&layers, &cluster).unwrap();
        assert!(two > 5.0 * 13.0 * 0.003 && two < one, "{two}");
    }
}
