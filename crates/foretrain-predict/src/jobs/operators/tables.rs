//! Embedding tables that a step looks up.

use super::operand::Operand;

/// Tables and rows of them, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Look-ups, each in a table of its own as far as is known.
    pub(crate) count: u64,
    /// Look-ups in tables that do not tell how wide a row is.
    pub(crate) flat: u64,
    /// Bytes of the tables.
    pub(crate) bytes: u64,
    /// Bytes of the rows.
    pub(crate) touched: u64,
}

impl Tables {
    /// Takes in an operator, if it looks up a table, and says whether it does.
    pub(super) fn meet(&mut self, name: &str, inputs: &[Operand]) -> bool {
        if name.to_ascii_lowercase().contains("backward") {
            return false;
        }
        let Some(found) = LookUp::of(name, inputs) else { return false };
        let Some(bytes) = found.table.bytes() else { return false };
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        match found.row() {
            Some(row) => {
                let rows = found.indices.elements().saturating_mul(row);
                self.touched = self.touched.saturating_add(rows);
            }
            None => self.flat += 1,
        }
        true
    }
}

/// A table and what is looked up in it.
pub(super) struct LookUp<'a> {
    pub(super) table: &'a Operand,
    /// Of each row that is looked up, its place.
    pub(super) indices: &'a Operand,
}

impl<'a> LookUp<'a> {
    /// The look-up that an operator does, by its name (`embedding`, `_embedding_bag`, FBGEMM's
    /// `split_embedding_codegen_lookup_adagrad_function`) and its inputs: a table of two extents before
    /// the indices, or all tables of a group in one flat tensor.
    pub(super) fn of(name: &str, inputs: &'a [Operand]) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let is_named = name.contains("embedding") || name.contains("lookup");
        // Positions are turned by them, and no table of weights is read.
        if !is_named || name.contains("rotary") {
            return None;
        }
        // Their order is known, whatever types were written down.
        if matches!(name.as_str(), "embedding" | "embedding_bag" | "_embedding_bag") {
            let (table, indices) = (inputs.first()?, inputs.get(1)?);
            return Some(Self { table, indices });
        }
        let weights = inputs.iter().filter(|operand| !operand.is_index && operand.elements() > 0);
        let table = weights.max_by_key(|operand| operand.elements())?;
        let indices = inputs.iter().filter(|operand| operand.is_index);
        let indices = match table.shape.len() {
            // Among the indices of flat tables are where each table and each bag begins.
            1 => indices.max_by_key(|operand| operand.elements()),
            _ => indices.into_iter().find(|operand| operand.elements() > 0),
        };
        let indices = indices.filter(|indices| indices.elements() > 0)?;
        Some(Self { table, indices })
    }

    /// Bytes of a row; `None` for tables in one flat tensor.
    pub(super) fn row(&self) -> Option<u64> {
        match self.table.shape.as_slice() {
            [_, .., width] => Some(width.saturating_mul(self.table.each?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operand::of;
    use super::*;

    #[test]
    fn tables_and_rows_add_up() {
        let mut tables = Tables::default();
        let inputs = of("[[100, 8], [4]]", r#"["float", "long int"]"#);
        assert!(tables.meet("embedding", &inputs) && tables.meet("_embedding_bag", &inputs));
        assert!(!tables.meet("add", &inputs) && !tables.meet("embedding_dense_backward", &inputs));
        assert!(!tables.meet("rotary_embedding", &inputs));
        assert_eq!(tables, Tables { count: 2, flat: 0, bytes: 6400, touched: 256 });
    }

    /// As FBGEMM has them: weights, their momentum, where tables begin, indices, offsets.
    #[test]
    fn tables_in_one_flat_tensor_have_a_size_and_no_rows() {
        let mut tables = Tables::default();
        let inputs = of(
            "[[0], [640], [0, 0], [3], [17], [5], [640]]",
            r#"["float", "float", "float", "long int", "long int", "long int", "float"]"#,
        );
        assert!(tables.meet("fbgemm::split_embedding_codegen_lookup_adagrad_function", &inputs));
        assert_eq!(tables, Tables { count: 1, flat: 1, bytes: 2560, touched: 0 });
    }
}
