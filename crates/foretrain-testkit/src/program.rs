//! One training step as a straight list of host instructions, the same for every rank and step.

use foretrain_core::{InputError, Result};

use crate::buckets::{Bucket, assign};
use crate::dialect::{CommsStyle, Layout, Vendor};
use crate::model::{KernelClass, Module, Operator, Work, modules};
use crate::spec::{JobSpec, Sync};

/// Which host thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thread {
    Main,
    Autograd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Operator,
    Annotation,
    Python,
    /// `record_param_comms` of a bucket.
    Comms(u32),
    /// The `ProfilerStep` mark; its number is the step's.
    StepMark,
}

/// End of a forward-to-backward flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Forward,
    Backward,
}

#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    pub(crate) name: String,
    pub(crate) dims: Vec<Vec<u64>>,
    /// Autograd sequence number within the step.
    pub(crate) sequence: Option<(u32, Side)>,
    /// Whether this span carries the flow arrow of its sequence number.
    pub(crate) flow: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) base_ns: i64,
    pub(crate) grid: u64,
    pub(crate) block: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyKind {
    ToDevice,
    ToHost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instr {
    /// Begin a span, then spend the time.
    Open {
        span: u32,
        then_ns: i64,
    },
    Close,
    /// Run on another thread from now on, after the hand-over.
    Switch(Thread),
    /// Host time outside any operator.
    Idle {
        ns: i64,
    },
    /// Host time the data loader takes.
    Load {
        ns: i64,
    },
    Launch {
        kernel: u32,
    },
    Copy {
        kind: CopyKind,
        bytes: u64,
        base_ns: i64,
    },
    AllReduce {
        bucket: u32,
    },
    /// The compute stream (on a CPU job: the host) waits for all collectives so far.
    WaitComms,
    SyncDevice,
    SyncStream,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) instrs: Vec<Instr>,
    pub(crate) spans: Vec<Span>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) transfers_ns: Vec<i64>,
    /// Autograd sequence numbers used per step.
    pub(crate) sequences: u32,
    pub(crate) parameters: u64,
    /// Upper bound of a noiseless step: everything in a row.
    pub(crate) serial_ns: i64,
}

impl Program {
    /// # Errors
    /// When a knob is out of range or the job would last longer than a year of simulated time.
    pub(crate) fn new(spec: &JobSpec) -> Result<Self> {
        spec.check()?;
        let layout = spec.dialect.layout();
        let list = modules(&spec.model, spec.rows);
        let ready: Vec<u64> =
            list.iter().rev().flat_map(|m| &m.parameters).map(|p| p.elements).collect();
        let buckets = if spec.reduces() { assign(&ready, &spec.ddp) } else { Vec::new() };
        let transfers_ns = buckets.iter().map(|b| spec.all_reduce_ns(b.bytes)).collect();
        let program = Self {
            instrs: Vec::new(),
            spans: Vec::new(),
            kernels: Vec::new(),
            buckets,
            transfers_ns,
            sequences: list.len() as u32,
            parameters: ready.iter().sum(),
            serial_ns: 0,
        };
        let mut builder = Builder { spec, layout, program, bucket: 0, filled: 0 };
        builder.step(&list);
        let mut program = builder.program;
        program.serial_ns = program.bound(spec);
        let steps = i128::from(spec.steps + spec.warmup_steps);
        if i128::from(program.serial_ns) * steps > 365 * 86_400_000_000_000 {
            return Err(InputError::new("the simulated job would last over a year")
                .hint("raise the device and network rates, or simulate fewer steps"));
        }
        Ok(program)
    }

    fn bound(&self, spec: &JobSpec) -> i64 {
        let call = spec.host.launch_ns + 3 * spec.host.call_ns + spec.device.launch_latency_ns;
        let times = self.instrs.iter().map(|instr| match instr {
            Instr::Open { then_ns, .. } => *then_ns,
            Instr::Idle { ns } | Instr::Load { ns } => *ns,
            Instr::Launch { kernel } => self.kernels[*kernel as usize].base_ns + call,
            Instr::Copy { base_ns, .. } => base_ns + call,
            Instr::AllReduce { bucket } => self.transfers_ns[*bucket as usize] + call,
            Instr::Switch(_) => spec.host.handover_ns,
            Instr::Close | Instr::WaitComms | Instr::SyncDevice | Instr::SyncStream => call,
        });
        let sum = times.fold(0_i64, i64::saturating_add);
        // Noise at most doubles a time, and only a slow rank multiplies it.
        let factor = 2.0 * spec.slow_rank.map_or(1.0, |slow| slow.factor.max(1.0));
        (sum as f64 * factor) as i64
    }
}

struct Builder<'a> {
    spec: &'a JobSpec,
    layout: Layout,
    program: Program,
    /// The bucket being filled by the backward pass, and the tensors in it.
    bucket: u32,
    filled: u32,
}

impl Builder<'_> {
    fn step(&mut self, list: &[Module]) {
        if self.spec.step_marks {
            self.open(SpanKind::StepMark, "ProfilerStep#", vec![], 2_000);
        }
        self.python("train.py(42): train_step", |b| {
            b.input();
            b.phase("## zero_grad ##", Self::zero_grad);
            b.phase("## forward ##", |b| b.forward(list));
            b.phase("## backward ##", |b| b.backward(list));
            b.phase("## optimizer ##", |b| b.optimizer(list));
            b.end();
        });
        if self.spec.step_marks {
            self.close();
        }
    }

    fn emit(&mut self, instr: Instr) {
        self.program.instrs.push(instr);
    }

    fn open(&mut self, kind: SpanKind, name: &str, dims: Vec<Vec<u64>>, then_ns: i64) -> u32 {
        let span = self.program.spans.len() as u32;
        let span_spec = Span { kind, name: name.to_owned(), dims, sequence: None, flow: false };
        self.program.spans.push(span_spec);
        self.emit(Instr::Open { span, then_ns });
        span
    }

    fn close(&mut self) {
        self.emit(Instr::Close);
    }

    fn annotate(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        self.open(SpanKind::Annotation, name, vec![], 1_000);
        body(self);
        self.close();
    }

    fn phase(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        if self.spec.phase_marks { self.annotate(name, body) } else { body(self) }
    }

    fn python(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        if !self.spec.with_stack {
            return body(self);
        }
        self.open(SpanKind::Python, name, vec![], 400);
        body(self);
        self.close();
    }

    fn plain(&mut self, name: &str, dims: Vec<Vec<u64>>, body: impl FnOnce(&mut Self)) {
        self.open(SpanKind::Operator, name, dims, 1_500);
        body(self);
        self.close();
    }

    fn input(&mut self) {
        let bytes = 4 * self.spec.rows * self.input_width();
        let loader = self.spec.host.loader_ns;
        if loader > 0 {
            let name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
            self.annotate(name, |b| b.emit(Instr::Load { ns: loader }));
        }
        if self.layout.vendor != Vendor::None {
            let dims = vec![vec![self.spec.rows, self.input_width()]];
            self.plain("aten::to", dims.clone(), |b| {
                b.plain("aten::_to_copy", dims.clone(), |b| {
                    b.plain("aten::copy_", dims.clone(), |b| b.copy(CopyKind::ToDevice, bytes));
                });
            });
        }
    }

    fn input_width(&self) -> u64 {
        match &self.spec.model {
            crate::spec::Model::Mlp { widths } => widths.first().copied().unwrap_or(1),
            crate::spec::Model::Transformer { vocabulary: 0, hidden, .. } => *hidden,
            crate::spec::Model::Transformer { .. } => 2,
        }
    }

    fn copy(&mut self, kind: CopyKind, bytes: u64) {
        let transfer = bytes as f64 / self.spec.device.copy_gb_per_s;
        let base_ns = (transfer as i64).max(1_000);
        self.emit(Instr::Copy { kind, bytes, base_ns });
    }

    fn zero_grad(&mut self) {
        self.annotate("Optimizer.zero_grad#SGD.zero_grad", |b| b.emit(Instr::Idle { ns: 8_000 }));
    }

    fn forward(&mut self, list: &[Module]) {
        if self.spec.reduces() {
            self.annotate("DistributedDataParallel.forward", |b| {
                b.emit(Instr::Idle { ns: 15_000 });
                b.forward_modules(list);
            });
        } else {
            self.forward_modules(list);
        }
    }

    fn forward_modules(&mut self, list: &[Module]) {
        let gap = self.spec.host.python_gap_ns;
        for (index, module) in list.iter().enumerate() {
            self.emit(Instr::Idle { ns: gap });
            self.python(&module.name, |b| match module.outer {
                Some(outer) => b.plain(outer, module.forward.dims.clone(), |b| {
                    b.differentiable(&module.forward, index as u32);
                }),
                None => b.differentiable(&module.forward, index as u32),
            });
        }
    }

    fn differentiable(&mut self, operator: &Operator, sequence: u32) {
        let span = self.launch_in(operator);
        let span = &mut self.program.spans[span as usize];
        (span.sequence, span.flow) = (Some((sequence, Side::Forward)), true);
    }

    fn launch_in(&mut self, operator: &Operator) -> u32 {
        let dispatch = self.spec.host.dispatch_ns;
        let span = self.open(SpanKind::Operator, operator.name, operator.dims.clone(), dispatch);
        self.launch(operator.work);
        self.close();
        span
    }

    fn launch(&mut self, work: Work) {
        let device = &self.spec.device;
        let roofline = (work.flops as f64 / (device.tflops * 1e3))
            .max(work.bytes as f64 / device.memory_gb_per_s);
        let base_ns =
            device.fixed_kernel_ns.unwrap_or_else(|| (roofline as i64).max(device.floor_ns));
        let hip = self.layout.vendor == Vendor::Hip;
        let block = if work.class == KernelClass::Elementwise { 128 } else { 256 };
        let grid = (work.bytes / 4 / 4 / u64::from(block)).clamp(1, 1 << 20);
        let kernel = self.program.kernels.len() as u32;
        let name = work.class.name(hip);
        self.program.kernels.push(Kernel { name, base_ns, grid, block });
        self.emit(Instr::Launch { kernel });
    }

    fn backward(&mut self, list: &[Module]) {
        let second_thread = self.layout.vendor != Vendor::None;
        if second_thread {
            self.emit(Instr::Switch(Thread::Autograd));
        }
        for (index, module) in list.iter().enumerate().rev() {
            self.evaluate(module, index as u32);
            for parameter in &module.parameters {
                self.accumulate(parameter.elements);
            }
        }
        if !self.program.buckets.is_empty() {
            self.emit(Instr::WaitComms);
        }
        if second_thread {
            self.emit(Instr::Switch(Thread::Main));
        }
    }

    fn evaluate(&mut self, module: &Module, sequence: u32) {
        let name = format!("autograd::engine::evaluate_function: {}", module.node);
        let outer = self.open(SpanKind::Operator, &name, vec![], 1_500);
        let node = self.open(SpanKind::Operator, module.node, vec![], 1_500);
        let side = Some((sequence, Side::Backward));
        self.program.spans[outer as usize].sequence = side;
        self.program.spans[node as usize].sequence = side;
        self.program.spans[node as usize].flow = true;
        for operator in &module.backward {
            self.launch_in(operator);
        }
        self.close();
        self.close();
    }

    fn accumulate(&mut self, elements: u64) {
        let node = "torch::autograd::AccumulateGrad";
        self.plain(&format!("autograd::engine::evaluate_function: {node}"), vec![], |b| {
            b.plain(node, vec![vec![elements]], |b| {
                b.plain("aten::detach", vec![vec![elements]], |_| ());
            });
            if b.spec.reduces() {
                b.fill_bucket(elements);
            }
        });
    }

    /// The reducer's hook: scale the gradient into its bucket, and reduce the bucket once full.
    fn fill_bucket(&mut self, elements: u64) {
        let work = Work { class: KernelClass::Elementwise, flops: elements, bytes: 8 * elements };
        let dims = vec![vec![elements], vec![]];
        self.launch_in(&Operator { name: "aten::mul", dims, work });
        self.filled += 1;
        if self.filled == self.program.buckets[self.bucket as usize].tensors {
            self.reduce_bucket(self.bucket);
            self.bucket += 1;
            self.filled = 0;
        }
    }

    fn reduce_bucket(&mut self, bucket: u32) {
        let dims = vec![vec![self.program.buckets[bucket as usize].elements]];
        let gloo = self.layout.vendor == Vendor::None;
        let style = self.layout.comms;
        self.plain("c10d::allreduce_", dims.clone(), |b| {
            let nested = match style {
                CommsStyle::None => 0,
                CommsStyle::Positional => 2,
                CommsStyle::Keyword => 1,
            };
            for _ in 0..nested {
                b.open(SpanKind::Comms(bucket), "record_param_comms", dims.clone(), 2_000);
            }
            if gloo {
                b.emit(Instr::AllReduce { bucket });
            } else {
                let span = b.open(SpanKind::Annotation, "nccl:all_reduce", dims.clone(), 1_500);
                debug_assert_eq!(b.program.spans.len() as u32, span + 1);
                b.emit(Instr::AllReduce { bucket });
                b.close();
            }
            for _ in 0..nested {
                b.close();
            }
        });
        if !self.spec.ddp.overlap {
            self.emit(Instr::WaitComms);
        }
    }

    fn optimizer(&mut self, list: &[Module]) {
        /// Tensors one multi-tensor kernel takes.
        const CHUNK: usize = 110;
        let sizes: Vec<u64> =
            list.iter().flat_map(|module| &module.parameters).map(|p| p.elements).collect();
        self.annotate("Optimizer.step#SGD.step", |b| {
            b.emit(Instr::Idle { ns: 20_000 });
            for (name, floats) in
                [("aten::_foreach_mul_", 2), ("aten::_foreach_add_", 3), ("aten::_foreach_add_", 3)]
            {
                let dispatch = b.spec.host.dispatch_ns;
                b.open(SpanKind::Operator, name, vec![], dispatch);
                for chunk in sizes.chunks(CHUNK) {
                    let elements: u64 = chunk.iter().sum();
                    b.launch(Work {
                        class: KernelClass::MultiTensor,
                        flops: elements,
                        bytes: 4 * floats * elements,
                    });
                }
                b.close();
            }
        });
    }

    fn end(&mut self) {
        if self.layout.vendor == Vendor::None {
            return;
        }
        match self.spec.sync {
            Sync::None => {}
            Sync::Device => self.emit(Instr::SyncDevice),
            Sync::LossItem => self.plain("aten::item", vec![vec![]], |b| {
                b.plain("aten::_local_scalar_dense", vec![vec![]], |b| {
                    b.copy(CopyKind::ToHost, 4);
                    b.emit(Instr::SyncStream);
                });
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Model;

    #[test]
    fn every_span_that_opens_closes() {
        for dialect in crate::Dialect::ALL {
            let spec =
                JobSpec { dialect, with_stack: true, phase_marks: true, ..JobSpec::tiny_ddp() };
            let program = Program::new(&spec).unwrap();
            let mut depth = 0_i32;
            for instr in &program.instrs {
                match instr {
                    Instr::Open { .. } => depth += 1,
                    Instr::Close => depth -= 1,
                    _ => {}
                }
                assert!(depth >= 0);
            }
            assert_eq!(depth, 0, "{dialect:?}");
        }
    }

    #[test]
    fn every_bucket_is_reduced_once_in_order() {
        let program = Program::new(&JobSpec::gpu_bound()).unwrap();
        let reduced: Vec<u32> = program
            .instrs
            .iter()
            .filter_map(|instr| match instr {
                Instr::AllReduce { bucket } => Some(*bucket),
                _ => None,
            })
            .collect();
        assert_eq!(reduced, (0..program.buckets.len() as u32).collect::<Vec<_>>());
        assert!(reduced.len() > 2);
    }

    #[test]
    fn an_endless_job_is_refused() {
        let mut spec = JobSpec::tiny_ddp();
        spec.model = Model::Mlp { widths: vec![1 << 16; 100] };
        spec.rows = 1 << 24;
        spec.device.tflops = 1e-3;
        assert!(Program::new(&spec).unwrap_err().to_string().contains("over a year"));
    }
}
