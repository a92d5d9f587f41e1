//! Nodes by query: other work, or none.

use std::collections::BTreeMap;

use foretrain_core::suggest::nearest;
use foretrain_core::{Estimate, InputError, Nanos, Result};
use foretrain_graph::{NodeSet, Query, StepGraph};

use crate::whatif::sketch::Sketch;

/// Multiplies work. Of communication that is the transfer; waiting that was recorded with it stays.
pub(super) fn scale(sketch: &mut Sketch<'_>, query: &Query, factor: f64) -> Result<()> {
    change(sketch, query, |work| work.scale(factor), |time| time.map(|nanos| nanos * factor))
}

/// Sets the work of each node, of communication the transfer.
pub(super) fn set(sketch: &mut Sketch<'_>, query: &Query, work: Nanos) -> Result<()> {
    change(sketch, query, |_| work, |_| Estimate::exact(work))
}

/// Takes nodes out: they take no time. Dependencies through them stay, as do host calls.
pub(super) fn remove(sketch: &mut Sketch<'_>, query: &Query) -> Result<()> {
    let sets = selected(sketch, query)?;
    note(sketch, query, &sets);
    for (class, set) in sets.iter().enumerate() {
        sketch.rework(class, set.iter(), |_, _| Nanos::ZERO);
        let mut talk = sketch.communication(class);
        talk.intersect_with(set);
        if !talk.is_empty() {
            sketch.silence(class, &talk);
        }
    }
    Ok(())
}

fn change(
    sketch: &mut Sketch<'_>,
    query: &Query,
    work: impl Fn(Nanos) -> Nanos,
    transfer: impl Fn(Estimate<Nanos>) -> Estimate<Nanos>,
) -> Result<()> {
    let sets = selected(sketch, query)?;
    note(sketch, query, &sets);
    for (class, set) in sets.iter().enumerate() {
        sketch.rework(class, set.iter(), |_, before| work(before));
        sketch.recost(class, set, |cost| cost.time = transfer(cost.time));
    }
    Ok(())
}

/// The nodes of each class. Conditions see work as it was before any change. What an earlier change
/// of the scenario took away is no mistake.
fn selected(sketch: &Sketch<'_>, query: &Query) -> Result<Vec<NodeSet>> {
    let sets: Vec<NodeSet> =
        sketch.classes().map(|class| sketch.graph(class).select(query)).collect();
    let mut recorded = sketch.ground.draft.job.classes.iter();
    if sets.iter().all(NodeSet::is_empty)
        && recorded.all(|class| class.graph.select(query).is_empty())
    {
        return Err(nothing_matched(query, sketch.graph(0)));
    }
    Ok(sets)
}

fn note(sketch: &mut Sketch<'_>, query: &Query, sets: &[NodeSet]) {
    let (count, work) = sets.first().map_or((0, Nanos::ZERO), |set| {
        let work = &sketch.work[0];
        (set.len(), set.iter().filter_map(|id| work.get(id.index())).copied().sum())
    });
    let ranks = match sets.len() {
        1 => String::new(),
        n => format!(" of the first of {n} ranks"),
    };
    sketch.notes.push(format!("{query}: {count} nodes{ranks}, {work} in all"));
}

/// Names that somebody may have meant.
fn nothing_matched(query: &Query, graph: &StepGraph) -> InputError {
    let error = InputError::new(format!("no node matches {query}"));
    let mut patterns = Vec::new();
    texts(query, &mut patterns);
    let mut words: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, name) in graph.names.iter() {
        for word in name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
            words.entry(word).or_insert(name);
        }
    }
    let near: Vec<String> = patterns
        .iter()
        .filter_map(|pattern| {
            let wanted = pattern.trim_matches(['*', '?']);
            let word = nearest(wanted, words.keys().copied())?;
            let name: String = words[word].chars().take(100).collect();
            Some(format!("did you mean `*{word}*`, as in {name:?}?"))
        })
        .collect();
    if near.is_empty() {
        return error.hint(busiest(graph));
    }
    near.into_iter().fold(error, InputError::hint)
}

/// The patterns in a query.
fn texts<'a>(query: &'a Query, found: &mut Vec<&'a str>) {
    match query {
        Query::Name(glob)
        | Query::Module(glob)
        | Query::Queue(glob)
        | Query::Group(glob)
        | Query::Role(glob) => found.push(glob.as_str()),
        Query::And(inner) | Query::Or(inner) => inner.iter().for_each(|one| texts(one, found)),
        Query::Not(inner) => texts(inner, found),
        _ => {}
    }
}

/// The names that take most of the work.
fn busiest(graph: &StepGraph) -> String {
    let mut work: BTreeMap<&str, Nanos> = BTreeMap::new();
    for id in graph.node_ids() {
        *work.entry(graph.name(id)).or_default() += graph.work(id);
    }
    let mut names: Vec<(&str, Nanos)> = work.into_iter().collect();
    names.sort_by_key(|(_, work)| std::cmp::Reverse(*work));
    let short = |name: &str| format!("{:?}", name.chars().take(60).collect::<String>());
    let listed: Vec<String> = names.iter().take(4).map(|(name, _)| short(name)).collect();
    format!("the busiest names are {}", listed.join(", "))
}
