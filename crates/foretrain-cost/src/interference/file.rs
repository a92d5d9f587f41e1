//! Models as files: JSON with a version, refused unless every figure can be used.

use foretrain_core::{InputError, Result};
use serde::{Deserialize, Serialize};

use super::OverlapModel;
use super::colocation::ColocationModel;
use super::learned::Learned;

/// A model of either domain or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    format: String,
    version: u32,
    /// Kernels beside communication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Domain<Learned>>,
    /// Jobs beside jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colocation: Option<Domain<ColocationModel>>,
}

/// A model and what it was fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain<M> {
    /// Training rows.
    pub trained_on: TrainedOn,
    /// The model.
    pub model: M,
}

/// What a model was fitted to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedOn {
    /// Rows.
    pub rows: usize,
    /// Files or tables.
    pub sources: Vec<String>,
    /// Under which licence they are, empty if that is the user's own affair.
    #[serde(default)]
    pub licence: String,
    /// Mean absolute error on rows that were not fitted, percent of the time, if there were any.
    #[serde(default)]
    pub held_out_mape: Option<f64>,
}

const FORMAT: &str = "foretrain-interference";
const VERSION: u32 = 1;
/// Longer files are refused unread; ours have some tens of kB.
const MOST_BYTES: usize = 16 << 20;

/// The model that ships with Foretrain.
const PRETRAINED: &str = include_str!("../../data/interference.json");

impl ModelFile {
    /// A file of these models.
    pub fn new(
        overlap: Option<Domain<Learned>>,
        colocation: Option<Domain<ColocationModel>>,
    ) -> Self {
        Self { format: FORMAT.into(), version: VERSION, overlap, colocation }
    }

    /// The model that ships with Foretrain; see `docs/interference.md` for what it is fitted to.
    pub fn pretrained() -> Result<Self> {
        Self::read(PRETRAINED).map_err(|error| error.in_file("the built-in interference model"))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it is no model file, of another version, or a figure in it cannot be used; with the
    /// key's place.
    pub fn read(text: &str) -> Result<Self> {
        let hint = "model files are written by foretrain calibrate interference";
        if text.len() > MOST_BYTES {
            return Err(InputError::new(format!(
                "{} bytes are no interference model: they have at most {MOST_BYTES}",
                text.len()
            ))
            .hint(hint));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let file: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let refusal = InputError::new(format!("no interference model: {}", error.inner()));
            let refusal = refusal.hint(hint);
            // The whole document is no place.
            match error.path().iter().next() {
                Some(_) => refusal.at(error.path().to_string()),
                None => refusal,
            }
        })?;
        reader.end().map_err(|error| {
            InputError::new(format!("something follows the model: {error}")).hint(hint)
        })?;
        file.check()?;
        Ok(file)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The model of kernels beside communication.
    ///
    /// # Errors
    /// If the file has none.
    pub fn overlap_model(self) -> Result<OverlapModel> {
        let missing = || {
            InputError::new("the model is of jobs beside jobs only")
                .at("overlap")
                .hint("fit one of kernels beside communication: foretrain calibrate interference TRACE...")
        };
        self.overlap.map(|domain| OverlapModel::Learned(domain.model)).ok_or_else(missing)
    }

    fn check(&self) -> Result<()> {
        if self.format != FORMAT {
            let found = &self.format;
            return Err(
                InputError::new(format!("expected \"{FORMAT}\", found \"{found}\"")).at("format")
            );
        }
        if self.version != VERSION {
            return Err(InputError::new(format!(
                "version {} of the model file; this Foretrain reads version {VERSION}",
                self.version
            ))
            .at("version")
            .hint("write it again with foretrain calibrate interference"));
        }
        let overlap = self.overlap.as_ref().and_then(|domain| domain.model.defect());
        if let Some(why) = overlap {
            return Err(InputError::new(why).at("overlap.model"));
        }
        let colocation = self.colocation.as_ref().and_then(|domain| domain.model.defect());
        if let Some(why) = colocation {
            return Err(InputError::new(why).at("colocation.model"));
        }
        if self.overlap.is_none() && self.colocation.is_none() {
            return Err(InputError::new("the file holds no model")
                .hint("expected \"overlap\", \"colocation\" or both"));
        }
        Ok(())
    }
}
