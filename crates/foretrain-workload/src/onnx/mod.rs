//! Models from ONNX files, whatever framework wrote them.
//!
//! Only what tells a model's shape is read. Weights are passed over, so a file of any size takes
//! little memory, and files with weights beside them are not opened: parameter counts come from the
//! shapes that the graph declares.

mod layers;
mod message;
mod operation;
mod read;
mod shape;
mod values;
mod wire;

use std::io::{Read, Seek};

use foretrain_core::Result;

use crate::model::{Model, Sample};

/// The model of an ONNX file. `name` is that of the file.
///
/// A symbolic or fixed first dimension of the input is the batch; other symbolic dimensions are
/// assumed and said so.
///
/// # Errors
/// If it is no ONNX file, is cut short, or nothing in it is known.
pub fn parse(source: impl Read + Seek, name: &str) -> Result<Model> {
    let graph = read::graph(source)?;
    let mut values = values::Values::of(&graph)?;
    let mut steps = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        steps.push(operation::step(node, &mut values));
    }
    let blocks = layers::blocks(&graph, &values, steps)?;
    let mut model = Model::new(name, "onnx", Sample::Fixed, blocks)?;
    model.source = "ONNX file".into();
    model.assumptions = values.assumptions();
    Ok(model)
}

#[cfg(test)]
mod tests;
