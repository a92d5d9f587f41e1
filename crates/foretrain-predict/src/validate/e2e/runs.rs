//! Sets of described runs: what a table tells of them, and how they are scored.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::{InputError, Result};

use super::case::{Case, score, score_calibrated};
use super::held_out::Reader;
use super::models::Models;
use super::sources;
use crate::validate::ValidationSet;
use crate::validate::columns::{Line, table};
use crate::validate::corpus::Corpus;
use crate::validate::report::{SetOutcome, Skipped};
use crate::validate::roots::Root;

/// Runs of one source.
pub(in crate::validate) struct Runs {
    pub(super) name: &'static str,
    /// Whose runs they are; constants that they are predicted with come from others' runs.
    pub(super) source: &'static str,
    pub(super) about: &'static str,
    pub(super) unit: &'static str,
    /// The cases of the source; `None` if its table is not there.
    pub(super) read: fn(&Root) -> Result<Option<Read>>,
    /// The first case of each group gives the others' factor, and is not scored.
    pub(super) calibrated: bool,
    /// Who else predicts them.
    pub(super) reference: Option<&'static str>,
}

/// What a table tells.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) cases: Vec<Case>,
    pub(super) skipped: Vec<Skipped>,
}

/// The runs of two tables or sources, of those that are there.
pub(super) fn together(one: Option<Read>, other: Option<Read>) -> Option<Read> {
    match (one, other) {
        (Some(mut all), Some(more)) => {
            all.cases.extend(more.cases);
            all.skipped.extend(more.skipped);
            Some(all)
        }
        (one, other) => one.or(other),
    }
}

/// What all calibrated sets do.
const CALIBRATED: &str = "As the set without `-calibrated`, each prediction times one factor per model and device: \
     measured over predicted of the first of their rows, which is not scored.";

impl Runs {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        read: fn(&Root) -> Result<Option<Read>>,
    ) -> Self {
        Self { name, source: name, about, unit: "s", read, calibrated: false, reference: None }
    }

    /// The same runs, calibrated by the first of each group.
    pub(super) const fn calibrated(self, name: &'static str) -> Self {
        Self { name, about: CALIBRATED, calibrated: true, ..self }
    }

    pub(super) const fn against(self, reference: &'static str) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// One of several sets of a source.
    pub(super) const fn of_source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// Where constants may be learnt from these runs.
    pub(super) const fn reader(&self) -> Reader {
        Reader { source: self.source, read: self.read }
    }

    pub(super) const fn of_memory(self) -> Self {
        Self { unit: "GiB", ..self }
    }
}

impl ValidationSet for Runs {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn unit(&self) -> &'static str {
        self.unit
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(self.name, (self.read)(corpus.root()), |read| self.compare(read, corpus))
    }
}

impl Runs {
    fn compare(&self, read: Read, corpus: &Corpus<'_>) -> SetOutcome {
        let Read { mut cases, skipped } = read;
        let reference = self.reference.map(Into::into);
        let mut outcome = SetOutcome { skipped, reference, ..SetOutcome::default() };
        // Stable: the first of a group stays its first.
        cases.sort_by(|a, b| a.group.cmp(&b.group));
        let held_out = sources(corpus).without(Some(self.source));
        if self.unit == "s" {
            outcome.notes = held_out.notes(&cases, self.calibrated);
        }
        if self.calibrated {
            let constants = &held_out.calibrated;
            let firsts = firsts(&cases);
            let group = |case: &Case| case.group.clone();
            score_calibrated(&cases, constants, group, |at, _| firsts.contains(&at), &mut outcome);
        } else {
            score(&cases, &held_out.constants, &mut outcome);
        }
        outcome
    }
}

fn firsts(cases: &[Case]) -> BTreeSet<usize> {
    let begins = |&at: &usize| at == 0 || cases[at].group != cases[at - 1].group;
    (0..cases.len()).filter(begins).collect()
}

/// Why a row is no case, with what it is a row of.
pub(super) fn left_out(why: impl Into<String>) -> InputError {
    InputError::new(why)
}

/// Cases of the rows of `file` that are the source's.
pub(super) fn read_lines(
    root: &Root,
    file: &str,
    is_of_source: impl Fn(Line<'_>) -> bool,
    what: impl Fn(Line<'_>) -> String,
    mut case: impl FnMut(Line<'_>, &mut Models) -> Result<Case>,
) -> Result<Option<Read>> {
    let Some(table) = table(root, file)? else { return Ok(None) };
    let mut models = Models::default();
    let (mut cases, mut reasons) = (Vec::new(), Reasons::default());
    for line in table.lines().filter(|&line| is_of_source(line)) {
        match case(line, &mut models) {
            Ok(case) => cases.push(case),
            Err(error) => reasons.add(what(line), &error),
        }
    }
    Ok(Some(Read { cases, skipped: reasons.into_skipped() }))
}

/// Rows left out, those of one kind and reason together.
#[derive(Debug, Default)]
pub(super) struct Reasons(BTreeMap<(String, String), usize>);

impl Reasons {
    pub(super) fn add(&mut self, what: String, why: &InputError) {
        *self.0.entry((what, why.to_string())).or_default() += 1;
    }
    pub(super) fn into_skipped(self) -> Vec<Skipped> {
        let entry = |((what, why), rows): ((String, String), usize)| {
            let what = if rows == 1 { what } else { format!("{what} ({rows} rows)") };
            Skipped { what, why }
        };
        self.0.into_iter().map(entry).collect()
    }
}
