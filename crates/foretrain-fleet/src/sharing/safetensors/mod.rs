//! The headers of safetensors files: which tensors there are, without reading one.
//!
//! A file begins with the length of its header, then the header as JSON: type, shape and place of
//! each tensor. Sharded models have an index beside their files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use foretrain_core::{Bytes, DType, InputError, Result};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::layers::{ModelLayer, ModelLayers};
use super::signature::{Kind, Signature};

/// Longest header that is read; the format's own readers take no longer one either.
const LONGEST: u64 = 100_000_000;
/// Most files of a sharded model.
const MOST_FILES: usize = 4096;
const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// A tensor as a header describes it.
#[derive(Debug, Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

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
/// If a file cannot be read, is cut short, or its header contradicts itself.
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
        _ => header_of(path)?,
    };
    Ok(layers(stem(path), &tensors))
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    name.trim_end_matches(".index.json").trim_end_matches(".safetensors").to_owned()
}

/// All tensors of the files that an index names.
fn sharded(path: &Path) -> Result<BTreeMap<String, Tensor>> {
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
    let mut all = BTreeMap::new();
    for file in files {
        // An index names its neighbours; anything else could lead anywhere.
        if Path::new(file).file_name() != Some(file.as_ref()) {
            let message = format!("{file:?} is no file beside the index");
            return Err(InputError::new(message).in_file(path));
        }
        all.extend(header_of(&path.with_file_name(file))?);
    }
    match index.weight_map.keys().find(|name| !all.contains_key(*name)) {
        None => Ok(all),
        Some(name) => Err(InputError::new(format!("no file holds the tensor {name:?}"))
            .in_file(path)
            .hint("download all files of the model again")),
    }
}

fn header_of(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let mut file = File::open(path).map_err(|error| InputError::io(&error, path))?;
    let length = file.metadata().map_err(|error| InputError::io(&error, path))?.len();
    header(&mut file, length).map_err(|error| error.in_file(path))
}

/// The header of a file of so many bytes.
fn header(source: &mut impl Read, length: u64) -> Result<BTreeMap<String, Tensor>> {
    let short =
        || InputError::new("the file ends before its header does").hint("download the file again");
    let mut size = [0; 8];
    source.read_exact(&mut size).map_err(|_| short())?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST {
        let message = format!("a header of {size} bytes; at most {LONGEST} are read");
        return Err(InputError::new(message).hint("this is no safetensors file, or a damaged one"));
    }
    let data = length.checked_sub(8 + size).ok_or_else(short)?;
    let mut text = Vec::new();
    source.take(size).read_to_end(&mut text).map_err(|_| short())?;
    if text.len() as u64 != size {
        return Err(short());
    }
    let header: Header = serde_json::from_slice(&text)
        .map_err(|error| InputError::new(format!("a header that cannot be read: {error}")))?;
    for (name, tensor) in &header.0 {
        tensor.check(data).map_err(|why| {
            InputError::new(format!("tensor {name:?} {why}")).hint("download the file again")
        })?;
    }
    Ok(header.0)
}

impl Tensor {
    /// Its place must lie in the file and be as long as its shape says.
    fn check(&self, data: u64) -> std::result::Result<(), String> {
        let (begin, end) = self.data_offsets;
        if begin > end || end > data {
            return Err(format!("lies at {begin}..{end} of {data} bytes of data"));
        }
        let elements = self.shape.iter().try_fold(1_u64, |all, &side| all.checked_mul(side));
        let elements = elements.ok_or("is larger than any file")?;
        match self.dtype() {
            Some(dtype) if dtype.bytes_of(elements) != end - begin => {
                let bytes = dtype.bytes_of(elements);
                Err(format!("has {bytes} bytes by its shape, and {} in the file", end - begin))
            }
            _ => Ok(()),
        }
    }

    fn dtype(&self) -> Option<DType> {
        DType::parse(&self.dtype.replace('_', ""))
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.data_offsets.1 - self.data_offsets.0)
    }
}

/// Tensors by name; the entry of free text beside them is passed over.
struct Header(BTreeMap<String, Tensor>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }
            fn visit_map<M: MapAccess<'de>>(
                self,
                mut map: M,
            ) -> std::result::Result<Header, M::Error> {
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else if tensors.insert(name.clone(), map.next_value()?).is_some() {
                        return Err(M::Error::custom(format!("two tensors are called {name:?}")));
                    }
                }
                Ok(Header(tensors))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Tensors of two or more extents are layers; a bias goes with the weights that it is named after.
fn layers(name: String, tensors: &BTreeMap<String, Tensor>) -> ModelLayers {
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
    found
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
    let tensors = header(&mut &bytes[..], bytes.len() as u64)?;
    Ok(layers("model".into(), &tensors))
}

#[cfg(test)]
mod tests;
