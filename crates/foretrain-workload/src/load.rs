//! The one door to all models.

use std::path::Path;

use foretrain_core::{InputError, Result};

use crate::model::Model;
use crate::{hugging_face, library, spec};

/// The model that `wanted` names: one of the library, or a file, whose kind is told by its content:
/// a Hugging Face `config.json` (or a directory that holds one) or a description in TOML.
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
    let text = foretrain_hardware::read_text(path)?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("model");
    let model = if text.trim_start().starts_with('{') {
        hugging_face::parse(&text)
    } else {
        spec::parse(&text, name)
    };
    model.map_err(|error| error.in_file(path))
}
