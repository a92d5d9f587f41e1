//! One event of a profiler document: where its fields lie.

use super::scan::{Kind, Scan, ScanError, Scanner, Value};
use super::text;

macro_rules! keys {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $($key:literal)|+),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl $name {
            /// The key with this spelling.
            pub fn from_key(key: &[u8]) -> Option<Self> {
                Some(match key { $($($key)|+ => Self::$variant,)+ _ => return None })
            }
            /// How many there are.
            pub const COUNT: usize = [$(Self::$variant),+].len();
        }
    };
}

keys!(
    /// Fields of an event.
    Field {
        /// Phase: "X", "B", "E", "s", "f", "M", ...
        Phase = b"ph",
        /// Category.
        Category = b"cat",
        /// Name.
        Name = b"name",
        /// Process or device.
        Process = b"pid",
        /// Thread or stream.
        Thread = b"tid",
        /// Start.
        Time = b"ts",
        /// Duration.
        Duration = b"dur",
        /// Identity of a flow.
        Id = b"id",
    }
);

keys!(
    /// Arguments of events that the table keeps.
    Arg {
        /// Ties a launch to its device work.
        Correlation = b"correlation" | b"Correlation" | b"correlation id",
        /// Ties runtime calls and kernels to operators.
        ExternalId = b"External id" | b"external id" | b"External Id",
        /// Device index.
        Device = b"device" | b"device_id",
        /// Stream.
        Stream = b"stream" | b"stream_id" | b"Stream Id",
        /// Blocks.
        Grid = b"grid",
        /// Threads per block.
        Block = b"block",
        /// Graph launch.
        GraphId = b"graph id",
        /// Size of a copy.
        Bytes = b"bytes" | b"Bytes" | b"size",
        /// Rate of a copy.
        Bandwidth = b"memory bandwidth (GB/s)",
        /// Stream whose event is waited for.
        WaitStream = b"wait_on_stream",
        /// Record call of the event that is waited for.
        WaitRecord = b"wait_on_cuda_event_record_corr_id" | b"wait_on_hip_event_record_corr_id",
        /// Input shapes.
        Shapes = b"Input Dims" | b"Input dims",
        /// Input types.
        Types = b"Input type",
        /// Inputs in order.
        ConcreteInputs = b"Concrete Inputs",
        /// Collective operation.
        Collective = b"Collective name",
        /// Elements in.
        InElements = b"In msg nelems",
        /// Elements out.
        OutElements = b"Out msg nelems",
        /// Ranks in the group.
        GroupSize = b"Group size",
        /// Element type.
        Dtype = b"dtype",
        /// Group.
        GroupName = b"Process Group Name",
        /// What the group is for.
        GroupDescription = b"Process Group Description",
        /// Members.
        GroupRanks = b"Process Group Ranks",
        /// Position in the group's order.
        Sequence = b"Seq",
        /// Sender.
        SourceRank = b"Src Rank",
        /// Receiver.
        TargetRank = b"Dst Rank",
        /// Name of a thread or process, in metadata events.
        Name = b"name",
        /// Label of a process, in metadata events.
        Labels = b"labels",
        /// Kind of device task (Ascend).
        TaskType = b"Task Type",
    }
);

/// The spans of one event. Reused from event to event.
#[derive(Clone, Debug, Default)]
pub struct RawEvent {
    fields: [Value; Field::COUNT],
    args: Vec<(Arg, Value)>,
}

impl RawEvent {
    /// A field; absent if not there.
    pub fn field(&self, field: Field) -> Value {
        self.fields[field as usize]
    }

    /// Known arguments in the order of the text; of a repeated one the last counts.
    pub fn args(&self) -> &[(Arg, Value)] {
        &self.args
    }

    /// The last occurrence of an argument.
    pub fn arg(&self, arg: Arg) -> Value {
        self.args.iter().rev().find(|(a, _)| *a == arg).map_or_else(Value::default, |(_, v)| *v)
    }

    fn clear(&mut self) {
        self.fields = Default::default();
        self.args.clear();
    }
}

/// Scans the object at `start` of the window into `event`; gives the offset behind it. Of
/// repeated keys the last one counts, as in Python's and JavaScript's parsers.
///
/// # Errors
/// The window ends too early, or the text is not JSON (UTF-8 is the caller's to check).
pub fn scan_event(window: &[u8], start: usize, event: &mut RawEvent) -> Scan<usize> {
    event.clear();
    let mut scanner = Scanner::new(window, start);
    members(&mut scanner, |scanner, key| {
        if key == b"args" {
            event.args.clear();
            return scan_args(scanner, &mut event.args);
        }
        let value = scanner.value()?;
        if let Some(field) = Field::from_key(key) {
            event.fields[field as usize] = value;
        }
        Ok(())
    })?;
    Ok(scanner.pos())
}

fn scan_args(scanner: &mut Scanner<'_>, args: &mut Vec<(Arg, Value)>) -> Scan<()> {
    scanner.skip_space();
    if scanner.peek()? != b'{' {
        return scanner.value().map(drop);
    }
    members(scanner, |scanner, key| {
        let value = scanner.value()?;
        if let Some(arg) = Arg::from_key(key) {
            args.push((arg, value));
        }
        Ok(())
    })
}

/// Walks the members of the object at the scanner.
pub(crate) fn members(
    scanner: &mut Scanner<'_>,
    mut member: impl FnMut(&mut Scanner<'_>, &[u8]) -> Result<(), ScanError>,
) -> Scan<()> {
    scanner.expect(b'{')?;
    scanner.skip_space();
    if scanner.peek()? == b'}' {
        scanner.bump();
        return Ok(());
    }
    loop {
        let key = scanner.key()?;
        let bytes = scanner.bytes_of(key);
        if key.kind == Kind::Escaped {
            let decoded = text::unescape(&String::from_utf8_lossy(bytes));
            member(scanner, decoded.as_bytes())?;
        } else {
            member(scanner, bytes)?;
        }
        scanner.skip_space();
        match scanner.peek()? {
            b',' => scanner.bump(),
            b'}' => {
                scanner.bump();
                return Ok(());
            }
            _ => return scanner.invalid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value as Json;

    /// What an argument or field decodes to, for comparison with `serde_json`.
    fn plain(value: Value, window: &str) -> Option<Json> {
        if value.kind == Kind::Absent {
            return None;
        }
        if value.is_text() {
            return Some(Json::String(text::decode(value, window).into_owned()));
        }
        Some(serde_json::from_str(value.raw(window)).unwrap())
    }

    fn check(json: &str) {
        let mut event = RawEvent::default();
        let end = scan_event(json.as_bytes(), 0, &mut event).unwrap();
        assert_eq!(end, json.len());
        let oracle: Json = serde_json::from_str(json).unwrap();
        for (field, key) in [
            (Field::Phase, "ph"),
            (Field::Name, "name"),
            (Field::Time, "ts"),
            (Field::Process, "pid"),
        ] {
            assert_eq!(plain(event.field(field), json).as_ref(), oracle.get(key), "{key}");
        }
        for (arg, key) in [(Arg::Correlation, "correlation"), (Arg::Grid, "grid")] {
            let want = oracle.get("args").and_then(|args| args.get(key));
            assert_eq!(plain(event.arg(arg), json).as_ref(), want, "{key}");
        }
        for cut in 0..json.len() {
            let scanned = scan_event(&json.as_bytes()[..cut], 0, &mut event);
            assert_eq!(scanned, Err(ScanError::Incomplete), "cut at {cut}");
        }
    }

    #[test]
    fn repeated_keys_and_escaped_keys_follow_serde_json() {
        check(r#"{"ph":"X","ph":"B","name":"a\n","ts":1.5,"args":{"grid":[1],"grid":[2]}}"#);
        check(r#"{"args":{"correlation":1},"args":{"grid":[ ]},"\u0070id":7}"#);
        check(r#"{ "args" : 5 , "pid" : null }"#);
    }

    fn json_value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            (-1e9..1e9).prop_map(|f: f64| Json::from(f)),
            any::<String>().prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map(".{0,6}", inner, 0..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_and_at_every_cut(
            ph in "[A-Z]", name in any::<String>(), ts in json_value(), pid in json_value(),
            extra in json_value(), correlation in json_value(), grid in json_value(), pretty in any::<bool>(),
        ) {
            let value = serde_json::json!({
                "ph": ph, "name": name, "ts": ts, "extra": extra, "pid": pid,
                "args": {"correlation": correlation, "x": extra, "grid": grid},
            });
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            check(&text.unwrap());
        }
    }
}
