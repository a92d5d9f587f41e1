//! Rewrite passes of synchronisation strategies.

use std::collections::HashSet;

use foretrain::core::{Bytes, InputError, Nanos, Result as Checked};
use foretrain::cost::primitives::{Codec, Scheme};
use foretrain::graph::CollectiveKind;
use foretrain::rewrite::strategy::passes::{equal_parts, fused};
use foretrain::rewrite::strategy::{
    self as rewrite, Build, Call, Kind, Parameter, Pass, PassKind, Registry, Scope, Stage, Way,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::failures;
use super::live::{Line, serve};
use crate::errors::{of_input, to_input};

/// A transfer of gradients or parameters among replicas.
#[pyclass(module = "foretrain.plugins")]
#[derive(Clone)]
pub(crate) struct Exchange {
    /// What is done, as in `all-reduce`.
    #[pyo3(get, set)]
    kind: String,
    /// The whole buffer before compression.
    #[pyo3(get, set)]
    bytes: u64,
    /// The first of its gradients, and the one behind its last, in ready order.
    #[pyo3(get)]
    gradients: (usize, usize),
    /// The micro-batch it belongs to.
    #[pyo3(get)]
    micro_step: usize,
    /// Added between what it waits for and its start, ns.
    #[pyo3(get, set)]
    delay_ns: i64,
    /// Higher goes first where links are scheduled by priority.
    #[pyo3(get, set)]
    priority: i32,
    /// How it is shrunk: `half`, `one-bit`, `two-bit`, `top-k`, `random-k`, or nothing.
    #[pyo3(get, set)]
    codec: Option<String>,
    /// Part of the elements that top-k and random-k keep.
    #[pyo3(get, set)]
    kept: f64,
    /// How it is carried out: `library`, `ring`, `tree` or `hierarchical`; others are kept as they are.
    #[pyo3(get, set)]
    way: String,
    /// Whether gradients are copied into a buffer for it and back.
    #[pyo3(get)]
    copied: bool,
    /// What stands beside the name, for people.
    #[pyo3(get, set)]
    label: String,
    /// Positions of the exchanges that it was made of.
    origins: Vec<usize>,
}

#[pymethods]
impl Exchange {
    /// One exchange in place of several, which starts once the last gradient of all is ready.
    #[staticmethod]
    fn merged(py: Python<'_>, exchanges: Vec<Py<Self>>) -> PyResult<Self> {
        if let Some(twice) = repeated(&exchanges) {
            return Err(PyValueError::new_err(format!("{} twice", twice.borrow(py).__repr__())));
        }
        let all: Vec<Self> = exchanges.iter().map(|one| one.borrow(py).clone()).collect();
        let Some(last) = all.last() else {
            return Err(PyValueError::new_err("nothing to merge"));
        };
        if all.iter().any(|one| (one.micro_step, &one.kind) != (last.micro_step, &last.kind)) {
            return Err(PyValueError::new_err(
                "exchanges of several micro-batches, or of several kinds, cannot be merged",
            ));
        }
        let mut merged = last.clone();
        merged.bytes = all.iter().map(|one| one.bytes).sum();
        merged.gradients = all.iter().fold(last.gradients, |(from, to), one| {
            (from.min(one.gradients.0), to.max(one.gradients.1))
        });
        merged.priority = all.iter().map(|one| one.priority).max().unwrap_or(0);
        merged.origins = all.iter().flat_map(|one| one.origins.iter().copied()).collect();
        merged.origins.sort_unstable();
        merged.origins.dedup();
        Ok(merged)
    }

    /// Parts of at most so many bytes, as equal as can be.
    fn split(&self, most: u64) -> PyResult<Vec<Self>> {
        let sizes = equal_parts(Bytes::new(self.bytes), Bytes::new(most))
            .map_err(|error| of_input(&error))?;
        let count = sizes.len();
        let part = |(i, bytes): (usize, Bytes)| {
            let label = format!("part {} of {count}", i + 1);
            Self { bytes: bytes.get(), label, ..self.clone() }
        };
        Ok(sizes.enumerate().map(part).collect())
    }

    fn __repr__(&self) -> String {
        let (from, to) = self.gradients;
        format!("<Exchange: {} of {} bytes, gradients {from} to {to}>", self.kind, self.bytes)
    }
}

/// What a pass may ask while it runs: the time of an operation in ns.
type Question = Call;

/// The step under construction, as a pass sees it.
#[pyclass(module = "foretrain.plugins")]
pub(crate) struct Draft {
    /// What is exchanged, in the order of issue: change, reorder, merge, split or remove.
    #[pyo3(get, set)]
    exchanges: Py<PyList>,
    /// Size in bytes and time of readiness in ns of each gradient of the last micro-batch.
    #[pyo3(get)]
    gradients: Vec<(u64, i64)>,
    /// Model replicas in the job.
    #[pyo3(get)]
    replicas: u32,
    /// Replicas on one machine.
    #[pyo3(get)]
    replicas_per_node: u32,
    /// Micro-batches of the step.
    #[pyo3(get)]
    micro_steps: usize,
    /// Whether links run what has the highest priority first.
    #[pyo3(get, set)]
    by_priority: bool,
    notes: Vec<String>,
    line: Line<Question, i64>,
}

#[pymethods]
impl Draft {
    /// Says something that a reader of the answer must know.
    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// How long an operation of all replicas (or of `size` of them, `stride` apart) takes from when
    /// the last member arrives, in ns.
    #[pyo3(signature = (kind, bytes, size=None, stride=1))]
    fn cost_ns(
        &self,
        py: Python<'_>,
        kind: &str,
        bytes: u64,
        size: Option<u32>,
        stride: u32,
    ) -> PyResult<i64> {
        let scope = Scope { size: size.unwrap_or(self.replicas), stride };
        let kind = kind_of(kind).map_err(|error| of_input(&error))?;
        let bytes = Bytes::new(bytes);
        self.line.ask(py, Call { kind, bytes, scope, method: None })
    }
}

/// One that is there more than once, which would send its gradients more than once.
fn repeated(exchanges: &[Py<Exchange>]) -> Option<&Py<Exchange>> {
    let mut seen = HashSet::new();
    exchanges.iter().find(|one| !seen.insert(one.as_ptr()))
}

fn kind_of(word: &str) -> Checked<CollectiveKind> {
    CollectiveKind::parse(word).ok_or_else(|| {
        InputError::new(format!("no kind of exchange {word:?}"))
            .hint("as in all-reduce, reduce-scatter or all-gather")
    })
}

/// Adds a pass. `parameters` are name, kind (`size`, `time`, `count`, `number`, `flag`), default and
/// meaning; `function` takes the draft and the parameters by name.
#[pyfunction]
pub(crate) fn install_pass(
    name: String,
    stage: &str,
    about: String,
    parameters: Vec<(String, String, Option<String>, String)>,
    function: Py<PyAny>,
) -> PyResult<()> {
    let stage = STAGES.iter().find(|known| known.as_str() == stage).copied().ok_or_else(|| {
        let words = STAGES.map(Stage::as_str).join(", ");
        of_input(&InputError::new(format!("no stage {stage:?}")).hint(format!("stages: {words}")))
    })?;
    let mut known = Vec::new();
    for (name, kind, default, about) in parameters {
        let kind = KINDS.iter().find(|known| known.as_str() == kind).copied().ok_or_else(|| {
            PyValueError::new_err(format!("parameter {name}: no kind of value {kind:?}"))
        })?;
        let (name, about) = (leaked(name), leaked(about));
        known.push(Parameter { name, kind, default: default.map(leaked), about });
    }
    let parameters: &'static [Parameter] = Vec::leak(known);
    let name = leaked(name);
    let build: &'static Build = Box::leak(Box::new(move |values: &rewrite::Values| {
        let values = parameters.iter().map(|one| (one.name, value(values, one))).collect();
        let function = Python::attach(|py| function.clone_ref(py));
        Ok(Box::new(Own { name, values, function }) as Box<dyn Pass>)
    }));
    let source = "a function in Python";
    let kind = PassKind { name, stage, about: leaked(about), source, parameters, build };
    Registry::install(kind).map_err(|error| of_input(&error))
}

/// What is registered stays for the life of the process.
fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

const STAGES: [Stage; 7] = [
    Stage::Step,
    Stage::Fuse,
    Stage::Shard,
    Stage::Partition,
    Stage::Compress,
    Stage::Topology,
    Stage::Schedule,
];
const KINDS: [Kind; 5] = [Kind::Size, Kind::Time, Kind::Count, Kind::Number, Kind::Flag];

#[derive(Clone, Debug)]
enum Given {
    Whole(u64),
    Time(i64),
    Number(f64),
    Flag(bool),
    Nothing,
}

fn value(values: &rewrite::Values, parameter: &Parameter) -> Given {
    let name = parameter.name;
    let given = match parameter.kind {
        Kind::Size => values.size(name).map(|size| Given::Whole(size.get())),
        Kind::Time => values.time(name).map(|time| Given::Time(time.nanos())),
        Kind::Count => values.count(name).map(Given::Whole),
        Kind::Number => values.number(name).map(Given::Number),
        Kind::Flag => Some(Given::Flag(values.flag(name))),
        Kind::Word(_) => None,
    };
    given.unwrap_or(Given::Nothing)
}

/// A pass that a function in Python does.
struct Own {
    name: &'static str,
    values: Vec<(&'static str, Given)>,
    function: Py<PyAny>,
}

/// What a function left behind.
struct Done {
    exchanges: Vec<Exchange>,
    by_priority: bool,
    notes: Vec<String>,
}

impl Pass for Own {
    fn apply(&self, draft: &mut rewrite::Draft<'_>) -> Checked<()> {
        let costs = draft.costs;
        let shown: Vec<Exchange> = draft.exchanges.iter().enumerate().map(view).collect();
        let gradients =
            draft.last_gradients().iter().map(|one| (one.bytes.get(), one.at.nanos())).collect();
        let (replicas, replicas_per_node) = (costs.replicas(), costs.replicas_per_node());
        let (micro_steps, by_priority) = (draft.micro_steps(), draft.by_priority);
        let call = |line: Line<Question, i64>| -> PyResult<Done> {
            Python::attach(|py| {
                let exchanges = PyList::new(
                    py,
                    shown
                        .into_iter()
                        .map(|one| Bound::new(py, one))
                        .collect::<PyResult<Vec<_>>>()?,
                )?;
                let draft = Draft {
                    exchanges: exchanges.unbind(),
                    gradients,
                    replicas,
                    replicas_per_node,
                    micro_steps,
                    by_priority,
                    notes: Vec::new(),
                    line,
                };
                let draft = Bound::new(py, draft)?;
                failures::asked(py, || self.call(py, &draft))?;
                let mut draft = draft.borrow_mut();
                let left = draft.exchanges.bind(py).try_iter()?;
                let left = left
                    .map(|one| Ok(one?.cast::<Exchange>()?.clone().unbind()))
                    .collect::<PyResult<Vec<_>>>()?;
                if let Some(twice) = repeated(&left) {
                    let what = twice.borrow(py).__repr__();
                    return Err(PyValueError::new_err(format!("{what} is there twice")));
                }
                let exchanges = left.iter().map(|one| one.borrow(py).clone()).collect();
                let notes = std::mem::take(&mut draft.notes);
                Ok(Done { exchanges, by_priority: draft.by_priority, notes })
            })
        };
        let done = serve(call, |call| costs.collective(&call).whole.value.nanos())
            .map_err(|error| self.failed(&error))?;
        let named = |error: InputError| {
            InputError::new(format!("pass \"{}\": {}", self.name, error.message()))
        };
        let rebuilt: Checked<Vec<rewrite::Exchange>> =
            done.exchanges.iter().map(|one| rebuilt(one, &draft.exchanges)).collect();
        draft.exchanges = followed(rebuilt.map_err(named)?, &done.exchanges);
        draft.by_priority = done.by_priority;
        draft.notes.extend(done.notes);
        Ok(())
    }
}

impl Own {
    fn call(&self, py: Python<'_>, draft: &Bound<'_, Draft>) -> PyResult<()> {
        let keywords = PyDict::new(py);
        for (name, value) in &self.values {
            match value {
                Given::Whole(whole) => keywords.set_item(name, whole)?,
                Given::Time(time) => keywords.set_item(name, time)?,
                Given::Number(number) => keywords.set_item(name, number)?,
                Given::Flag(flag) => keywords.set_item(name, flag)?,
                Given::Nothing => keywords.set_item(name, py.None())?,
            }
        }
        self.function.bind(py).call((draft,), Some(&keywords))?;
        Ok(())
    }

    /// The exception itself is raised once the verb is done.
    fn failed(&self, error: &PyErr) -> InputError {
        Python::attach(|py| failures::keep_failure(error.clone_ref(py)));
        to_input(error, &format!("pass \"{}\"", self.name))
    }
}

fn view((at, one): (usize, &rewrite::Exchange)) -> Exchange {
    Exchange {
        kind: one.kind.as_str().to_owned(),
        bytes: one.bytes.get(),
        gradients: (one.gradients.start, one.gradients.end),
        micro_step: one.micro_step,
        delay_ns: one.delay.nanos(),
        priority: one.priority,
        codec: one.codec.map(|codec| codec.scheme.as_str().to_owned()),
        kept: 0.01,
        way: word_of(one.way).to_owned(),
        copied: one.copied,
        label: one.label.clone(),
        origins: vec![at],
    }
}

fn word_of(way: Way) -> &'static str {
    match way {
        Way::Library => "library",
        Way::Ring { unrolled: false } => "ring",
        Way::Ring { unrolled: true } => "unrolled ring",
        Way::Tree => "tree",
        Way::Hierarchical => "hierarchical",
        Way::Servers(_) => "servers",
    }
}

/// An exchange as the pass left it, with the anchors of those it was made of.
fn rebuilt(one: &Exchange, before: &[rewrite::Exchange]) -> Checked<rewrite::Exchange> {
    let mut origins: Vec<rewrite::Exchange> =
        one.origins.iter().filter_map(|&at| before.get(at)).cloned().collect();
    origins.sort_by_key(|origin| origin.gradients.end);
    let Some(whole) = fused(&origins) else {
        return Err(InputError::new("an exchange that is none of the draft's"));
    };
    if !(0..=super::LONGEST_NS).contains(&one.delay_ns) {
        return Err(InputError::new(format!("a delay of {} ns", one.delay_ns))
            .hint(format!("0 to {}", super::LONGEST_NS)));
    }
    let way = match one.way.as_str() {
        "library" => Way::Library,
        "ring" => Way::Ring { unrolled: false },
        "tree" => Way::Tree,
        "hierarchical" => Way::Hierarchical,
        word if word == word_of(whole.way) => whole.way,
        word => {
            return Err(InputError::new(format!("no way {word:?} to carry out an exchange"))
                .hint("library, ring, tree or hierarchical"));
        }
    };
    let codec = match &one.codec {
        None => None,
        Some(word) if whole.codec.is_some_and(|codec| codec.scheme.as_str() == word) => whole.codec,
        Some(word) => {
            if !(one.kept > 0.0 && one.kept <= 1.0) {
                let message = format!("kept = {}: expected a part above 0, at most 1", one.kept);
                return Err(InputError::new(message));
            }
            Some(Codec::new(Scheme::parse(word)?, one.kept))
        }
    };
    Ok(rewrite::Exchange {
        kind: kind_of(&one.kind)?,
        bytes: Bytes::new(one.bytes),
        gradients: one.gradients.0..one.gradients.1,
        micro_step: one.micro_step,
        follows: origins.iter().flat_map(|one| one.follows.iter().copied()).collect(),
        delay: Nanos::from_nanos(one.delay_ns),
        priority: one.priority,
        codec,
        way,
        label: one.label.clone(),
        ..whole
    })
}

/// Lets exchanges follow those that the ones they followed have become.
fn followed(mut rebuilt: Vec<rewrite::Exchange>, left: &[Exchange]) -> Vec<rewrite::Exchange> {
    let became = |origin: usize| {
        left.iter().enumerate().filter(move |(_, one)| one.origins.contains(&origin))
    };
    for at in 0..rebuilt.len() {
        let origins = &left[at].origins;
        let mut follows: Vec<usize> = rebuilt[at]
            .follows
            .iter()
            .filter(|origin| !origins.contains(origin))
            .flat_map(|&origin| became(origin).map(|(place, _)| place))
            .filter(|&place| place != at)
            .collect();
        follows.sort_unstable();
        follows.dedup();
        rebuilt[at].follows = follows;
    }
    rebuilt
}
