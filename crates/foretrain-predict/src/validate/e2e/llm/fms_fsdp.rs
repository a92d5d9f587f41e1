//! IBM's FSDP training of Llama 2.

use foretrain_core::Result;
use foretrain_plan::{Recompute, Sharding, Software, Wish};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out};
use super::{Described, precision, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-fms-fsdp",
    "Rates of Llama 2 under compiled PyTorch FSDP on 96 H100 and 128 A100 (IBM). Given: model, batch, \
     what is sharded, bandwidth per node. Assumed: every second layer recomputed under \"selective AC\" (the \
     rows do not give the share), hybrid sharding within a node. Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    read(root, "IBM fms-fsdp", case)
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let name = match line.text("model") {
        "Llama2-7b" => "llama-2-7b",
        "Llama2-13b" => "llama-2-13b",
        "Llama2-34b" => "codellama-34b",
        "Llama2-70b" => "llama-2-70b",
        other => return Err(super::unknown_model(other)),
    };
    let model = models.named(name)?;
    let recompute = match line.text("act_recompute") {
        "No AC" => Recompute::None,
        "Selective AC" => Recompute::Layers(model.body_layers() / 2),
        "Full AC" => Recompute::Full,
        _ => return Err(left_out("the row does not say what is recomputed")),
    };
    // 400 and 800 Gbit/s per node.
    let cluster = match line.text("gpu") {
        text if text.starts_with("A100") => machines::with_nics("dgx-a100", 4, 100.0)?,
        text if text.starts_with("H100") => machines::with_nics("hgx-h100-roce", 8, 100.0)?,
        other => return Err(left_out(format!("no machine here holds a {other}"))),
    };
    let wish = Wish {
        micro_batch: Some(whole(line, "micro_batch")?),
        sharding: Some(Sharding::Parameters),
        shard_group: (line.text("sharding") == "HSDP").then_some(cluster.node.devices),
        recompute: Some(recompute),
        ..Wish::default()
    };
    let training = training(
        whole(line, "global_batch")?,
        whole(line, "seq_len")?,
        precision(line.text("precision"))?,
    );
    let software = Software::named("fsdp-compile")?;
    Described { model, cluster, training, software, wish }.case(line)
}
