//! One row of a table of jobs.

use foretrain_core::{Bytes, Nanos};

use super::attempt::Attempt;
use super::features::Features;

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It did what it was meant to do.
    Completed,
    /// It failed, by its own fault or the machine's.
    Failed,
    /// Somebody or a time limit stopped it.
    Cancelled,
    /// It still ran when the table was written.
    Running,
    /// It still waited when the table was written.
    Waiting,
    /// A word that no known system writes.
    Other,
}

impl Status {
    /// All of them, in the order of tables.
    pub const ALL: [Status; 6] =
        [Self::Completed, Self::Failed, Self::Cancelled, Self::Running, Self::Waiting, Self::Other];

    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Other => "other",
        }
    }

    /// From the words of Slurm, Kubernetes, Philly and PAI.
    pub(super) fn parse(word: &[u8]) -> Self {
        const WORDS: [(&str, Status); 44] = [
            ("completed", Status::Completed),
            ("complete", Status::Completed),
            ("pass", Status::Completed),
            ("succeeded", Status::Completed),
            ("success", Status::Completed),
            ("finished", Status::Completed),
            ("terminated", Status::Completed),
            ("failed", Status::Failed),
            ("failure", Status::Failed),
            ("error", Status::Failed),
            ("node_fail", Status::Failed),
            ("boot_fail", Status::Failed),
            ("out_of_memory", Status::Failed),
            ("cancelled", Status::Cancelled),
            ("canceled", Status::Cancelled),
            ("killed", Status::Cancelled),
            ("timeout", Status::Cancelled),
            ("deadline", Status::Cancelled),
            ("preempted", Status::Cancelled),
            ("evicted", Status::Cancelled),
            ("revoked", Status::Cancelled),
            ("stopped", Status::Cancelled),
            ("interrupted", Status::Cancelled),
            ("running", Status::Running),
            ("suspended", Status::Running),
            ("completing", Status::Running),
            ("pending", Status::Waiting),
            ("waiting", Status::Waiting),
            ("queued", Status::Waiting),
            ("configuring", Status::Waiting),
            ("requeued", Status::Waiting),
            // The short forms of Slurm.
            ("cd", Status::Completed),
            ("f", Status::Failed),
            ("nf", Status::Failed),
            ("bf", Status::Failed),
            ("oom", Status::Failed),
            ("ca", Status::Cancelled),
            ("to", Status::Cancelled),
            ("dl", Status::Cancelled),
            ("pr", Status::Cancelled),
            ("r", Status::Running),
            ("cg", Status::Running),
            ("pd", Status::Waiting),
            ("cf", Status::Waiting),
        ];
        // Slurm adds who did it ("CANCELLED by 1000"), and cuts what is wider than its column
        // ("OUT_OF_ME+").
        let word = word.split(|&byte| byte == b' ').next().unwrap_or(word);
        let same = |known: &str| match word.strip_suffix(b"+") {
            Some(cut) if cut.len() > 3 => known
                .as_bytes()
                .get(..cut.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(cut)),
            Some(word) => word.eq_ignore_ascii_case(known.as_bytes()),
            None => word.eq_ignore_ascii_case(known.as_bytes()),
        };
        let found = WORDS.iter().find(|(known, _)| same(known));
        found.map_or(Self::Other, |(_, status)| *status)
    }
}

/// GPUs of one machine that a job ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The machine.
    pub machine: String,
    /// GPUs that the table names or counts on it; none if it does not.
    pub gpus: Option<u32>,
}

/// One row of a table: a job, or what belongs to one (a pod, a machine).
///
/// What a table does not say, or says impossibly, is `None` (or empty text); what was impossible is
/// counted by [`Fault`](super::Fault). Times count from the table's own origin, or from 1970 if it
/// holds dates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Position in the table, from 1.
    pub row: u64,
    /// What identifies the job.
    pub id: String,
    /// A second name, which other tables may use.
    pub alias: String,
    /// The task, pod or instance the row is about.
    pub part: String,
    /// When it was submitted.
    pub submit: Option<Nanos>,
    /// When it began to run.
    pub start: Option<Nanos>,
    /// When it ended.
    pub end: Option<Nanos>,
    /// How long it ran, in the table's own words.
    pub duration: Option<Nanos>,
    /// How long it waited before, in the table's own words.
    pub wait: Option<Nanos>,
    /// From submission to end, in the table's own words.
    pub turnaround: Option<Nanos>,
    /// GPUs over all instances; fractions where jobs share one.
    pub gpus: Option<f64>,
    /// Machines.
    pub nodes: Option<u32>,
    /// Kind of GPU.
    pub gpu_kind: String,
    /// Machines it ran on.
    pub placements: Vec<Placement>,
    /// Attempts to run it, where the table lists several: it did not hold its GPUs in between. The
    /// job begins with the first and ends with the last, whose placements are the job's.
    pub attempts: Vec<Attempt>,
    /// Who submitted it.
    pub user: String,
    /// Queue, virtual cluster or cluster.
    pub queue: String,
    /// The model it trains.
    pub model: String,
    /// Samples per step.
    pub batch: Option<f64>,
    /// Steps it runs.
    pub steps: Option<f64>,
    /// How long one step takes.
    pub step_time: Option<Nanos>,
    /// How long a step reads and prepares input, computes, and communicates.
    pub stages: [Option<Nanos>; 3],
    /// GPUs times how long they were held, in the table's own words.
    pub gpu_time: Option<Nanos>,
    /// Its priority, in the table's own measure.
    pub priority: Option<f64>,
    /// How it ended.
    pub status: Option<Status>,
    /// How busy its GPUs were, 0 to 1.
    pub utilisation: Option<f64>,
    /// Memory of the host it used or asked for.
    pub memory: Option<Bytes>,
    /// Memory it took on each GPU.
    pub gpu_memory: Option<Bytes>,
    /// What a step computes and moves.
    pub features: Features,
}

impl Job {
    /// Whether it still ran or waited when the table was written, so that its times so far are less
    /// than what it takes.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.status, Some(Status::Running | Status::Waiting)) && self.end.is_none()
    }

    /// How long it ran: from start to end where the table has both, else as it says. Not known of
    /// jobs that still run. Of several attempts the sum; those before the last that do not say when
    /// they ended count nothing.
    pub fn run_time(&self) -> Option<Nanos> {
        if let Some(last) = self.attempts.last() {
            last.run_time()?;
            return Some(self.attempts.iter().filter_map(Attempt::run_time).sum());
        }
        match (self.start, self.end) {
            (Some(start), Some(end)) => Some(end - start),
            _ => self.duration.filter(|_| !self.is_unfinished()),
        }
    }

    /// How long it waited: from submission to start where the table has both, else as it says.
    pub fn wait_time(&self) -> Option<Nanos> {
        match (self.submit, self.start) {
            (Some(submit), Some(start)) => Some(start - submit),
            _ => self.wait,
        }
    }

    /// The time that tells the day of the row: submission, start or end, the first there is.
    pub fn dated(&self) -> Option<Nanos> {
        self.submit.or(self.start).or(self.end)
    }

    /// From when to when it held its GPUs. Without a start the job is taken to have run up to its
    /// end, or (if it says how long it waited) from the submission on.
    pub fn occupied(&self) -> Option<(Nanos, Nanos)> {
        let run = self.run_time();
        match (self.start, self.end, run) {
            (Some(start), Some(end), _) => Some((start, end)),
            (Some(start), None, Some(run)) => Some((start, start + run)),
            (None, Some(end), Some(run)) => Some((end - run, end)),
            (None, None, Some(run)) => {
                let start = self.submit? + self.wait?;
                Some((start, start + run))
            }
            _ => None,
        }
    }

    /// Empties the row and keeps its memory.
    pub(super) fn clear(&mut self) {
        let Self { id, alias, part, gpu_kind, placements, attempts, user, queue, model, .. } = self;
        for text in [&mut *id, alias, part, gpu_kind, user, queue, model] {
            text.clear();
        }
        placements.clear();
        attempts.clear();
        *self = Self {
            id: std::mem::take(id),
            alias: std::mem::take(alias),
            part: std::mem::take(part),
            gpu_kind: std::mem::take(gpu_kind),
            placements: std::mem::take(placements),
            attempts: std::mem::take(attempts),
            user: std::mem::take(user),
            queue: std::mem::take(queue),
            model: std::mem::take(model),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_schedulers() {
        for (word, status) in [
            ("COMPLETED", Status::Completed),
            ("CANCELLED by 1000", Status::Cancelled),
            ("CANCELLED+", Status::Cancelled),
            ("OUT_OF_ME+", Status::Failed),
            ("PD", Status::Waiting),
            ("R", Status::Running),
            ("Queued", Status::Waiting),
            ("Gone", Status::Other),
            ("+", Status::Other),
        ] {
            assert_eq!(Status::parse(word.as_bytes()), status, "{word}");
        }
    }

    #[test]
    fn what_it_took_so_far_is_no_run_time() {
        let hour = Some(Nanos::from_secs_f64(3600.0));
        let job = Job { duration: hour, status: Some(Status::Running), ..Job::default() };
        assert_eq!(job.run_time(), None);
        let job = Job { start: Some(Nanos::ZERO), end: hour, ..job };
        assert_eq!(job.run_time(), hour);
    }
}
