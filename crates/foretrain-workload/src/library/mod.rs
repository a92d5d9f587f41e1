//! Models by name. The figures are in `data/*.toml`, in the form of a user's file, each entry with
//! its source and the parameter count that it must add up to.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use foretrain_core::{InputError, Result, suggest};

use crate::model::Model;
use crate::spec::Definition;

/// The files, in the order in which they are listed.
const FILES: [(&str, &str); 8] = [
    ("gpt.toml", include_str!("../../data/gpt.toml")),
    ("megatron.toml", include_str!("../../data/megatron.toml")),
    ("llama.toml", include_str!("../../data/llama.toml")),
    ("mixture.toml", include_str!("../../data/mixture.toml")),
    ("encoders.toml", include_str!("../../data/encoders.toml")),
    ("images.toml", include_str!("../../data/images.toml")),
    ("detectors.toml", include_str!("../../data/detectors.toml")),
    ("others.toml", include_str!("../../data/others.toml")),
];

/// A model of the library.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name, `llama-3-8b`.
    pub name: String,
    definition: Definition,
}

impl Known {
    /// Other names.
    pub fn aliases(&self) -> &[String] {
        &self.definition.aliases
    }

    /// Where its dimensions are published.
    pub fn source(&self) -> &str {
        self.definition.source.as_deref().unwrap_or_default()
    }

    /// Its dimensions were written down from memory of the source; what they add up to was checked.
    pub fn is_recalled(&self) -> bool {
        self.definition.recalled
    }

    /// Its layers.
    ///
    /// # Errors
    /// Never for an entry of [`library`], which tests hold to.
    pub fn model(&self) -> Result<Model> {
        let mut model = self.definition.model(&self.name)?;
        if self.is_recalled() {
            model.source.push_str(" (recalled)");
        }
        // What a config leaves open is settled by the parameter count.
        model.assumptions.clear();
        Ok(model)
    }
}

impl Known {
    /// Its layers with another number of classes (of a detector: as its table counts them, see
    /// `docs/models.md`), as a model that was fitted to a task of one's own has.
    ///
    /// # Errors
    /// If nothing in its description says how many classes there are, or it would have none.
    pub fn for_classes(&self, classes: u64) -> Result<Model> {
        let changed = self.definition.for_classes(classes);
        let model = changed.and_then(|definition| definition.model(&self.name));
        model.map_err(|error| error.at(&self.name))
    }
}

struct Library {
    known: Vec<Known>,
    index: BTreeMap<String, usize>,
}

/// All models known by name, in the order of the files.
pub fn library() -> &'static [Known] {
    &built().known
}

fn built() -> &'static Library {
    static BUILT: OnceLock<Library> = OnceLock::new();
    BUILT.get_or_init(|| match read() {
        Ok(library) => library,
        // Only an edit of the embedded files can fail here, and then every test does.
        Err(error) => unreachable!("built-in models: {error}"),
    })
}

fn read() -> Result<Library> {
    let mut library = Library { known: Vec::new(), index: BTreeMap::new() };
    for (file, text) in FILES {
        let entries: BTreeMap<String, Definition> =
            foretrain_hardware::parse_toml(text).map_err(|error| error.in_file(file))?;
        for (name, definition) in entries {
            let at = library.known.len();
            for name in std::iter::once(&name).chain(&definition.aliases) {
                if library.index.insert(fold(name), at).is_some() {
                    let message = format!("two models are called {name}");
                    return Err(InputError::new(message).in_file(file));
                }
            }
            library.known.push(Known { name, definition });
        }
    }
    // Several entries may come from one repository; the first that names it keeps it.
    for (at, known) in library.known.iter().enumerate() {
        if let Some((repository, _)) = known.source().split_once(" on the Hugging Face hub") {
            library.index.entry(fold(repository)).or_insert(at);
        }
    }
    Ok(library)
}

/// The library's model of this name or alias; case and separators do not matter.
///
/// # Errors
/// If there is none; the error names the nearest.
pub fn named(name: &str) -> Result<Model> {
    known(name)?.model()
}

/// The library's entry of this name or alias; case and separators do not matter.
///
/// # Errors
/// If there is none; the error names the nearest.
pub fn known(name: &str) -> Result<&'static Known> {
    match built().index.get(&fold(name)) {
        Some(&at) => Ok(&built().known[at]),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> InputError {
    const MOST: usize = 8;
    let shown: String = name.chars().take(60).collect();
    let error = InputError::new(format!("no model {shown:?}"));
    let wanted = fold(name);
    let names = || library().iter().map(|known| known.name.as_str());
    let holds = |other: &&str| wanted.len() > 1 && fold(other).contains(&wanted);
    let several: Vec<&str> = names().filter(holds).take(MOST).collect();
    let all = names().chain(library().iter().flat_map(|k| k.aliases().iter().map(String::as_str)));
    let error = match (several.as_slice(), suggest::nearest(name, all)) {
        ([_, _, ..], _) => error.hint(format!("did you mean one of {}?", several.join(", "))),
        ([one], _) => error.hint(format!("did you mean `{one}`?")),
        (_, Some(near)) => error.hint(format!("did you mean `{near}`?")),
        _ => error,
    };
    error
        .hint("`foretrain models` lists all names")
        .hint("a config.json of Hugging Face, a TOML file or an ONNX file will do too")
}

/// Lower case, without the owner before a slash and without separators; a point tells `1.3b` from
/// `13b`.
fn fold(name: &str) -> String {
    let last = name.trim().rsplit('/').next().unwrap_or_default();
    last.chars().filter(|c| c.is_alphanumeric() || *c == '.').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
