//! The file that primitives are kept in.
//!
//! TOML with a version at its head; see `docs/primitives.md`. Keys that are not known are refused,
//! because a slip would otherwise leave a default in a figure's place.

use std::collections::BTreeMap;
use std::path::Path;

use foretrain_core::units::significant;
use foretrain_core::{InputError, Result};
use foretrain_cost::primitives::{CodecCost, LinearCost, Primitives, Scheme};
use foretrain_hardware::{parse_toml, read_text};
use serde::{Deserialize, Serialize};

/// The form that is written, and the newest that is read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    primitives: u32,
    source: String,
    send: LinearCost,
    receive: LinearCost,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one_way: Option<LinearCost>,
    aggregate: LinearCost,
    copy: LinearCost,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    codec: BTreeMap<Scheme, CodecCost>,
}

/// Reads such a file.
///
/// # Errors
/// If it cannot be read, is of another version, or a key is missing, not known or no plausible figure; the
/// error names the key and its line.
pub fn read(path: impl AsRef<Path>) -> Result<Primitives> {
    let path = path.as_ref();
    parse(&read_text(path)?).map_err(|error| error.in_file(path))
}

/// As [`read`], of text at hand.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str) -> Result<Primitives> {
    let hint = "`foretrain calibrate primitives -o FILE` writes such files";
    let file: File = parse_toml(text).map_err(|error| error.hint(hint))?;
    let File { primitives, source, send, receive, one_way, aggregate, copy, codec } = file;
    if primitives != VERSION {
        let message = format!("version {primitives} of the form is not known, only {VERSION}");
        return Err(InputError::new(message).at("primitives").hint(hint));
    }
    Ok(Primitives { source, send, receive, one_way, aggregate, copy, codec })
}

/// The text of such a file, with six significant digits; each line of `comment` stands at its head.
pub fn text(primitives: &Primitives, comment: &[String]) -> String {
    let Primitives { source, send, receive, one_way, aggregate, copy, codec } = primitives;
    let codec = codec.iter().map(|(&scheme, cost)| {
        (scheme, CodecCost { encode: rounded(cost.encode), decode: rounded(cost.decode) })
    });
    let file = File {
        primitives: VERSION,
        source: source.clone(),
        send: rounded(*send),
        receive: rounded(*receive),
        one_way: one_way.map(rounded),
        aggregate: rounded(*aggregate),
        copy: rounded(*copy),
        codec: codec.collect(),
    };
    // Strings, numbers and tables with string keys: TOML has them all.
    let body = toml::to_string(&file)
        .unwrap_or_else(|error| unreachable!("primitives are plain data: {error}"));
    let plain = |line: &String| {
        let text: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        format!("# {text}\n")
    };
    format!("{}\n{body}", comment.iter().map(plain).collect::<String>())
}

fn rounded(cost: LinearCost) -> LinearCost {
    let digits = |value: f64| significant(value, 6).parse().unwrap_or(value);
    LinearCost {
        floor_ns: digits(cost.floor_ns),
        offset_ns: digits(cost.offset_ns),
        ns_per_byte: digits(cost.ns_per_byte),
        relative_spread: digits(cost.relative_spread),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line() -> impl Strategy<Value = LinearCost> {
        (0.0f64..1e9, -1e9f64..1e9, 0.0f64..1e3, 0.0f64..2.0).prop_map(
            |(floor_ns, offset_ns, ns_per_byte, relative_spread)| {
                rounded(LinearCost { floor_ns, offset_ns, ns_per_byte, relative_spread })
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(send in line(), copy in line(), encode in line(), source in "\\PC*") {
            let mut primitives = Primitives { source, send, copy, ..Primitives::assumed() };
            primitives.one_way = Some(encode);
            primitives.codec.insert(Scheme::TopK, CodecCost { encode, decode: copy });
            let written = text(&primitives, &["by a test\nof it".into()]);
            prop_assert!(written.starts_with("# by a test?of it\n"));
            let back = parse(&written).unwrap();
            prop_assert_eq!(back.codec[&Scheme::TopK], primitives.codec[&Scheme::TopK]);
            prop_assert_eq!(text(&back, &[]), text(&primitives, &[]));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn slips_are_named_by_key_and_line() {
        let good = text(&Primitives::assumed(), &[]);
        parse(&good).unwrap();
        let (send, wrong) = ("[send]\n", |text: &str| good.replacen("[send]\n", text, 1));
        assert!(good.contains(send));
        for (text, word) in [
            (good.replacen("primitives = 1", "primitives = 2", 1), "version 2"),
            (good.replacen("primitives = 1", "", 1), "missing field `primitives`"),
            (wrong("[send]\nfloor = 1.0\n"), "unknown key \"floor\" (at send.floor, line"),
            (wrong("[sent]\n"), "unknown key \"sent\""),
            (
                good.replacen("offset_ns = 10000.0", "offset_ns = nan", 1),
                "at most 1e18, found NaN (at send.offset_ns, line",
            ),
            (
                good.replacen("ns_per_byte = 0.1", "ns_per_byte = -0.1", 1),
                "no negative number, found -0.1 (at send.ns_per_byte",
            ),
            (good.replacen("[codec.half.", "[codec.quarter.", 1), "quarter"),
            ("a = ".into(), "not valid TOML"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read("/no/such/file.toml").unwrap_err();
        assert!(error.to_string().contains("/no/such/file.toml"), "{error}");
    }
}
