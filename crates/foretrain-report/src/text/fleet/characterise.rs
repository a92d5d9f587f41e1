//! The page of `fleet characterise`.

use foretrain_core::{Ledger, Nanos};
use foretrain_fleet::jobs::Class;
use foretrain_fleet::pai::characterise::{
    ABOVE, Characterisation, Method, Profile, QUANTILES, Weighted,
};
use foretrain_fleet::pai::{Case, Overlap, Step};

use super::{distributions, method, untimed};
use crate::text::TextStyle;
use crate::text::ledger;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{name, percent};

/// The page of `fleet characterise`; `cases` are the models of a preset.
pub fn fleet_characterise(
    of: &str,
    answer: &Characterisation,
    cases: &[Case],
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("What steps consist of: {}", name(of, 80)));
    if answer.all.is_some() {
        method(&answer.method, &answer.rows, Overlap::None, &mut sheet);
    } else if answer.rows.timed.total == 0 {
        untimed(&answer.rows, &mut sheet);
    } else {
        sheet.field(
            "steps",
            "unknown: no row has the features of a step (class, FLOPs, memory access, input, \
             traffic), so nothing is said of what the time goes to",
        );
    }
    if cases.is_empty() {
        profiles(answer, &mut sheet);
        distributions::distributions(&answer.distributions, &mut sheet);
    } else {
        of_cases(cases, &answer.method, &mut sheet);
    }
    ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

fn of_cases(cases: &[Case], method: &Method, sheet: &mut Sheet) {
    sheet.warning(
        "all features of these models are recalled from the study, not read in it; their traffic \
         counts what a replica sends and what it receives",
    );
    sheet.heading("Steps (ms)");
    let mut table = Table::new(&[
        ("Model", Side::Left),
        ("Class", Side::Left),
        ("T_d", Side::Right),
        ("T_flop", Side::Right),
        ("T_mem", Side::Right),
        ("T_w", Side::Right),
        ("Sum", Side::Right),
        ("Overlap", Side::Right),
    ]);
    for case in cases {
        let step = Step::of(&case.work, &method.hardware);
        let mut cells = vec![case.name.to_owned(), case.work.class.name().to_owned()];
        let total = [step.total(Overlap::None), step.total(Overlap::Ideal)];
        let parts = [step.input, step.flops, step.memory, step.traffic()];
        cells.extend(parts.into_iter().chain(total).map(ms));
        table.row(cells);
    }
    sheet.table(table);
    sheet.heading("Shares of a step");
    let mut table = Table::new(&[
        ("Model", Side::Left),
        ("Input", Side::Right),
        ("Compute-bound", Side::Right),
        ("Memory-bound", Side::Right),
        ("Traffic", Side::Right),
    ]);
    for case in cases {
        let mut cells = vec![case.name.to_owned()];
        cells.extend(Step::of(&case.work, &method.hardware).shares().map(percent));
        table.row(cells);
    }
    sheet.table(table);
    sheet.heading("The same features in every class (sum, ms)");
    let mut titles = vec![("Model", Side::Left)];
    titles.extend(Class::ALL.map(|class| (class.name(), Side::Right)));
    let mut table = Table::new(&titles);
    for case in cases {
        let mut cells = vec![case.name.to_owned()];
        cells.extend(Class::ALL.map(|class| {
            ms(Step::of(&case.in_class(class), &method.hardware).total(Overlap::None))
        }));
        table.row(cells);
    }
    sheet.table(table);
    sheet.paragraph("", "Only the medium changes; whether weights fit is asked by fleet project.");
}

fn ms(time: Nanos) -> String {
    format!("{:.2}", time.millis_f64())
}

fn profiles(answer: &Characterisation, sheet: &mut Sheet) {
    let Some(all) = &answer.all else { return };
    let every: Vec<&Profile> = answer.classes.iter().chain([all]).collect();
    sheet.heading("Mean share of a step, every job counted once");
    shares(&every, |profile| (&profile.by_job, profile.jobs, all.jobs), "Jobs", sheet);
    sheet.heading("Mean share of a step, every cNode (GPU) counted once");
    shares(&every, |profile| (&profile.by_cnode, profile.cnodes, all.cnodes), "cNodes", sheet);
    sheet.heading("Communication: part of the jobs above a share, and shares by part of the jobs");
    let titles: Vec<String> = ABOVE
        .iter()
        .map(|share| format!(">= {:.0} %", share * 100.0))
        .chain(QUANTILES.iter().map(|part| format!("p{:.0}", part * 100.0)))
        .collect();
    let mut columns = vec![("Class", Side::Left)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    for profile in &every {
        let mut cells = vec![class(profile)];
        let Weighted { above, communication, .. } = profile.by_job;
        cells.extend(above.into_iter().chain(communication).map(short));
        table.row(cells);
    }
    sheet.table(table);
    sheet.paragraph("", &format!(
        "Hiding input, computation and traffic behind each other wholly would make steps {:.2} times \
         as fast on average.",
        all.ideal_overlap
    ));
}

fn shares<'a>(
    every: &[&'a Profile],
    by: impl Fn(&'a Profile) -> (&'a Weighted, u64, u64),
    counted: &str,
    sheet: &mut Sheet,
) {
    let mut table = Table::new(&[
        ("Class", Side::Left),
        (counted, Side::Right),
        ("", Side::Right),
        ("Input", Side::Right),
        ("Compute-bound", Side::Right),
        ("Memory-bound", Side::Right),
        ("Traffic", Side::Right),
        ("Most on", Side::Left),
    ]);
    for profile in every {
        let (weighted, count, total) = by(profile);
        let mut cells =
            vec![class(profile), count.to_string(), percent(count as f64 / total as f64)];
        cells.extend(weighted.shares.map(percent));
        cells.push(profile.bottleneck().name().into());
        table.row(cells);
    }
    sheet.table(table);
}

fn class(profile: &Profile) -> String {
    profile.class.map_or("all", Class::name).into()
}

fn short(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}
