//! Reading changes from text.

use foretrain_core::suggest::nearest;
use foretrain_core::{DType, InputError, Result};
use foretrain_graph::{Glob, Query};
use foretrain_rewrite::strategy::Registry;

use super::change::{Change, FACTORS, KEYS, PLAIN};
use super::split::{at_last, stands_alone};

/// Factors beyond these are slips of the keyboard.
const FACTORS_RANGE: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
/// Longer texts are cut short in messages.
const SHOWN: usize = 80;

impl Change {
    /// Reads one change.
    ///
    /// # Errors
    /// If the text is not a change; the error quotes it, says what was expected, and names the
    /// nearest form.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        read(text).map_err(|error| error.at(format!("`{}`", shown(text))))
    }
}

impl std::str::FromStr for Change {
    type Err = InputError;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

fn read(text: &str) -> Result<Change> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let spaced = words.join(" ");
    if text.is_empty() {
        return Err(InputError::new("expected a change, found nothing").hint(forms()));
    }
    if let Some((_, change)) = PLAIN.into_iter().find(|(name, _)| *name == spaced) {
        return Ok(change);
    }
    if let Some(rest) = spaced.strip_prefix("no sync") {
        return no_sync(rest.trim());
    }
    if let Some(rest) = text.strip_prefix("remove ") {
        return Ok(Change::Remove(query(rest)?));
    }
    if let Some((key, value)) = text.split_once('=')
        && KEYS.contains(&key.trim())
    {
        return keyed(key.trim(), value.trim());
    }
    let is_factor = |word: &&&str| word.starts_with('x') && word[1..].starts_with(is_number);
    if let Some(word) = words.last().filter(is_factor) {
        let before = text[..text.len() - word.len()].trim();
        return scaled(before, factor(&word[1..])?);
    }
    let is_assignment =
        |at: usize, c: char| c == '=' && (stands_alone(text, at) || text[..at].ends_with(')'));
    if let Some((nodes, time)) = at_last(text, is_assignment) {
        return Ok(Change::Set(query(nodes)?, time.parse()?));
    }
    Err(not_a_change(text, &spaced))
}

/// A text as messages quote it.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

fn scaled(what: &str, factor: f64) -> Result<Change> {
    let spaced = what.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((name, make)) = FACTORS.into_iter().find(|(name, _)| *name == spaced) {
        if factor == 0.0 && !matches!(name, "input" | "latency") {
            return Err(InputError::new(format!("{name} needs a factor above 0")));
        }
        return Ok(make(factor));
    }
    if let Some(rank) = spaced.strip_prefix("slow rank") {
        let rank = rank.trim().parse().map_err(|_| {
            InputError::new(format!("expected a rank, found {:?}", rank.trim()))
                .hint("as in `slow rank 3 x1.3`")
        })?;
        return Ok(Change::SlowRank(rank, factor));
    }
    match query(what) {
        Ok(nodes) => Ok(Change::Scale(nodes, factor)),
        Err(error) => {
            let names = FACTORS.iter().map(|(name, _)| *name).chain(["slow rank"]);
            Err(match nearest(&spaced, names) {
                Some(near) => error.hint(format!("or did you mean `{near} x{factor}`?")),
                None => error,
            })
        }
    }
}

fn keyed(key: &str, value: &str) -> Result<Change> {
    let whole = |text: &str, what: &str| -> Result<u32> {
        text.trim().parse().map_err(|_| {
            InputError::new(format!("expected {what}, a whole number, found {text:?}"))
        })
    };
    if value.is_empty() {
        return Err(InputError::new(format!("expected a value behind `{key}=`")));
    }
    Ok(match key {
        "cluster" => Change::Cluster(value.to_owned()),
        "device" => Change::Device(value.to_owned()),
        "buckets" => Change::Buckets(value.parse()?),
        "strategy" => {
            Registry::current().parse(value)?;
            Change::Strategy(value.to_owned())
        }
        "precision" => match DType::parse(value) {
            Some(dtype) => Change::Precision(dtype),
            None => {
                return Err(InputError::new(format!("unknown element type {value:?}"))
                    .hint("known: f32, tf32, bf16, f16, fp8"));
            }
        },
        "loader-workers" => match value.split_once("->") {
            Some((from, to)) => {
                let recorded = whole(from, "the recorded number of workers")?;
                Change::LoaderWorkers(Some(recorded), whole(to, "a number of workers")?)
            }
            None => Change::LoaderWorkers(None, whole(value, "a number of workers")?),
        },
        _ => match whole(value, "a number of GPUs")? {
            0 => return Err(InputError::new("a job needs at least one GPU")),
            count => Change::Gpus(count),
        },
    })
}

fn no_sync(rest: &str) -> Result<Change> {
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let pattern = match inner {
        Some(pattern) => pattern.trim().trim_matches('"'),
        None if rest.is_empty() => "*",
        None => "",
    };
    if pattern.is_empty() {
        return Err(InputError::new("expected a pattern in parentheses behind `no sync`").hint(
            "as in `no sync(*Synchronize*)`, or `no sync(event-wait)` for waits of streams",
        ));
    }
    Ok(Change::NoSync(Glob::new(pattern)))
}

fn factor(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(factor) if factor == 0.0 || FACTORS_RANGE.contains(&factor) => Ok(factor),
        _ => Err(InputError::new(format!(
            "expected 0 or a factor from {} to {}, as in x0.5, found `x{text}`",
            FACTORS_RANGE.start(),
            FACTORS_RANGE.end()
        ))),
    }
}

/// The graph's own query language; its errors keep their hints.
fn query(text: &str) -> Result<Query> {
    Query::parse(text).map_err(|error| {
        let message = match error.place() {
            Some(place) => format!("{} ({place} {:?})", error.message(), shown(text)),
            None => error.message().to_owned(),
        };
        error.hints().iter().fold(InputError::new(message), InputError::hint)
    })
}

fn not_a_change(text: &str, spaced: &str) -> InputError {
    let error = InputError::new("expected a change");
    if Query::parse(text).is_ok() {
        return error.hint(format!(
            "say what becomes of these nodes: `{text} x0.5`, `{text} = 20us`, `remove {text}`"
        ));
    }
    let start = spaced.split('=').next().unwrap_or_default().trim();
    let names = PLAIN.iter().map(|(name, _)| *name);
    let names = names.chain(FACTORS.iter().map(|(name, _)| *name)).chain(KEYS);
    match nearest(start, names) {
        Some(near) if FACTORS.iter().any(|(name, _)| *name == near) => {
            error.hint(format!("`{near}` takes a factor, as in `{near} x2`"))
        }
        Some(near) if KEYS.contains(&near) => error.hint(format!("did you mean `{near}=...`?")),
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(forms()),
    }
}

fn forms() -> String {
    "as in `kernel(\"*gemm*\") x0.5`, `bandwidth x2`, `gpus=64`, `no communication`; `foretrain whatif --help` lists all".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let gemm = || Query::kernel("*gemm*");
        for (text, want) in [
            (r#"kernel("*gemm*") x0.5"#, Change::Scale(gemm(), 0.5)),
            ("module:encoder* x0.8", Change::Scale(Query::module("encoder*"), 0.8)),
            (
                r#"kernel("*gemm*") = 20us"#,
                Change::Set(gemm(), foretrain_core::Nanos::from_micros(20)),
            ),
            ("kernel(*gemm*)=20us", Change::Set(gemm(), foretrain_core::Nanos::from_micros(20))),
            ("remove kernel(*gemm*)", Change::Remove(gemm())),
            ("bandwidth x2", Change::Bandwidth(2.0)),
            ("nic  x4", Change::Nic(4.0)),
            ("cluster=dgx-h100", Change::Cluster("dgx-h100".into())),
            ("buckets=50MiB", Change::Buckets(foretrain_core::Bytes::from_mib(50))),
            ("precision=bf16", Change::Precision(DType::Bf16)),
            ("loader-workers=8", Change::LoaderWorkers(None, 8)),
            ("loader-workers=2->8", Change::LoaderWorkers(Some(2), 8)),
            ("no input wait", Change::Input(0.0)),
            ("slow rank 3 x1.3", Change::SlowRank(3, 1.3)),
            ("no sync", Change::NoSync(Glob::new("*"))),
            ("no sync(cuda*)", Change::NoSync(Glob::new("cuda*"))),
            ("faster host x2", Change::FasterHost(2.0)),
        ] {
            assert_eq!(Change::parse(text).unwrap(), want, "{text}");
        }
        let field = Change::parse("work>=10us = 1us").unwrap();
        assert!(matches!(field, Change::Set(Query::Field(..), _)), "{field:?}");
    }

    #[test]
    fn errors_help() {
        for (text, message, hint) in [
            ("", "found nothing", "as in"),
            ("bandwith x2", "expected a node kind", "did you mean `bandwidth x2`?"),
            ("bandwidth", "expected a change", "`bandwidth` takes a factor"),
            ("batch x0", "needs a factor above 0", ""),
            ("kernel(*gemm*)", "expected a change", "say what becomes of these nodes"),
            ("kernal(*gemm*) x2", "expected a node kind", "did you mean `kernel`?"),
            ("no comunication", "expected a change", "did you mean `no communication`?"),
            ("gpus=many", "expected a number of GPUs", ""),
            ("precision=int", "", ""),
            ("precision=narrow", "unknown element type", "bf16"),
            ("kernel = 20", "has no unit", ""),
            ("kernel x1e99", "expected 0 or a factor", ""),
            ("bandwidth x1e-300", "a factor from 0.000001 to 1000000", ""),
            ("no sync()", "expected a pattern", "event-wait"),
            ("slow rank x2", "expected a rank", "slow rank 3"),
        ] {
            match Change::parse(text) {
                Ok(_) => assert!(message.is_empty(), "{text}"),
                Err(error) => {
                    assert!(error.message().contains(message), "{text}: {error}");
                    let hints = error.hints().join("; ");
                    assert!(hints.contains(hint), "{text}: {hints}");
                    assert!(error.place().is_some(), "{text}");
                }
            }
        }
    }
}
