//! Walking a profiler document: an array of events, or an object with such an array among its
//! members.

use std::io::{ErrorKind, Read};

use super::event::{RawEvent, scan_event};
use super::repair::{Mending, repair};
use super::resync::{LOOKAHEAD, last_bracket, next_event};
use super::scan::{Scan, ScanError, Scanner};

/// Bytes asked of the source at a time.
const BLOCK: usize = 1 << 20;

/// Bounds on what is held in memory at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one event or header member; a larger one is skipped.
    pub item_bytes: usize,
    /// Bytes searched for the next event before what was searched is let go.
    pub search_bytes: usize,
    /// Bytes asked of the source at a time.
    pub block_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { item_bytes: 256 << 20, search_bytes: 16 << 20, block_bytes: BLOCK }
    }
}

/// What was wrong at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// Not JSON, but what was meant is clear; the item was delivered mended.
    Mended(Mending),
    /// Not JSON; the bytes up to the next event were skipped.
    Skipped,
    /// An element of the event array that is no object; skipped.
    NotAnObject,
    /// The document or its source broke off.
    Truncated,
}

/// A damaged place.
#[derive(Clone, Copy, Debug)]
pub struct Damage<'a> {
    /// What was wrong.
    pub kind: DamageKind,
    /// Offset of the offending byte in the uncompressed text.
    pub offset: u64,
    /// Its line, from 1.
    pub line: u64,
    /// Text from the start of the damaged item on, at most some hundred bytes.
    pub preview: &'a [u8],
    /// What the source said when it broke off.
    pub cause: &'a str,
}

/// What receives the parts of a document.
pub trait Sink {
    /// Why the walk stopped early.
    type Stop;
    /// An event; spans refer to `window`.
    ///
    /// # Errors
    /// Stops the walk.
    fn event(&mut self, window: &str, event: &RawEvent) -> Result<(), Self::Stop>;
    /// A header member other than the events, as JSON text.
    ///
    /// # Errors
    /// Stops the walk.
    fn member(&mut self, key: &str, value: &str) -> Result<(), Self::Stop>;
    /// Something was wrong; reported before the mended item, if any, is delivered.
    ///
    /// # Errors
    /// Stops the walk.
    fn damage(&mut self, damage: &Damage<'_>) -> Result<(), Self::Stop>;
    /// Called each time a block was taken in, with the uncompressed bytes so far.
    ///
    /// # Errors
    /// Stops the walk.
    fn progress(&mut self, _bytes: u64) -> Result<(), Self::Stop> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Members,
    Events,
    Done,
}

/// A document being read.
#[derive(Debug)]
pub struct Document<R> {
    source: R,
    buffer: Vec<u8>,
    pos: usize,
    // Offset and line of the buffer's first byte.
    base: u64,
    line: u64,
    ended: bool,
    cause: String,
    state: State,
    // Whether the top level is an object around the array of events.
    wrapped: bool,
    lost_members: u32,
    limits: Limits,
}

impl<R: Read> Document<R> {
    /// Starts to read a document.
    pub fn new(source: R, limits: Limits) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            pos: 0,
            base: 0,
            line: 1,
            ended: false,
            cause: String::new(),
            state: State::Start,
            wrapped: false,
            lost_members: 0,
            limits,
        }
    }

    /// Uncompressed bytes consumed so far.
    pub fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    /// Delivers everything to the sink.
    ///
    /// # Errors
    /// Whatever the sink stopped with.
    pub fn walk<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Stop> {
        let mut event = RawEvent::default();
        while self.state != State::Done {
            match self.state {
                State::Start => self.start(sink)?,
                State::Members => self.member(sink)?,
                State::Events => self.element(sink, &mut event)?,
                State::Done => {}
            }
        }
        Ok(())
    }

    /// What is held from the current position on.
    fn window(&self) -> &[u8] {
        self.buffer.get(self.pos..).unwrap_or(&[])
    }

    /// Reads one more block; the current position stays where it is in the text. False at the
    /// end of the source.
    fn fill<S: Sink>(&mut self, sink: &mut S) -> Result<bool, S::Stop> {
        if self.ended {
            return Ok(false);
        }
        self.let_go();
        let held = self.buffer.len();
        // Blocks grow with the text, so that small documents stay cheap, and with what is held,
        // because a long item is scanned anew after each.
        let so_far = usize::try_from(self.base).unwrap_or(usize::MAX).saturating_add(held);
        let block = so_far.max(1 << 12).min(self.limits.block_bytes).max(held).max(1);
        let wanted = held + block;
        self.buffer.resize(wanted, 0);
        let mut end = held;
        while end < wanted && !self.ended {
            match self.source.read(&mut self.buffer[end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.cause = error.to_string();
                    self.ended = true;
                }
            }
        }
        self.buffer.truncate(end);
        sink.progress(self.base + end as u64)?;
        Ok(end > held)
    }

    /// Drops consumed bytes.
    fn let_go(&mut self) {
        let consumed = &self.buffer[..self.pos];
        self.line += memchr::memchr_iter(b'\n', consumed).count() as u64;
        self.base += self.pos as u64;
        self.buffer.drain(..self.pos);
        self.pos = 0;
    }

    /// The next byte that is not white space (and is left in place).
    fn peek<S: Sink>(&mut self, sink: &mut S) -> Result<Option<u8>, S::Stop> {
        loop {
            let mut scanner = Scanner::new(&self.buffer, self.pos);
            scanner.skip_space();
            self.pos = scanner.pos();
            if let Ok(byte) = scanner.peek() {
                return Ok(Some(byte));
            }
            if !self.fill(sink)? {
                return Ok(None);
            }
        }
    }

    /// Scans the window, taking in more text as long as there is too little.
    fn scan<S: Sink, T>(
        &mut self,
        sink: &mut S,
        mut scan: impl FnMut(&[u8]) -> Scan<T>,
    ) -> Result<Scan<T>, S::Stop> {
        loop {
            let result = scan(self.window());
            let too_little = matches!(result, Err(ScanError::Incomplete));
            if too_little && self.window().len() > self.limits.item_bytes {
                return Ok(Err(ScanError::Invalid(0)));
            }
            if !too_little || !self.fill(sink)? {
                return Ok(result);
            }
        }
    }

    fn start<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Stop> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if self.peek(sink)? == Some(MARK[0]) {
            // The mark may straddle two blocks.
            while self.window().len() < MARK.len() && self.fill(sink)? {}
            if self.window().starts_with(MARK) {
                self.pos += MARK.len();
            }
        }
        match self.peek(sink)? {
            Some(b'[') => self.state = State::Events,
            Some(b'{') => {
                self.wrapped = true;
                self.state = State::Members;
            }
            Some(_) => return self.give_up(sink, DamageKind::Skipped),
            None => return self.give_up(sink, DamageKind::Truncated),
        }
        self.pos += 1;
        Ok(())
    }

    /// Reports damage here and ends the walk.
    fn give_up<S: Sink>(&mut self, sink: &mut S, kind: DamageKind) -> Result<(), S::Stop> {
        self.state = State::Done;
        self.report(sink, kind, 0)
    }

    /// Reports damage at an offset of the window.
    fn report<S: Sink>(&self, sink: &mut S, kind: DamageKind, at: usize) -> Result<(), S::Stop> {
        const PREVIEW: usize = 512;
        let place = (self.pos + at).min(self.buffer.len());
        let line = self.line + memchr::memchr_iter(b'\n', &self.buffer[..place]).count() as u64;
        let rest = self.window();
        sink.damage(&Damage {
            kind,
            offset: self.base + place as u64,
            line,
            preview: &rest[..rest.len().min(PREVIEW)],
            cause: &self.cause,
        })
    }

    /// One member of the top-level object, or its end.
    fn member<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Stop> {
        match self.peek(sink)? {
            Some(b'}') => {
                self.pos += 1;
                return self.finish(sink);
            }
            Some(b',') => {
                self.pos += 1;
                return Ok(());
            }
            Some(_) => {}
            None => return self.give_up(sink, DamageKind::Truncated),
        }
        let scanned = self.scan(sink, |window| {
            let mut scanner = Scanner::new(window, 0);
            let key = scanner.key()?;
            scanner.skip_space();
            let opening = scanner.peek()?;
            let name = String::from_utf8_lossy(scanner.bytes_of(key)).into_owned();
            Ok((name, opening, scanner.pos()))
        })?;
        let (name, opening, value_at) = match scanned {
            Ok(found) => found,
            Err(error) => return self.lost_member(sink, error),
        };
        self.pos += value_at;
        if name == "traceEvents" && opening == b'[' {
            self.pos += 1;
            self.state = State::Events;
            return Ok(());
        }
        self.member_value(sink, &name)
    }

    fn member_value<S: Sink>(&mut self, sink: &mut S, name: &str) -> Result<(), S::Stop> {
        let scanned = self.scan(sink, |window| {
            let mut scanner = Scanner::new(window, 0);
            scanner.value().map(|_| scanner.pos())
        })?;
        let at = match scanned {
            Ok(end) => match std::str::from_utf8(&self.window()[..end]) {
                Ok(text) => {
                    sink.member(name, text)?;
                    self.pos += end;
                    return Ok(());
                }
                Err(error) => error.valid_up_to(),
            },
            Err(ScanError::Incomplete) => return self.give_up(sink, DamageKind::Truncated),
            Err(ScanError::Invalid(at)) => at,
        };
        while self.window().len() < BLOCK && self.fill(sink)? {}
        let mut mending = Mending::default();
        if let Some((text, length)) = repair(self.window(), &mut mending) {
            self.report(sink, DamageKind::Mended(mending), at)?;
            sink.member(name, &text)?;
            self.pos += length;
            return Ok(());
        }
        self.lost_member(sink, ScanError::Invalid(at))
    }

    /// A member that cannot be read: goes on at the events, wherever they begin.
    fn lost_member<S: Sink>(&mut self, sink: &mut S, error: ScanError) -> Result<(), S::Stop> {
        const KEY: &[u8] = b"\"traceEvents\"";
        const MOST_LOST: u32 = 64;
        let ScanError::Invalid(at) = error else {
            return self.give_up(sink, DamageKind::Truncated);
        };
        self.report(sink, DamageKind::Skipped, at)?;
        self.lost_members += 1;
        self.pos += usize::from(!self.window().is_empty());
        loop {
            if self.lost_members > MOST_LOST {
                self.state = State::Done;
                return Ok(());
            }
            let rest = self.window();
            if let Some(found) = memchr::memmem::find(rest, KEY) {
                self.pos += found;
                return Ok(());
            }
            self.pos += rest.len().saturating_sub(KEY.len());
            if !self.fill(sink)? {
                self.state = State::Done;
                return Ok(());
            }
        }
    }

    /// One element of the event array, or its end.
    fn element<S: Sink>(&mut self, sink: &mut S, event: &mut RawEvent) -> Result<(), S::Stop> {
        match self.peek(sink)? {
            Some(b',') => {
                self.pos += 1;
                Ok(())
            }
            Some(b']') => {
                self.pos += 1;
                if self.wrapped {
                    self.state = State::Members;
                    return Ok(());
                }
                self.finish(sink)
            }
            Some(b'{') => self.object(sink, event),
            Some(_) => self.stray(sink),
            None => self.give_up(sink, DamageKind::Truncated),
        }
    }

    fn object<S: Sink>(&mut self, sink: &mut S, event: &mut RawEvent) -> Result<(), S::Stop> {
        let at = match self.scan(sink, |window| scan_event(window, 0, event))? {
            Ok(end) => match std::str::from_utf8(&self.buffer[self.pos..self.pos + end]) {
                Ok(text) => {
                    sink.event(text, event)?;
                    self.pos += end;
                    return Ok(());
                }
                Err(error) => error.valid_up_to(),
            },
            Err(ScanError::Incomplete) => return self.give_up(sink, DamageKind::Truncated),
            Err(ScanError::Invalid(at)) => at,
        };
        self.damaged(sink, event, at)
    }

    /// An element that is not an object, valid or not.
    fn stray<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Stop> {
        let scanned = self.scan(sink, |window| {
            let mut scanner = Scanner::new(window, 0);
            scanner.value().map(|_| scanner.pos())
        })?;
        match scanned {
            Ok(end) => {
                self.report(sink, DamageKind::NotAnObject, 0)?;
                self.pos += end;
                Ok(())
            }
            Err(ScanError::Incomplete) => self.give_up(sink, DamageKind::Truncated),
            Err(ScanError::Invalid(at)) => {
                let next = self.find_next(sink)?;
                self.skip(sink, at, next)
            }
        }
    }

    /// An event that is not JSON: mend it, or skip to the next one.
    fn damaged<S: Sink>(
        &mut self,
        sink: &mut S,
        event: &mut RawEvent,
        at: usize,
    ) -> Result<(), S::Stop> {
        let next = self.find_next(sink)?;
        let bound = next.unwrap_or(self.window().len());
        let mut mending = Mending::default();
        if let Some((text, length)) = repair(&self.window()[..bound], &mut mending)
            && scan_event(text.as_bytes(), 0, event) == Ok(text.len())
        {
            self.report(sink, DamageKind::Mended(mending), at)?;
            sink.event(&text, event)?;
            self.pos += length;
            return Ok(());
        }
        self.skip(sink, at, next)
    }

    /// Goes to the next event, or to the end of the array, or to the end of what is held.
    fn skip<S: Sink>(
        &mut self,
        sink: &mut S,
        at: usize,
        next: Option<usize>,
    ) -> Result<(), S::Stop> {
        self.report(sink, DamageKind::Skipped, at)?;
        let window = self.window();
        let target = match next {
            Some(next) => next,
            None if self.ended => last_bracket(window, 1).unwrap_or(window.len()),
            None => window.len().saturating_sub(LOOKAHEAD).max(1),
        };
        self.pos += target;
        Ok(())
    }

    /// Looks for the next event behind the current one.
    fn find_next<S: Sink>(&mut self, sink: &mut S) -> Result<Option<usize>, S::Stop> {
        let mut searched = 1;
        loop {
            let window = self.window();
            let found = next_event(window, searched);
            if found.is_some() || window.len() > self.limits.search_bytes {
                return Ok(found);
            }
            searched = window.len().saturating_sub(LOOKAHEAD).max(1);
            if !self.fill(sink)? {
                return Ok(None);
            }
        }
    }

    /// After the document's end: anything but white space is worth a word.
    fn finish<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Stop> {
        self.state = State::Done;
        if self.peek(sink)?.is_some() {
            return self.report(sink, DamageKind::Skipped, 0);
        }
        if self.cause.is_empty() { Ok(()) } else { self.give_up(sink, DamageKind::Truncated) }
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
