//! Floating-point operations and bytes of operators whose shapes tell them.

use serde_json::Value;

use super::record::Record;
use super::tensors::Argument;

/// Floating-point operations of a matrix product or convolution, from its recorded shapes; `None`
/// for other operators. A multiply-add counts as two: 2mnk for (m,k)x(k,n), and two per output
/// element and filter element for a convolution.
pub(super) fn flops(record: &Record<'_>) -> Option<f64> {
    let operator = record.name.strip_prefix("aten::")?;
    let (left, right) = match operator {
        "mm" | "bmm" => (0, 1),
        "addmm" | "addmm_" | "baddbmm" | "baddbmm_" => (1, 2),
        "cudnn_convolution"
        | "miopen_convolution"
        | "mkldnn_convolution"
        | "_slow_conv2d_forward"
        | "_convolution"
        | "thnn_conv2d" => return convolution(record),
        _ => return None,
    };
    let shapes = shapes(record.inputs.shapes?.get())?;
    let (a, b) = (extents(shapes.get(left)?)?, extents(shapes.get(right)?)?);
    let columns = b.last()?;
    Some(2.0 * product(&a) * columns)
}

fn convolution(record: &Record<'_>) -> Option<f64> {
    let inputs = shapes(record.inputs.shapes?.get())?;
    let outputs = shapes(record.outputs.shapes?.get())?;
    let (filter, output) = (extents(inputs.get(1)?)?, extents(outputs.first()?)?);
    // Filters are (out channels, in channels per group, extents ...).
    Some(2.0 * product(&output) * product(filter.get(1..)?))
}

fn shapes(text: &str) -> Option<Vec<Value>> {
    serde_json::from_str(text).ok()
}

fn extents(shape: &Value) -> Option<Vec<f64>> {
    let extents: Option<Vec<f64>> = shape.as_array()?.iter().map(Value::as_f64).collect();
    extents.filter(|e| e.len() >= 2 && e.iter().all(|x| x.is_finite() && *x >= 0.0))
}

fn product(extents: &[f64]) -> f64 {
    extents.iter().product()
}

/// Bytes that an operator reads and writes: each distinct input and output tensor once. `None`
/// without tensors, and for views, whose outputs are other tensors in the storage of an input.
pub(super) fn bytes_moved(
    record: &Record<'_>,
    inputs: &[Argument],
    outputs: &[Argument],
) -> Option<u64> {
    let mut read = Vec::new();
    let mut written = Vec::new();
    inputs.iter().for_each(|a| a.tensors(&mut |tensor| read.push(*tensor)));
    outputs.iter().for_each(|a| a.tensors(&mut |tensor| written.push(*tensor)));
    let in_place = record.name.ends_with('_');
    let view = !in_place
        && !written.is_empty()
        && written.iter().all(|out| {
            read.iter().any(|tensor| tensor.storage == out.storage && tensor.id != out.id)
        });
    if view {
        return None;
    }
    let mut seen = Vec::new();
    let mut total: Option<u64> = None;
    for tensor in read.iter().chain(&written) {
        seen.push((tensor.id, tensor.storage, tensor.bytes()));
    }
    seen.sort_unstable();
    seen.dedup();
    for (_, _, bytes) in seen {
        total = Some(total.unwrap_or(0).saturating_add(bytes));
    }
    total
}

/// The bytes an operator moves, parsing its arguments.
#[cfg(test)]
fn bytes_of(record: &Record<'_>) -> Option<u64> {
    use super::tensors;
    bytes_moved(
        record,
        &tensors::parse(record.inputs.values),
        &tensors::parse(record.outputs.values),
    )
}

#[cfg(test)]
mod tests {
    use super::super::record::UnknownFields;
    use super::*;

    fn record(json: &str) -> Record<'_> {
        Record::parse(json, &mut UnknownFields::new()).unwrap()
    }

    #[test]
    fn products_and_convolutions_are_counted() {
        let addmm = record(
            r#"{"name": "aten::addmm", "inputs": [], "input_shapes": [[5], [3, 4], [4, 5], [], []]}"#,
        );
        assert_eq!(flops(&addmm), Some(2.0 * 3.0 * 4.0 * 5.0));
        let bmm = record(
            r#"{"name": "aten::bmm", "inputs": [], "input_shapes": [[7, 3, 4], [7, 4, 5]]}"#,
        );
        assert_eq!(flops(&bmm), Some(7.0 * 120.0));
        let conv = record(
            r#"{"name": "aten::cudnn_convolution", "input_shapes": [[2, 3, 8, 8], [16, 3, 3, 3], [[], []]], "output_shapes": [[2, 16, 8, 8]]}"#,
        );
        assert_eq!(flops(&conv), Some(2.0 * 2048.0 * 27.0));
        assert_eq!(
            flops(&record(r#"{"name": "aten::add", "input_shapes": [[2, 2], [2, 2]]}"#)),
            None
        );
        assert_eq!(
            flops(&record(r#"{"name": "aten::mm", "input_shapes": [[-2, 2], [2, 2]]}"#)),
            None
        );
    }

    #[test]
    fn views_move_nothing_and_in_place_work_counts_once() {
        let view = record(
            r#"{"name": "aten::view", "inputs": [[1, 9, 0, 8, 4, "cpu"]], "outputs": [[2, 9, 0, 8, 4, "cpu"]]}"#,
        );
        assert_eq!(bytes_of(&view), None);
        let add = record(
            r#"{"name": "aten::add_", "inputs": [[1, 9, 0, 8, 4, "cpu"], [3, 4, 0, 8, 4, "cpu"]], "outputs": [[1, 9, 0, 8, 4, "cpu"]]}"#,
        );
        assert_eq!(bytes_of(&add), Some(64));
    }
}
