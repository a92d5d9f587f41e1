//! Scoring predictions against measurements that others made.
//!
//! A data directory holds recordings and tables of measured times (its layout is described beside
//! it). Each [`ValidationSet`] turns some of them into rows of predicted and measured values; the
//! registry in this module is the only place that names the sets. Nothing here may change a
//! prediction: sets call what users call, and whatever they leave out is listed with its reason.

mod collectives;
mod columns;
mod corpus;
mod ddp_lab;
mod e2e;
mod extrapolate;
mod fleet;
mod heldout;
mod interference;
mod kernels;
mod lab;
mod markdown;
mod measured;
mod metrics;
mod rankwise;
mod replay;
mod report;
mod roots;
mod throughputs;
mod workloads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use foretrain_core::suggest::nearest;
use foretrain_core::{InputError, Result};

pub use corpus::Corpus;
pub use markdown::to_markdown;
pub use measured::StepTable;
pub use metrics::{Scores, error_percent, scores};
pub use report::{Group, Reference, Row, SetOutcome, SetReport, Skipped, ValidationReport};
pub use roots::Root;

/// What to validate on.
#[derive(Clone, Debug, Default)]
pub struct ValidateOptions {
    /// Directory with `traces/`, `lab/`, `measured/`.
    pub data: PathBuf,
    /// Names of the sets to run; all of them if `None`.
    pub sets: Option<Vec<String>>,
    /// Directories (or single files) with further recordings in the same formats, each scored on
    /// its own.
    pub extra: Vec<PathBuf>,
    /// Whether to keep every row in the report. Scores and per-file groups are always there.
    pub rows: bool,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done ("reading traces", "replay-rankwise").
    pub stage: &'a str,
    /// Items done.
    pub done: usize,
    /// Items in all.
    pub total: usize,
}

/// Callback for [`Progress`]; called from many threads.
pub type OnProgress<'a> = &'a (dyn Fn(Progress<'_>) + Sync);

/// One way of comparing predictions with measurements.
pub trait ValidationSet: Sync {
    /// Stable name, kebab-case.
    fn name(&self) -> &'static str;

    /// What is predicted from what, what it proves and what it does not: one paragraph.
    fn about(&self) -> &'static str;

    /// Unit of predicted and measured values.
    fn unit(&self) -> &'static str;

    /// Predicts everything there is to predict under a corpus's root.
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome;
}

/// Sets of recordings and tables; those of described runs follow them.
const SETS: [&dyn ValidationSet; 45] = [
    &replay::Replay,
    &heldout::HeldOutStep,
    &rankwise::Rankwise,
    &extrapolate::FromOneRank { timed: false },
    &extrapolate::FromOneRank { timed: true },
    &extrapolate::FromAllRanks,
    &ddp_lab("ddp-lab-w2-50", (2, 50, "1")),
    &ddp_lab("ddp-lab-w2-200", (2, 200, "1")),
    &ddp_lab("ddp-lab-w2-1000", (2, 1000, "1")),
    &ddp_lab("ddp-lab-w4-200", (4, 200, "0.5")),
    &ddp_lab::DdpLab { name: "ddp-lab-all", only: None },
    &collectives::Echo { most: 32 },
    &collectives::Echo { most: 16 },
    &collectives::ScaleUp,
    &collectives::SingleNode,
    &zero_shot("collectives-zero-shot-h100", "h100_sxm"),
    &zero_shot("collectives-zero-shot-a100", "a100_sxm"),
    &zero_shot("collectives-zero-shot-b200", "b200_sxm"),
    &zero_shot("collectives-zero-shot-gb200", "gb200"),
    &zero_shot("collectives-zero-shot-rtx-pro-6000", "rtx_pro_6000_server"),
    &collectives::ZeroShot { name: "collectives-zero-shot-others", system: None },
    &collectives::EightFromFour,
    &collectives::UnseenGpu,
    &collectives::RackToRacks,
    &interference::Gavel,
    &interference::Alnair,
    &interference::Traces,
    &kernels::GEMM,
    &kernels::GEMM_UNSEEN,
    &kernels::GEMM_OTHER_SOURCES,
    &kernels::ATTENTION,
    &kernels::ATTENTION_UNSEEN,
    &kernels::MEMORY,
    &kernels::MEMORY_UNSEEN,
    &kernels::MEMORY_OTHER_SOURCES,
    &workloads::Hkbu(workloads::Given::OneScheduler),
    &workloads::Hkbu(workloads::Given::OwnFour),
    &workloads::Hkbu(workloads::Given::OwnFourOneEight),
    &workloads::SmallScale,
    &workloads::PytorchBenchmark,
    &throughputs::POLLUX,
    &throughputs::SIA,
    &throughputs::ELASTICFLOW,
    &throughputs::GAVEL,
    &throughputs::MURI,
];

/// All sets, in the order of the report.
pub fn sets() -> impl Iterator<Item = &'static dyn ValidationSet> {
    SETS.into_iter().chain(e2e::sets()).chain(fleet::SETS.iter().copied())
}

const fn ddp_lab(name: &'static str, only: (u32, u32, &'static str)) -> ddp_lab::DdpLab {
    ddp_lab::DdpLab { name, only: Some(only) }
}

/// Names that stand for all sets whose names they begin.
const GROUPS: [&str; 13] = [
    "collectives",
    "ddp",
    "ddp-lab",
    "e2e",
    "e2e-llm",
    "e2e-mlperf",
    "e2e-vtrain",
    "interference",
    "kernels",
    "memory",
    "rank",
    "scaling",
    "scheduler",
];

const fn zero_shot(name: &'static str, system: &'static str) -> collectives::ZeroShot {
    collectives::ZeroShot { name, system: Some(system) }
}

/// Runs the wanted sets on the data directory, then on each extra directory.
///
/// # Errors
/// If a set's name is unknown, a directory cannot be read, or there is nothing to score.
pub fn run(options: &ValidateOptions, progress: OnProgress<'_>) -> Result<ValidationReport> {
    let wanted = wanted_sets(options.sets.as_deref())?;
    let mut roots = vec![Root::data(&options.data)?];
    for path in &options.extra {
        roots.push(Root::extra(path)?);
    }
    let mut report = ValidationReport::default();
    for root in &roots {
        let corpus = Corpus::new(root, progress)?;
        for set in &wanted {
            let outcome = guarded(|| set.score(&corpus)).unwrap_or_else(|why| SetOutcome {
                skipped: vec![Skipped { what: set.name().into(), why }],
                ..SetOutcome::default()
            });
            report.sets.push(SetReport::new(*set, root, outcome, options.rows));
        }
    }
    if report.sets.iter().all(|set| set.scores.is_none()) {
        return Err(InputError::new("nothing to score was found")
            .in_file(&options.data)
            .hint("name the directory that holds traces/, lab/ and measured/"));
    }
    Ok(report)
}

fn wanted_sets(names: Option<&[String]>) -> Result<Vec<&'static dyn ValidationSet>> {
    let Some(names) = names else { return Ok(sets().collect()) };
    let named = |set: &dyn ValidationSet, name: &str| {
        let rest = set.name().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') && GROUPS.contains(&name))
    };
    for name in names {
        if !sets().any(|set| named(set, name)) {
            let error = InputError::new(format!("no validation set is called \"{name}\""));
            let known: Vec<&str> = sets().map(ValidationSet::name).collect();
            return Err(match nearest(name, known.iter().copied()) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint(format!("sets: {}", known.join(", "))),
            });
        }
    }
    // In the registry's order, each once, whatever the order asked for.
    let is_wanted = |set: &&dyn ValidationSet| names.iter().any(|name| named(*set, name));
    Ok(sets().filter(is_wanted).collect())
}

/// Runs one piece of work; a panic in it becomes a defect to report instead of the run's end.
fn guarded<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("defect: this must not panic: {text}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_sets_are_refused_with_the_nearest_name() {
        let error = wanted_sets(Some(&["replya".into()])).err().expect("refused");
        assert!(
            error.hints().iter().any(|hint| hint.contains("\"replay\"")),
            "{:?}",
            error.hints()
        );
    }

    #[test]
    fn sets_run_once_in_the_registry_s_order() {
        let names = ["replay-rankwise".to_owned(), "replay".into(), "replay".into()];
        let sets = wanted_sets(Some(&names)).expect("known");
        let got: Vec<&str> = sets.iter().map(|set| set.name()).collect();
        assert_eq!(got, ["replay", "replay-rankwise"]);
    }

    #[test]
    fn set_names_are_unique() {
        let mut names: Vec<&str> = sets().map(ValidationSet::name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_panic_becomes_a_defect() {
        let why = guarded(|| -> u8 { panic!("index 3 out of range") }).expect_err("caught");
        assert!(why.starts_with("defect") && why.contains("index 3"), "{why}");
        assert_eq!(guarded(|| 7), Ok(7));
    }
}
