use std::convert::Infallible;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::json::event::Field;
use crate::json::text::decode;

/// Hands out its text in pieces that end at the given offsets.
struct Pieces<'a> {
    text: &'a [u8],
    cuts: Vec<usize>,
    at: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let end = self.cuts.iter().copied().find(|&cut| cut > self.at).unwrap_or(self.text.len());
        let length = (end.min(self.text.len()) - self.at).min(out.len());
        out[..length].copy_from_slice(&self.text[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<String>,
    members: Vec<(String, String)>,
    damage: Vec<(DamageKind, u64, u64)>,
}

impl Sink for Seen {
    type Stop = Infallible;
    fn event(&mut self, window: &str, event: &RawEvent) -> Result<(), Infallible> {
        assert!(serde_json::from_str::<Json>(window).is_ok());
        self.events.push(decode(event.field(Field::Name), window).into_owned());
        Ok(())
    }
    fn member(&mut self, key: &str, value: &str) -> Result<(), Infallible> {
        self.members.push((key.into(), value.into()));
        Ok(())
    }
    fn damage(&mut self, damage: &Damage<'_>) -> Result<(), Infallible> {
        self.damage.push((damage.kind, damage.offset, damage.line));
        Ok(())
    }
}

fn walk(text: &[u8]) -> Seen {
    let mut seen = Seen::default();
    Document::new(text, Limits::default()).walk(&mut seen).unwrap_or_else(|never| match never {});
    seen
}

/// Takes in the text up to `cut` as the first block and then at least a byte at a time.
fn walk_split(text: &[u8], cut: usize) -> Seen {
    let mut seen = Seen::default();
    let source = Pieces { text, cuts: vec![cut], at: 0 };
    let limits = Limits { block_bytes: cut, ..Limits::default() };
    Document::new(source, limits).walk(&mut seen).unwrap_or_else(|never| match never {});
    seen
}

fn events(n: usize) -> Vec<Json> {
    (0..n)
        .map(|i| json!({"ph": "X", "name": format!("e{i}"), "ts": i, "args": {"a": [i, "}{"]}}))
        .collect()
}

#[test]
fn arrays_and_objects_are_walked_with_members_on_both_sides() {
    let text = json!({"a": [1, {"b": 2}], "traceEvents": events(3), "z": "end"}).to_string();
    let seen = walk(text.as_bytes());
    assert_eq!(seen.events, ["e0", "e1", "e2"]);
    assert_eq!(seen.members.len(), 2);
    assert!(seen.damage.is_empty());
    let seen = walk(format!("\u{feff} {}\n", Json::from(events(2))).as_bytes());
    assert_eq!((seen.events.len(), seen.damage.len()), (2, 0));
    // A byte-order mark that straddles blocks.
    let marked = format!("\n\u{feff}{}", Json::from(events(2)));
    for cut in 1..6 {
        let seen = walk_split(marked.as_bytes(), cut);
        assert_eq!((seen.events.len(), seen.damage.len()), (2, 0), "{cut}");
    }
}

#[test]
fn a_lost_event_costs_only_itself() {
    let good = |i: usize| format!("{{\"ph\":\"X\",\"name\":\"e{i}\",\"ts\":{i}}}");
    for bad in [
        "{\"ph\":\"X\",\"name\":\"lost\" oops}",
        "{\"ph\":\"X\",\"name\":\"lost, \"ts\": {, }",
        "{\"ph\":\"X\",\"name\":\"lost\"",
        "{\"ph\":\"X\",\"args\":{\"x\":\"",
        "@@@",
        "{\"a\":{\"a\":",
    ] {
        let text = format!("[{},{bad},{},{}]", good(0), good(1), good(2));
        let seen = walk(text.as_bytes());
        assert_eq!(seen.events, ["e0", "e1", "e2"], "{bad}");
        assert_eq!(seen.damage.len(), 1, "{bad}: {:?}", seen.damage);
        let text = format!("{{\"traceEvents\":[{},{bad}],\"x\":1}}", good(0));
        let seen = walk(text.as_bytes());
        assert_eq!((seen.events.len(), seen.members.len()), (1, 1), "{bad} at the end: {seen:?}");
    }
}

#[test]
fn truncated_documents_give_what_is_there() {
    for text in [
        "[{\"name\":\"e0\"}, ",
        "[{\"name\":\"e0\"},{\"na",
        "{\"traceEvents\":[{\"name\":\"e0\"}]",
        "",
    ] {
        let seen = walk(text.as_bytes());
        assert_eq!(seen.events.len(), usize::from(!text.is_empty()), "{text}");
        assert!(matches!(seen.damage[..], [(DamageKind::Truncated, _, 1)]), "{text}: {seen:?}");
    }
}

#[test]
fn places_are_counted_in_bytes_and_lines() {
    let text = "[\n{\"name\":\"e0\"},\n{\"name\":\"a\x01\"}\n]";
    let seen = walk(text.as_bytes());
    let at = text.find('\u{1}').unwrap() as u64;
    assert!(matches!(seen.damage[..], [(DamageKind::Mended(_), offset, 3)] if offset == at));
}

#[test]
fn a_broken_header_does_not_hide_the_events() {
    let text = "{\"a\": {\"b\": oops}, \"traceEvents\": [{\"name\":\"e0\"}], \"c\": inf}";
    let seen = walk(text.as_bytes());
    assert_eq!((seen.events.len(), seen.damage.len()), (1, 2));
    assert_eq!(seen.members, [("c".to_owned(), "null".to_owned())]);
}

proptest! {
    #[test]
    fn every_split_gives_the_same(n in 0_usize..6, pretty in any::<bool>(), wrapped in any::<bool>(), name in any::<String>()) {
        let mut list = events(n);
        list.push(json!({"name": name, "args": {"deep": [[[{"x": name}]]]}}));
        let doc = if wrapped { json!({"h": {"k": [1]}, "traceEvents": list, "z": 1.5}) } else { Json::from(list.clone()) };
        let text = if pretty { serde_json::to_string_pretty(&doc) } else { serde_json::to_string(&doc) }.unwrap();
        let whole = walk(text.as_bytes());
        let names: Vec<&str> = list.iter().map(|e| e["name"].as_str().unwrap()).collect();
        prop_assert_eq!(&whole.events, &names);
        prop_assert!(whole.damage.is_empty());
        for cut in 0..text.len() {
            prop_assert_eq!(&walk_split(text.as_bytes(), cut), &whole, "split at {}", cut);
        }
    }

    #[test]
    fn damage_never_panics_and_splits_do_not_matter(
        n in 1_usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut text = serde_json::to_vec(&json!({"h": 1, "traceEvents": events(n), "z": 1})).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        let whole = walk(&text);
        prop_assert_eq!(&walk_split(&text, cut.index(text.len())), &whole);
    }

    #[test]
    fn arbitrary_bytes_end(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ \nphname1x\xff\x01".to_vec()), 0..200)) {
        walk(&bytes);
    }
}
