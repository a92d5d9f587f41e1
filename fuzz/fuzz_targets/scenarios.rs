//! No text makes the readers of scenarios, rows and shards panic; what is read reads back.
#![no_main]

use foretrain_plan::scenario::{Shard, Study, parse_rows, to_json_lines};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(study) = Study::parse(text) {
        let again = Study::parse(&Study::to_json_lines(&study.scenarios));
        assert_eq!(again.expect("what is written is read").scenarios.len(), study.scenarios.len());
    }
    if let Ok(rows) = parse_rows(text) {
        let again = parse_rows(&to_json_lines(&rows)).expect("what is written is read");
        assert_eq!(again.len(), rows.len());
    }
    if let Ok(shard) = text.parse::<Shard>() {
        assert_eq!(shard.to_string().parse::<Shard>(), Ok(shard));
    }
});
