//! A simulated pipeline in letters, one line per stage.

use foretrain_core::Nanos;
use foretrain_plan::varuna::compare::Compared;
use foretrain_plan::varuna::schedule::Work;

use crate::text::units::ms_unit;

/// Stages that are drawn.
const MOST_STAGES: usize = 64;
const LABEL: usize = 10;

/// Each column is a time, its letter the work that takes most of it: `F` forward, `r` recompute, `B`
/// backward, `.` nothing.
pub(super) fn timeline(one: &Compared, width: usize) -> Vec<String> {
    let columns = width.saturating_sub(LABEL).max(10);
    let span = one.run.makespan.nanos().max(1) as f64;
    let per_column = span / columns as f64;
    let stages = one.step.pipeline().stages().len();
    let drawn = stages.min(MOST_STAGES);
    // By stage, column and kind of work: nanoseconds.
    let mut cells = vec![[0.0_f64; 3]; drawn * columns];
    for slice in one.run.slices.iter().filter(|slice| slice.stage < drawn) {
        let (start, end) = (slice.start.nanos() as f64, slice.end.nanos() as f64);
        let first = (start / per_column) as usize;
        let last = ((end / per_column) as usize).min(columns - 1);
        for column in first..=last {
            let (from, to) = (column as f64 * per_column, (column + 1) as f64 * per_column);
            let overlap = (end.min(to) - start.max(from)).max(0.0);
            cells[slice.stage * columns + column][slice.task.work as usize] += overlap;
        }
    }
    let letter = |times: &[f64; 3]| {
        let works = [(Work::Forward, 'F'), (Work::Recompute, 'r'), (Work::Backward, 'B')];
        let idle = per_column - times.iter().sum::<f64>();
        let most = works.into_iter().map(|(work, letter)| (times[work as usize], letter));
        let most = most.fold((0.0, '.'), |a, b| if b.0 > a.0 { b } else { a });
        if most.0 >= idle { most.1 } else { '.' }
    };
    let mut lines: Vec<String> = cells
        .chunks(columns)
        .enumerate()
        .map(|(stage, row)| {
            let row: String = row.iter().map(letter).collect();
            format!("{:LABEL$}{row}", format!("stage {stage}"))
        })
        .collect();
    if stages > drawn {
        lines.push(format!("and {} more stages", stages - drawn));
    }
    let column = Nanos::from_nanos_f64(per_column);
    lines.push(format!(
        "F forward, r recompute, B backward, . idle; a column is {}",
        ms_unit(column)
    ));
    lines
}

#[cfg(test)]
mod tests {
    use foretrain_plan::varuna::compare::{CompareOptions, Detail, compare};
    use foretrain_plan::varuna::schedule::Schedule;
    use foretrain_plan::varuna::simulate::{Pipeline, StageTime};

    use super::*;

    #[test]
    fn letters_stand_where_tasks_ran() {
        let ms = Nanos::from_millis;
        let stages = vec![StageTime { forward: ms(1), backward: ms(2) }; 3];
        let pipeline = Pipeline::new(stages, vec![Nanos::ZERO; 2]).unwrap();
        let options = CompareOptions {
            schedules: vec![Schedule::OneFOneB],
            micro_batches: 2,
            after: Nanos::ZERO,
            jitter: None,
            detail: Detail::Slices,
        };
        // (2 + 3 - 1) x 3 ms: with twelve columns one is a millisecond.
        let found = compare(&pipeline, &options).unwrap();
        let lines = timeline(&found[0], LABEL + 12);
        assert_eq!(
            lines[..3],
            ["stage 0   FF.....BB.BB", "stage 1   .FF..BB.BB..", "stage 2   ..FBBFBB...."]
                .map(str::to_owned)
        );
    }
}
