//! Gradients, and weights with the optimiser's state, of a recording.

use foretrain_core::Bytes;
use foretrain_plan::Optimiser;

use super::figure::{Basis, Figure};
use super::operators::Tables;

/// Gradients of dense weights; dense weights and embedding tables, each with the optimiser's state;
/// and rows that are looked up.
pub(super) struct Weights {
    pub(super) gradients: Figure<Bytes>,
    pub(super) dense: Figure<Bytes>,
    pub(super) embedding: Figure<Bytes>,
    pub(super) touched: Figure<Bytes>,
}

impl Weights {
    /// By the gradients. Tables that were looked up are taken out of them, unless they are too small
    /// to hold theirs.
    pub(super) fn new(gradients: Figure<Bytes>, tables: Tables, optimiser: Optimiser) -> Self {
        if tables.count == 0 {
            return Self::without_tables(gradients, optimiser);
        }
        let held = gradients.value.is_some_and(|bytes| bytes.get() >= tables.bytes);
        let mut dense = gradients;
        if held {
            dense = dense.map(|bytes| bytes - Bytes::new(tables.bytes));
            dense.how.push_str(" without those of tables");
        }
        let found = format!("tables looked up: {}, each once", tables.count);
        let table = Figure::new(Bytes::new(tables.bytes), Basis::Counted, found.clone());
        let touched = match tables.flat {
            0 => Figure::new(Bytes::new(tables.touched), Basis::Counted, found),
            _ => Figure::missing("tables in one flat tensor do not tell how wide their rows are"),
        };
        Self {
            dense: with_state(dense.clone(), optimiser),
            gradients: dense,
            embedding: with_state(table, optimiser),
            touched,
        }
    }

    fn without_tables(gradients: Figure<Bytes>, optimiser: Optimiser) -> Self {
        let none =
            |what: &str| Figure::missing(format!("no look-up in an embedding table, so {what}"));
        Self {
            dense: with_state(gradients.clone(), optimiser),
            gradients,
            embedding: none("no table is told apart"),
            touched: none("no rows are known"),
        }
    }
}

/// Weights are as large as their gradients, and so is each of the optimiser's moments.
fn with_state(gradients: Figure<Bytes>, optimiser: Optimiser) -> Figure<Bytes> {
    if gradients.value.is_none() {
        return gradients;
    }
    let copies = 1 + optimiser.moments();
    Figure {
        value: gradients.value.map(|bytes| Bytes::new(bytes.get().saturating_mul(copies))),
        basis: Basis::Inferred,
        how: format!(
            "{}, {}: weights and the moments of {} as large as the gradients",
            gradients.how,
            if copies == 1 { "once".into() } else { format!("{copies} times") },
            optimiser.as_str()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_taken_out_of_gradients_that_hold_theirs() {
        let tables = Tables { count: 2, flat: 0, bytes: 600, touched: 8 };
        let of = |bytes| Figure::new(Bytes::new(bytes), Basis::Measured, "gradients");
        let dense = Weights::new(of(1000), tables, Optimiser::Momentum);
        assert_eq!(dense.gradients.value, Some(Bytes::new(400)));
        assert_eq!(dense.dense.value, Some(Bytes::new(800)));
        assert_eq!(dense.embedding.value, Some(Bytes::new(1200)));
        assert_eq!(dense.touched.value, Some(Bytes::new(8)));
        let flat = Weights::new(of(1000), Tables { flat: 1, ..tables }, Optimiser::Sgd);
        assert_eq!((flat.embedding.value, flat.touched.value), (Some(Bytes::new(600)), None));
        let sparse = Weights::new(of(100), tables, Optimiser::Adam);
        assert_eq!(sparse.dense.value, Some(Bytes::new(300)));
        let none = Weights::new(Figure::missing("none"), Tables::default(), Optimiser::Sgd);
        assert_eq!((none.dense.value, none.embedding.value), (None, None));
    }
}
