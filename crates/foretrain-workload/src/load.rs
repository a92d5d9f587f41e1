//! The one door to all models.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use foretrain_core::{InputError, Result};

use crate::model::Model;
use crate::{hugging_face, library, onnx, spec};

/// The model that `wanted` names: one of the library, or a file, whose kind is told by its content:
/// a Hugging Face `config.json` (or a directory that holds one), a description in TOML, or ONNX.
///
/// # Errors
/// If there is no such model or file, or the file describes none.
pub fn load(wanted: &str) -> Result<Model> {
    let path = Path::new(wanted);
    if path.is_dir() {
        let config = path.join("config.json");
        if config.is_file() {
            return read(&config);
        }
        // A directory that happens to bear a model's name does not hide the model.
        return library::named(wanted).map_err(|_| {
            InputError::new("a directory without config.json")
                .in_file(path)
                .hint("name a model's config.json, a TOML file or an ONNX file")
        });
    }
    if path.is_file() {
        return read(path);
    }
    if has_ending(path) { Err(missing(path)) } else { library::named(wanted) }
}

fn has_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| matches!(ending, "json" | "toml" | "onnx"))
}

fn missing(path: &Path) -> InputError {
    InputError::io(&std::io::ErrorKind::NotFound.into(), path)
}

fn read(path: &Path) -> Result<Model> {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("model");
    let mut file = File::open(path).map_err(|error| InputError::io(&error, path))?;
    let model = if is_text(&mut file).map_err(|error| InputError::io(&error, path))? {
        let text = foretrain_hardware::read_text(path)?;
        if text.trim_start().starts_with('{') {
            hugging_face::parse(&text)
        } else {
            spec::parse(&text, name)
        }
    } else {
        onnx::parse(file, name).map_err(|error| {
            error.hint("models are described by a config.json, TOML, ONNX or an execution trace")
        })
    };
    model.map_err(|error| error.in_file(path))
}

/// Whether a file begins like text. ONNX begins with the number of its version: a control character.
fn is_text(file: &mut File) -> std::io::Result<bool> {
    let mut start = [0; 64];
    let length = file.read(&mut start)?;
    let is_control = |byte: &u8| *byte < b' ' && !byte.is_ascii_whitespace();
    Ok(!start[..length].iter().any(is_control))
}
