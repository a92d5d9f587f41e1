//! What the profilers of different years and vendors write.

mod common;

use common::{document, kernel, op, read, times};
use foretrain_core::Nanos;
use foretrain_ingest::{ReadOptions, read_trace_bytes};
use foretrain_trace::Category;

#[test]
fn the_first_layout_is_an_array_with_text_for_threads() {
    let text = br#"[
      {"ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 68753, "tid": "3340707648",
       "ts": 1606910596297023, "dur": 13,
       "args": {"Input dims": [[1], []], "External id": 2, "Trace name": "PyTorch Profiler"}},
      {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 68753, "tid": "3340707648",
       "ts": 1606910596297030, "dur": 5, "args": {"cbid": 211, "correlation": 60031, "external id": 2}},
      {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1606910596297040,
       "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 60031, "external id": 2,
       "grid": [4, 8, 32], "block": [8, 32, 1]}},
      {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7",
       "ts": 1606910596297050, "dur": 1, "args": {"device": 0, "correlation": 60032, "bytes": 64}}
    ]"#;
    let (trace, ledger) = read(text);
    use Category::{CpuOp, Kernel, Memset, Runtime};
    assert_eq!(trace.category, [CpuOp, Runtime, Kernel, Memset]);
    assert_eq!(trace.correlation, [0, 60031, 60031, 60032]);
    assert_eq!(trace.external_id, [2, 2, 2, 0]);
    assert_eq!((&trace.stream[2..], &trace.device[2..]), (&[7, 7][..], &[0, 0][..]));
    assert_eq!(trace.names.get(trace.shapes[0]), "[[1], []]");
    assert_eq!(trace.launch_args_of(2).unwrap().grid, [4, 8, 32]);
    assert_eq!(trace.copy_args_of(3).unwrap().bytes, Some(64));
    assert_eq!(times(&trace)[0], (1_606_910_596_297_023_000, 13_000));
    assert_eq!(trace.meta.producer, "PyTorch profiler (1.8 layout)");
    assert_eq!(ledger.count("truncated"), 0);
}

#[test]
fn text_and_numbers_give_the_same_exact_times() {
    let spellings = [("\"", "\""), ("", "")];
    let mut seen = Vec::new();
    for (open, close) in spellings {
        let quote = |t: &str| format!("{open}{t}{close}");
        let (trace, _) = read(&document(&[
            kernel("a", quote("1778640000000000.125"), "0.5", ""),
            kernel("b", quote("1778640000000000.625"), quote("0.5"), ""),
        ]));
        assert_eq!(trace.end(0), trace.start[1], "no gap and no overlap");
        assert_eq!((trace.start[0], trace.start[1].nanos()), (Nanos::ZERO, 500));
        seen.push(times(&trace));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0][0].0, 1_778_640_000_000_000_125);
}

#[test]
fn header_members_count_on_both_sides_of_the_events() {
    let text = br#"{"baseTimeNanoseconds": 1711964646000000000,
      "traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4458676522690.655,"dur":1.5}],
      "distributedInfo": {"backend":"nccl","rank":5,"world_size":8,
         "pg_config":[{"pg_name":"0","pg_desc":"default_pg","backend_config":"cuda:nccl","pg_size":2,"ranks":[0,1]}]},
      "deviceProperties": [{"id":0,"name":"A100","totalGlobalMem":42505273344,"computeMajor":8,"computeMinor":0,"numSms":108}]}"#;
    let (trace, ledger) = read(text);
    assert_eq!((trace.meta.rank, trace.meta.world_size), (Some(5), Some(8)));
    assert_eq!(trace.meta.rank_source, "distributedInfo");
    assert_eq!(trace.meta.groups[0].ranks, [0, 1]);
    assert_eq!(trace.meta.devices[0].compute_capability, (8, 0));
    let time = 1_711_964_646_000_000_000 + 4_458_676_522_690_655;
    assert_eq!(times(&trace), [(time, 1500)]);
    assert_eq!(ledger.count("rank-assumed"), 0);
}

#[test]
fn identifiers_beyond_signed_range_keep_every_bit() {
    let (trace, _) = read(&document(&[
        kernel("a", 1, 1, r#","correlation":10159970886766084423,"graph id":18446744073709551615"#),
        kernel("b", 2, 1, r#","correlation":10159970886766084424"#),
    ]));
    assert_eq!(trace.correlation, [10_159_970_886_766_084_423, 10_159_970_886_766_084_424]);
    assert_eq!(trace.launch_args_of(0).unwrap().graph_id, u64::MAX);
}

#[test]
fn collectives_with_and_without_arguments_are_kept() {
    let args = r#","Collective name":"allgather","In msg nelems":4,"Out msg nelems":8,
      "Group size":2,"dtype":"BFloat16","Process Group Name":"1","Process Group Description":"dp",
      "Process Group Ranks":"[0, 1]","Seq":9"#;
    let positional = r#"{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":9,"ts":3,"dur":1,
      "args":{"Concrete Inputs":["","0","5"],"Input Dims":[[8]],"Input type":["float"]}}"#;
    let (trace, _) = read(&document(&[
        kernel("ncclDevKernel_AllGather_RING_LL", 1, 1, args),
        kernel("ncclDevKernel_AllGather_RING_LL", 2, 1, ""),
        positional.into(),
        op("aten::mm", 4, 1),
    ]));
    let comm = trace.comm_args_of(0).unwrap();
    let name = |id| trace.names.get(id);
    assert_eq!(
        (name(comm.collective), name(comm.dtype), name(comm.group)),
        ("allgather", "BFloat16", "1")
    );
    assert_eq!((comm.in_elements, comm.out_elements, comm.group_size, comm.sequence), (4, 8, 2, 9));
    assert!(trace.comm_args_of(1).is_none(), "size unknown, not zero");
    let comm = trace.comm_args_of(2).unwrap();
    assert_eq!((name(comm.concrete_inputs), comm.in_elements), (r#"["","0","5"]"#, -1));
    assert_eq!(trace.len(), 4);
}

#[test]
fn graph_kernels_stay_tied_to_their_one_launch() {
    let mut events = vec![
        r#"{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":9,"tid":9,"ts":0,"dur":5,"args":{"correlation":7}}"#.to_owned(),
    ];
    events
        .extend((0..100).map(|i| kernel("k", 10 + i * 99, 98, r#","correlation":7,"graph id":3"#)));
    let (trace, _) = read(&document(&events));
    assert_eq!(trace.len(), 101);
    assert!(trace.correlation.iter().all(|id| *id == 7));
    assert_eq!(trace.launch_args.len(), 100);
    let busy: Nanos = trace.duration[1..].iter().copied().sum();
    assert_eq!(busy, Nanos::from_micros(9_800));
}

#[test]
fn kernels_on_another_clock_do_not_move_time_zero() {
    let mut events = Vec::new();
    for i in 0..50_i64 {
        let launch = 1_700_000_000_000_000 + i * 100;
        events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{launch},"dur":5,"args":{{"correlation":{}}}}}"#,
            i + 1
        ));
        if i < 47 {
            let at = if i < 3 { launch - 100_000_000_000 } else { launch + 10 };
            events.push(kernel("k", at, 20, &format!(r#","correlation":{}"#, i + 1)));
        }
    }
    let (trace, _) = read(&document(&events));
    assert_eq!(trace.len(), 97, "nothing is dropped here: the builder judges");
    assert_eq!(trace.start[0], Nanos::ZERO);
    assert_eq!(trace.meta.base_nanos, 1_700_000_000_000_000_000);
    assert_eq!(trace.start[1], Nanos::from_micros(-100_000_000_000));
}

#[test]
fn launches_are_recovered_from_arrows_or_operators() {
    let launch = |external: u32, ts: u32| {
        format!(
            r#"{{"ph":"X","cat":"hip_runtime","name":"hipLaunchKernel","pid":9,"tid":9,"ts":{ts},"dur":2,"args":{{"External id":{external}}}}}"#
        )
    };
    let (trace, ledger) = read(&document(&[
        launch(4, 10),
        launch(4, 20),
        kernel("first", 30, 5, r#","External id":4"#),
        kernel("second", 40, 5, r#","External id":4"#),
        kernel("orphan", 50, 5, ""),
    ]));
    assert_eq!(trace.correlation[0], trace.correlation[2]);
    assert_eq!(trace.correlation[1], trace.correlation[3]);
    assert!(trace.correlation[0] != 0 && trace.correlation[0] != trace.correlation[1]);
    assert_eq!((trace.correlation[4], ledger.count("no-correlation")), (0, 1));
    assert_eq!(ledger.count("correlation-from-external-id"), 2);

    let arrow = |phase: &str, pid: u32, tid: u32, ts: u32| {
        format!(
            r#"{{"ph":"{phase}","cat":"async_gpu","name":"launch","id":77,"pid":{pid},"tid":{tid},"ts":{ts}}}"#
        )
    };
    let (trace, ledger) = read(&document(&[
        launch(0, 10),
        launch(0, 20),
        arrow("s", 9, 9, 21),
        kernel("k", 40, 5, ""),
        arrow("f", 0, 7, 40),
    ]));
    assert_eq!(trace.correlation[0], 0);
    assert_eq!(trace.correlation[1], trace.correlation[2]);
    assert_eq!(ledger.count("correlation-from-flow"), 1);
}

#[test]
fn npu_events_take_their_category_from_their_process() {
    let text = br#"[
      {"ph":"X","cat":"cpu_op","name":"aten::add","pid":5,"tid":5,"ts":"1704161511420306.491","dur":9.5},
      {"ph":"M","name":"process_name","pid":800,"tid":0,"args":{"name":"Ascend Hardware"}},
      {"ph":"M","name":"thread_name","pid":800,"tid":3,"args":{"name":"Stream 3"}},
      {"ph":"M","name":"process_name","pid":50,"tid":0,"args":{"name":"CANN"}},
      {"ph":"X","name":"AscendCL@launch","pid":50,"tid":5,"ts":"1704161511420310.0","dur":5.77,"args":{"connection_id":8}},
      {"ph":"s","name":"HostToDevice1","cat":"HostToDevice","id":"38654705663","pid":50,"tid":5,"ts":"1704161511420312.0"},
      {"ph":"X","name":"aclnnAdd","pid":800,"tid":3,"ts":"1704161511420320.204","dur":1.35,"args":{"Task Type":"AI_CORE","Stream Id":3}},
      {"ph":"f","name":"HostToDevice1","cat":"HostToDevice","id":"38654705663","pid":800,"tid":3,"ts":"1704161511420320.204","bp":"e"}
    ]"#;
    let (trace, ledger) = read(text);
    assert_eq!(trace.category, [Category::CpuOp, Category::Runtime, Category::Kernel]);
    assert_eq!(
        (trace.stream[2], trace.tracks[trace.track[2].index()].name.as_str()),
        (3, "Stream 3")
    );
    assert!(trace.correlation[1] != 0 && trace.correlation[1] == trace.correlation[2]);
    assert_eq!(trace.meta.producer, "Ascend PyTorch profiler");
    assert_eq!(ledger.count("category-from-process"), 2);
}

#[test]
fn beginnings_and_ends_pair_up_per_thread() {
    let event = |phase: &str, name: &str, tid: u32, ts: u32| {
        format!(
            r#"{{"ph":"{phase}","cat":"cpu_op","name":"{name}","pid":1,"tid":{tid},"ts":{ts}}}"#
        )
    };
    let (trace, ledger) = read(&document(&[
        event("B", "lost", 3, 0),
        event("B", "outer", 1, 0),
        event("B", "inner", 1, 2),
        event("B", "other", 2, 3),
        event("E", "", 1, 5),
        event("E", "", 1, 9),
        event("E", "", 2, 4),
        event("E", "", 2, 4),
        op("after", 20, 1),
    ]));
    let rows: Vec<(&str, i64)> =
        (0..trace.len()).map(|row| (trace.name_of(row), trace.duration[row].nanos())).collect();
    assert_eq!(rows, [("outer", 9000), ("inner", 3000), ("other", 1000), ("after", 1000)]);
    assert_eq!(ledger.count("unpaired-event"), 2);
}

#[test]
fn arrows_forward_to_backward_are_kept_and_others_counted() {
    let arrow = |phase: &str, cat: &str, ts: u32| {
        format!(
            r#"{{"ph":"{phase}","cat":"{cat}","name":"{cat}","id":3,"pid":9,"tid":9,"ts":{ts}}}"#
        )
    };
    let (trace, ledger) = read(&document(&[
        op("a", 10, 5),
        arrow("s", "fwdbwd", 10),
        arrow("f", "fwdbwd", 14),
        arrow("s", "ac2g", 11),
    ]));
    let ends: Vec<_> = trace.flows.iter().map(|f| (f.id, f.at.nanos(), f.is_start)).collect();
    assert_eq!(ends, [(3, 0, true), (3, 4000, false)]);
    assert_eq!(ledger.count("other-flows"), 1);
}

#[test]
fn filters_apply_while_reading() {
    let python =
        r#"{"ph":"X","cat":"python_function","name":"f","pid":9,"tid":9,"ts":1000,"dur":9}"#;
    let mut events: Vec<String> =
        (0..10).map(|i| op(&format!("op{i}"), 1000 + i * 10, 5)).collect();
    events.insert(0, op("stray", 0, 1).replace("\"ts\":0", "\"ts\":999999999999"));
    events.push(python.into());
    events.push(kernel("k", 1050, 7, ""));
    let text = document(&events);
    let count = |options: ReadOptions| {
        let (trace, ledger) = read_trace_bytes(&text, "t.json", &options).unwrap();
        assert_eq!(trace.len() as u64 + ledger.count("filtered"), 13);
        trace.len()
    };
    assert_eq!(count(ReadOptions::default()), 13);
    assert_eq!(count(ReadOptions { keep_python: false, ..Default::default() }), 12);
    let kernels = Some(vec![Category::Kernel]);
    assert_eq!(count(ReadOptions { categories: kernels, ..Default::default() }), 1);
    let window = Some((Nanos::from_micros(20), Nanos::from_micros(40)));
    assert_eq!(count(ReadOptions { window, ..Default::default() }), 3);
}

#[test]
fn what_is_no_pytorch_trace_is_named() {
    for (text, want) in [
        (
            r#"[{"ph":"M","name":"process_name","pid":0,"args":{"name":"conv1_weight"}},{"ph":"B","pid":0,"ts":1,"name":"x"}, "#,
            "timeline by tensor",
        ),
        (
            r#"{"traceEvents":[{"ph":"X","cat":"__metadata","name":"n","ts":1,"dur":1}]}"#,
            "Chrome trace of another tool",
        ),
        (r#"{"schema":"1.0.1","nodes":[]}"#, "execution trace"),
        (r#"{"name":"left-pad","version":"1"}"#, "without \"traceEvents\""),
        ("", "empty"),
        ("time,loss\n1,2\n", "text file"),
    ] {
        let error =
            read_trace_bytes(text.as_bytes(), "x.json", &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
        assert!(!error.hints().is_empty(), "{error}");
    }
}
