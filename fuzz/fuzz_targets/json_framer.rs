//! The document walker against `serde_json`, and against itself in blocks of other sizes.
#![no_main]

use std::convert::Infallible;
use std::io::Read;

use foretrain_ingest::json::{Damage, Document, Limits, RawEvent, Sink};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<String>,
    members: Vec<(String, String)>,
    damage: Vec<u64>,
}

impl Sink for Seen {
    type Stop = Infallible;
    fn event(&mut self, window: &str, _: &RawEvent) -> Result<(), Infallible> {
        serde_json::from_str::<&RawValue>(window).expect("delivered events are JSON");
        self.events.push(window.to_owned());
        Ok(())
    }
    fn member(&mut self, key: &str, value: &str) -> Result<(), Infallible> {
        serde_json::from_str::<&RawValue>(value).expect("delivered members are JSON");
        self.members.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
    fn damage(&mut self, damage: &Damage<'_>) -> Result<(), Infallible> {
        self.damage.push(damage.offset);
        Ok(())
    }
}

fn walk(bytes: impl Read, block: usize) -> Seen {
    let mut seen = Seen::default();
    let limits = Limits { block_bytes: block, ..Limits::default() };
    match Document::new(bytes, limits).walk(&mut seen) {
        Ok(()) => seen,
        Err(never) => match never {},
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (block, bytes) = input;
    let whole = walk(bytes, 1 << 20);
    assert_eq!(walk(bytes, usize::from(block) + 1), whole);
    // What serde_json takes as an array of objects is taken without a word about damage.
    let shallow = bytes.iter().filter(|b| matches!(b, b'[' | b'{')).count() < 100;
    if let Ok(list) = serde_json::from_slice::<Vec<&RawValue>>(bytes)
        && shallow
        && list.iter().all(|item| item.get().starts_with('{'))
    {
        assert_eq!(whole.damage, Vec::<u64>::new());
        let items: Vec<&str> = list.iter().map(|item| item.get()).collect();
        assert_eq!(whole.events, items);
    }
});
