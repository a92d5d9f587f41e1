//! Whether the layout that is predicted fastest is: its measured time beside the fastest one's.

use std::collections::BTreeMap;

use foretrain_core::Result;

use super::case::{Case, predict};
use super::runs::Read;
use super::{flagperf, sources, vtrain};
use crate::validate::ValidationSet;
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome, Skipped};
use crate::validate::roots::Root;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[
    &Rank {
        name: "rank-vtrain",
        source: vtrain::SOURCE,
        about: "Choosing a layout: groups of vTrain's runs with the same model, devices and batch. Predicted: \
                the measured time of the layout that is estimated fastest; measured: the fastest measured \
                time. So the error is what the choice costs. Nothing is fitted to these rows.",
        read: vtrain::cases_of_grid,
    },
    &Rank {
        name: "rank-flagperf",
        source: flagperf::SOURCE,
        about: "As `rank-vtrain`, for FlagPerf's runs with the same model, device, number format and batch.",
        read: flagperf::cases,
    },
];

/// Layouts of one job against each other.
struct Rank {
    name: &'static str,
    source: &'static str,
    about: &'static str,
    read: fn(&Root) -> Result<Option<Read>>,
}

/// What layouts are compared for.
type Job = (String, u64, u64, String);

/// A layout's estimate and its measured time, seconds, and its name.
struct Tried {
    estimated: f64,
    measured: f64,
    layout: String,
}

impl ValidationSet for Rank {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(self.name, (self.read)(corpus.root()), |read| self.rank(read, corpus))
    }
}

impl Rank {
    fn rank(&self, read: Read, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome = SetOutcome { skipped: read.skipped, ..SetOutcome::default() };
        let mut jobs = BTreeMap::<Job, Vec<Tried>>::new();
        let held_out = sources(corpus).without(Some(self.source));
        for (case, predicted) in read.cases.iter().zip(predict(&read.cases, &held_out.constants)) {
            match predicted {
                Ok(estimate) => jobs.entry(job(case)).or_default().push(Tried {
                    estimated: estimate.value,
                    measured: case.measured,
                    layout: case.layout.to_string(),
                }),
                Err(error) => outcome.skipped.push(Skipped {
                    what: format!("{}: {}", case.group, case.what),
                    why: error.to_string(),
                }),
            }
        }
        let mut tally = Tally::default();
        for (job, mut layouts) in jobs.into_iter().filter(|(_, layouts)| layouts.len() > 1) {
            layouts.sort_by(|a, b| a.estimated.total_cmp(&b.estimated));
            outcome.rows.extend(tally.row(job, &layouts));
        }
        outcome.notes = tally.notes();
        outcome
    }
}

fn job(case: &Case) -> Job {
    let precision = format!("{:?}", case.training.precision.compute);
    (case.group.clone(), case.layout.devices(), case.training.global_batch, precision)
}

#[derive(Debug, Default)]
struct Tally {
    jobs: usize,
    first: usize,
    among_three: usize,
    layouts: usize,
    regret: f64,
    /// Of choosing one of the layouts blindly.
    blind: f64,
}

impl Tally {
    /// The row of one job, its layouts in the order of their estimates.
    fn row(&mut self, (model, devices, batch, _): Job, layouts: &[Tried]) -> Option<Row> {
        let chosen = layouts.first()?;
        let measured = |tried: &&Tried| tried.measured;
        let fastest = layouts.iter().min_by(|a, b| a.measured.total_cmp(&b.measured))?;
        let best = measured(&fastest);
        let mean = layouts.iter().map(|tried| tried.measured).sum::<f64>() / layouts.len() as f64;
        self.jobs += 1;
        self.layouts += layouts.len();
        self.first += usize::from(chosen.measured <= best);
        self.among_three += usize::from(layouts.iter().take(3).any(|tried| tried.measured <= best));
        self.regret += chosen.measured / best - 1.0;
        self.blind += mean / best - 1.0;
        Some(Row {
            group: model,
            what: format!(
                "{devices} devices, batch {batch}, {} layouts: {} chosen, {} fastest",
                layouts.len(),
                chosen.layout,
                fastest.layout
            ),
            predicted: chosen.measured,
            measured: best,
            ..Row::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        if self.jobs == 0 {
            return Vec::new();
        }
        let jobs = self.jobs as f64;
        let share = |count: usize| 100.0 * count as f64 / jobs;
        vec![
            format!("{} jobs with {:.1} layouts each", self.jobs, self.layouts as f64 / jobs),
            format!(
                "the fastest layout is ranked first in {:.0} %, among the first three in {:.0} %",
                share(self.first),
                share(self.among_three)
            ),
            format!(
                "the layout ranked first takes {:.1} % longer than the fastest on average; the mean of all \
                 layouts {:.1} % longer",
                100.0 * self.regret / jobs,
                100.0 * self.blind / jobs
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regret_is_the_measured_time_of_the_choice_over_the_fastest() {
        let tried = |estimated, measured| Tried { estimated, measured, layout: String::new() };
        let job = || ("m".to_owned(), 8, 64, String::new());
        let mut tally = Tally::default();
        let row = tally.row(job(), &[tried(1.0, 2.2), tried(1.1, 2.0), tried(3.0, 4.0)]).unwrap();
        assert_eq!((row.predicted, row.measured), (2.2, 2.0));
        tally.row(job(), &[tried(1.0, 1.0), tried(2.0, 3.0)]).unwrap();
        assert_eq!((tally.jobs, tally.first, tally.among_three), (2, 1, 2));
        assert!((tally.regret - 0.1).abs() < 1e-12);
        assert!(tally.notes()[2].contains("5.0 %"), "{:?}", tally.notes());
    }
}
