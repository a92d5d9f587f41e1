//! The same runs from a description of the model, without a profile.

use std::sync::Arc;

use foretrain_core::Result;
use foretrain_plan::{Precision, Software, Training, Wish};

use super::super::case::{Case, Quantity};
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out, read_lines};
use super::{RUNS, alps};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const STEPS: Runs = Runs::new(
    "e2e-sailor-described",
    "Iterations of OPT-350M and GPT-Neo-2.7B under Sailor's fork of Megatron-DeepSpeed on 4 to 256 GH200, \
     from the models' dimensions and the plan alone. Assumed: fp16, nothing recomputed, attention written \
     out, gradients after the last backward pass. Runs on several kinds of devices are left out. Nothing is \
     fitted to these rows.",
    |root| cases(root, Quantity::Step),
);

pub(super) const MEMORY: Runs = Runs::new(
    "memory-sailor",
    "The most memory that any device of the runs of `e2e-sailor-described` took, against the fullest stage's \
     allocated bytes. Given and assumed: as there. Nothing is fitted to these rows.",
    |root| cases(root, Quantity::Memory),
)
.of_memory();

fn cases(root: &Root, quantity: Quantity) -> Result<Option<Read>> {
    let what = |line: Line<'_>| line.text("case").to_owned();
    read_lines(
        root,
        RUNS,
        |_| true,
        what,
        |line, models| {
            let measured = match quantity {
                Quantity::Memory => line.number("measured_max_mem_bytes").map(|bytes| bytes / GIB),
                _ => line.number("measured_iter_s"),
            };
            let measured = measured.ok_or_else(|| left_out("the row does not give it"))?;
            Ok(Case { quantity, measured, ..case(line, models)? })
        },
    )
}

const GIB: f64 = (1_u64 << 30) as f64;

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    if line.text("homogeneous") != "1" {
        return Err(left_out("several kinds of devices over Ethernet of unknown rate"));
    }
    let whole = |column: &str| {
        line.whole(column).ok_or_else(|| left_out(format!("the row gives no {column}")))
    };
    let (layers, hidden, heads) = (whole("layers")?, whole("hidden")?, whole("heads")?);
    let (sequence, vocabulary) = (whole("seq_len")?, whole("vocab")?);
    let text = format!(
        "[transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\n\
         vocabulary = {vocabulary}\npositions = {sequence}\n"
    );
    let wish = Wish {
        tensor: line.degree("tp"),
        pipeline: line.degree("pp"),
        data: line.degree("dp"),
        micro_batch: line.whole("mbs"),
        stage_layers: Some(body_layers(line.text("layers_per_stage"), layers)?),
        ..Wish::default()
    };
    let devices = line.degree("gpus").ok_or_else(|| left_out("the row gives no devices"))?;
    let layout = wish.complete(devices)?;
    Ok(Case {
        group: line.text("model").to_owned(),
        what: format!("{}, {devices} devices, {layout}", line.text("case")),
        model: models.described(&text, line.text("model"))?,
        training: Training { precision: Precision::F16, ..Training::of(whole("gbs")?, sequence) },
        software: Software::named("megatron-deepspeed")?,
        cluster: Arc::new(alps()?),
        layout,
        quantity: Quantity::Step,
        measured: 0.0,
        reference: None,
    })
}

/// Layers of each stage without embedding and head, which the plan counts as layers.
fn body_layers(text: &str, layers: u64) -> Result<Vec<u32>> {
    let wrong = || left_out("the plan does not add up to the model's layers");
    let stages = text.split('/').map(|layers| layers.trim().parse::<u32>());
    let mut stages = stages.collect::<std::result::Result<Vec<_>, _>>().map_err(|_| wrong())?;
    for end in [0, stages.len() - 1] {
        stages[end] = stages[end].checked_sub(1).ok_or_else(wrong)?;
    }
    let sum: u64 = stages.iter().map(|&layers| u64::from(layers)).sum();
    if sum == layers { Ok(stages) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::body_layers;

    #[test]
    fn plans_count_embedding_and_head() {
        assert_eq!(body_layers("7/9/9/9", 32).unwrap(), [6, 9, 9, 8]);
        assert_eq!(body_layers("26", 24).unwrap(), [24]);
        assert!(body_layers("26", 32).is_err());
        assert!(body_layers("0/4", 4).is_err());
    }
}
