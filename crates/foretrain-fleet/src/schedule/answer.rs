//! What a comparison of policies says.

use foretrain_core::words::{counted, of_number};

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
    /// Whether the table could not be read to its end.
    pub cut_short: bool,
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
            cut_short: false,
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
    let all = counted(jobs, "job");
    let [_, utilisation, _, model, stages] = used.known;
    let mut notes = Vec::new();
    if let Some(asked) = Asked::of(study, &BY_DURATION) {
        notes.push(if study.duration_error > 0.0 {
            format!("{} by expected durations that are off at random.", asked.who("goes", "go"))
        } else {
            let know = asked.who("knows", "know");
            format!("{know} how long each job takes, which no real scheduler does.")
        });
    }
    if let Some(asked) = Asked::of(study, &PACKING)
        && utilisation < jobs
    {
        notes.push(format!(
            "{} by utilisation, which the table gives for {utilisation} of {all}; of the others, {}.",
            asked.who("goes", "go"),
            loads(setup, used, jobs - utilisation, &asked)
        ));
    }
    if let Some(Asked { names, .. }) = Asked::of(study, &ELASTIC)
        && used.elastic < jobs
    {
        notes.push(format!(
            "{names} may change the size of {} of {all}: those of known models with known step times, \
             if --elastic lets them; others keep what they ask for.",
            used.elastic
        ));
    }
    if let Some(asked) = Asked::of(study, &INTERLEAVING)
        && stages < jobs
    {
        notes.push(format!(
            "{} by the times of a step's stages, which are known of {stages} of {all}; others count as \
             using the GPU alone.",
            asked.who("interleaves", "interleave")
        ));
    }
    if used.other_kind > 0 {
        notes.push(format!(
            "{} of {all} {} for a kind of GPU that the cluster does not have; {} on any.",
            used.other_kind,
            of_number(used.other_kind, "asks", "ask"),
            of_number(used.other_kind, "it runs", "they run")
        ));
    }
    if setup.cluster.kinds().iter().any(GpuKind::power_is_assumed) {
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

/// What the utilisation of jobs rests on of which the table gives none.
fn loads(setup: &Setup<'_>, used: &Used, others: u64, asked: &Asked) -> String {
    let gandiva = "gandiva packs none of them";
    let horus = "others are put beside them where too few GPUs are idle";
    let packs = match (asked.names.contains("gandiva"), asked.names.contains("horus")) {
        (true, false) => gandiva.to_owned(),
        (true, true) => format!("{gandiva}, under horus {horus}"),
        (false, _) => horus.to_owned(),
    };
    // Jobs without any load were neither predicted nor given one by the user.
    let left = setup.jobs.iter().filter(|job| job.load.is_none()).count() as u64;
    let assumed = others.saturating_sub(used.predicted + left);
    let busy = format!("taken to keep busy all that was asked for ({packs})");
    let how = [(used.predicted, "predicted"), (assumed, "as you said"), (left, busy.as_str())];
    let how = how.iter().filter(|(count, _)| *count > 0);
    let how: Vec<String> = how
        .map(|(count, how)| format!("{count} {} {how}", of_number(*count, "is", "are")))
        .collect();
    how.join(", ")
}

/// Those of some policies that were asked for.
struct Asked {
    names: String,
    count: usize,
}

impl Asked {
    fn of(study: &Study<'_>, some: &[&str]) -> Option<Self> {
        let names = study.policies.iter().map(|policy: &&Named| policy.name);
        let names: Vec<&str> = names.filter(|name| some.contains(name)).collect();
        (!names.is_empty()).then(|| Self { names: names.join(", "), count: names.len() })
    }

    /// With what they do: `sjf knows`, `sjf, srtf know`.
    fn who(&self, one: &str, several: &str) -> String {
        format!("{} {}", self.names, of_number(self.count, one, several))
    }
}

fn has_several_nodes(cluster: &Cluster) -> bool {
    cluster.nodes().len() > 1
}
