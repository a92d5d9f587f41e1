//! Files of measured steps: TOML, or a table with commas.

use std::path::Path;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_hardware::{parse_toml, read_text};
use serde::de::{Deserialize, Deserializer, Error as _};

use super::table;
use crate::layout::{Layout, Wish};

/// More rows say no more than these.
pub(super) const MOST_STEPS: usize = 256;
/// A step beyond this is a slip of units.
const LONGEST: Nanos = Nanos::from_millis(24 * 60 * 60 * 1000);

/// Measured steps of one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredSteps {
    /// The cluster, if the file names it.
    pub cluster: Option<String>,
    /// The steps, in the file's order; at least one.
    pub steps: Vec<MeasuredStep>,
}

/// One measured step. What it does not name is as in the job that is asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStep {
    /// Where it stands in the file: `line 4`.
    pub place: String,
    /// The layout, complete.
    pub layout: Layout,
    /// Samples of the step, over all replicas.
    pub batch: u64,
    /// From the start of one step to that of the next.
    pub step_time: Nanos,
    /// The model by name or file.
    pub model: Option<String>,
    /// Tokens of a sample.
    pub sequence: Option<u64>,
    /// The software's name.
    pub software: Option<String>,
    /// The number format of matrix products.
    pub precision: Option<String>,
}

/// Reads a file of measured steps: a table with commas if its name ends in `.csv`, else TOML.
///
/// # Errors
/// If it cannot be read, is of no such form, holds no steps or one that cannot be, with the place.
pub fn read_steps(path: &Path) -> Result<MeasuredSteps> {
    let text = read_text(path)?;
    let is_table = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let steps =
        if is_table { MeasuredSteps::parse_table(&text) } else { MeasuredSteps::parse(&text) };
    steps.map_err(|error| error.in_file(path))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cluster: Option<String>,
    model: Option<String>,
    sequence: Option<u64>,
    software: Option<String>,
    precision: Option<String>,
    #[serde(default)]
    step: Vec<Step>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default, deserialize_with = "written")]
    layout: Wish,
    gpus: u32,
    batch: u64,
    #[serde(deserialize_with = "written")]
    step_time: Nanos,
    model: Option<String>,
    sequence: Option<u64>,
    software: Option<String>,
    precision: Option<String>,
}

/// A value that is written as text, read with its advice.
fn written<'de, T, D>(deserializer: D) -> std::result::Result<T, D::Error>
where
    T: std::str::FromStr<Err = InputError>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error: InputError| {
        D::Error::custom([&[error.to_string()], error.hints()].concat().join("; "))
    })
}

impl MeasuredSteps {
    /// Reads the text of a file in TOML.
    ///
    /// # Errors
    /// As [`read_steps`].
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = parse_toml(text).map_err(|error| match error.hints() {
            [] => error.hint(
                "docs/estimate.md shows such files: [[step]] with layout, gpus, batch, step_time",
            ),
            _ => error,
        })?;
        let lines: Vec<usize> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.trim_start().starts_with("[[step]]"))
            .map(|(at, _)| at + 1)
            .collect();
        let mut steps = Vec::new();
        for (at, step) in file.step.into_iter().enumerate() {
            // Steps may also stand in one list, without a line of their own.
            let place = lines
                .get(at)
                .map_or_else(|| format!("step {}", at + 1), |line| format!("line {line}"));
            let raw = Raw {
                layout: step.layout,
                gpus: step.gpus,
                batch: step.batch,
                step_time: step.step_time,
                model: step.model.or_else(|| file.model.clone()),
                sequence: step.sequence.or(file.sequence),
                software: step.software.or_else(|| file.software.clone()),
                precision: step.precision.or_else(|| file.precision.clone()),
            };
            steps.push(raw.check(place)?);
        }
        Self { cluster: file.cluster, steps }.checked()
    }

    /// Reads the text of a table with commas, whose first line names its columns.
    ///
    /// # Errors
    /// As [`read_steps`].
    pub fn parse_table(text: &str) -> Result<Self> {
        table::parse(text)
    }

    /// The steps, if their number is one that can be fitted to.
    pub(super) fn checked(self) -> Result<Self> {
        match self.steps.len() {
            0 => Err(InputError::new("the file holds no measured step").hint(
                "add [[step]] tables, or rows of a .csv, with layout, gpus, batch, step_time",
            )),
            found if found > MOST_STEPS => Err(InputError::new(format!(
                "{found} measured steps; at most {MOST_STEPS} are taken"
            ))
            .hint("leave out those that repeat others")),
            _ => Ok(self),
        }
    }
}

/// A step as written, with what the file says of all of them.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) layout: Wish,
    pub(super) gpus: u32,
    pub(super) batch: u64,
    pub(super) step_time: Nanos,
    pub(super) model: Option<String>,
    pub(super) sequence: Option<u64>,
    pub(super) software: Option<String>,
    pub(super) precision: Option<String>,
}

impl Raw {
    pub(super) fn check(self, place: String) -> Result<MeasuredStep> {
        let wrong = |message: String| InputError::new(message).at(&place);
        let zero = [
            ("gpus", u64::from(self.gpus)),
            ("batch", self.batch),
            ("sequence", self.sequence.unwrap_or(1)),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, value)| *value == 0) {
            return Err(wrong(format!("a step with {key} = 0 cannot be"))
                .hint("a measured step needs gpus, batch and step_time, each above 0"));
        }
        if self.step_time <= Nanos::ZERO || self.step_time > LONGEST {
            let message = format!("a step of {} cannot be", self.step_time);
            return Err(
                wrong(message).hint("write the time of one step with its unit, as in \"12.3s\"")
            );
        }
        let layout = self.layout.complete(self.gpus).map_err(|error| error.at(&place))?;
        Ok(MeasuredStep {
            place,
            layout,
            batch: self.batch,
            step_time: self.step_time,
            model: self.model,
            sequence: self.sequence,
            software: self.software,
            precision: self.precision,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
cluster = "dgx-a100"
precision = "bf16"

[[step]]
layout = "tp=8,pp=4"
gpus = 64
batch = 512
step_time = "12.3s"

[[step]]
layout = "tp=8,pp=8"
gpus = 64
batch = 512
step_time = "13100 ms"
model = "gpt-3-13b"
"#;

    #[test]
    fn what_a_user_notes_down_is_read() {
        let found = MeasuredSteps::parse(FILE).unwrap();
        assert_eq!(found.cluster.as_deref(), Some("dgx-a100"));
        let [first, second] = &found.steps[..] else { panic!("two steps") };
        assert_eq!((first.layout.tensor, first.layout.pipeline, first.layout.data), (8, 4, 2));
        assert_eq!((first.batch, first.step_time), (512, Nanos::from_millis(12_300)));
        assert_eq!((first.place.as_str(), second.place.as_str()), ("line 5", "line 11"));
        assert_eq!(second.step_time, Nanos::from_millis(13_100));
        assert_eq!(second.model.as_deref(), Some("gpt-3-13b"));
        assert_eq!(second.precision.as_deref(), Some("bf16"));
    }

    #[test]
    fn mistakes_have_their_line() {
        for (from, to, line, said) in [
            ("tp=8,pp=4", "tpp=8", "line 6", "did you mean"),
            ("12.3s", "12.3", "line 9", "unit"),
            ("12.3s", "NaNs", "line 9", ""),
            ("12.3s", "0s", "line 5", "cannot be"),
            ("12.3s", "90000000s", "line 5", "cannot be"),
            ("gpus = 64", "gpus = 63", "line 5", "does not divide"),
            ("gpus = 64", "gpus = 0", "line 5", "gpus = 0"),
            ("gpus = 64", "gpus = nan", "line 7", ""),
            ("gpus = 64", "gpus = 99999999999", "line 7", ""),
            ("gpus = 64", "gpu = 64", "line 7", "gpu"),
            ("batch = 512", "", "line 5", "batch"),
            ("batch = 512", "batch = -3", "line 8", ""),
            ("[[step]]", "[[step", "line 5", "TOML"),
        ] {
            let error = MeasuredSteps::parse(&FILE.replacen(from, to, 1)).unwrap_err();
            let text = format!("{error} {}", error.hints().join(" "));
            assert!(text.contains(line) && text.contains(said), "{to}: {text}");
            assert!(!error.hints().is_empty() || said.is_empty(), "{to}: {text}");
        }
        for empty in ["", "cluster = \"dgx-a100\""] {
            assert!(
                MeasuredSteps::parse(empty).unwrap_err().message().contains("no measured step")
            );
        }
    }
}
