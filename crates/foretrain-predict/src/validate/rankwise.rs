//! All ranks of a run replayed together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use foretrain_core::Ledger;
use foretrain_ingest::source::rank::{NamedRank, rank_of};
use rayon::prelude::*;

use super::corpus::{Corpus, FileResult, analyse};
use super::report::{Row, SetOutcome, Skipped};
use super::roots::Candidate;
use super::{ValidationSet, guarded};
use crate::Recording;
use crate::replay::{JointReplay, replay_ranks};

/// Every complete set of ranks, in which collectives wait for their last member.
pub(super) struct Rankwise;

impl ValidationSet for Rankwise {
    fn name(&self) -> &'static str {
        "replay-rankwise"
    }

    fn about(&self) -> &'static str {
        "All ranks of a run are simulated together: how long a rank waits for others comes out \
         of the simulation. The recorded duration of a collective is replaced by its transfer \
         time, the shortest over its members. Host backends let the members of most operations \
         go one by one (a sender when its data is in some buffer), so in theirs, all-reduces and \
         barriers apart, each member takes what it took in the recording after the last one had \
         come. Given are each rank's work and when it began the step."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let sets = rank_sets(corpus.files());
        let done = AtomicUsize::new(0);
        let outcomes: Vec<SetOutcome> = sets
            .par_iter()
            .map(|(name, files)| {
                let outcome = guarded(|| score_set(corpus, name, files)).unwrap_or_else(|why| {
                    let mut outcome = SetOutcome::default();
                    outcome.skipped.push(Skipped { what: name.clone(), why });
                    outcome
                });
                corpus.report(
                    "joining ranks",
                    done.fetch_add(1, Ordering::Relaxed) + 1,
                    sets.len(),
                );
                outcome
            })
            .collect();
        let mut all = SetOutcome::default();
        for outcome in outcomes {
            all.rows.extend(outcome.rows);
            all.skipped.extend(outcome.skipped);
        }
        all
    }
}

/// Files of one directory whose names differ only in the rank (and in time stamps), where there
/// are two or more ranks.
fn rank_sets(files: &[FileResult]) -> Vec<(String, Vec<&FileResult>)> {
    let mut sets: BTreeMap<String, Vec<&FileResult>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.replay.is_ok()) {
        if let Some(name) = set_name(&file.candidate.name) {
            sets.entry(name).or_default().push(file);
        }
    }
    sets.retain(|_, files| {
        let mut ranks: Vec<u32> = files.iter().filter_map(|file| rank(file)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len() > 1
    });
    sets.into_iter().collect()
}

fn rank(file: &FileResult) -> Option<u32> {
    file.replay.as_ref().ok().map(|replay| replay.rank)
}

/// A name with `*` for the rank's number and for time stamps.
fn set_name(name: &str) -> Option<String> {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let rank = match rank_of(file)? {
        NamedRank::Word(rank) | NamedRank::Chakra(rank) | NamedRank::Trailing(rank) => rank,
    };
    let runs = digit_runs(file);
    let is_rank = |&(from, to): &(usize, usize)| file[from..to].parse() == Ok(rank);
    let after_word = |&(from, _): &(usize, usize)| {
        let before = file[..from].trim_end_matches(['-', '_', '.', '=']).to_ascii_lowercase();
        before.ends_with("rank")
            || before.ends_with("worker")
            || before.ends_with("proc")
            || ["_r", "-r", ".r", "gpu"].iter().any(|word| before.ends_with(word))
    };
    let at = runs.iter().find(|run| is_rank(run) && after_word(run));
    let at = *at.or_else(|| runs.iter().rfind(|run| is_rank(run)))?;
    let mut template = String::from(folder);
    template.push('/');
    let mut copied = 0;
    for run in runs.into_iter().filter(|&run| run == at || run.1 - run.0 >= TIME_STAMP_DIGITS) {
        template.push_str(&file[copied..run.0]);
        template.push('*');
        copied = run.1;
    }
    template.push_str(&file[copied..]);
    Some(template)
}

/// Shorter numbers are settings.
const TIME_STAMP_DIGITS: usize = 9;

fn digit_runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match runs.last_mut() {
            Some(run) if run.1 == at => run.1 = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

fn score_set(corpus: &Corpus<'_>, name: &str, files: &[&FileResult]) -> SetOutcome {
    let recordings: std::result::Result<Vec<Recording>, String> = match incomplete(files) {
        Some(why) => Err(why),
        None => files.par_iter().map(|file| analyse(&file.candidate)).collect(),
    };
    let mut outcome = SetOutcome::default();
    let recordings = match recordings {
        Ok(recordings) => recordings,
        Err(why) => {
            outcome.skipped.push(Skipped { what: name.to_owned(), why });
            return outcome;
        }
    };
    let steps = recordings.iter().map(|r| r.graphs.len()).min().unwrap_or(0);
    for step in 0..steps {
        let joint = replay_ranks(&recordings, step, &mut Ledger::new())
            .map_err(|error| error.message().to_owned())
            .and_then(|joint| {
                let shared = joint.matched > 0;
                shared.then_some(joint).ok_or_else(|| "no collective that all ranks share".into())
            });
        match joint {
            Ok(joint) => outcome.rows.extend(rows(corpus, name, files, &joint)),
            Err(why) => {
                outcome.skipped.push(Skipped { what: format!("{name}: step {step}"), why });
            }
        }
    }
    outcome
}

/// Why a set is no whole run, if it is none.
fn incomplete(files: &[&FileResult]) -> Option<String> {
    let replays = || files.iter().filter_map(|file| file.replay.as_ref().ok());
    let world = replays().map(|replay| replay.world_size).max()?;
    let mut ranks: Vec<u32> = replays().map(|replay| replay.rank).collect();
    ranks.sort_unstable();
    let whole = ranks.iter().copied().eq(0..world);
    (!whole).then(|| {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        format!("ranks {} of {world}: not a whole run", ranks.join(", "))
    })
}

fn rows<'a>(
    corpus: &'a Corpus<'_>,
    name: &'a str,
    files: &'a [&FileResult],
    joint: &'a JointReplay,
) -> impl Iterator<Item = Row> + 'a {
    joint.ranks.iter().map(move |step| {
        let file = files.iter().find(|file| rank(file) == Some(step.rank));
        let candidate: Option<&Candidate> = file.map(|file| &file.candidate);
        Row {
            group: name.to_owned(),
            what: format!("rank {}, {}", step.rank, step.step),
            predicted: step.replayed.millis_f64(),
            measured: candidate.map_or(step.measured.millis_f64(), |candidate| {
                corpus.measured(&candidate.name, &step.step, step.measured)
            }),
            ..Row::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_rank_and_time_stamp_are_one_set() {
        for (a, b) in [
            ("d/worker0_step_12.1694128201545.pt.json", "d/worker7_step_12.1694128201553.pt.json"),
            ("d/gpt_w2_c0.25_bw0_b1_r0.noet.json.gz", "d/gpt_w2_c0.25_bw0_b1_r1.noet.json.gz"),
            ("d/megatron_kineto_0.json.gz", "d/megatron_kineto_7.json.gz"),
            ("rank-0.json", "rank-11.json"),
        ] {
            assert_eq!(set_name(a), set_name(b), "{a} {b}");
            assert!(set_name(a).is_some_and(|name| name.contains('*')), "{a}");
        }
    }

    #[test]
    fn other_settings_or_folders_are_other_sets() {
        for (a, b) in [
            ("d/gpt_w2_c1_bw0_b1_r0.json", "d/gpt_w2_c1_bw0_b25_r1.json"),
            ("d/rank0.json", "e/rank1.json"),
        ] {
            assert_ne!(set_name(a), set_name(b), "{a} {b}");
        }
        assert_eq!(set_name("d/trace.json"), None);
    }
}
