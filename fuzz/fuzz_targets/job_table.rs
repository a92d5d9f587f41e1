//! No bytes make the readers of job tables panic, and every row is handed on or counted.
#![no_main]

use foretrain_fleet::audit::audit;
use foretrain_fleet::jobs::{Fault, Kind, SCHEMAS, Table, TableOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (choice, bytes) = input;
    // One value more than there are schemas: the titles tell.
    let schema = SCHEMAS.get(usize::from(choice) % (SCHEMAS.len() + 1)).copied();
    let options = TableOptions { schema, columns: Vec::new() };
    let open = || Table::from_bytes("table", bytes.clone(), &options);
    let Ok(table) = open() else { return };
    if table.kind() != Kind::Samples {
        let mut given = 0;
        let read = table.for_each(|_| given += 1);
        let lost = read.faults.count(Fault::RaggedRow) + read.faults.count(Fault::BrokenRow);
        assert_eq!((read.given, read.given + lost), (given, read.rows));
    }
    if let Ok(table) = open() {
        let found = audit(vec![table]);
        assert!(found.allocated.is_none_or(|held| (0.0..=1.0).contains(&held.share)));
    }
});
