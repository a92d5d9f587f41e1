//! JSON objects as rows: one per line, or in an array, or one after the other.

use std::collections::VecDeque;
use std::io::BufRead;

use csv::ByteRecord;
use foretrain_core::{InputError, Result};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::source::Rest;
use super::{LONGEST, Rows, Step};
use crate::jobs::fault::Fault;

/// Objects that are read to find the keys; keys that come later are left out and said.
const FIRST: usize = 256;
/// No more objects are read to find keys once they have so many bytes.
const FIRST_BYTES: usize = 8 << 20;
/// Keys that are kept.
const MOST_KEYS: usize = 1_000;

pub(super) struct Objects {
    splitter: Splitter,
    titles: Vec<String>,
    columns: FxHashMap<String, usize>,
    ahead: VecDeque<Found>,
    /// What was left out of the last object, and where.
    left_out: VecDeque<(Fault, String)>,
}

/// What is found between two objects.
enum Found {
    /// With the line of values that were no numbers.
    Object(Map<String, Value>, Option<String>),
    Broken(String),
    End,
    Cut(String),
}

impl Objects {
    pub(super) fn new(text: Rest) -> Result<Self> {
        let mut splitter = Splitter::new(text);
        let mut ahead = VecDeque::new();
        let mut titles: Vec<String> = Vec::new();
        let mut columns = FxHashMap::default();
        let mut bytes = 0;
        while ahead.len() < FIRST && bytes < FIRST_BYTES {
            let found = splitter.next_object();
            bytes += splitter.object.len();
            if let Found::Object(object, _) = &found {
                for key in object.keys() {
                    if titles.len() < MOST_KEYS && !columns.contains_key(key) {
                        columns.insert(key.clone(), titles.len());
                        titles.push(key.clone());
                    }
                }
            }
            let last = matches!(found, Found::End | Found::Cut(_));
            ahead.push_back(found);
            if last {
                break;
            }
        }
        if titles.is_empty() {
            return Err(InputError::new("no JSON object in it that could be a job")
                .hint("give one object per line, or an array of objects"));
        }
        Ok(Self { splitter, titles, columns, ahead, left_out: VecDeque::new() })
    }

    fn place(&mut self, object: Map<String, Value>, row: &mut ByteRecord) {
        let mut cells: Vec<Option<Value>> = vec![None; self.titles.len()];
        let mut late = None;
        for (key, value) in object {
            match self.columns.get(&key) {
                Some(&column) => cells[column] = Some(value),
                None => late = Some(key),
            }
        }
        if let Some(key) = late {
            let key: String = key.chars().take(80).collect();
            let place = format!("line {}: {key:?}", self.splitter.line);
            self.left_out.push_back((Fault::LateKey, place));
        }
        row.clear();
        for cell in cells {
            match cell {
                None | Some(Value::Null) => row.push_field(b""),
                Some(Value::String(text)) => row.push_field(text.as_bytes()),
                Some(other) => row.push_field(other.to_string().as_bytes()),
            }
        }
    }
}

impl Rows for Objects {
    fn titles(&self) -> &[String] {
        &self.titles
    }

    fn read(&mut self, row: &mut ByteRecord) -> Step {
        if let Some((fault, place)) = self.left_out.pop_front() {
            return Step::Fault(fault, place);
        }
        let found = match self.ahead.pop_front() {
            Some(found) => found,
            None => self.splitter.next_object(),
        };
        match found {
            Found::Object(object, no_number) => {
                self.left_out.extend(no_number.map(|place| (Fault::Unreadable, place)));
                self.place(object, row);
                Step::Row
            }
            Found::Broken(why) => Step::Fault(Fault::BrokenRow, why),
            Found::End => Step::End,
            Found::Cut(why) => Step::Cut(why),
        }
    }
}

/// Cuts text into objects by counting braces outside of strings. A line that begins with a brace
/// and a key begins an object, so one broken line does not take others with it.
struct Splitter {
    text: Rest,
    line: u64,
    object: Vec<u8>,
    /// Whether the next byte is the first of its line.
    at_line: bool,
    /// Whether an array that holds the objects is open.
    in_array: bool,
    ended: bool,
}

impl Splitter {
    fn new(text: Rest) -> Self {
        Self { text, line: 1, object: Vec::new(), at_line: true, in_array: false, ended: false }
    }

    fn next_object(&mut self) -> Found {
        if self.ended {
            return Found::End;
        }
        self.object.clear();
        let (mut depth, mut string, mut escaped, mut first_line) =
            (0_usize, false, false, self.line);
        let mut stray = false;
        loop {
            let buffer = match self.text.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) => {
                    self.ended = true;
                    return Found::Cut(error.to_string());
                }
            };
            if buffer.is_empty() {
                self.ended = true;
                let line = first_line;
                return if depth > 0 {
                    Found::Cut(format!("the object that begins in line {line} does not end"))
                } else if self.in_array {
                    Found::Cut("the array of objects does not end".into())
                } else if stray {
                    Found::Broken(format!("line {line}: text that is no object"))
                } else {
                    Found::End
                };
            }
            let length = buffer.len();
            let mut used = 0;
            for (index, &byte) in buffer.iter().enumerate() {
                let restarts = self.at_line && depth > 0 && buffer[index..].starts_with(b"{\"");
                let ends_stray = stray && depth == 0 && matches!(byte, b'{' | b'\n');
                if restarts || ends_stray {
                    break;
                }
                used += 1;
                self.at_line = byte == b'\n';
                self.line += u64::from(byte == b'\n');
                if depth == 0 {
                    match byte {
                        b'{' => {
                            (depth, first_line) = (1, self.line);
                            self.object.push(byte);
                        }
                        b'[' => self.in_array = true,
                        b']' => self.in_array = false,
                        b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
                        _ if !stray => (stray, first_line) = (true, self.line),
                        _ => {}
                    }
                    continue;
                }
                self.object.push(byte);
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if string => escaped = true,
                    b'"' => string = !string,
                    b'{' if !string => depth += 1,
                    b'}' if !string => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            let restarts = used < length && depth > 0;
            let ends_stray = used < length && depth == 0 && stray;
            self.text.consume(used);
            if ends_stray {
                return Found::Broken(format!("line {first_line}: text that is no object"));
            }
            if depth == 0 && !self.object.is_empty() {
                return self.parsed(first_line);
            }
            if restarts || self.object.len() > LONGEST {
                self.object.clear();
                return Found::Broken(format!("line {first_line}: the object does not end"));
            }
        }
    }

    fn parsed(&self, line: u64) -> Found {
        let error = match serde_json::from_slice(&self.object) {
            Ok(object) => return Found::Object(object, None),
            Err(error) => error,
        };
        // Python writes these where a number is none; the other values of the object are good.
        let known = nulled(&self.object).and_then(|(object, word)| {
            let place = format!("line {line}: {word} is no number");
            Some(Found::Object(serde_json::from_slice(&object).ok()?, Some(place)))
        });
        known.unwrap_or_else(|| Found::Broken(format!("line {line}: {error}")))
    }
}

/// An object with `null` for the words that stand for numbers that are none, and the first of them.
fn nulled(object: &[u8]) -> Option<(Vec<u8>, &'static str)> {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    let mut out = Vec::with_capacity(object.len());
    let (mut string, mut escaped, mut first) = (false, false, None);
    let mut rest = object;
    while let Some(&byte) = rest.first() {
        let word = WORDS.iter().find(|word| !string && rest.starts_with(word.as_bytes()));
        if let Some(word) = word {
            first.get_or_insert(*word);
            out.extend_from_slice(b"null");
            rest = &rest[word.len()..];
            continue;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            _ => {}
        }
        out.push(byte);
        rest = &rest[1..];
    }
    first.map(|word| (out, word))
}
