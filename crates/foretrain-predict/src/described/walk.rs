//! The operators of one forward pass.

use std::collections::{BTreeMap, HashMap};

use foretrain_ingest::execution_trace::{Operand, Operator};

use super::kind::{Kind, is_view, kind};
use super::weights::Weights;

/// One operation of a forward pass.
pub(super) struct Call<'a> {
    pub(super) operator: &'a Operator,
    pub(super) kind: Kind,
    /// Values of the sample that it reads, and that it gives.
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
    /// Elements of the trainable tensors that are met first here, with their names.
    pub(super) parameters: Vec<(&'static str, u64)>,
    /// It uses a trainable tensor that was met before.
    pub(super) tied: bool,
}

/// A forward pass.
#[derive(Default)]
pub(super) struct Pass<'a> {
    pub(super) calls: Vec<Call<'a>>,
    /// Operators that are taken for elementwise work, by how often.
    strangers: BTreeMap<&'a str, usize>,
    /// Communication was met: the operators are one rank's part.
    communicates: bool,
    /// Elements of all gradients that were accumulated; none if no backward pass was recorded.
    gradients: Option<u64>,
}

/// What is not of the forward pass: gradients, updates, and their synchronisation.
fn is_beside(name: &str) -> bool {
    name.starts_with("autograd::")
        || name.starts_with("torch::")
        || name.starts_with("Optimizer.")
        || name.contains("Backward")
}

fn is_communication(name: &str) -> bool {
    name.starts_with("c10d") || name.starts_with("record_param_comms") || name.starts_with("nccl")
}

const GRADIENT: &str = "torch::autograd::AccumulateGrad";

impl<'a> Pass<'a> {
    /// The last whole forward pass among the operators.
    pub(super) fn of(operators: &'a [Operator]) -> Self {
        let tree = Tree::of(operators);
        let steps = tree.steps();
        // A recording may begin or end within a step; of whole ones the last is taken.
        let passes = steps.iter().map(|roots| Walk::new(&tree).pass(roots));
        let mut pass = passes.max_by_key(|pass| pass.calls.len()).unwrap_or_default();
        pass.keep_one_iteration();
        pass.end_with_loss();
        let gradients = operators.iter().filter(|operator| operator.name == GRADIENT);
        let elements = |operator: &Operator| operator.inputs.first()?.first().map(|of| of.elements);
        pass.gradients = gradients.filter_map(elements).reduce(u64::saturating_add);
        pass
    }

    /// Steps without marks, and micro-batches, use the same weights in the same order again.
    fn keep_one_iteration(&mut self) {
        let weighted: Vec<usize> =
            (0..self.calls.len()).filter(|&at| self.calls[at].kind.has_weight()).collect();
        let key = |&at: &usize| {
            let call = &self.calls[at];
            let weight = call.kind.weight().and_then(|at| call.operator.inputs.get(at)?.first());
            (call.operator.name.as_str(), weight.map(|weight| weight.elements))
        };
        let keys: Vec<_> = weighted.iter().map(key).collect();
        let is_period = |&period: &usize| {
            let again = weighted[period..].iter();
            keys.len().is_multiple_of(period)
                && again.clone().all(|&at| self.calls[at].parameters.is_empty())
                && keys[period..].iter().zip(&keys).all(|(own, before)| own == before)
        };
        if let Some(period) = (1..=keys.len() / 2).find(is_period) {
            self.calls.truncate(weighted[period]);
        }
    }

    /// What follows a loss and trains nothing is no part of the model.
    fn end_with_loss(&mut self) {
        let loss = self.calls.iter().rposition(|call| call.kind == Kind::Loss);
        if let Some(at) =
            loss.filter(|at| !self.calls[at + 1..].iter().any(|call| call.kind.has_weight()))
        {
            self.calls.truncate(at + 1);
        }
    }

    /// Samples of the pass: the first extent of the data that its first operation reads.
    pub(super) fn batch(&self) -> Option<u64> {
        let data = |call: &Call<'_>| Some(call.kind.data(call.operator)?.shape.clone());
        let shapes = self.calls.iter().filter_map(data);
        shapes.filter(|shape| shape.len() >= 2).map(|shape| shape[0]).find(|&batch| batch > 0)
    }

    /// What the reader must know of the model.
    pub(super) fn assumptions(&self, batch: u64) -> Vec<String> {
        let mut said = vec![format!(
            "the trace's {batch} samples a pass are told from the first extent of what its first \
             operation reads; sequences are as long as recorded"
        )];
        let parameters: u64 =
            self.calls.iter().flat_map(|call| &call.parameters).map(|(_, count)| *count).sum();
        match self.gradients {
            None => said.push(
                "no gradients were recorded: training is taken to follow the forward pass".into(),
            ),
            Some(all) if parameters == 0 || !all.is_multiple_of(parameters) => said.push(format!(
                "gradients of {all} numbers were recorded in all, which is no multiple of the \
                 {parameters} trainable numbers found: some have no gradient, or were not recognised"
            )),
            Some(_) => {}
        }
        if self.communicates {
            said.push(
                "the forward pass communicates: the trace, and so this model, is one rank's part"
                    .into(),
            );
        }
        if !self.strangers.is_empty() {
            let names: Vec<&str> = self.strangers.keys().copied().take(6).collect();
            let more = if self.strangers.len() > names.len() { " and others" } else { "" };
            said.push(format!(
                "taken for work on each number: {}{more}",
                names.join(", ").replace("aten::", "")
            ));
        }
        said
    }
}

/// Operators by the one that called them.
struct Tree<'a> {
    operators: &'a [Operator],
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl<'a> Tree<'a> {
    fn of(operators: &'a [Operator]) -> Self {
        let mut children = vec![Vec::new(); operators.len()];
        let mut roots = Vec::new();
        for (at, operator) in operators.iter().enumerate() {
            match operator.parent {
                Some(parent) => children[parent].push(at),
                None => roots.push(at),
            }
        }
        Self { operators, children, roots }
    }

    /// The roots of every marked step; all operators if none is marked.
    fn steps(&self) -> Vec<Vec<usize>> {
        let marked = (0..self.operators.len())
            .filter(|&at| self.operators[at].name.starts_with("ProfilerStep#"));
        let steps: Vec<Vec<usize>> = marked.map(|at| vec![at]).collect();
        if steps.is_empty() { vec![self.roots.clone()] } else { steps }
    }
}

/// A walk through the operators in the order in which they began.
struct Walk<'a, 't> {
    tree: &'t Tree<'a>,
    pass: Pass<'a>,
    weights: Weights,
    /// The value of the sample that lies in a storage.
    value: HashMap<i64, usize>,
    values: usize,
}

impl<'a, 't> Walk<'a, 't> {
    fn new(tree: &'t Tree<'a>) -> Self {
        Self {
            tree,
            pass: Pass::default(),
            weights: Weights::default(),
            value: HashMap::new(),
            values: 0,
        }
    }

    fn pass(mut self, roots: &[usize]) -> Pass<'a> {
        // Depth first without recursion: a file may nest as deep as it is long.
        let mut stack: Vec<Visit> = roots.iter().rev().map(|&at| Visit::Enter(at)).collect();
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Leave(at) => self.hand_on(&self.tree.operators[at]),
                Visit::Enter(at) => {
                    let operator = &self.tree.operators[at];
                    if is_beside(&operator.name) {
                        continue;
                    }
                    if is_communication(&operator.name) {
                        self.pass.communicates |= !self.value.is_empty();
                        continue;
                    }
                    if self.take(operator, self.tree.children[at].is_empty()) {
                        continue;
                    }
                    stack.push(Visit::Leave(at));
                    stack.extend(self.tree.children[at].iter().rev().map(|&at| Visit::Enter(at)));
                }
            }
        }
        self.pass
    }

    /// Takes an operator as an operation, if it is one; what it calls belongs to it.
    fn take(&mut self, operator: &'a Operator, is_leaf: bool) -> bool {
        let reads = self.reads(operator);
        let known = kind(operator, &|operand| self.is_data(operand));
        let taken = match known {
            Some(kind) if !reads.is_empty() || kind.has_weight() => kind,
            Some(_) => return false,
            // Anything else that ends here and works on the sample.
            None if is_leaf && !reads.is_empty() && is_work(operator) => {
                *self.pass.strangers.entry(&operator.name).or_default() += 1;
                Kind::stranger()
            }
            None => return false,
        };
        let mut call = Call {
            operator,
            kind: taken,
            reads,
            writes: Vec::new(),
            parameters: Vec::new(),
            tied: false,
        };
        for (name, operand) in call.kind.weights(operator, &|operand| self.is_data(operand)) {
            match self.weights.meet(operand) {
                Some(elements) => call.parameters.push((name, elements)),
                None => call.tied = true,
            }
        }
        call.writes = operator.outputs.iter().map(|output| self.write(output)).collect();
        self.pass.calls.push(call);
        true
    }

    fn is_data(&self, operand: &Operand) -> bool {
        self.value.contains_key(&operand.storage)
    }

    /// Values of the sample among the inputs.
    fn reads(&self, operator: &Operator) -> Vec<usize> {
        let inputs = operator.inputs.iter().flatten();
        inputs.filter_map(|input| self.value.get(&input.storage).copied()).collect()
    }

    fn write(&mut self, output: &Operand) -> usize {
        self.values += 1;
        self.value.insert(output.storage, self.values);
        self.weights.overwrite(output);
        self.values
    }

    /// What works on the sample gives something of the sample; views give the value itself. What
    /// does not gives memory that held a value to other use.
    fn hand_on(&mut self, operator: &'a Operator) {
        let read = self.reads(operator).first().copied();
        for output in &operator.outputs {
            match read {
                Some(value) => {
                    self.value.entry(output.storage).or_insert(value);
                }
                None => {
                    self.value.remove(&output.storage);
                    self.weights.made(operator, output);
                }
            }
        }
    }
}

enum Visit {
    Enter(usize),
    Leave(usize),
}

/// Whether an operator moves or computes numbers.
fn is_work(operator: &Operator) -> bool {
    let made: u64 = operator.outputs.iter().map(|output| output.elements).max().unwrap_or(0);
    // A conversion that has nothing to convert hands its input on.
    let storage = |operands: &[Operand]| operands.first().map(|operand| operand.storage);
    let same =
        operator.inputs.first().and_then(|input| storage(input)) == storage(&operator.outputs);
    let hands_on = is_view(&operator.name) || (same && !operator.name.ends_with('_'));
    operator.name.starts_with("aten::") && !hands_on && made > 1
}
