//! Error measures. All are in percent of the measured value.

use foretrain_core::stats::{mean, median, quantile};
use serde::Serialize;

use super::report::Row;

/// Error measures over the rows of one set, in percent of the measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Rows.
    pub n: usize,
    /// Mean of the absolute errors.
    pub mape: f64,
    /// Median of the absolute errors.
    pub median_ape: f64,
    /// 0.9 quantile of the absolute errors, by linear interpolation.
    pub p90_ape: f64,
    /// Largest absolute error.
    pub max_ape: f64,
    /// Mean of the signed errors: above zero where predictions are too long.
    pub bias: f64,
    /// Share of measured values inside the predicted 80 % interval, in percent of the rows that
    /// state one. `None` if no row does.
    pub coverage80: Option<f64>,
}

/// Signed error of a prediction in percent of the measurement; `None` if the measurement is not
/// positive or either is not finite.
pub fn error_percent(predicted: f64, measured: f64) -> Option<f64> {
    let error = (predicted - measured) / measured * 100.0;
    (measured > 0.0 && error.is_finite()).then_some(error)
}

/// Scores rows; `None` without any usable row.
pub fn scores(rows: &[Row]) -> Option<Scores> {
    let errors: Vec<f64> =
        rows.iter().filter_map(|row| error_percent(row.predicted, row.measured)).collect();
    let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    Some(Scores {
        n: errors.len(),
        mape: mean(&sizes)?,
        median_ape: median(&sizes)?,
        p90_ape: quantile(&sizes, 0.9)?,
        max_ape: quantile(&sizes, 1.0)?,
        bias: mean(&errors)?,
        coverage80: coverage(rows),
    })
}

fn coverage(rows: &[Row]) -> Option<f64> {
    let inside: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some((row.low?, row.high?, row.measured)))
        .map(|(low, high, measured)| if (low..=high).contains(&measured) { 100.0 } else { 0.0 })
        .collect();
    mean(&inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(predicted: f64, measured: f64) -> Row {
        Row { predicted, measured, ..Row::default() }
    }

    #[test]
    fn measures_of_hand_made_rows() {
        // Errors +10, -20, 0, +30, -40 percent.
        let rows =
            [row(110.0, 100.0), row(40.0, 50.0), row(7.0, 7.0), row(26.0, 20.0), row(60.0, 100.0)];
        let scores = scores(&rows).expect("rows");
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got} {want}");
        assert_eq!(scores.n, 5);
        close(scores.mape, 20.0);
        close(scores.median_ape, 20.0);
        // Between the fourth (30) and the fifth (40) of the sorted errors, at position 3.6.
        close(scores.p90_ape, 36.0);
        close(scores.max_ape, 40.0);
        close(scores.bias, -4.0);
        assert_eq!(scores.coverage80, None);
    }

    #[test]
    fn coverage_counts_rows_that_state_an_interval() {
        let with = |measured, low, high| Row {
            low: Some(low),
            high: Some(high),
            ..row(measured, measured)
        };
        let rows = [
            with(10.0, 9.0, 11.0),
            with(10.0, 10.0, 12.0),
            with(10.0, 11.0, 12.0),
            with(10.0, 1.0, 9.9),
            row(10.0, 10.0),
        ];
        assert_eq!(scores(&rows).expect("rows").coverage80, Some(50.0));
    }

    #[test]
    fn rows_without_a_positive_measurement_never_count() {
        assert_eq!(scores(&[]), None);
        assert_eq!(scores(&[row(1.0, 0.0), row(f64::NAN, 1.0), row(1.0, -2.0)]), None);
        assert_eq!(error_percent(1.0, f64::INFINITY), None);
    }
}
