//! Solving small symmetric positive definite systems.

/// The lower factor of a symmetric positive definite matrix, row by row.
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// `None` if the matrix is not positive definite.
    pub(super) fn of(matrix: &[f64], size: usize) -> Option<Self> {
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let products = (0..column)
                    .map(|k| lower[row * size + k] * lower[column * size + k])
                    .sum::<f64>();
                let left = matrix[row * size + column] - products;
                lower[row * size + column] = if row == column {
                    if !(left > 0.0 && left.is_finite()) {
                        return None;
                    }
                    left.sqrt()
                } else {
                    left / lower[column * size + column]
                };
            }
        }
        Some(Self { size, lower })
    }

    /// The solution for a right-hand side.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (n, l) = (self.size, &self.lower);
        let mut x = right.to_vec();
        for row in 0..n {
            let known: f64 = (0..row).map(|k| l[row * n + k] * x[k]).sum();
            x[row] = (x[row] - known) / l[row * n + row];
        }
        for row in (0..n).rev() {
            let known: f64 = (row + 1..n).map(|k| l[k * n + row] * x[k]).sum();
            x[row] = (x[row] - known) / l[row * n + row];
        }
        x
    }

    /// The diagonal of the inverse.
    pub(super) fn inverse_diagonal(&self) -> Vec<f64> {
        let unit = |at: usize| {
            let mut unit = vec![0.0; self.size];
            unit[at] = 1.0;
            unit
        };
        (0..self.size).map(|at| self.solve(&unit(at))[at]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_and_inverts() {
        let matrix = [4.0, 2.0, 0.0, 2.0, 5.0, 1.0, 0.0, 1.0, 3.0];
        let factor = Cholesky::of(&matrix, 3).unwrap();
        let x = factor.solve(&[8.0, 15.0, 11.0]);
        for (row, want) in [8.0, 15.0, 11.0].into_iter().enumerate() {
            let got: f64 = (0..3).map(|k| matrix[row * 3 + k] * x[k]).sum();
            assert!((got - want).abs() < 1e-12);
        }
        // Cofactors over the determinant, 44.
        for (got, want) in factor.inverse_diagonal().iter().zip([14.0, 12.0, 16.0]) {
            assert!((got - want / 44.0).abs() < 1e-12, "{got}");
        }
        assert!(Cholesky::of(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::of(&[f64::NAN], 1).is_none());
    }
}
