//! Made-up PyTorch execution traces in the layouts of old and new schemas.

/// One node: id, name, parent, inputs as (values, shapes, types).
#[derive(Clone, Copy, Debug)]
pub struct Op(pub u64, pub &'static str, pub u64, pub [&'static str; 3]);

/// No inputs.
pub const NONE: [&str; 3] = ["[]", "[]", "[]"];
/// One tensor.
pub const TENSOR: [&str; 3] =
    [r#"[[20, 21, 0, 16, 2, "cuda:0"]]"#, "[[4, 4]]", r#"["Tensor(c10::Half)"]"#];
/// Arguments of an all-reduce of 32 bytes in group "5" of ranks 0 and 1, on rank 1.
pub const PARAMETERS: [&str; 3] = [
    r#"[[[20, 21, 0, 16, 2, "cuda:0"]], 3, ["5", "tp"], 1, "allreduce", [], [], 0, 1, 2]"#,
    "[[[4, 4]], [], [[], []], [], [], [], [], [], [], []]",
    r#"["GenericList[Tensor(c10::Half)]", "Int", "Tuple[String,String]", "Int", "String", "GenericList[]", "GenericList[]", "Int", "Int", "Int"]"#,
];
/// The same five nodes for every schema.
pub const FIVE: [Op; 5] = [
    Op(1, "[pytorch|profiler|execution_trace|process]", 1, NONE),
    Op(2, "[pytorch|profiler|execution_trace|thread]", 1, NONE),
    Op(4, "aten::relu", 2, TENSOR),
    Op(5, "record_param_comms", 2, PARAMETERS),
    Op(6, "nccl:all_reduce", 5, TENSOR),
];

/// A file in the layout of schema 1.0.1.
pub fn old_style(schema: &str, ops: &[Op]) -> String {
    let nodes: Vec<String> = ops
        .iter()
        .map(|Op(id, name, parent, [values, shapes, types])| {
            format!(
                r#"{{"name": "{name}", "id": {id}, "rf_id": 0, "parent": {parent}, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": "", "inputs": {values}, "input_shapes": {shapes}, "input_types": {types}, "outputs": [], "output_shapes": [], "output_types": []}}"#
            )
        })
        .collect();
    format!(
        r#"{{"schema": "{schema}", "pid": 1, "time": "", "start_ts": 1, "nodes": [{}], "finish_ts": 2}}"#,
        nodes.join(",")
    )
}

/// A file in the layout of schema 1.0.2 and later; `extra` goes into every node's attributes.
pub fn new_style(schema: &str, ops: &[Op], extra: &str) -> String {
    let nodes: Vec<String> = ops
        .iter()
        .map(|Op(id, name, parent, [values, shapes, types])| {
            format!(
                r#"{{"id": {id}, "name": "{name}", "ctrl_deps": {parent}, "inputs": {{"values": {values}, "shapes": {shapes}, "types": {types}}}, "outputs": {{"values": [], "shapes": [], "types": []}}, "attrs": [{{"name": "tid", "type": "uint64", "value": 1}}, {{"name": "op_schema", "type": "string", "value": ""}}{extra}]}}"#
            )
        })
        .collect();
    format!(
        r#"{{"schema": "{schema}", "pid": 1, "time": "", "start_ts": 1, "nodes": [{}], "finish_ts": 2}}"#,
        nodes.join(",")
    )
}
