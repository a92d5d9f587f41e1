//! What measured primitives are good for.

use foretrain_cost::primitives::{FittedLine, FittedPrimitives, Operation};

/// A median error from which a line is a poor likeness.
const POOR: f64 = 0.2;

/// Sentences about the use and the limits of the lines.
pub fn advice(fitted: &FittedPrimitives) -> Vec<String> {
    let mut sentences = Vec::new();
    let is_of_peers = |line: &&FittedLine| {
        matches!(line.operation, Operation::Send | Operation::Receive | Operation::OneWay)
    };
    if fitted.lines.iter().any(|line| is_of_peers(&line)) {
        sentences.push(
            "Times of send and receive that were measured between processes of one machine are the \
             processor's share of communication; what the network takes comes on top."
                .into(),
        );
    }
    if fitted.lines.iter().any(|line| !is_of_peers(&line)) {
        sentences.push(
            "Sums, copies and compression are those of the processor that they were measured on, \
             as for parameter servers and Gloo. On a GPU they are quicker: measure them there."
                .into(),
        );
    }
    let points = || fitted.lines.iter().flat_map(|line| &line.points);
    let sizes =
        points().map(|point| point.bytes).min().zip(points().map(|point| point.bytes).max());
    if let Some((smallest, largest)) = sizes {
        sentences.push(format!(
            "They hold for buffers of {smallest} to {largest}; beyond, they go on straight."
        ));
    }
    for line in &fitted.lines {
        sentences.extend(misfit(line));
    }
    if !fitted.assumed.is_empty() {
        let words: Vec<_> = fitted.assumed.iter().map(|one| one.describe()).collect();
        sentences.push(format!(
            "Nobody measured {}: usual figures stand in the file for that.",
            words.join(", ")
        ));
    }
    for one in &fitted.unfitted {
        sentences.push(format!("There is no line of {}: {}.", one.operation.describe(), one.why));
    }
    sentences
}

/// Where a line is a poor likeness, and how to mend that.
fn misfit(line: &FittedLine) -> Option<String> {
    if line.fit.median_error < POOR {
        return None;
    }
    let off = |bytes: f64, ns: f64| (line.fit.cost.ns(bytes) / ns).ln().abs();
    let worst = line.points.iter().max_by(|a, b| {
        off(a.bytes.as_f64(), a.median_ns).total_cmp(&off(b.bytes.as_f64(), b.median_ns))
    })?;
    let ratio = line.fit.cost.ns(worst.bytes.as_f64()) / worst.median_ns;
    Some(format!(
        "A line is a poor likeness of {}: at {} it says {ratio:.2} times what was measured. Leave \
         out the sizes that you do not use.",
        line.operation.describe(),
        worst.bytes
    ))
}

#[cfg(test)]
mod tests {
    use foretrain_core::Bytes;
    use foretrain_cost::primitives::Measured;

    use super::*;

    fn of(points: &[(Operation, u64, f64)]) -> String {
        let mut measured = Measured::default();
        for &(operation, bytes, ns) in points {
            measured.push(operation, Bytes::new(bytes), ns);
        }
        advice(&measured.fit("a test").unwrap()).join("\n")
    }

    #[test]
    fn it_depends_on_what_was_measured() {
        use Operation::{Copy, Receive, Send};
        let said = of(&[(Send, 1_024, 10.0), (Send, 4_096, 20.0), (Receive, 1, 1.0)]);
        assert!(said.contains("the processor's share of communication"), "{said}");
        assert!(!said.contains("On a GPU"), "{said}");
        assert!(said.contains("1.000 KiB to 4.000 KiB"), "{said}");
        assert!(said.contains("Nobody measured receive, aggregate, copy"), "{said}");
        assert!(said.contains("no line of receive: a line takes two sizes"), "{said}");
        let said = of(&[(Copy, 1_024, 10.0), (Copy, 4_096, 20.0)]);
        assert!(said.contains("On a GPU") && !said.contains("poor likeness"), "{said}");
    }

    #[test]
    fn a_curve_is_no_line() {
        let curve = [10, 12, 14, 16, 18, 20].map(|log| {
            let bytes = 1_u64 << log;
            (Operation::Copy, bytes, (bytes as f64).sqrt())
        });
        let said = of(&curve);
        assert!(said.contains("poor likeness of copy: at "), "{said}");
    }
}
