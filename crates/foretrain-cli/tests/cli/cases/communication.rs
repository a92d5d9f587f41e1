//! O07 and O08: communication of every name, with and without sizes.

use foretrain_testkit::events::{Events, rank};
use serde_json::Value;

use crate::support::{inspected, run, text, write};

#[test]
fn o07_communication_is_known_by_every_name_or_listed_as_unknown() {
    let home = tempfile::tempdir().unwrap();
    let names = [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
        "ncclDevKernel_SendRecv(ncclDevComm*)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
        "fooComm_AllReduce",
    ];
    let mut events = Events::default();
    for (i, name) in names.iter().enumerate() {
        events.kernel(name, i as f64 * 10_000.0, 10_000.0, 7, 0, "");
    }
    let path = write(home.path(), "names.json", events.text(&rank(0, 2)));
    let (code, answer) = inspected(&path);
    let found = &answer["ranks"][0];
    let kinds: Vec<(&str, u64)> = found["collectives"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["collective"].as_str().unwrap(), row["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        (code, &kinds[..]),
        (0, &[("all-reduce", 2), ("all-gather", 1), ("send-recv", 1)][..])
    );
    assert_eq!(found["unclassified"][0]["name"], "fooComm_AllReduce");
    // The stranger is not passed off as computation.
    let activity = &found["activity"];
    assert_eq!(activity["compute_ns"], 0, "{activity}");
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("looks like communication, unclassified: fooComm_AllReduce"), "{page}");
}

#[test]
fn o07_several_ranks_without_communication_raise_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    events.kernel("gemm", 0.0, 100.0, 7, 0, "");
    let path = write(home.path(), "silent.json", events.text(&rank(0, 8)));
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("warning: a job of several ranks, but no communication"), "{page}");
}

#[test]
fn o08_a_missing_size_stays_unknown() {
    let home = tempfile::tempdir().unwrap();
    let mut events = Events::default();
    let known = r#","Collective name":"allgather","In msg nelems":1024,"Out msg nelems":4096,"dtype":"Float","Group size":4,"Process Group Name":"0""#;
    events.kernel("ncclDevKernel_AllGather_RING_LL(x)", 0.0, 100.0, 20, 0, known);
    events.kernel("ncclDevKernel_AllGather_RING_LL(x)", 200.0, 100.0, 20, 0, "");
    let path = write(home.path(), "coalesced.json", events.text(&rank(0, 4)));
    let (code, answer) = inspected(&path);
    let found = &answer["ranks"][0];
    assert_eq!(
        (code, &found["collective_count"], &found["collective_sized"]),
        (0, &2.into(), &1.into())
    );
    let rows = found["collectives"].as_array().unwrap();
    let unknown = rows.iter().find(|row| row["bytes"] == Value::Null).unwrap();
    assert_eq!(unknown["bus_bytes_per_s"], Value::Null);
    // Its time counts all the same.
    assert_eq!(found["activity"]["communication_ns"], 200_000);
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("Sizes known for 1 of 2 operations (50.0 % of the time)"), "{page}");
}
