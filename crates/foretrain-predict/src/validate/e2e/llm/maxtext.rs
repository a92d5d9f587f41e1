//! `MaxText` on GPUs.

use foretrain_core::Result;
use foretrain_plan::{Recompute, Sharding, Software, Wish};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out, together};
use super::{Described, precision, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-maxtext",
    "Step times of Llama 2 under MaxText (XLA) on H100. Given: model, batch, sequence, what is sharded; the \
     policy that keeps all but attention's inner results recomputes nothing here. The table's rows for TPUs \
     and for A3 clusters give neither batch nor sequence and are left out. Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    Ok(together(
        read(root, "JAX-Toolbox MaxText", case)?,
        read(root, "MaxText config README", case)?,
    ))
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let (batch, sequence) = (whole(line, "global_batch")?, whole(line, "seq_len")?);
    let name = match line.text("model") {
        "Llama2-7B" => "llama-2-7b",
        "Llama2-13B" => "llama-2-13b",
        "Llama2-70B" => "llama-2-70b",
        other => return Err(super::unknown_model(other)),
    };
    let recompute = match line.text("act_recompute") {
        "minimal_flash" | "minimal" => Recompute::None,
        "full" => Recompute::Full,
        other => return Err(left_out(format!("the policy \"{other}\" is not known"))),
    };
    let wish = Wish {
        micro_batch: line.whole("micro_batch"),
        sharding: Some(Sharding::Parameters),
        recompute: Some(recompute),
        ..Wish::default()
    };
    let described = Described {
        model: models.named(name)?,
        cluster: machines::nvidia(line.text("gpu"))?,
        training: training(batch, sequence, precision(line.text("precision"))?),
        software: Software::named("xla")?,
        wish,
    };
    described.case(line)
}
