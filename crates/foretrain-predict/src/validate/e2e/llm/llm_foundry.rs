//! MosaicML's throughput tables of MPT models under FSDP.

use foretrain_core::{DType, Result};
use foretrain_cost::kernels::AttentionKernel;
use foretrain_plan::{Precision, Recompute, Sharding, Software, Wish};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out};
use super::{Described, precision, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-llm-foundry",
    "Rates of MPT models under PyTorch FSDP on 8 to 512 A100 and H100 (MosaicML). Given: model, sequence, \
     batch, number format, what is sharded, whether layers are recomputed, 1,600 Gbit/s per A100 node. \
     Assumed: 3,200 Gbit/s per H100 node, attention in one kernel, other kernels as PyTorch runs them, \
     gradients reduced in f32 unless mixed precision is PURE. Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    read(root, "MosaicML llm-foundry", case)
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let model = models.named(&line.text("model").to_ascii_lowercase())?;
    let sharding = line.text("sharding");
    let shares = match sharding {
        text if text.contains("FULL_SHARD") => Sharding::Parameters,
        text if text.contains("SHARD_GRAD_OP") => Sharding::Gradients,
        text if text.contains("NO_SHARD") => Sharding::None,
        _ => return Err(left_out("the row does not say what is sharded")),
    };
    if line.text("act_recompute").contains("cpu_offload=True") {
        return Err(left_out("parameters on the host cannot be described"));
    }
    let recomputes = line.text("act_recompute").contains("ckpt=True");
    let mut precision = precision(line.text("precision"))?;
    if sharding.contains("mp=PURE") {
        precision = Precision { gradients: DType::Bf16, ..precision };
    }
    let wish = Wish {
        micro_batch: Some(whole(line, "micro_batch")?),
        sharding: Some(shares),
        recompute: Some(if recomputes { Recompute::Full } else { Recompute::None }),
        ..Wish::default()
    };
    let cluster = match line.text("gpu") {
        text if text.starts_with("H100") => machines::named("hgx-h100-roce")?,
        text if text.contains("40GB") => machines::with_nics("dgx-a100-40gb", 8, 200.0)?,
        _ => machines::with_nics("dgx-a100", 8, 200.0)?,
    };
    let training = training(whole(line, "global_batch")?, whole(line, "seq_len")?, precision);
    // Runs of 2023, with positions as slopes: the kernels of that time.
    let attention = Some(AttentionKernel::Flash1);
    let software = Software { attention, ..Software::named("fsdp")? };
    Described { model, cluster, training, software, wish }.case(line)
}
