//! Alternatives, and the grid of several lists of them.

use foretrain_core::{InputError, Result};

use super::parse::shown;
use super::scenario::Scenario;
use super::split::{at_all, at_last};

/// More scenarios than this are refused: nobody reads them, and their answers take memory.
pub const MOST_SCENARIOS: usize = 100_000;
/// More values than this of one range are refused.
const MOST_VALUES: u32 = 10_000;

/// One axis of a grid: a list of alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// At least one.
    pub alternatives: Vec<Scenario>,
}

impl Axis {
    /// Reads the alternatives of one axis:
    ///
    /// - `A; B; C`: different changes (each may be `A + B`);
    /// - `gpus=8,16,32`, `bandwidth x1,x2,x4`: values of one change;
    /// - `kernel(*gemm*) x0.5..1:6`: a range and how many evenly spaced values of it.
    ///
    /// # Errors
    /// If one of them is not a change, or a range has no or too many values.
    pub fn parse(text: &str) -> Result<Self> {
        let mut alternatives = Vec::new();
        for part in at_all(text, |_, c| c == ';') {
            for one in values(part).map_err(|error| error.at(format!("`{}`", shown(part))))? {
                alternatives.push(Scenario::parse(&one)?);
            }
        }
        Ok(Self { alternatives })
    }
}

impl std::str::FromStr for Axis {
    type Err = InputError;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// The texts that a part with a list or a range of values stands for.
fn values(part: &str) -> Result<Vec<String>> {
    let parts = at_all(part, |_, c| c == ',');
    let first = parts[0];
    // The first value is what follows the last equals sign or, for factors, the last space.
    let tail = at_last(first, |at, c| {
        c.is_whitespace() && first[at..].trim_start().starts_with('x') || c == '='
    });
    let Some((_, value)) = tail else { return Ok(vec![part.to_owned()]) };
    let head = &first[..first.len() - value.len()];
    let mut texts = Vec::new();
    for value in std::iter::once(value).chain(parts[1..].iter().copied()) {
        match range(value)? {
            Some(values) => texts.extend(values.into_iter().map(|value| format!("{head}{value}"))),
            None => texts.push(format!("{head}{value}")),
        }
    }
    Ok(texts)
}

/// `FROM..TO:COUNT`, each number perhaps behind an `x`; `None` if it is no range, such as a path
/// with dots.
fn range(text: &str) -> Result<Option<Vec<String>>> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let bare = |text: &str| text.trim().trim_start_matches('x').to_owned();
    if bare(from).parse::<f64>().is_err() {
        return Ok(None);
    }
    let Some((to, count)) = rest.split_once(':') else {
        return Err(InputError::new(format!(
            "expected how many values the range {text} has, as in {text}:5"
        )));
    };
    let mark = if from.trim().starts_with('x') { "x" } else { "" };
    let number = |text: &str| -> Result<f64> {
        let number = bare(text).parse::<f64>();
        number.ok().filter(|number| number.is_finite()).ok_or_else(|| {
            InputError::new(format!("expected a number at the end of a range, found {text:?}"))
        })
    };
    let (from, to) = (number(from)?, number(to)?);
    let count = count.trim().parse::<u32>().ok().filter(|count| (2..=MOST_VALUES).contains(count));
    let Some(count) = count else {
        return Err(InputError::new(format!("a range has 2 to {MOST_VALUES} values"))
            .hint("as in `bandwidth x1..4:7`"));
    };
    let at = |i: u32| {
        let value = from + (to - from) * f64::from(i) / f64::from(count - 1);
        // Ten digits, so that 0.1 steps read as such.
        let value = (value * 1e9).round() / 1e9;
        format!("{mark}{value}")
    };
    Ok(Some((0..count).map(at).collect()))
}

/// Every combination of one alternative of each axis, the last axis fastest.
///
/// # Errors
/// If there are more than [`MOST_SCENARIOS`].
pub fn grid(axes: &[Axis]) -> Result<Vec<Scenario>> {
    let count = axes.iter().map(|axis| axis.alternatives.len()).try_fold(1, usize::checked_mul);
    if count.is_none_or(|count| count > MOST_SCENARIOS) {
        return Err(InputError::new(format!(
            "the sweeps have more than {MOST_SCENARIOS} combinations"
        ))
        .hint("sweep over fewer values, or in several runs"));
    }
    let mut scenarios = vec![Scenario::default()];
    for axis in axes {
        scenarios = scenarios
            .iter()
            .flat_map(|before| axis.alternatives.iter().map(|next| before.and(next)))
            .collect();
    }
    Ok(scenarios)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scenarios: &[Scenario]) -> Vec<String> {
        scenarios.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_ranges_and_alternatives() {
        let read = |text| labels(&Axis::parse(text).unwrap().alternatives);
        assert_eq!(read("gpus=8,16"), ["gpus=8", "gpus=16"]);
        assert_eq!(read("bandwidth x1, x2,x4").len(), 3);
        assert_eq!(
            read("faster host x1..2:3"),
            ["faster host x1", "faster host x1.5", "faster host x2"]
        );
        assert_eq!(read("nic x2; fuse + input x0"), ["nic x2", "fuse + input x0"]);
        assert_eq!(read("kernel(a,b) x0.5,x0.8").len(), 2);
        assert_eq!(read("kernel(a) = 1us,2us").len(), 2);
        assert_eq!(read("cluster=../ours.toml,a/../b"), ["cluster=../ours.toml", "cluster=a/../b"]);
        for wrong in ["gpus=1..8", "gpus=1..8:1", "gpus=a..b:2", "gpus=1.5..2:2", "", "fuse;"] {
            assert!(Axis::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_grid_has_every_combination_and_a_bound() {
        let axis = |text| Axis::parse(text).unwrap();
        let grid_of = |axes: &[Axis]| grid(axes).map(|scenarios| labels(&scenarios));
        let two = [axis("gpus=8,16"), axis("nic x1,x2")];
        assert_eq!(
            grid_of(&two).unwrap(),
            ["gpus=8 + nic x1", "gpus=8 + nic x2", "gpus=16 + nic x1", "gpus=16 + nic x2"]
        );
        let many = vec![axis("nic x1..2:1000"); 2];
        assert!(grid_of(&many).is_err());
        assert!(grid_of(&vec![axis("nic x1,x2"); 70]).is_err());
    }
}
