//! The answer of `predict` as tables.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Nanos, Severity};
use foretrain_graph::StepMeta;
use foretrain_predict::answer::{CriticalPart, Recorded, ScaledCollective};
use foretrain_predict::{Prediction, SizePrediction};

use super::TextStyle;
use super::evidence::evidence;
use super::owners::{Column, SIDE_BY_SIDE, group_name, largest, owners};
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, ms, ms_interval, ms_unit, name, percent, percent_of, plain};

/// What to show of a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictView {
    /// Show the critical path and the collectives too.
    pub explain: bool,
}

/// Parts of a critical path that are listed; the rest is summed up.
const CRITICAL_PARTS: usize = 12;
/// Rows of collectives that are listed; the rest is summed up.
const COLLECTIVES: usize = 16;

/// The page for a prediction. `ledger` is what reading and analysing the traces had to mend.
pub fn predict(
    prediction: &Prediction,
    ledger: &Ledger,
    view: PredictView,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("Step time on {}", prediction.cluster));
    recorded(&prediction.recorded, &mut sheet);
    sizes(prediction, &mut sheet);
    breakdowns(prediction, &mut sheet);
    if view.explain {
        for size in ends(&prediction.sizes) {
            critical_path(size, &mut sheet);
            collectives(size, &mut sheet);
        }
    }
    evidence(&prediction.evidence, &mut sheet);
    warnings(&prediction.warnings, ledger, &mut sheet);
    sheet.finish()
}

/// What an answer starts from.
pub(super) fn recorded(from: &Recorded, sheet: &mut Sheet) {
    let first = from.sources.first().map_or("", String::as_str);
    let more = match from.sources.len() {
        0 | 1 => String::new(),
        n => format!(" and {}", counted(n - 1, "more file")),
    };
    let is_characterised = from.step_source.starts_with(StepMeta::CHARACTERISED);
    let label = if is_characterised { "made from" } else { "recorded" };
    sheet.field(label, &format!("{}{more}", name(first, 120)));
    let device = match from.device.as_str() {
        "" => ", device not named".to_owned(),
        device => format!(" on {}", name(device, 60)),
    };
    let ranks = counted(from.world_size as usize, "rank");
    let replica = match from.replica_size {
        1 => "one GPU holds the model".to_owned(),
        n => format!("a model replica takes {n} GPUs"),
    };
    sheet.field("job", &format!("{ranks}{device}; {replica}"));
    let whose = match from.simulated_ranks.len() {
        0 | 1 => format!("rank {}", from.rank),
        n => format!("each of {}", counted(n, "rank")),
    };
    let step = match from.steps {
        0 => format!("of {whose} ({}); its time was not recorded, replayed", from.step_source),
        _ if is_characterised => {
            format!("{} ({}); replayed", ms_unit(from.step_time), name(&from.step_source, 100))
        }
        n => format!(
            "{} (median of {} on {whose}, {}); replayed",
            ms_unit(from.step_time),
            counted(n, "step"),
            name(&from.step_source, 80),
        ),
    };
    sheet.field("step", &format!("{step} {}", ms_unit(from.replayed)));
}

fn sizes(prediction: &Prediction, sheet: &mut Sheet) {
    use Side::{Left, Right};
    let in_samples = prediction.sizes.iter().all(|s| s.samples_per_second.is_some());
    let rate = if in_samples { "Samples/s" } else { "Batches/s" };
    let mut table = Table::new(&[
        ("GPUs", Right),
        ("Nodes", Right),
        ("Step ms", Right),
        ("80 % interval", Right),
        (rate, Right),
        ("SF", Right),
        ("Eff.", Right),
        ("Exposed comm", Right),
        ("Largest owner", Left),
    ]);
    for size in &prediction.sizes {
        let total = size.breakdown.total();
        let exposed = size.breakdown.exposed_communication();
        let throughput = size.samples_per_second.filter(|_| in_samples).unwrap_or(size.throughput);
        table.row(vec![
            size.gpus.to_string(),
            size.nodes.to_string(),
            ms(size.step_time.value),
            ms_interval(&size.step_time),
            plain(throughput.value),
            format!("{:.3}", size.scaling_factor.value),
            percent(size.efficiency),
            format!("{} ({})", ms(exposed), percent_of(exposed, total)),
            largest(&size.breakdown),
        ]);
    }
    table.keep_whole([0, 1, 2, 3, 7]);
    sheet.blank();
    sheet.table(table);
    sheet.blank();
    sheet.paragraph(
        "",
        "SF is the step time of one model replica over the step time at this size (1 = perfect weak \
         scaling). Eff. is the predicted step time at the recorded size over it. Of ten such 80 % \
         intervals, eight should hold the true step time. Each replica keeps its batch; batches/s \
         counts one per replica and step. Exposed comm is communication, in ms, that no computation \
         hides, without waiting for slower ranks.",
    );
}

/// The sizes shown side by side: all, or the ends and some between.
fn shown(sizes: &[SizePrediction]) -> Vec<&SizePrediction> {
    if sizes.len() <= SIDE_BY_SIDE {
        return sizes.iter().collect();
    }
    let last = sizes.len() - 1;
    (0..SIDE_BY_SIDE).map(|i| &sizes[i * last / (SIDE_BY_SIDE - 1)]).collect()
}

/// The first and the last size.
fn ends(sizes: &[SizePrediction]) -> Vec<&SizePrediction> {
    match sizes {
        [] => Vec::new(),
        [only] => vec![only],
        [first, .., last] => vec![first, last],
    }
}

fn breakdowns(prediction: &Prediction, sheet: &mut Sheet) {
    let sizes = shown(&prediction.sizes);
    let roles: Vec<_> = sizes
        .iter()
        .map(|size| {
            |group: &str| size.collectives.iter().find(|c| c.group == group).map(|c| c.role)
        })
        .collect();
    let columns: Vec<Column<'_>> = sizes
        .iter()
        .zip(&roles)
        .map(|(size, role)| Column {
            heading: counted(size.gpus as usize, "GPU"),
            breakdown: &size.breakdown,
            role,
        })
        .collect();
    sheet.heading("Where the step goes");
    owners(&columns, sheet);
    if sizes.len() < prediction.sizes.len() {
        let all = prediction.sizes.len();
        sheet.paragraph("", &format!("{} of {all} sizes shown; --json holds all.", sizes.len()));
    }
    held_up(&prediction.sizes, sheet);
}

/// Straggler waits below this share of the step are not explained.
const WORTH_EXPLAINING: f64 = 0.02;

/// Who the others waited for and why, at the smallest size that has something to tell.
fn held_up(sizes: &[SizePrediction], sheet: &mut Sheet) {
    let explained = |size: &&SizePrediction| {
        let time: Nanos = size.held_up.iter().map(|h| h.time).sum();
        time.nanos() as f64 > WORTH_EXPLAINING * size.step_time.value.nanos() as f64
    };
    let Some(size) = sizes.iter().find(explained) else { return };
    let total: Nanos = size.held_up.iter().map(|h| h.time).sum();
    let doing = shares(size.held_up.iter().map(|h| (h.owner.describe(), h.time)), total);
    let last = shares(size.held_up.iter().map(|h| (format!("rank {}", h.rank), h.time)), total);
    sheet.paragraph(
        "",
        &format!(
            "At {} the straggler wait was for {last}. What these did meanwhile: {doing}.",
            counted(size.gpus as usize, "GPU"),
        ),
    );
}

/// The largest shares by label, as words.
fn shares(parts: impl Iterator<Item = (String, Nanos)>, total: Nanos) -> String {
    let mut sums: BTreeMap<String, Nanos> = BTreeMap::new();
    for (label, time) in parts {
        *sums.entry(label).or_default() += time;
    }
    let mut sums: Vec<(String, Nanos)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let listed = sums.iter().take(3).filter(|(_, time)| time.nanos() * 50 >= total.nanos());
    let words: Vec<String> = listed
        .map(|(label, time)| {
            let share = time.nanos() as f64 / total.nanos().max(1) as f64;
            format!("{label} {:.0} %", share * 100.0)
        })
        .collect();
    words.join(", ")
}

fn critical_path(size: &SizePrediction, sheet: &mut Sheet) {
    if size.critical_path.is_empty() {
        return;
    }
    sheet.heading(&format!("Critical path of one step, {}", counted(size.gpus as usize, "GPU")));
    let total: Nanos = size.critical_path.iter().map(|part| part.time).sum();
    let mut table = Table::new(&[
        ("ms", Side::Right),
        ("Share", Side::Right),
        ("Nodes", Side::Right),
        ("Kind", Side::Left),
        ("Name", Side::Left),
    ]);
    let mut row = |part: &CriticalPart| {
        table.row(vec![
            ms(part.time),
            percent_of(part.time, total),
            part.count.to_string(),
            part.kind.clone(),
            name(&part.name, 58),
        ]);
    };
    let listed = size.critical_path.len().min(CRITICAL_PARTS);
    size.critical_path[..listed].iter().for_each(&mut row);
    let rest = &size.critical_path[listed..];
    if !rest.is_empty() {
        row(&CriticalPart {
            name: counted(rest.len(), "further name"),
            kind: String::new(),
            time: rest.iter().map(|part| part.time).sum(),
            count: rest.iter().map(|part| part.count).sum(),
        });
    }
    sheet.table(table);
}

fn collectives(size: &SizePrediction, sheet: &mut Sheet) {
    if size.collectives.is_empty() {
        return;
    }
    sheet.heading(&format!("Collectives of one step, {}", counted(size.gpus as usize, "GPU")));
    let mut table = Table::new(&[
        ("Operation", Side::Left),
        ("Group", Side::Left),
        ("Ranks", Side::Right),
        ("Size", Side::Right),
        ("Per step", Side::Right),
        ("Each ms", Side::Right),
        ("80 % interval", Side::Right),
        ("All ms", Side::Right),
    ]);
    for collective in size.collectives.iter().take(COLLECTIVES) {
        table.row(vec![
            collective.kind.to_string(),
            group_name(&collective.group, Some(collective.role)),
            collective.ranks.to_string(),
            super::units::size(collective.bytes),
            collective.count.to_string(),
            ms(collective.each.value),
            ms_interval(&collective.each),
            ms(all(collective)),
        ]);
    }
    sheet.table(table);
    let rest = size.collectives.get(COLLECTIVES..).unwrap_or(&[]);
    if !rest.is_empty() {
        let time: Nanos = rest.iter().map(all).sum();
        let text = format!("and {}, {} in all", counted(rest.len(), "smaller row"), ms_unit(time));
        sheet.paragraph("", &text);
    }
    sheet.paragraph(
        "",
        "Transfer only: waiting for the last rank is the breakdown's straggler wait.",
    );
}

fn all(collective: &ScaledCollective) -> Nanos {
    collective.each.value.scale(collective.count as f64)
}

/// What a reader must know, and what was wrong with the traces.
pub(super) fn warnings(warnings: &[String], ledger: &Ledger, sheet: &mut Sheet) {
    let grave: Vec<String> = ledger
        .findings()
        .filter(|finding| matches!(finding.severity, Severity::Warning | Severity::Dropped))
        .map(|finding| name(&finding.to_string(), 300))
        .collect();
    if warnings.is_empty() && grave.is_empty() {
        return;
    }
    sheet.blank();
    for warning in warnings {
        sheet.warning(&name(warning, 600));
    }
    for finding in grave {
        sheet.warning(&format!("in the trace: {finding}"));
    }
}
