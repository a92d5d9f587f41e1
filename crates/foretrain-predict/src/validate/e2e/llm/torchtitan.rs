//! The benchmarks of torchtitan: FSDP, tensor, pipeline and context parallelism in PyTorch.

use std::sync::Arc;

use foretrain_core::{Bandwidth, Bytes, Result};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_plan::{Recompute, Sharding, Software, Wish};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out, together};
use super::{Described, number_after, precision, read, training};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-torchtitan",
    "Rates of Llama 3 under torchtitan on 8 to 512 H100 (the 96 GB, 500 W model with 2.4 TB/s in most \
     rows). Given: model, layout, batch of a replica, number format, compiled or not. Assumed: sequences of \
     8,192 where none is given, as many micro-batches as stages (its default), two chunks per stage when \
     interleaved, every second layer's products recomputed under \"selective\". The device's lower power is \
     not modelled. Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    Ok(together(
        read(root, "torchtitan benchmark", case)?,
        read(root, "torchtitan asyncTP", asynchronous_case)?,
    ))
}

fn library_name(text: &str) -> Result<(&'static str, u32)> {
    let text = text.to_ascii_lowercase();
    if text.contains("405b") {
        Ok(("llama-3.1-405b", 126))
    } else if text.contains("70b") {
        Ok(("llama-3-70b", 80))
    } else if text.contains("8b") {
        Ok(("llama-3-8b", 32))
    } else {
        Err(super::unknown_model(&text))
    }
}

/// The per-operation policy keeps every second product, attention and what is received.
fn recompute(text: &str, layers: u32, stages: u32) -> Result<Recompute> {
    let text = text.to_ascii_lowercase();
    if text.contains("full") {
        Ok(Recompute::Full)
    } else if text.contains("selective") || text.contains("sac") {
        Ok(Recompute::Layers(layers / stages.max(1) / 2))
    } else {
        Err(left_out("the row does not say what is recomputed"))
    }
}

/// H100 with slower memory at less power, eight per node, 400 Gbit/s each.
fn grand_teton() -> Result<Arc<Cluster>> {
    let mut cluster = Catalogue::builtin().cluster("hgx-h100-roce")?;
    let device = &mut cluster.node.device;
    device.memory = Bytes::from_mib(96 << 10);
    device.memory_bandwidth = Bandwidth::from_gb_per_sec(2400.0);
    device.tdp_watts = Some(500.0);
    Ok(Arc::new(cluster))
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let (name, layers) = library_name(line.text("model"))?;
    let pipeline = line.degree("pp").unwrap_or(1);
    let replicas = number_after(line.text("sharding"), "FSDP ")
        .ok_or_else(|| left_out("the row does not say how many replicas it has"))?;
    // The table's "micro-batch" is a replica's whole batch.
    let local = super::whole(line, "micro_batch")?;
    let notes = line.text("notes");
    let wish = Wish {
        tensor: line.degree("tp"),
        pipeline: Some(pipeline),
        context: line.degree("cp"),
        data: Some(replicas),
        virtual_stages: notes.contains("Interleaved").then_some(2),
        micro_batch: Some(local.div_ceil(u64::from(pipeline))),
        sequence_parallel: Some(line.degree("tp").is_some_and(|tensor| tensor > 1)),
        sharding: Some(Sharding::Parameters),
        recompute: Some(recompute(line.text("act_recompute"), layers, pipeline)?),
        ..Wish::default()
    };
    // All but plain FSDP is compiled, says the source.
    let plain = notes.contains(": FSDP;");
    let training = training(
        local * u64::from(replicas),
        super::whole(line, "seq_len")?,
        precision(&line.text("precision").replace("bf16+", ""))?,
    );
    let described = Described {
        model: models.named(name)?,
        cluster: grand_teton()?,
        training,
        software: Software {
            // As the times of divided sequences show: nothing else doubles them.
            balanced_context: false,
            ..Software::named(if plain { "fsdp" } else { "fsdp-compile" })?
        },
        wish,
    };
    described.case(line)
}

/// Rows whose model column describes the run: "70b on 256 H100s with FSDP=32, TP=8, full AC, ...".
fn asynchronous_case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let text = line.text("model");
    let (name, layers) = library_name(text)?;
    let number = |key| {
        number_after(text, key).ok_or_else(|| left_out(format!("the row gives no \"{key}\"")))
    };
    let (devices, replicas, tensor) = (number(" on ")?, number("FSDP=")?, number("TP=")?);
    let local = u64::from(number("local batch size")?);
    let wish = Wish {
        tensor: Some(tensor),
        data: Some(replicas),
        micro_batch: Some(local),
        sequence_parallel: Some(true),
        sharding: Some(Sharding::Parameters),
        recompute: Some(recompute(text, layers, 1)?),
        ..Wish::default()
    };
    let overlaps = line.text("framework").contains("async");
    let software = Software {
        overlap_tensor: overlaps,
        overlap_tensor_gradients: overlaps,
        ..Software::named("fsdp-compile")?
    };
    let training = training(local * u64::from(replicas), 8192, precision(line.text("precision"))?);
    let tokens = training.global_batch as f64 * training.sequence as f64;
    let rate =
        line.number("tokens_per_s_per_gpu").ok_or_else(|| left_out("the row has no rate"))?;
    let cluster = machines::nvidia("H100")?;
    let layout = wish.complete(devices)?;
    let model = models.named(name)?;
    Ok(Case {
        group: format!("{} on {}", model.name, cluster.node.device.name),
        what: format!(
            "{}, {devices} devices, {}, {}, {layout}",
            line.text("row_id"),
            line.text("precision"),
            line.text("framework")
        ),
        model,
        training,
        software,
        cluster,
        layout,
        quantity: super::Quantity::Step,
        measured: tokens / (rate * f64::from(devices)),
        reference: None,
    })
}
