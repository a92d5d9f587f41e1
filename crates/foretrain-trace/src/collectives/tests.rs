//! Whole traces through recognition.

use foretrain_core::{Bytes, DType, Ledger, Nanos};
use foretrain_graph::CollectiveKind as K;

use super::testing::{Builder, no_args};
use super::{Algorithm, Collectives, Protocol, Source, recognise};
use crate::category::Category;
use crate::table::{CommArgs, ProcessGroup};

fn run(builder: &Builder) -> (Collectives, Ledger) {
    let mut ledger = Ledger::new();
    let found = recognise(&builder.trace, &mut ledger);
    (found, ledger)
}

const RING_F32: &str =
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)";

/// Case O07: renamed kernels.
#[test]
fn kernels_of_every_generation_are_communication() {
    let mut b = Builder::new();
    for (i, name) in [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        RING_F32,
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
        "fooComm_AllReduce",
        "void at::native::reduce_kernel<512, 1>(x)",
    ]
    .iter()
    .enumerate()
    {
        b.kernel(name, 7, (i as i64 * 10_000, 10_000));
    }
    let (found, ledger) = run(&b);
    let kinds: Vec<_> = found.ops.iter().map(|op| op.kind).collect();
    assert_eq!(kinds, [K::AllReduce, K::AllReduce, K::SendRecv, K::AllGather]);
    let time: Nanos = found.ops.iter().map(super::CollectiveOp::duration).sum();
    assert_eq!(time, Nanos::from_millis(40));
    assert_eq!(found.ops[3].algorithm, Some(Algorithm::Ring));
    assert_eq!(found.ops[3].protocol, Some(Protocol::Ll));
    let unknown: Vec<_> = found.unclassified.iter().map(|op| (op.row, op.kind)).collect();
    assert_eq!(unknown, [(4, K::Unknown)]);
    let warning = ledger.get("communication-unclassified").unwrap();
    assert_eq!(warning.message, "looks like communication, unclassified");
    assert_eq!(warning.places, ["fooComm_AllReduce"]);
}

/// Case O07: a multi-rank trace without communication.
#[test]
fn a_multi_rank_trace_without_communication_is_warned_about() {
    let mut b = Builder::new();
    b.kernel("void gemm<float>(x)", 7, (0, 10));
    assert!(run(&b).1.is_empty());
    b.trace.meta.world_size = Some(2);
    assert_eq!(run(&b).1.count("no-communication"), 1);
    b.kernel(RING_F32, 9, (0, 10));
    assert_eq!(run(&b).1.count("no-communication"), 0);
}

fn all_gather_args(b: &mut Builder) -> CommArgs {
    CommArgs {
        collective: b.id("_allgather_base"),
        dtype: b.id("BFloat16"),
        in_elements: 1000,
        group: b.id("1"),
        group_size: 4,
        ..no_args()
    }
}

/// Case O08: a coalesced operation without size stays, unknown.
#[test]
fn an_operation_without_size_is_kept_as_unknown() {
    let mut b = Builder::new();
    let stated = b.kernel("ncclDevKernel_AllGather_RING_LL(x)", 9, (0, 30));
    b.kernel("ncclDevKernel_AllGather_RING_LL(x)", 9, (100, 10));
    let args = all_gather_args(&mut b);
    b.args(stated, args);
    let (found, ledger) = run(&b);
    let [first, second] = found.ops.as_slice() else { panic!("{found:?}") };
    assert_eq!(first.input_bytes, Some(Bytes::new(2000)));
    assert_eq!(first.bytes, Some(Bytes::new(8000)));
    assert_eq!(
        (first.provenance.input, first.provenance.output),
        (Source::KernelArgs, Source::Inferred)
    );
    assert_eq!((second.kind, second.bytes), (K::AllGather, None));
    assert_eq!(second.provenance.input, Source::Unknown);
    let coverage = ledger.coverage("collective bytes known").unwrap();
    assert_eq!((coverage.used, coverage.total), (1, 2));
    let time = ledger.coverage("collective time with bytes known (ns)").unwrap();
    assert!((time.share() - 0.75).abs() < 1e-12);
}

/// Case O08: the size comes from the row that issued it, over launch and correlation.
#[test]
fn the_issuing_row_fills_what_the_kernel_lacks() {
    let mut b = Builder::new();
    let issue = b.row(Category::CpuOp, "record_param_comms", 0, (0, 50));
    let other = b.row(Category::CpuOp, "record_param_comms", 1, (0, 50));
    let launch = b.row(Category::Runtime, "cudaLaunchKernelExC", 0, (20, 5));
    let kernel = b.kernel("ncclDevKernel_Generic_4(x)", 9, (60, 30));
    b.correlate(&[launch, kernel], 77);
    let args = all_gather_args(&mut b);
    b.args(issue, args);
    b.args(other, CommArgs { in_elements: 5, ..args });
    let (found, ledger) = run(&b);
    let op = &found.ops[0];
    assert_eq!(
        (op.kind, op.dtype, op.bytes),
        (K::AllGather, Some(DType::Bf16), Some(Bytes::new(8000)))
    );
    assert_eq!((op.provenance.kind, op.provenance.input), (Source::ParamComms, Source::ParamComms));
    assert_eq!(op.issue_row, Some(issue));
    assert_eq!(found.groups[op.group.unwrap().index()].name, "1");
    assert_eq!(ledger.coverage("collective bytes known").unwrap().share(), 1.0);
}

/// Old recordings: positional inputs, an annotation that holds the type, a wait row after.
#[test]
fn positional_inputs_are_understood() {
    let mut b = Builder::new();
    let operator = b.row(Category::CpuOp, "c10d::allreduce_", 0, (0, 121));
    let issue = b.row(Category::CpuOp, "record_param_comms", 0, (13, 80));
    let annotation = b.row(Category::UserAnnotation, "nccl:all_to_all", 0, (29, 54));
    let launch = b.row(Category::Runtime, "cudaLaunchKernelExC", 0, (48, 10));
    let kernel = b.kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 24, (69, 400));
    b.correlate(&[launch, kernel], 54_292);
    b.trace.external_id[kernel as usize] = 54_292;
    b.shape(operator, "[[[4, 2048, 4096]], [], []]", r#"["TensorList", "", ""]"#);
    b.shape(
        issue,
        "[[[4, 2048, 4096]], [], [], [], [], [], [], []]",
        r#"["TensorList", "Scalar"]"#,
    );
    b.shape(annotation, "[[4, 2048, 4096]]", r#"["c10::Half"]"#);
    let inputs = b.id(r#"["", "337", "93825133358448", "4", "", "[]", "[]", "8"]"#);
    b.args(issue, CommArgs { concrete_inputs: inputs, ..no_args() });
    let (found, _) = run(&b);
    let op = &found.ops[0];
    assert_eq!((op.kind, op.dtype), (K::AllToAll, Some(DType::F16)));
    assert_eq!(op.bytes, Some(Bytes::from_mib(64)));
    assert_eq!(op.recorded_sequence, Some(337));
    assert_eq!(op.issue_row, Some(issue));
    let group = &found.groups[op.group.unwrap().index()];
    assert_eq!((group.name.as_str(), group.size), ("unnamed #0", 8));
}

#[test]
fn waits_are_not_issues_and_external_ids_link_where_launches_do_not() {
    let mut b = Builder::new();
    let wait = b.row(Category::CpuOp, "record_param_comms", 0, (0, 50));
    let issue = b.row(Category::CpuOp, "record_param_comms", 1, (0, 50));
    let kernel = b.kernel("ncclDevKernel_Generic(x)", 9, (60, 30));
    b.trace.external_id[issue as usize] = 114;
    b.trace.external_id[kernel as usize] = 114;
    b.trace.external_id[wait as usize] = 114;
    let args = all_gather_args(&mut b);
    let collective = b.id("wait");
    b.args(wait, CommArgs { collective, in_elements: 0, ..no_args() });
    b.args(issue, args);
    let (found, _) = run(&b);
    assert_eq!((found.ops[0].issue_row, found.ops[0].kind), (Some(issue), K::AllGather));
}

/// Case O08: sibling steps lend a size to the same position.
#[test]
fn sibling_steps_fill_sizes() {
    let mut b = Builder::new();
    for step in 0..3_i64 {
        let at = step * 1000;
        b.row(Category::UserAnnotation, &format!("ProfilerStep#{step}"), 0, (at, 900));
        for (i, elements) in [1000, 500].into_iter().enumerate() {
            let name = "ncclDevKernel_AllGather_RING_LL(x)";
            let row = b.kernel(name, 9, (at + 10 + i as i64 * 100, 30));
            if step != 1 {
                let args = all_gather_args(&mut b);
                b.args(row, CommArgs { in_elements: elements, ..args });
            }
        }
    }
    let (found, ledger) = run(&b);
    let sizes: Vec<_> = found.ops.iter().map(|op| op.bytes.unwrap().get()).collect();
    assert_eq!(sizes, [8000, 4000, 8000, 4000, 8000, 4000]);
    assert_eq!(found.ops[2].provenance.input, Source::SiblingStep);
    assert_eq!(found.ops[4].provenance.input, Source::KernelArgs);
    assert_eq!(ledger.count("collective-size-from-sibling-step"), 2);
}

#[test]
fn gloo_rows_carry_the_communication_and_find_their_operators() {
    let mut b = Builder::new();
    b.trace.meta.groups.push(ProcessGroup {
        name: "0".into(),
        backend: "gloo".into(),
        size: 2,
        ranks: vec![0, 1],
        ..ProcessGroup::default()
    });
    let mut issues = Vec::new();
    for (i, n) in [2240, 15].into_iter().enumerate() {
        let at = i as i64 * 20;
        let row = b.row(Category::CpuOp, "c10d::broadcast_", 0, (at, 10));
        b.shape(row, &format!("[[[{n}]], []]"), r#"["TensorList", ""]"#);
        issues.push(row);
    }
    // The second one starts first, on another thread.
    for (track, n, at) in [(1, 2240, 60), (2, 15, 50)] {
        let row = b.row(Category::UserAnnotation, "gloo:broadcast", track, (at, 100));
        b.shape(row, &format!("[[{n}]]"), r#"["float"]"#);
    }
    let (found, _) = run(&b);
    let seen: Vec<_> = found
        .ops
        .iter()
        .map(|op| (op.bytes.unwrap().get(), op.nth, op.issue_row.unwrap()))
        .collect();
    assert_eq!(seen, [(60, 1, issues[1]), (8960, 0, issues[0])]);
    assert!(found.ops.iter().all(|op| !op.on_device && op.kind == K::Broadcast));
    assert_eq!(found.groups.len(), 1);
}

#[test]
fn the_nth_is_counted_per_group_and_kind() {
    let mut b = Builder::new();
    for (i, group) in ["A", "B", "A"].into_iter().enumerate() {
        let row = b.kernel(RING_F32, 9, (i as i64 * 100, 30));
        let id = b.id(group);
        b.args(
            row,
            CommArgs { group: id, group_size: 2, sequence: 2 * (i as i64 + 1), ..no_args() },
        );
    }
    let (found, _) = run(&b);
    let seen: Vec<_> = found.ops.iter().map(|op| (op.nth, op.recorded_sequence)).collect();
    assert_eq!(seen, [(0, Some(2)), (0, Some(4)), (1, Some(6))]);
}

#[test]
fn a_single_unnamed_communicator_spans_the_job() {
    let mut b = Builder::new();
    b.trace.meta.world_size = Some(8);
    let row = b.kernel("ncclDevKernel_AllGather_RING_LL(x)", 9, (0, 30));
    let (dtype, in_elements) = (b.id("Float"), 100);
    b.args(row, CommArgs { dtype, in_elements, ..no_args() });
    let (found, ledger) = run(&b);
    assert_eq!(ledger.count("group-size-from-world"), 1);
    assert_eq!((found.groups[0].size, found.groups[0].ranks.len()), (8, 0));
    assert_eq!(found.ops[0].provenance.group, Source::Inferred);
    assert_eq!(found.ops[0].bytes, Some(Bytes::new(3200)));
    b.kernel("ncclDevKernel_AllGather_RING_LL(x)", 10, (0, 30));
    let (found, _) = run(&b);
    assert_eq!(found.groups.iter().map(|group| group.size).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(found.ops[0].bytes, Some(Bytes::new(400)), "the input is all that is known");
}
