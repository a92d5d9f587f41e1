//! Language models of MLPerf, each result joined with the configuration that NVIDIA submitted.

use std::sync::Arc;

use foretrain_core::{Nanos, Result};
use foretrain_hardware::Cluster;
use foretrain_plan::training::Lora;
use foretrain_plan::{Optimiser, Precision, Sharding, Software, Training, Wish};

use super::super::case::{Case, Quantity};
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Reasons, Runs, left_out};
use super::configurations::{Configuration, Configurations};
use super::{SOURCE, results, step_seconds};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const GPT3: Runs = Runs::new(
    "e2e-mlperf-gpt3",
    "Steps of GPT-3 175B in FP8 on 64 to 11,616 NVIDIA devices (MLPerf Training 3.0 to 4.1). Given: devices and \
     batch of the result, the layout that NVIDIA submitted for that round, size and batch. Assumed: other \
     submitters of that size run NVIDIA's code and layout; 12 chunks per stage where the configuration \
     names none; launched as graphs where its name says so; tensor-parallel communication overlaps. Nothing \
     is fitted to these rows.",
    |root| cases(root, &Benchmark::GPT3),
)
.of_source(SOURCE);

pub(super) const LLAMA_405B: Runs = Runs::new(
    "e2e-mlperf-llama31-405b",
    "Steps of Llama 3.1 405B in FP8 or FP4 (MLPerf Training 5.0 and later), as `e2e-mlperf-gpt3`. Nothing is \
     fitted to these rows.",
    |root| cases(root, &Benchmark::LLAMA_405B),
)
.of_source(SOURCE);

pub(super) const LLAMA_8B: Runs = Runs::new(
    "e2e-mlperf-llama31-8b",
    "Steps of Llama 3.1 8B in FP8 or FP4 (MLPerf Training 5.1 and later), as `e2e-mlperf-gpt3`. Nothing is \
     fitted to these rows.",
    |root| cases(root, &Benchmark::LLAMA_8B),
)
.of_source(SOURCE);

pub(super) const LORA: Runs = Runs::new(
    "e2e-mlperf-llama2-70b-lora",
    "Steps of Llama 2 70B with adapters of rank 16 on attention, in FP8 on 4 to 1,024 NVIDIA devices (MLPerf \
     Training 4.0 and later), as `e2e-mlperf-gpt3`; sequences of 8,192, nothing recomputed. Nothing is fitted \
     to these rows.",
    |root| cases(root, &Benchmark::LORA),
)
.of_source(SOURCE);

struct Benchmark {
    name: &'static str,
    model: &'static str,
    sequence: u64,
    lora: Option<Lora>,
}

impl Benchmark {
    const GPT3: Self = Self { name: "gpt3", model: "gpt-3-175b", sequence: 2048, lora: None };
    const LLAMA_405B: Self =
        Self { name: "llama31_405b", model: "llama-3.1-405b", sequence: 8192, lora: None };
    const LLAMA_8B: Self =
        Self { name: "llama31_8b", model: "llama-3-8b", sequence: 8192, lora: None };
    const LORA: Self = Self {
        name: "llama2_70b_lora",
        model: "llama-2-70b",
        sequence: 8192,
        lora: Some(Lora { rank: 16, attention_only: true }),
    };
}

fn cases(root: &Root, benchmark: &Benchmark) -> Result<Option<Read>> {
    let (Some(results), Some(configurations)) = (results(root)?, Configurations::read(root)?)
    else {
        return Ok(None);
    };
    let mut models = Models::default();
    let (mut cases, mut reasons) = (Vec::new(), Reasons::default());
    for line in results.lines().filter(|line| line.text("benchmark") == benchmark.name) {
        match case(line, benchmark, &configurations, &mut models) {
            Ok(case) => cases.push(case),
            Err(error) => {
                let accelerator = line.text("accelerator");
                reasons.add(format!("{} on {accelerator}", line.text("round")), &error);
            }
        }
    }
    Ok(Some(Read { cases, skipped: reasons.into_skipped() }))
}

fn case(
    line: Line<'_>,
    benchmark: &Benchmark,
    configurations: &Configurations,
    models: &mut Models,
) -> Result<Case> {
    let measured = step_seconds(line)?;
    let batch = line.whole("global_batch").ok_or_else(|| left_out("the row gives no batch"))?;
    let configuration = configurations.for_result(line, batch)?;
    let devices = line.degree("n_accel").ok_or_else(|| left_out("no devices are given"))?;
    let wish = Wish {
        tensor: Some(configuration.tensor),
        pipeline: Some(configuration.pipeline),
        context: Some(configuration.context),
        virtual_stages: Some(configuration.chunks),
        micro_batch: Some(configuration.micro_batch),
        sequence_parallel: Some(configuration.tensor > 1),
        sharding: Some(Sharding::Optimiser),
        ..Wish::default()
    };
    let layout = wish.complete(devices)?;
    let model = models.named(benchmark.model)?;
    let cluster = cluster(line)?;
    let what = format!(
        "{} {}, {devices} devices, batch {batch}, {layout}",
        line.text("round"),
        line.text("system")
    );
    Ok(Case {
        group: format!("{} on {}", model.name, cluster.node.device.name),
        what,
        model,
        training: Training {
            global_batch: batch,
            sequence: benchmark.sequence,
            target: 0,
            precision: if configuration.fp4 { Precision::F4 } else { Precision::F8 },
            optimiser: Optimiser::Adam,
            lora: benchmark.lora,
            expert_imbalance: 1.0,
        },
        software: software(&configuration),
        cluster,
        layout,
        quantity: Quantity::Step,
        measured,
        reference: None,
    })
}

fn software(configuration: &Configuration) -> Software {
    let software = Software {
        overlap_tensor: configuration.overlap_tensor,
        overlap_pipeline: configuration.chunks > 1,
        reduce_in_activations: true,
        ..Software::megatron()
    };
    if !configuration.graphs {
        return software;
    }
    Software {
        host_forward: Nanos::ZERO,
        host_backward: Nanos::ZERO,
        host_per_pass: Nanos::ZERO,
        ..software
    }
}

/// A submitter's nodes hold as many devices as the row says; their links are those of NVIDIA's.
fn cluster(line: Line<'_>) -> Result<Arc<Cluster>> {
    let accelerator = line.text("accelerator");
    let base = if accelerator.contains("L40S") {
        machines::named("pcie-4x-l40s")?
    } else {
        machines::nvidia(accelerator)?
    };
    let each = line.degree("accel_per_node").unwrap_or(base.node.devices);
    if base.node.hosts > 1 || each == base.node.devices {
        return Ok(base);
    }
    let mut cluster = (*base).clone();
    cluster.node.nics = (cluster.node.nics * each).div_ceil(cluster.node.devices);
    cluster.node.devices = each;
    Ok(Arc::new(cluster))
}
