//! No bytes make the readers of job tables panic, and every row is handed on or counted; several
//! tables are held against each other.
#![no_main]

use foretrain_fleet::audit::audit;
use foretrain_fleet::jobs::{ColumnHint, Fault, Kind, SCHEMAS, Table, TableOptions};
use libfuzzer_sys::fuzz_target;

/// Lines of dashes lie between tables.
fn tables(bytes: &[u8]) -> Vec<&[u8]> {
    let mut tables = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(4).position(|window| window == b"\n--\n") {
        tables.push(&rest[..at]);
        rest = &rest[at + 4..];
    }
    tables.push(rest);
    tables
}

// A first line that says what a column holds is taken as the user's word.
fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    // One value more than there are schemas: the titles tell.
    let schema = SCHEMAS.get(usize::from(choice) % (SCHEMAS.len() + 1)).copied();
    let mut options = TableOptions { schema, columns: Vec::new() };
    let mut rest = bytes;
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
        && let Ok(line) = std::str::from_utf8(&bytes[..end])
        && let Ok(hint) = line.parse::<ColumnHint>()
    {
        options.columns.push(hint);
        rest = &bytes[end + 1..];
    }
    let open = |bytes: &[u8]| Table::from_bytes("table", bytes.to_vec(), &options);
    let parts = tables(rest);
    for part in &parts {
        let Ok(table) = open(part) else { continue };
        if table.kind() != Kind::Samples {
            let mut given = 0;
            let read = table.for_each(|_| given += 1);
            let lost = read.faults.count(Fault::RaggedRow) + read.faults.count(Fault::BrokenRow);
            // All that is missing where a table is cut short counts as one.
            let missing = u64::from(read.cut.is_some());
            assert_eq!((read.given, read.given + lost + missing), (given, read.rows));
        }
    }
    let opened: Vec<Table> = parts.iter().take(4).filter_map(|part| open(part).ok()).collect();
    if !opened.is_empty() {
        let found = audit(opened);
        assert!(found.allocated.is_none_or(|held| (0.0..=1.0).contains(&held.share)));
    }
});
