//! Entries by name: inheritance between them and the source of each figure.

use std::collections::BTreeMap;

use foretrain_core::suggest;

use crate::quantity::shown;
use crate::read::{Fault, one_of};
use crate::source::Source;
use crate::spec::{ClusterSpec, DeviceSpec, FabricSpec, FileSpec, NodeSpec, Spec};

/// Longest chain of `based_on`: more is a mistake.
const LONGEST_CHAIN: usize = 16;
/// Longest name.
const LONGEST_NAME: usize = 64;

/// A name as looked up: case and the choice of separator do not matter.
pub(crate) fn fold(name: &str) -> String {
    let separators = [' ', '_', '.', '/', '-'];
    let lower = name.trim().to_lowercase();
    lower.split(separators).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Entries in the order in which they were first defined.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    entries: Vec<(String, T)>,
    index: BTreeMap<String, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: BTreeMap::new() }
    }
}

impl<T> Table<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.index.get(&fold(name)).map(|&at| &self.entries[at].1)
    }
    pub(crate) fn put(&mut self, name: String, value: T) {
        match self.index.get(&fold(&name)) {
            Some(&at) => self.entries[at] = (name, value),
            None => {
                self.index.insert(fold(&name), self.entries.len());
                self.entries.push((name, value));
            }
        }
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }
}

/// All entries of all files read so far, each with what it inherits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) sources: Table<String>,
    pub(crate) devices: Table<DeviceSpec>,
    pub(crate) fabrics: Table<FabricSpec>,
    pub(crate) nodes: Table<NodeSpec>,
    pub(crate) clusters: Table<ClusterSpec>,
}

impl Book {
    /// Adds a file's entries over those known.
    pub(crate) fn add(&mut self, file: FileSpec) -> Result<(), Fault> {
        for (name, text) in file.sources.0 {
            check_name("sources", &name)?;
            self.sources.put(name, text);
        }
        merge(&mut self.devices, file.devices.0)?;
        merge(&mut self.fabrics, file.fabrics.0)?;
        merge(&mut self.nodes, file.nodes.0)?;
        merge(&mut self.clusters, file.clusters.0)
    }

    /// The full form of a source id; free text stands for itself.
    pub(crate) fn source(&self, id: &str) -> Source {
        let text = self.sources.get(id).cloned().unwrap_or_default();
        Source { id: id.to_owned(), text }
    }

    /// The sources of an entry's figures in full.
    pub(crate) fn sources_of<S: Spec>(&self, spec: &S) -> BTreeMap<String, Source> {
        let sources = spec.sources().0.iter();
        sources.map(|(figure, id)| (figure.clone(), self.source(id))).collect()
    }
}

fn check_name(section: &str, name: &str) -> Result<(), Fault> {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.len() <= LONGEST_NAME && name.chars().all(valid) && !fold(name).is_empty() {
        return Ok(());
    }
    Err(Fault::new(&[section], format!("{} is no valid name", shown(name))).hint(format!(
        "a name has letters, digits, '.', '_' and '-', and at most {LONGEST_NAME} of them"
    )))
}

fn merge<S: Spec>(known: &mut Table<S>, mut fresh: Vec<(String, S)>) -> Result<(), Fault> {
    let mut index = BTreeMap::new();
    for (at, (name, spec)) in fresh.iter_mut().enumerate() {
        check_name(S::SECTION, name)?;
        if index.insert(fold(name), at).is_some() {
            let noun = S::NOUN;
            return Err(Fault::new(&[S::SECTION, name], format!("{noun} {name} is defined twice")));
        }
        settle_sources(name, spec)?;
    }
    let mut order =
        Inheritance { known, fresh: &fresh, index: &index, done: vec![None; fresh.len()] };
    for at in 0..fresh.len() {
        order.finish(at, &mut Vec::new())?;
    }
    let done = order.done;
    for ((name, _), spec) in fresh.iter().zip(done) {
        if let Some(spec) = spec {
            known.put(name.clone(), spec);
        }
    }
    Ok(())
}

/// Gives every figure that this entry sets its source: its own, else the entry's, else "user".
fn settle_sources<S: Spec>(name: &str, spec: &mut S) -> Result<(), Fault> {
    let set = spec.set();
    for figure in spec.sources().0.keys() {
        if !set.contains(figure) && !S::FIGURES.contains(&figure.as_str()) {
            let mut valid: Vec<&str> = set.iter().map(String::as_str).collect();
            valid.extend(S::FIGURES);
            return Err(Fault::new(
                &[S::SECTION, name, "sources", figure],
                format!("a source for {}, which is no figure of a {}", shown(figure), S::NOUN),
            )
            .hint(one_of(figure, &valid)));
        }
    }
    let general = spec.source().unwrap_or(Source::USER).to_owned();
    let sources = spec.sources_mut();
    for figure in set {
        let table = figure.split_once('.').map(|(table, _)| table.to_owned());
        let of_table = table.and_then(|table| sources.0.get(&table).cloned());
        sources.0.entry(figure).or_insert_with(|| of_table.unwrap_or_else(|| general.clone()));
    }
    Ok(())
}

struct Inheritance<'a, S> {
    known: &'a Table<S>,
    fresh: &'a [(String, S)],
    index: &'a BTreeMap<String, usize>,
    done: Vec<Option<S>>,
}

impl<S: Spec> Inheritance<'_, S> {
    fn finish(&mut self, at: usize, trail: &mut Vec<usize>) -> Result<S, Fault> {
        if let Some(done) = &self.done[at] {
            return Ok(done.clone());
        }
        let (name, own) = &self.fresh[at];
        self.check_trail(at, trail)?;
        let mut spec = own.clone();
        if let Some(base_name) = own.based_on() {
            trail.push(at);
            let base = self.base(name, base_name, trail)?;
            trail.pop();
            inherit(&mut spec, &base, fold(base_name) == fold(name));
        }
        self.done[at] = Some(spec.clone());
        Ok(spec)
    }

    /// An entry based on its own name overrides the earlier one of that name.
    fn base(&mut self, name: &str, base: &str, trail: &mut Vec<usize>) -> Result<S, Fault> {
        let same = fold(base) == fold(name);
        if !same && let Some(&at) = self.index.get(&fold(base)) {
            return self.finish(at, trail);
        }
        if let Some(base) = self.known.get(base) {
            return Ok(base.clone());
        }
        let names = self.known.names().chain(self.fresh.iter().map(|(name, _)| name.as_str()));
        let message = format!("based on {}, which is no {}", shown(base), S::NOUN);
        let fault = Fault::new(&[S::SECTION, name, "based_on"], message);
        Err(match suggest::nearest(base, names.filter(|other| *other != name)) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint("`foretrain hardware list` shows what can be built on"),
        })
    }

    fn check_trail(&self, at: usize, trail: &[usize]) -> Result<(), Fault> {
        let name = &self.fresh[at].0;
        if !trail.contains(&at) && trail.len() < LONGEST_CHAIN {
            return Ok(());
        }
        let chain: Vec<&str> =
            trail.iter().chain([&at]).map(|&at| self.fresh[at].0.as_str()).collect();
        let message = format!("based_on leads in a circle or too far: {}", chain.join(" -> "));
        Err(Fault::new(&[S::SECTION, name, "based_on"], message))
    }
}

fn inherit<S: Spec>(spec: &mut S, base: &S, same: bool) {
    // Figures that are set here have a source already, so only inherited ones gain the base's.
    for (figure, source) in &base.sources().0 {
        spec.sources_mut().0.entry(figure.clone()).or_insert_with(|| source.clone());
    }
    spec.inherit(base, same);
    let set = spec.set();
    spec.sources_mut().0.retain(|figure, _| set.contains(figure));
}
