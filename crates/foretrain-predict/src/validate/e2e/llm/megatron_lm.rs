//! The Llama examples of Megatron-LM.

use foretrain_core::Result;

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs};
use super::{Described, megatron_wish, nvidia_recipe, precision, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-megatron-lm",
    "Rates that Megatron-LM states for its Llama examples on H100 in FP8. Given: model, layout, batch, \
     sequence, number format. Assumed: as for DGX Cloud. Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    read(root, "Megatron-LM examples/llama", case)
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let name = match line.text("model") {
        "LLAMA3-8B" => "llama-3-8b",
        "LLAMA3-70B" => "llama-3-70b",
        "LLAMA3-405B" => "llama-3.1-405b",
        other => return Err(super::unknown_model(other)),
    };
    let model = models.named(name)?;
    let wish = megatron_wish(line);
    let training = training(
        whole(line, "global_batch")?,
        whole(line, "seq_len")?,
        precision(line.text("precision"))?,
    );
    let software = nvidia_recipe(&wish, &model);
    let cluster = machines::nvidia(line.text("gpu"))?;
    Described { model, cluster, training, software, wish }.case(line)
}
