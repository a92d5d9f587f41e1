//! Bytes that memory-bound operators move.

use super::operand::Operand;
use super::tables::LookUp;

/// Every input once, and the result: the size of the input that is written to, else of the largest.
/// `None` where a tensor's size is not recorded.
pub(super) fn bytes(name: &str, inputs: &[Operand]) -> Option<f64> {
    let sizes: Vec<u64> = inputs.iter().map(Operand::bytes).collect::<Option<_>>()?;
    let read = sizes.iter().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
    let largest = sizes.iter().copied().max().unwrap_or(0);
    if largest == 0 {
        return None;
    }
    if let Some(found) = LookUp::of(name, inputs) {
        // A gradient that is handed on is as large as the rows; a flat table does not tell them.
        if !name.contains("backward") || found.row().is_none() {
            return looked_up(&found);
        }
    }
    let all = match name {
        "index_select" => return selected(inputs),
        // The table's gradient is written as often as the rows', and read for the sum.
        "embedding_dense_backward" => read.saturating_add(2 * sizes.first().copied()?),
        // What is overwritten is not read.
        "copy_" | "fill_" | "zero_" => read,
        _ if shrinks(name) => read,
        _ if name.ends_with('_') => read.saturating_add(sizes.first().copied()?),
        _ => read.saturating_add(largest),
    };
    Some(all as f64)
}

/// Rows of a table: read and written.
fn looked_up(found: &LookUp<'_>) -> Option<f64> {
    Some(
        2.0 * found.row()? as f64 * found.indices.elements() as f64 + found.indices.bytes()? as f64,
    )
}

/// The same of any tensor.
fn selected(inputs: &[Operand]) -> Option<f64> {
    let (table, indices) = (inputs.first()?, inputs.iter().skip(1).find(|o| o.elements() > 0)?);
    looked_up(&LookUp { table, indices })
}

/// Whether the result is much smaller than the input.
fn shrinks(name: &str) -> bool {
    let backward = name.contains("backward");
    !backward
        && (name.contains("pool")
            || matches!(
                name,
                "sum"
                    | "mean"
                    | "norm"
                    | "linalg_vector_norm"
                    | "any"
                    | "all"
                    | "max"
                    | "min"
                    | "amax"
                    | "amin"
                    | "argmax"
                    | "argmin"
                    | "nll_loss_forward"
                    | "mse_loss"
            ))
}

#[cfg(test)]
mod tests {
    use super::super::operand::of;
    use super::*;

    #[test]
    fn results_are_as_large_as_what_they_come_from() {
        let two = of("[[4, 8], [4, 8]]", r#"["float", "float"]"#);
        assert_eq!(bytes("mul", &two), Some(384.0));
        assert_eq!(bytes("add_", &two), Some(384.0));
        assert_eq!(bytes("copy_", &two), Some(256.0));
        let one = of("[[4, 8], []]", r#"["float", ""]"#);
        assert_eq!([bytes("relu", &one), bytes("sum", &one)], [Some(256.0), Some(128.0)]);
        assert_eq!(bytes("fill_", &one), Some(128.0));
        assert_eq!(bytes("relu", &of("[[4, 8]]", "[]")), None, "of unknown type");
        assert_eq!(bytes("foreach", &[]), None);
    }

    #[test]
    fn a_table_is_read_by_rows() {
        let inputs = of("[[30000, 16], [2, 5]]", r#"["float", "long int"]"#);
        for name in ["embedding", "_embedding_bag", "index_select", "my::FusedLookup"] {
            assert_eq!(bytes(name, &inputs), Some(2.0 * 64.0 * 10.0 + 80.0), "{name}");
        }
        let flat = of("[[640000], [4], [17]]", r#"["float", "long int", "long int"]"#);
        assert_eq!(bytes("fbgemm::split_embedding_codegen_lookup_sgd_function", &flat), None);
        assert_eq!(bytes("fbgemm::split_embedding_backward_codegen_sgd_exact", &flat), None);
    }
}
