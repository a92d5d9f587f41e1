//! What a comparison of policies says.

use super::compare::{PolicyResult, Study};
use super::intake::Used;
use super::policy::Named;
use super::{Cluster, GpuKind, Setup};

/// Several policies on one table.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Where the jobs are from.
    pub source: String,
    /// What the cluster is, in words.
    pub machines: String,
    /// Its nodes and GPUs.
    pub nodes: usize,
    /// GPUs of the cluster.
    pub gpus: u32,
    /// Jobs that were played.
    pub jobs: usize,
    /// What the table told.
    pub used: Used,
    /// Runs per policy.
    pub runs: u32,
    /// One after the other; savings are over the first.
    pub results: Vec<PolicyResult>,
    /// What a reader has to know, as sentences with a stop.
    pub notes: Vec<String>,
    /// Why some jobs were never started, with an example.
    pub impossible: Option<String>,
}

impl Answer {
    /// From what was played.
    pub fn new(
        source: String,
        machines: String,
        used: Used,
        (setup, study): (&Setup<'_>, &Study<'_>),
        results: Vec<PolicyResult>,
    ) -> Self {
        let impossible = setup.jobs.iter().find_map(|job| {
            let why = setup.why_impossible(job)?;
            Some(format!("job {}: {why}", job.name))
        });
        Self {
            source,
            machines,
            nodes: setup.cluster.nodes().len(),
            gpus: setup.cluster.gpus(),
            jobs: setup.jobs.len(),
            notes: notes(setup, study, &used),
            used,
            runs: study.runs.max(1),
            results,
            impossible,
        }
    }
}

/// Policies by what they go by.
const BY_DURATION: [&str; 7] = ["sjf", "ssf", "srtf", "srsf", "themis", "muri-s", "optimus"];
const PACKING: [&str; 3] = ["gandiva", "horus", "horus+"];
const ELASTIC: [&str; 2] = ["pollux", "optimus"];
const INTERLEAVING: [&str; 2] = ["muri-s", "muri-l"];

fn notes(setup: &Setup<'_>, study: &Study<'_>, used: &Used) -> Vec<String> {
    let jobs = setup.jobs.len() as u64;
    let asked = |names: &[&str]| {
        let found: Vec<&str> = study
            .policies
            .iter()
            .map(|policy: &&Named| policy.name)
            .filter(|name| names.contains(name))
            .collect();
        (!found.is_empty()).then(|| found.join(", "))
    };
    let [_, utilisation, _, model, stages] = used.known;
    let mut notes = Vec::new();
    if let Some(names) = asked(&BY_DURATION) {
        notes.push(if study.duration_error > 0.0 {
            format!("{names} go by expected durations that are off at random.")
        } else {
            format!("{names} know how long each job takes, which no real scheduler does.")
        });
    }
    if let Some(names) = asked(&PACKING)
        && utilisation < jobs
    {
        // Jobs without any load were neither predicted nor given one by the user.
        let left = setup.jobs.iter().filter(|job| job.load.is_none()).count() as u64;
        let assumed = (jobs - utilisation).saturating_sub(used.predicted + left);
        let others = [
            (used.predicted, "predicted"),
            (assumed, "as you said"),
            (
                left,
                "taken to be busy with all that they asked for, so that packing them never pays",
            ),
        ];
        let others = others.iter().filter(|(count, _)| *count > 0);
        let others: Vec<String> = others.map(|(count, how)| format!("{count} {how}")).collect();
        notes.push(format!(
            "{names} go by utilisation, which the table gives for {utilisation} of {jobs} jobs; of others it \
             is {}.",
            others.join(", ")
        ));
    }
    if let Some(names) = asked(&ELASTIC)
        && used.elastic < jobs
    {
        notes.push(format!(
            "{names} may change the size of {} of {jobs} jobs: those of known models with known step times, \
             if --elastic lets them; others keep what they ask for.",
            used.elastic
        ));
    }
    if let Some(names) = asked(&INTERLEAVING)
        && stages < jobs
    {
        notes.push(format!(
            "{names} interleave by the times of a step's stages, which are known of {stages} of {jobs} \
             jobs; others count as using the GPU alone."
        ));
    }
    if used.other_kind > 0 {
        notes.push(format!(
            "{} of {jobs} jobs ask for a kind of GPU that the cluster does not have; they run on any.",
            used.other_kind
        ));
    }
    if setup.cluster.kinds().iter().any(|kind| *kind == GpuKind::named(kind.name.clone())) {
        notes.push(
            "Energy is that of an assumed GPU (60 W idle, 350 W busy) where the catalogue does not know \
             the kind."
                .into(),
        );
    }
    if model == 0 && has_several_nodes(setup.cluster) {
        notes.push(
            "Where a job's GPUs are makes no difference: no job's model and step time are known, or no \
             machine of the catalogue was named."
                .into(),
        );
    }
    notes
}

fn has_several_nodes(cluster: &Cluster) -> bool {
    cluster.nodes().len() > 1
}
