//! The headers of safetensors files: which tensors there are, without reading one.
//!
//! A file begins with the length of its header, then the header as JSON: type, shape and place of
//! each tensor. Sharded models have an index beside their files.

mod header;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use foretrain_core::{Bytes, InputError, Result};
use serde::Deserialize;

use self::header::{Tensor, Tensors};
use super::layers::{ModelLayer, ModelLayers};
use super::signature::{Kind, Signature};

/// Most files of a sharded model.
const MOST_FILES: usize = 4096;
const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Whether a path names weights: a safetensors file, the index of a sharded model, or a directory
/// that holds one of them.
pub fn is_weights(path: &Path) -> bool {
    if path.is_dir() {
        return path.join(INDEX).is_file() || path.join(WHOLE).is_file();
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
}

/// The layers of a model's weights: a safetensors file, the index of a sharded model, or a directory
/// that holds one of them. Only headers are read.
///
/// # Errors
/// If a file cannot be read, is cut short, its header contradicts itself, or tensors are of types that
/// the format does not have.
pub fn read_weights(path: &Path) -> Result<ModelLayers> {
    if path.is_dir() {
        let index = path.join(INDEX);
        let file = if index.is_file() { index } else { path.join(WHOLE) };
        let mut found = read_weights(&file)?;
        found.name = stem(path);
        return Ok(found);
    }
    let tensors = match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => sharded(path)?,
        _ => header::of_file(path)?,
    };
    layers(stem(path), &tensors).map_err(|error| error.in_file(path))
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    name.trim_end_matches(".index.json").trim_end_matches(".safetensors").to_owned()
}

/// All tensors of the files that an index names.
fn sharded(path: &Path) -> Result<Tensors> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let text = foretrain_hardware::read_text(path)?;
    let index: Index = serde_json::from_str(&text).map_err(|error| {
        InputError::new(format!("not the index of a sharded model: {error}")).in_file(path)
    })?;
    let files: BTreeSet<&str> = index.weight_map.values().map(String::as_str).collect();
    if files.len() > MOST_FILES {
        let message = format!("{} files; at most {MOST_FILES} are read", files.len());
        return Err(InputError::new(message).in_file(path));
    }
    let mut all = Tensors::new();
    for file in files {
        // An index names its neighbours; anything else could lead anywhere.
        if Path::new(file).file_name() != Some(file.as_ref()) {
            let message = format!("{file:?} is no file beside the index");
            return Err(InputError::new(message).in_file(path));
        }
        let path = path.with_file_name(file);
        for (name, tensor) in header::of_file(&path)? {
            if all.contains_key(&name) {
                let message = format!("tensor {name:?} is in another file of the model, too");
                return Err(InputError::new(message).in_file(path));
            }
            all.insert(name, tensor);
        }
    }
    match index.weight_map.keys().find(|name| !all.contains_key(*name)) {
        None => Ok(all),
        Some(name) => Err(InputError::new(format!("no file holds the tensor {name:?}"))
            .in_file(path)
            .hint("download all files of the model again")),
    }
}

/// Tensors of two or more extents are layers; a bias goes with the weights that it is named after.
fn layers(name: String, tensors: &Tensors) -> Result<ModelLayers> {
    let mut found = ModelLayers { name, ..ModelLayers::default() };
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (name, tensor) in tensors {
        let Some(dtype) = tensor.dtype().filter(|_| tensor.shape.len() >= 2) else { continue };
        taken.insert(name.clone());
        let bias_name = name.strip_suffix("weight").map(|stem| format!("{stem}bias"));
        let bias = bias_name.and_then(|bias| Some((tensors.get(&bias)?, bias)));
        let bias = bias.filter(|(bias, _)| bias.shape.len() == 1);
        let own = tensor.bytes() + bias.as_ref().map_or(Bytes::ZERO, |(bias, _)| bias.bytes());
        let signature = Signature {
            kind: kind(name, &tensor.shape),
            shape: tensor.shape.clone(),
            bias: bias.is_some(),
            dtype,
            geometry: None,
        };
        taken.extend(bias.map(|(_, name)| name));
        let name = name.trim_end_matches(".weight").to_owned();
        found.layers.push(ModelLayer { name, signature, bytes: own });
    }
    let loose = tensors.iter().filter(|(name, _)| !taken.contains(*name));
    found.private = loose.map(|(_, tensor)| tensor.bytes()).sum();
    let is_strange = |(_, tensor): &(_, &Tensor)| tensor.shape.len() >= 2;
    match tensors.iter().find(is_strange).filter(|_| found.layers.is_empty()) {
        None => Ok(found),
        Some((name, tensor)) => {
            let message =
                format!("tensor {name:?} is of type {}, which is not compared", tensor.spelling());
            Err(InputError::new(message))
        }
    }
}

fn kind(name: &str, shape: &[u64]) -> Kind {
    let is_table = ["embed", "wte", "wpe"].iter().any(|part| name.contains(part));
    match shape.len() {
        2 if is_table => Kind::Embedding,
        2 => Kind::Linear,
        4 => Kind::Convolution,
        _ => Kind::Tensor,
    }
}

/// The layers of a file's bytes, for fuzzing.
#[doc(hidden)]
pub fn parse_weights(bytes: &[u8]) -> Result<ModelLayers> {
    layers("model".into(), &header::read(&mut &bytes[..], bytes.len() as u64)?)
}

#[cfg(test)]
mod tests;
