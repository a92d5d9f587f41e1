//! No file makes the readers of job tables panic, whether it is packed or Parquet. The `job_table`
//! target looks closer at text.
#![no_main]

use foretrain_core::Ledger;
use foretrain_fleet::jobs::{Table, TableOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("foretrain-fuzz-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("a temporary file");
    if let Ok(table) = Table::open(&path, &TableOptions::default()) {
        let mut given = 0;
        let read = table.for_each(|_| given += 1);
        assert_eq!(read.given, given);
        read.record(&mut Ledger::new());
    }
    std::fs::remove_file(&path).expect("as it was written");
});
