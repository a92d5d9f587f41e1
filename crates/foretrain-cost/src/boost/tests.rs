use proptest::prelude::*;

use super::*;

const PLAIN: BoostOptions =
    BoostOptions { trees: 1, depth: 1, rate: 1.0, least_rows: 1, ridge: 0.0, bins: 1 << 10 };

fn table(rows: &[Vec<f64>]) -> Table {
    let mut table = Table::new(rows.first().map_or(0, Vec::len));
    rows.iter().for_each(|row| table.push(row));
    table
}

/// The least squared error of any single split, by trying all of them.
fn best_stump(rows: &[Vec<f64>], targets: &[f64], weights: &[f64]) -> f64 {
    let error = |rows: &[usize]| {
        let weight: f64 = rows.iter().map(|&row| weights[row]).sum();
        let mean = rows.iter().map(|&row| weights[row] * targets[row]).sum::<f64>() / weight;
        rows.iter().map(|&row| weights[row] * (targets[row] - mean).powi(2)).sum::<f64>()
    };
    let all: Vec<usize> = (0..rows.len()).collect();
    let mut least = error(&all);
    for feature in 0..rows[0].len() {
        for cut in rows.iter().map(|row| row[feature]) {
            let (below, above): (Vec<usize>, Vec<usize>) =
                all.iter().partition(|&&row| rows[row][feature] <= cut);
            if !below.is_empty() && !above.is_empty() {
                least = least.min(error(&below) + error(&above));
            }
        }
    }
    least
}

fn squared_error(model: &Regressor, rows: &[Vec<f64>], targets: &[f64], weights: &[f64]) -> f64 {
    let each = rows.iter().zip(targets).zip(weights);
    each.map(|((row, target), weight)| weight * (model.predict(row) - target).powi(2)).sum()
}

prop_compose! {
    fn data()(count in 2_usize..40)(
        rows in prop::collection::vec(prop::collection::vec(-9_i8..9, 3), count),
        targets in prop::collection::vec(-50_i8..50, count),
        weights in prop::collection::vec(1_u8..5, count),
    ) -> (Vec<Vec<f64>>, Vec<f64>, Vec<f64>) {
        let rows = rows.into_iter().map(|row| row.into_iter().map(f64::from).collect());
        let targets = targets.into_iter().map(f64::from);
        (rows.collect(), targets.collect(), weights.into_iter().map(f64::from).collect())
    }
}

proptest! {
    /// With a bin per value, a tree of one split is the best there is.
    #[test]
    fn one_split_is_as_good_as_the_best_of_all((rows, targets, weights) in data()) {
        let model = Regressor::fit(&table(&rows), &targets, &weights, &PLAIN);
        let (got, best) =
            (squared_error(&model, &rows, &targets, &weights), best_stump(&rows, &targets, &weights));
        prop_assert!((got - best).abs() <= 1e-4 * (1.0 + best), "{got} {best}");
    }

    /// More trees never fit the training rows worse, and what was fitted passes its own check.
    #[test]
    fn every_tree_lowers_the_error((rows, targets, weights) in data()) {
        let mut before = f64::INFINITY;
        for trees in [0, 1, 3, 9] {
            let options = BoostOptions { trees, depth: 3, rate: 0.3, ridge: 1.0, ..PLAIN };
            let model = Regressor::fit(&table(&rows), &targets, &weights, &options);
            prop_assert!(model.check(3).is_ok());
            let error = squared_error(&model, &rows, &targets, &weights);
            prop_assert!(error <= before * (1.0 + 1e-5) + 1e-4, "{trees} trees: {error} after {before}");
            before = error;
        }
    }
}

#[test]
fn a_smooth_law_of_two_features_is_learnt_between_the_rows() {
    let law = |a: f64, b: f64| (a / 10.0).sin() + b / 20.0;
    let (mut rows, mut targets) = (Table::new(2), Vec::new());
    for a in 0..40 {
        for b in 0..20 {
            rows.push(&[f64::from(a), f64::from(b)]);
            targets.push(law(f64::from(a), f64::from(b)));
        }
    }
    let options = BoostOptions { trees: 200, depth: 3, rate: 0.1, least_rows: 5, ..PLAIN };
    let model = Regressor::fit(&rows, &targets, &vec![1.0; targets.len()], &options);
    for (a, b) in [(3.4, 7.3), (20.2, 1.4), (33.3, 18.2)] {
        let (got, want) = (model.predict(&[a, b]), law(a, b));
        assert!((got - want).abs() < 0.06, "{a} {b}: {got} {want}");
    }
}

#[test]
fn missing_values_go_below_and_rows_without_weight_nowhere() {
    let rows = table(&[vec![f64::NAN], vec![1.0], vec![2.0], vec![3.0]]);
    let targets = [5.0, 5.0, 1.0, f64::NAN];
    let model = Regressor::fit(&rows, &targets, &[1.0; 4], &PLAIN);
    assert!((model.predict(&[f64::NAN]) - 5.0).abs() < 1e-12);
    assert!((model.predict(&[9.0]) - 1.0).abs() < 1e-12);
    assert!((model.predict(&[]) - 5.0).abs() < 1e-12, "a missing feature is a missing value");
    let none = Regressor::fit(&rows, &targets, &[0.0; 4], &PLAIN);
    assert_eq!(none.predict(&[1.0]), 0.0);
}

#[test]
fn damaged_trees_are_refused() {
    let rows = table(&[vec![1.0], vec![2.0]]);
    let good = Regressor::fit(&rows, &[1.0, 2.0], &[1.0; 2], &PLAIN);
    assert!(good.check(1).is_ok());
    assert!(good.check(0).is_err(), "the feature is not there");
    type Damage = fn(&mut Tree);
    let damages: [Damage; 6] = [
        |tree| tree.child[0] = 0,
        |tree| tree.child[0] = 2,
        |tree| tree.value[1] = f32::NAN,
        |tree| tree.split[0] = -2,
        |tree| tree.value.truncate(1),
        |tree| *tree = Tree { split: vec![], value: vec![], child: vec![] },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let mut bad = good.clone();
        damage(&mut bad.trees[0]);
        let error = bad.check(1).expect_err("damaged");
        assert!(error.message().contains("tree 0 is damaged"), "{number}: {error}");
    }
}
