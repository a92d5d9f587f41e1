//! The answer of `estimate` as a page.

mod calibrated;
mod memory;
mod outlook;
mod pipeline;

use foretrain_plan::Answer;
use foretrain_plan::detailed::Detailed;
use foretrain_plan::memory::Fit;
use foretrain_plan::times::Part;

use super::TextStyle;
use super::evidence::evidence;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, ms, ms_interval, name, percent, percent_of, plain};

pub(super) use calibrated::calibrated;
pub(super) use memory::{fit_words, memory_items, memory_stages};
pub(super) use outlook::{advice, duration, money};

/// What to show of an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimateView {
    /// Say what the figures, parts and items of memory mean.
    pub explain: bool,
}

/// The page for an estimate.
pub fn estimate(detailed: &Detailed, view: EstimateView, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    let answer = &detailed.answer;
    let gpus = counted(answer.devices as usize, "GPU");
    sheet.heading(&format!("{} on {gpus} of {}", name(&detailed.model, 60), detailed.cluster));
    head(detailed, &mut sheet);
    parts(answer, &mut sheet);
    pipeline::stages(answer, &mut sheet);
    if let Some(rhythm) = &detailed.rhythm {
        pipeline::rhythm(rhythm, answer, &mut sheet);
    }
    sheet.heading("Memory of the fullest device");
    memory_items(answer, &mut sheet);
    memory_stages(answer, &mut sheet);
    if let Some(remedies) = &detailed.remedies {
        outlook::remedies(remedies, &mut sheet);
    }
    outlook::costs(detailed, &mut sheet);
    if let Some(steps) = &detailed.calibrated {
        calibrated(steps, &mut sheet);
    }
    evidence(&answer.evidence, &mut sheet);
    if view.explain {
        definitions(answer, &mut sheet);
    }
    notes(&answer.notes, &mut sheet);
    sheet.finish()
}

fn head(detailed: &Detailed, sheet: &mut Sheet) {
    let (answer, training) = (&detailed.answer, &detailed.training);
    sheet.field("layout", &answer.layout.to_string());
    let positions = match (training.sequence, training.target) {
        (0, _) => String::new(),
        (sequence, 0) => format!(" of {sequence} tokens"),
        (source, target) => format!(" of {source} + {target} tokens"),
    };
    sheet.field(
        "training",
        &format!(
            "{} samples{positions} a step, {} passes, {}, {}; {} parameters{}",
            training.global_batch,
            training.precision.compute,
            training.optimiser.as_str(),
            name(&detailed.software, 40),
            count(detailed.parameters),
            if detailed.active_parameters == detailed.parameters {
                String::new()
            } else {
                format!(", {} active", count(detailed.active_parameters))
            }
        ),
    );
    rates(answer, detailed.peak, sheet);
    sheet.field("memory", &fit_words(answer));
}

/// Step time, throughput and MFU.
pub(super) fn rates(answer: &Answer, peak: Option<f64>, sheet: &mut Sheet) {
    let time = &answer.time;
    sheet.field("step", &format!("{} ms, 80 % interval {} ms", ms(time.value), ms_interval(time)));
    let unit = unit(answer);
    let per_second = answer.tokens_per_second();
    sheet.field(
        "rate",
        &format!(
            "{} {unit}/s, {} per GPU",
            plain(per_second),
            plain(per_second / answer.devices as f64)
        ),
    );
    let seconds = time.value.secs_f64().max(1e-12);
    let tflops = answer.model_flops / seconds / answer.devices as f64 / 1e12;
    let mfu = match (answer.mfu, peak) {
        (Some(mfu), Some(peak)) => {
            format!("MFU {} of {} TFLOP/s (dense)", percent(mfu), plain(peak / 1e12))
        }
        _ => "no MFU: the catalogue has no peak for this number format".into(),
    };
    sheet.field("work", &format!("{} TFLOP/s per GPU, {mfu}", plain(tflops)));
}

/// What a step's [`Answer::tokens`] are.
pub(super) fn unit(answer: &Answer) -> &'static str {
    if answer.in_samples { "samples" } else { "tokens" }
}

/// A large count with three digits: `8.03 B`.
pub(super) fn count(number: u64) -> String {
    let number = number as f64;
    let (scaled, unit) = match number {
        n if n >= 1e12 => (n / 1e12, " T"),
        n if n >= 1e9 => (n / 1e9, " B"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e3 => (n / 1e3, " k"),
        n => return format!("{n:.0}"),
    };
    format!("{}{unit}", foretrain_core::units::significant(scaled, 3))
}

/// Parts of the step; they add up.
fn parts(answer: &Answer, sheet: &mut Sheet) {
    let step = &answer.step;
    let whose = if step.stages.len() > 1 {
        format!("Where the step goes (a rank of stage {}, the busiest)", step.stage)
    } else {
        "Where the step goes".into()
    };
    sheet.heading(&whose);
    let mut table =
        Table::new(&[("Part", Side::Left), ("ms", Side::Right), ("Share", Side::Right)]);
    for (part, time) in step.parts.iter() {
        table.row(vec![part.as_str().into(), ms(time), percent_of(time, step.time)]);
    }
    table.row(vec!["step".into(), ms(step.time), percent_of(step.time, step.time)]);
    table.keep_whole([1, 2]);
    sheet.table(table);
    if step.hidden.nanos() > 0 {
        let hidden = format!("{} ms of communication run beside kernels.", ms(step.hidden));
        sheet.paragraph("", &hidden);
    }
}

fn definitions(answer: &Answer, sheet: &mut Sheet) {
    sheet.heading("What the figures mean");
    let define = |word: &str, text: &str, sheet: &mut Sheet| sheet.field(word, text);
    define(
        "step",
        "from the start of one step to that of the next. Of ten such 80 % intervals, eight should \
         hold the true time.",
        sheet,
    );
    define(
        "MFU",
        "model FLOPs over step time, GPUs and the dense peak of the passes' number format. Model \
         FLOPs are three times those of a forward pass over the global batch, twice where weights are frozen; attention counts the \
         pairs of tokens that the mask lets see each other, and recomputation counts nothing.",
        sheet,
    );
    define(
        "memory",
        "allocated is what tensors take at the peak, reserved what the allocator then holds, used \
         adds what lies outside it. It fits if the upper end of used does, tightly if the middle \
         does.",
        sheet,
    );
    sheet.blank();
    let mut table = Table::new(&[("Part", Side::Left), ("Is", Side::Left)]);
    for (part, _) in answer.step.parts.iter() {
        table.row(vec![part.as_str().into(), part_meaning(part).into()]);
    }
    table.keep_whole([0]);
    sheet.table(table);
    sheet.blank();
    memory::meanings(answer, sheet);
}

const fn part_meaning(part: Part) -> &'static str {
    match part {
        Part::Gemm => "products of activations and weights, in both directions",
        Part::Attention => "scores, softmax and weighted sums of attention",
        Part::Expert => "routing, permuting and products of routed experts",
        Part::Convolution => "convolutions and recurrent layers",
        Part::Elementwise => "norms, activations, dropout, residual sums",
        Part::Vocabulary => "embedding, head and loss",
        Part::Recompute => "forward work that the backward pass does again",
        Part::Launch => "the device waits for the host's next launch",
        Part::TensorComm => "exposed communication among ranks that divide each layer's width",
        Part::ContextComm => "exposed communication among ranks that divide each sequence",
        Part::ExpertComm => "exposed dispatch and combination among ranks that divide experts",
        Part::PipelineComm => "exposed transfers between stages",
        Part::Bubble => "waiting for other stages, as the schedule has it",
        Part::GradientSync => "synchronisation of gradients that no backward pass hides",
        Part::ParameterGather => "gathering of divided parameters that no pass hides",
        Part::Optimiser => "the update of parameters and states",
        Part::Offload => "exposed copies to and from the host",
    }
}

/// What the reader should know.
pub(super) fn notes(notes: &[String], sheet: &mut Sheet) {
    if notes.is_empty() {
        return;
    }
    sheet.blank();
    for note in notes {
        sheet.warning(&name(note, 600));
    }
}

/// Whether an estimate is good for something.
pub(super) const fn fit_word(fit: Fit) -> &'static str {
    match fit {
        Fit::Yes => "fits",
        Fit::Tight => "tight",
        Fit::No => "does not fit",
    }
}
