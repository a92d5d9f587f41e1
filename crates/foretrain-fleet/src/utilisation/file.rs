//! Predictors as files: JSON with a version, refused unless every figure can be used.

use foretrain_core::{InputError, Result};
use serde::{Deserialize, Serialize};

use super::predictor::{Predictor, TrainedOn};

/// A predictor and what it was fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictorFile {
    format: String,
    version: u32,
    /// Training jobs.
    pub trained_on: TrainedOn,
    /// The predictor.
    pub predictor: Predictor,
}

const FORMAT: &str = "foretrain-utilisation";
const VERSION: u32 = 1;
/// Longer files are refused unread; ours have some hundred kB.
const MOST_BYTES: usize = 16 << 20;
const HINT: &str = "predictors are written by foretrain fleet utilisation train";

impl PredictorFile {
    /// A file of this predictor.
    pub fn new(trained_on: TrainedOn, predictor: Predictor) -> Self {
        Self { format: FORMAT.into(), version: VERSION, trained_on, predictor }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it is no predictor, of another version, or a figure in it cannot be used; with the key's
    /// place.
    pub fn read(text: &str) -> Result<Self> {
        if text.len() > MOST_BYTES {
            let message = format!("{} bytes are no predictor: at most {MOST_BYTES}", text.len());
            return Err(InputError::new(message).hint(HINT));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let file: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let refusal = InputError::new(format!("no predictor: {}", error.inner())).hint(HINT);
            match error.path().iter().next() {
                Some(_) => refusal.at(error.path().to_string()),
                None => refusal,
            }
        })?;
        let wrong =
            |message: String, place: &str| Err(InputError::new(message).at(place).hint(HINT));
        if reader.end().is_err() {
            return Err(InputError::new("something follows the predictor").hint(HINT));
        }
        if file.format != FORMAT {
            return wrong(format!("expected {FORMAT:?}, found {:?}", file.format), "format");
        }
        if file.version != VERSION {
            let found = file.version;
            return wrong(format!("version {found}; this Foretrain reads {VERSION}"), "version");
        }
        if let Some(why) = file.trained_on.defect() {
            return wrong(why, "trained_on");
        }
        match file.predictor.defect() {
            Some((key, why)) => wrong(why, &format!("predictor.{key}")),
            None => Ok(file),
        }
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
