//! AMD's Primus: Megatron-LM and torchtitan on Instinct devices.

use foretrain_core::Result;
use foretrain_plan::{Sharding, Software};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out, together};
use super::{Described, devices, megatron_wish, precision, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-primus",
    "Rates of Llama 3.1 and Mixtral under AMD's Primus on MI325X and MI355X, 8 and 64 devices. Given: model, \
     layout, batch per pass, number format. Assumed: where no global batch is given, eight passes per step, \
     or one for each pipeline stage four times over; no recomputation. Kernel times are carried over from \
     other devices. Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    Ok(together(
        read(root, "AMD Primus projection", case)?,
        read(root, "hisohara ai-scripts Primus", case)?,
    ))
}

/// Passes of a replica per step and stage where a row gives no batch.
const PASSES: u64 = 8;

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let name = match line.text("model") {
        "Llama 3.1 8B" => "llama-3-8b",
        "Llama 3.1 70B" => "llama-3-70b",
        "Mixtral 8×22B" => "mixtral-8x22b",
        "Mixtral-8x7B" => "mixtral-8x7b",
        other => return Err(super::unknown_model(other)),
    };
    let cluster = match line.text("gpu") {
        "MI300X" => machines::named("mi300x-8-roce")?,
        "MI325X" => machines::named("mi325x-8")?,
        "MI355X" => machines::named("mi355x-8")?,
        other => return Err(left_out(format!("no machine here holds a {other}"))),
    };
    let mut wish = megatron_wish(line);
    let software = if line.text("sharding") == "FSDP=Yes" {
        wish.sharding = Some(Sharding::Parameters);
        Software::named("fsdp-compile")?
    } else {
        Software::megatron()
    };
    let layout = wish.complete(devices(line)?)?;
    let passes = PASSES.max(4 * u64::from(layout.pipeline));
    let batch = line.whole("global_batch");
    let batch = batch.unwrap_or(passes * layout.micro_batch * u64::from(layout.data));
    let training = training(batch, whole(line, "seq_len")?, precision(line.text("precision"))?);
    Described { model: models.named(name)?, cluster, training, software, wish }.case(line)
}
