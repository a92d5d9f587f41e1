//! vTrain's grid of GPT models on A100 nodes, trained by Megatron-DeepSpeed.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{InputError, Result};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_plan::{Precision, Recompute, Software, Training, Wish};
use foretrain_workload::model::Model;
use foretrain_workload::spec;

use super::case::{Case, Quantity, score, score_fitted};
use super::runs::Read;
use super::sources;
use crate::validate::ValidationSet;
use crate::validate::columns::{Line, Table};
use crate::validate::corpus::Corpus;
use crate::validate::report::SetOutcome;
use crate::validate::roots::Root;

/// Sets of the grid, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[
    &of_grid("e2e-vtrain-single", false, false),
    &of_grid("e2e-vtrain-single-calibrated", false, true),
    &of_grid("e2e-vtrain-multi", true, false),
    &of_grid("e2e-vtrain-multi-calibrated", true, true),
];

/// Whose runs they are.
pub(super) const SOURCE: &str = "vtrain";

const fn of_grid(name: &'static str, several_nodes: bool, calibrated: bool) -> VTrain {
    VTrain { name, several_nodes, calibrated }
}

/// The grid on one node, or on several.
pub(super) struct VTrain {
    pub(super) name: &'static str,
    pub(super) several_nodes: bool,
    /// Scaled by one row in twenty, which is not scored.
    pub(super) calibrated: bool,
}

impl ValidationSet for VTrain {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        if self.calibrated {
            "As the set without `-calibrated`, with factors on products, memory-bound kernels, \
             communication and the host's pace that are fitted to one row in twenty (chosen by a hash \
             of the row with a fixed seed), which are not scored."
        } else {
            "Step times of GPT models trained by Megatron-DeepSpeed on nodes of eight A100 (200 Gbit/s \
             x 4 between nodes), activations recomputed, 1F1B. Given: the model's dimensions, the \
             layout and the batch. The runs of the smallest model set the pace of the host and are not \
             scored; nothing is fitted to the others."
        }
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of("e2e_training.csv", self.cases(corpus.root()), |cases| {
            self.compare(&cases, corpus)
        })
    }
}

impl VTrain {
    fn compare(&self, cases: &[Case], corpus: &Corpus<'_>) -> SetOutcome {
        let held_out = sources(corpus).without(Some(SOURCE));
        let notes = held_out.notes(cases, self.calibrated);
        let mut outcome = SetOutcome { notes, ..SetOutcome::default() };
        if self.calibrated {
            let constants = &held_out.calibrated;
            score_fitted(cases, constants, |case| chosen(&case.group, &case.what), &mut outcome);
        } else {
            score(cases, &held_out.constants, &mut outcome);
        }
        outcome
    }
}

/// The pace of Megatron-DeepSpeed's host comes from this model's runs, which are not scored.
const SETS_THE_HOST: &str = "GPT h1024 L12 a16 s1024";

/// One row in twenty: FNV-1a of the row's name, and a seed that was never changed.
fn chosen(group: &str, what: &str) -> bool {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ 2024;
    for byte in group.bytes().chain(what.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash >> 20).is_multiple_of(20)
}

/// All runs of the grid.
pub(super) fn cases_of_grid(root: &Root) -> Result<Option<Read>> {
    let part = |several_nodes| VTrain { name: "", several_nodes, calibrated: false }.cases(root);
    let (one, several) = (part(false)?, part(true)?);
    let cases: Vec<Case> = one.into_iter().chain(several).flatten().collect();
    Ok((!cases.is_empty()).then(|| Read { cases, skipped: Vec::new() }))
}

impl VTrain {
    fn cases(&self, root: &Root) -> Result<Option<Vec<Case>>> {
        let Some(path) = root.file(&["measured/e2e_training.csv"]) else {
            return Ok(None);
        };
        let table = Table::read(&path)?;
        let cluster = Arc::new(cluster()?);
        let mut models = BTreeMap::new();
        let mut cases = Vec::new();
        for line in table.lines().filter(|line| line.text("source") == "VIA-Research/vTrain") {
            let several_nodes = line.text("where").contains("multi");
            if several_nodes == self.several_nodes && line.text("model") != SETS_THE_HOST {
                cases.push(case(line, &cluster, &mut models)?);
            }
        }
        cases.sort_by(|a, b| a.group.cmp(&b.group));
        Ok(Some(cases))
    }
}

/// Eight A100 with 80 GB per node, and four NICs of 200 Gbit/s (the authors' 800 Gbit/s per node).
fn cluster() -> Result<Cluster> {
    let mut cluster = Catalogue::builtin().cluster("dgx-a100")?;
    cluster.node.nics = 4;
    Ok(cluster)
}

fn case(
    line: Line<'_>,
    cluster: &Arc<Cluster>,
    models: &mut BTreeMap<String, Arc<Model>>,
) -> Result<Case> {
    let (name, parallel) = (line.text("model"), line.text("parallelism"));
    let wrong = || InputError::new(format!("a row of another form: {name}, {parallel}"));
    let field = |text: &str, key: &str| -> Option<u64> {
        text.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok())
    };
    let of_model = |key| field(name, key).ok_or_else(wrong);
    let of_layout = |key| field(parallel, key).ok_or_else(wrong);
    let (hidden, layers, heads, sequence) =
        (of_model("h")?, of_model("L")?, of_model("a")?, of_model("s")?);
    if !models.contains_key(name) {
        // Megatron pads GPT-2's vocabulary.
        let text = format!(
            "[transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\n\
             vocabulary = 51200\npositions = {sequence}\n"
        );
        models.insert(name.to_owned(), Arc::new(spec::parse(&text, name)?));
    }
    let model = models.get(name).map(Arc::clone).ok_or_else(wrong)?;
    let degree = |key| of_layout(key).and_then(|n| u32::try_from(n).map_err(|_| wrong()));
    let wish = Wish {
        tensor: Some(degree("tp")?),
        pipeline: Some(degree("pp")?),
        data: Some(degree("dp")?),
        micro_batch: Some(of_layout("mbs")?),
        recompute: Some(Recompute::Full),
        ..Wish::default()
    };
    let devices =
        u32::try_from(line.whole("world_size").ok_or_else(wrong)?).map_err(|_| wrong())?;
    let global_batch = field(line.text("batch"), "gbs").ok_or_else(wrong)?;
    let training = Training { precision: Precision::F16, ..Training::of(global_batch, sequence) };
    Ok(Case {
        group: name.to_owned(),
        what: format!("{devices} GPUs, {parallel}, batch {global_batch}"),
        model,
        training,
        software: Software::named("megatron-deepspeed")?,
        cluster: Arc::clone(cluster),
        layout: wish.complete(devices)?,
        quantity: Quantity::Step,
        measured: line.number("value").ok_or_else(wrong)? / 1e3,
        reference: None,
    })
}
