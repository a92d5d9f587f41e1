//! The runs of "Reducing activation recomputation in large transformer models" (2022).

use foretrain_core::Result;
use foretrain_plan::{Precision, Recompute, Software, Wish};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out};
use super::{Described, devices, megatron_wish, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-seqpar",
    "Step times that the paper on sequence parallelism and selective recomputation states for 22B, 175B, \
     530B and 1T parameters on A100 nodes (Selene): full recomputation, and sequence-parallel with \
     selective. Given: model, layout, batch, number format. Assumed: Megatron-LM of 2022, attention \
     written out and recomputed, eight 200 Gbit/s NICs per node. Rows that give the share of the peak \
     in place of a time are turned into times by the paper's own count of operations. Nothing is fitted \
     to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    let Some(mut paper) = read(root, "Reducing Activation Recomputation", stated)? else {
        return Ok(None);
    };
    // Shares of the peak repeat what the paper states as times, but for the largest model.
    if let Some(shares) = read(root, "Megatron-LM README (2023)", from_share)? {
        let known = |case: &Case| {
            paper.cases.iter().any(|other| {
                other.model.name == case.model.name
                    && other.layout.recompute == case.layout.recompute
            })
        };
        let new: Vec<Case> = shares.cases.into_iter().filter(|case| !known(case)).collect();
        paper.cases.extend(new);
        paper.skipped.extend(shares.skipped);
    }
    Ok(Some(paper))
}

/// Library name, layout that the paper gives it, and its batch.
fn named(text: &str) -> Result<(&'static str, u64)> {
    let of = |word: &str| text.to_ascii_uppercase().contains(word);
    if of("22B") {
        Ok(("sequence-parallel-22b", 4))
    } else if of("175B") {
        Ok(("sequence-parallel-175b", 64))
    } else if of("530B") {
        Ok(("sequence-parallel-530b", 280))
    } else if of("1T") || of("1000B") {
        Ok(("sequence-parallel-1t", 512))
    } else {
        Err(super::unknown_model(text))
    }
}

fn stated(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let (name, _) = named(line.text("model"))?;
    let recompute = match line.text("act_recompute") {
        "full" => Recompute::Full,
        text if text.starts_with("selective") => Recompute::Selective,
        "none" => Recompute::None,
        other => return Err(left_out(format!("recomputation \"{other}\" is not known"))),
    };
    let wish = Wish {
        sequence_parallel: Some(line.text("seq_parallel") == "yes"),
        sharding: None,
        recompute: Some(recompute),
        ..megatron_wish(line)
    };
    let training = training(whole(line, "global_batch")?, whole(line, "seq_len")?, Precision::F16);
    let described = Described {
        model: models.named(name)?,
        cluster: machines::named("dgx-a100")?,
        training,
        software: software()?,
        wish,
    };
    described.case(line)
}

/// Megatron-LM before FlashAttention; it overlapped what interleaved stages send.
fn software() -> Result<Software> {
    let software = Software::named("megatron-deepspeed")?;
    Ok(Software { overlap_tensor_gradients: true, ..software })
}

/// Floating-point operations of a step as the paper counts them (its equation 8, no recomputation).
fn model_flops(batch: f64, sequence: f64, layers: f64, hidden: f64, vocabulary: f64) -> f64 {
    let work = 72.0 * batch * layers * sequence * hidden * hidden;
    work * (1.0 + sequence / (6.0 * hidden) + vocabulary / (12.0 * hidden * layers))
}

fn from_share(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let (name, batch) = named(line.text("model"))?;
    // Layers and hidden size, as in the paper's table of configurations.
    let (layers, hidden, stages, chunks) = match name {
        "sequence-parallel-22b" => (48.0, 6144.0, 1, 1),
        "sequence-parallel-175b" => (96.0, 12288.0, 8, 3),
        "sequence-parallel-530b" => (105.0, 20480.0, 35, 3),
        _ => (128.0, 25600.0, 64, 1),
    };
    let share = line.number("mfu_pct").ok_or_else(|| left_out("the row gives no share"))? / 100.0;
    let (devices, cluster) = (devices(line)?, machines::named("dgx-a100")?);
    let peak = cluster.node.device.peak(foretrain_core::DType::F16);
    let peak = peak.ok_or_else(|| left_out("the device has no peak"))?.get();
    let work = model_flops(batch as f64, 2048.0, layers, hidden, 51200.0);
    let wish = Wish {
        tensor: Some(8),
        pipeline: Some(stages),
        virtual_stages: Some(chunks),
        micro_batch: Some(1),
        sequence_parallel: Some(true),
        recompute: Some(Recompute::Selective),
        ..Wish::default()
    };
    let model = models.named(name)?;
    let layout = wish.complete(devices)?;
    Ok(Case {
        group: format!("{} on {}", model.name, cluster.node.device.name),
        what: format!("{}, {devices} devices, {layout}, from its share", line.text("row_id")),
        measured: work / (f64::from(devices) * peak * share),
        model,
        training: training(batch, 2048, Precision::F16),
        software: software()?,
        cluster,
        layout,
        quantity: super::super::case::Quantity::Step,
        reference: None,
    })
}

#[cfg(test)]
mod tests {
    use super::model_flops;

    /// The paper's own pairs of time and share (its table 5).
    #[test]
    fn shares_and_times_of_the_paper_agree() {
        for (devices, share, time, model) in [
            (8.0, 0.413, 1.10, (4.0, 48.0, 6144.0)),
            (64.0, 0.514, 13.75, (64.0, 96.0, 12288.0)),
            (280.0, 0.560, 37.83, (280.0, 105.0, 20480.0)),
            (512.0, 0.563, 71.49, (512.0, 128.0, 25600.0)),
        ] {
            let (batch, layers, hidden) = model;
            let work = model_flops(batch, 2048.0, layers, hidden, 51200.0);
            let from_share: f64 = work / (devices * 312e12 * share);
            assert!((from_share / time - 1.0).abs() < 0.01, "{from_share} against {time}");
        }
    }
}
