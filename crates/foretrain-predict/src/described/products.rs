//! Products of data with data: two in a row are attention, written out.

use foretrain_workload::model::SelfAttention;

/// A product of data with data, over all samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Product {
    /// Independent products.
    pub(super) count: u64,
    /// Rows of the left factor.
    pub(super) rows: u64,
    /// Columns of the left factor.
    pub(super) inner: u64,
    /// Columns of the right factor.
    pub(super) columns: u64,
}

impl Product {
    /// From the extents of both factors.
    pub(super) fn of(left: &[u64], right: &[u64]) -> Option<Self> {
        let [outer @ .., rows, inner] = left else { return None };
        let columns = *right.last()?;
        let count = outer.iter().try_fold(1_u64, |all, n| all.checked_mul(*n))?;
        Some(Self { count, rows: *rows, inner: *inner, columns })
    }

    /// Numbers of the result.
    pub(super) const fn numbers(&self) -> u64 {
        self.count.saturating_mul(self.rows).saturating_mul(self.columns)
    }

    /// Attention, if this product's result, however scaled and masked, is what `values` weighs by.
    pub(super) fn attention(&self, values: &Self, batch: u64) -> Option<SelfAttention> {
        let scores = (self.count, self.rows, self.columns);
        (scores == (values.count, values.rows, values.inner)).then_some(SelfAttention {
            heads: (self.count / batch).max(1),
            kv_heads: (self.count / batch).max(1),
            head_dim: self.inner,
            value_dim: values.columns,
            causal: false,
            window: None,
            cross: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_values_are_attention() {
        let scores = Product::of(&[24, 128, 64], &[24, 64, 128]).unwrap();
        let values = Product::of(&[24, 128, 128], &[24, 128, 64]).unwrap();
        assert_eq!(scores.numbers(), 24 * 128 * 128);
        let found = scores.attention(&values, 2).unwrap();
        assert_eq!((found.heads, found.head_dim, found.value_dim), (12, 64, 64));
        assert!(scores.attention(&scores, 2).is_none());
        assert!(Product::of(&[4], &[4, 4]).is_none());
    }
}
