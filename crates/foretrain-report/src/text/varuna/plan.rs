//! The page of a plan.

use foretrain_plan::varuna::layout::Stage;
use foretrain_plan::varuna::partition::Balance;
use foretrain_plan::varuna::plan::{Candidate, Owner, Plan, PlanOptions, Refused};
use foretrain_plan::varuna::profile::Profile;

use super::{drawn, filled, micro_batches};
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, ms, ms_unit, name, percent, percent_of, plain, whole_size};

/// Rows of a table before the rest is counted.
const MOST_ROWS: usize = 24;

/// The page for a plan.
pub fn varuna_plan(
    profile: &Profile,
    options: &PlanOptions,
    plan: &Plan,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    let model = profile.model.as_deref().map_or("the model", |model| model);
    let on = profile.gpu.as_deref().map_or(String::new(), |gpu| format!(" ({})", name(gpu, 40)));
    sheet.heading(&format!(
        "{} on {}{on}, batch {}",
        name(model, 60),
        counted(options.gpus as usize, "GPU"),
        options.batch
    ));
    let best = &plan.ranked[0];
    summary(profile, options, best, &mut sheet);
    stages(profile, best, &mut sheet);
    ranking(&plan.ranked, &mut sheet);
    refused(&plan.refused, &mut sheet);
    sheet.blank();
    sheet.paragraph("", DEFINITIONS);
    if plan.ranked.iter().any(|one| one.balance == Balance::Cost) {
        sheet.paragraph("", "* cut-points are dealt by cost, not by count.");
    }
    for note in &plan.notes {
        sheet.paragraph("note: ", note);
    }
    filled(&plan.filled, &mut sheet);
    sheet.finish()
}

const DEFINITIONS: &str = "Pipelines: stages x replicas. Micro: micro-batches per replica x samples of each. Ranked by time per \
    sample; slower by what most of the difference is. Bubble, messages, jitter and all-reduce are shares \
    of the step, which also holds computing, the imbalance of stages and the update. The all-reduce \
    follows the pipeline and overlaps with nothing.";

fn summary(profile: &Profile, options: &PlanOptions, best: &Candidate, sheet: &mut Sheet) {
    let wide = match profile.tensor_parallel {
        1 => String::new(),
        many => format!(" of {many} GPUs"),
    };
    sheet.field(
        "best",
        &format!(
            "{}{wide} x {}, {} of {} per step and replica, schedule {}",
            counted(best.stages.len(), "stage"),
            counted(best.replicas as usize, "replica"),
            micro_batches(best.micro_batches),
            counted(best.micro_batch as usize, "sample"),
            best.schedule
        ),
    );
    sheet.field(
        "step",
        &format!(
            "{} = {} pipeline + {} all-reduce + {} update; {} samples/s",
            ms_unit(best.step),
            ms(best.makespan),
            ms(best.all_reduce),
            ms(best.update),
            plain(best.throughput())
        ),
    );
    if let Some(found) = &best.distribution {
        let text = format!(
            "{} (5 %) {} (median) {} (95 %): {}",
            ms_unit(found.p5),
            ms_unit(found.p50),
            ms_unit(found.p95),
            drawn(&found.jitter, found.draws)
        );
        sheet.field("pipeline", &text);
    }
    if let (Some(needed), Some(there)) = (best.memory, options.gpu_memory) {
        sheet.field("memory", &format!("{needed} of {there} in the fullest stage"));
    }
    if best.idle_gpus > 0 {
        sheet.field("idle", &counted(best.idle_gpus as usize, "GPU"));
    }
    let machines = options.machines;
    let text = format!("{} GPUs each, {}", machines.gpus_each, machines.placement.as_str());
    sheet.field("machines", &text);
}

fn stages(profile: &Profile, best: &Candidate, sheet: &mut Sheet) {
    sheet.heading("Stages of the best");
    let mut table = Table::new(&[
        ("Stage", Side::Right),
        ("Cut-points", Side::Left),
        ("ms forward", Side::Right),
        ("ms backward", Side::Right),
        ("Output", Side::Right),
        ("ms to next", Side::Right),
    ]);
    for (index, stage) in best.stages.iter().enumerate().take(MOST_ROWS) {
        let next = best.pipeline.messages().get(index);
        table.row(vec![
            index.to_string(),
            span(profile, stage),
            ms(stage.time.forward),
            ms(stage.time.backward),
            stage.activation.map_or_else(|| "-".into(), whole_size),
            next.map_or_else(|| "-".into(), |time| ms(*time)),
        ]);
    }
    table.keep_whole([0, 2, 3, 4, 5]);
    sheet.table(table);
    more(best.stages.len(), sheet);
}

/// `layer 0 .. layer 11 (12)`.
fn span(profile: &Profile, stage: &Stage) -> String {
    let (first, last) = (stage.cut_points.start, stage.cut_points.end - 1);
    let of = |index: usize| name(&profile.cut_points[index].name, 24);
    if first == last {
        return of(first);
    }
    format!("{} .. {} ({})", of(first), of(last), last - first + 1)
}

fn ranking(ranked: &[Candidate], sheet: &mut Sheet) {
    sheet.heading("All that can run");
    let has_jitter = ranked.iter().any(|one| one.distribution.is_some());
    let owners = [Owner::Bubble, Owner::Messages, Owner::Jitter, Owner::AllReduce];
    let owners: Vec<Owner> =
        owners.into_iter().filter(|owner| *owner != Owner::Jitter || has_jitter).collect();
    let mut columns = vec![
        ("Pipelines", Side::Right),
        ("Micro", Side::Right),
        ("Schedule", Side::Left),
        ("ms/step", Side::Right),
        ("Samples/s", Side::Right),
    ];
    let heads = owners.iter().map(|owner| match owner {
        Owner::Bubble => "Bubble",
        Owner::Messages => "Mess.",
        Owner::Jitter => "Jitter",
        _ => "All-red.",
    });
    columns.extend(heads.map(|head| (head, Side::Right)));
    columns.push(("Slower by", Side::Left));
    let mut table = Table::new(&columns);
    for one in ranked.iter().take(MOST_ROWS) {
        let mut row = vec![
            format!("{}{} x {}", one.stages.len(), mark(one.balance), one.replicas),
            format!("{} x {}", one.micro_batches, one.micro_batch),
            one.schedule.to_string(),
            ms(one.step),
            plain(one.throughput()),
        ];
        row.extend(owners.iter().map(|owner| percent_of(one.shares.of(*owner), one.step)));
        row.push(reason(one));
        table.row(row);
    }
    table.keep_whole(0..columns.len() - 1);
    sheet.table(table);
    more(ranked.len(), sheet);
}

/// Marks stages that are not of as many cut-points each.
const fn mark(balance: Balance) -> &'static str {
    match balance {
        Balance::Count => "",
        Balance::Cost => "*",
    }
}

/// By how much a configuration is slower, and what most of that is.
fn reason(one: &Candidate) -> String {
    match one.lost_to {
        None => "-".into(),
        Some((owner, _)) => format!("{}, {}", percent(one.slower - 1.0), owner.as_str()),
    }
}

fn refused(refused: &[Refused], sheet: &mut Sheet) {
    if refused.is_empty() {
        return;
    }
    sheet.heading("What cannot run, or cannot be known");
    for why in refused.iter().take(MOST_ROWS) {
        sheet.paragraph("- ", &name(&why.to_string(), 400));
    }
    more(refused.len(), sheet);
}

fn more(count: usize, sheet: &mut Sheet) {
    if count > MOST_ROWS {
        sheet.line(&format!("and {} more", count - MOST_ROWS));
    }
}
