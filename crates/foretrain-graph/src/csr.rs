//! Compressed sparse rows: the neighbours of every node in two arrays.

/// Adjacency of a graph: for each row, a slice of 32-bit items in insertion order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Csr {
    offsets: Vec<u32>,
    items: Vec<u32>,
}

impl Csr {
    /// Groups `(row, item)` pairs by row with a counting sort; order within a row is kept.
    pub fn from_pairs(rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0u32; rows + 1];
        for (row, _) in pairs.clone() {
            offsets[row as usize + 1] += 1;
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut cursor = offsets.clone();
        let mut items = vec![0u32; offsets[rows] as usize];
        for (row, item) in pairs {
            let slot = &mut cursor[row as usize];
            items[*slot as usize] = item;
            *slot += 1;
        }
        Self { offsets, items }
    }

    /// The items of one row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.items[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_insertion_order() {
        let pairs = [(2, 5), (0, 1), (2, 4), (0, 9)];
        let csr = Csr::from_pairs(3, pairs.iter().copied());
        assert_eq!((csr.row(0), csr.row(1), csr.row(2)), (&[1, 9][..], &[][..], &[5, 4][..]));
        assert_eq!(csr.rows(), 3);
    }
}
