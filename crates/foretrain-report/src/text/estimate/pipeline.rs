//! Stages of a pipeline: times and rhythm.

use foretrain_plan::Answer;
use foretrain_plan::rhythm::Rhythm;

use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{ms, percent};

/// One line per stage, where they differ.
pub(super) fn stages(answer: &Answer, sheet: &mut Sheet) {
    let stages = &answer.step.stages;
    let differ = stages.windows(2).any(|pair| pair[0].busy != pair[1].busy);
    if !differ {
        return;
    }
    sheet.heading("Stages, ms");
    let mut table = Table::new(&[
        ("Stage", Side::Right),
        ("In passes", Side::Right),
        ("Begins", Side::Right),
        ("Passes done", Side::Right),
        ("Synchronised", Side::Right),
        ("Update", Side::Right),
    ]);
    let mut at = 0;
    while at < stages.len() {
        // Stages in the middle of a deep pipeline differ in when they begin only.
        table.row(vec![
            at.to_string(),
            ms(stages[at].busy),
            ms(stages[at].started),
            ms(stages[at].computed),
            ms(stages[at].synchronised),
            ms(stages[at].update),
        ]);
        at += 1;
    }
    table.keep_whole(0..6);
    sheet.table(table);
}

/// How stages take turns.
pub(super) fn rhythm(rhythm: &Rhythm, answer: &Answer, sheet: &mut Sheet) {
    sheet.heading("Pipeline");
    let layout = &answer.layout;
    let chunks = match rhythm.chunks {
        1 => String::new(),
        chunks => format!(" of {chunks} chunks"),
    };
    sheet.field(
        "schedule",
        &format!(
            "{}: {} stages{chunks}, {} micro-batches per replica",
            layout.schedule.as_str(),
            rhythm.stages.len(),
            rhythm.micro_batches
        ),
    );
    let list = |of: fn(&foretrain_plan::rhythm::StageRhythm) -> u64| {
        runs(&rhythm.stages.iter().map(of).collect::<Vec<_>>())
    };
    let passes = if rhythm.chunks == 1 { "micro-batches" } else { "passes over a chunk" };
    sheet.field("warm-up", &format!("{} {passes}, by stage", list(|stage| stage.warm_up)));
    sheet.field(
        "in flight",
        &format!("{} {passes} at most, by stage", list(|stage| stage.in_flight)),
    );
    let ideal = rhythm.ideal_bubble.map_or_else(String::new, |ideal| {
        let v = if rhythm.chunks == 1 { "" } else { "v " };
        format!("; {} with equal stages and nothing to send, (p-1)/({v}m+p-1)", percent(ideal))
    });
    sheet.field("bubble", &format!("{} of the passes, simulated{ideal}", percent(rhythm.bubble)));
}

/// `3, 2, 1, 0`, with repeats counted: `4 x 8`.
fn runs(values: &[u64]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < values.len() {
        let run = values[at..].iter().take_while(|&&value| value == values[at]).count();
        if run > 2 {
            words.push(format!("{run} x {}", values[at]));
        } else {
            words.extend(std::iter::repeat_n(values[at].to_string(), run));
        }
        at += run;
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn repeats_are_counted() {
        assert_eq!(runs(&[3, 2, 1, 0]), "3, 2, 1, 0");
        assert_eq!(runs(&[4, 4, 4, 4]), "4 x 4");
        assert_eq!(runs(&[5, 5, 1]), "5, 5, 1");
        assert_eq!(runs(&[]), "");
    }
}
