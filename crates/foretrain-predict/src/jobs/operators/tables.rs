//! Embedding tables that a step looks up.

use super::operand::Operand;

/// Tables and rows of them, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Look-ups, each in a table of its own as far as is known.
    pub(crate) count: u64,
    /// Bytes of the tables.
    pub(crate) bytes: u64,
    /// Bytes of the rows.
    pub(crate) touched: u64,
}

impl Tables {
    /// Takes in an operator, if it looks up a table.
    pub(super) fn meet(&mut self, name: &str, inputs: &[Operand]) {
        if !matches!(name, "embedding" | "_embedding_bag") {
            return;
        }
        let (Some(table), Some(indices)) = (inputs.first(), inputs.get(1)) else { return };
        let (Some(bytes), Some(&width), Some(each)) =
            (table.bytes(), table.shape.last(), table.each)
        else {
            return;
        };
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let rows = indices.elements().saturating_mul(width).saturating_mul(each);
        self.touched = self.touched.saturating_add(rows);
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
        tables.meet("embedding", &inputs);
        tables.meet("_embedding_bag", &inputs);
        tables.meet("add", &inputs);
        assert_eq!(tables, Tables { count: 2, bytes: 6400, touched: 256 });
    }
}
