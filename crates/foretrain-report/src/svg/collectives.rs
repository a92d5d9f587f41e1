//! Bus bandwidth against size.

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::CollectiveTime;
use foretrain_predict::collectives::{CollectivesAnswer, Comparison, Setting, Sweep, bus_range};

use super::chart::{Chart, Dot, Panel, Sample, Series};
use crate::text::units::{counted, gb_per_s, name, whole_size, whole_time};

/// The bus bandwidths of an answer as SVG: a panel per operation, a curve with its 80 % interval
/// per number of ranks, a dot per measured row.
pub fn collectives(answer: &CollectivesAnswer) -> String {
    let mut panels: Vec<(String, Vec<Line>)> = Vec::new();
    for sweep in &answer.sweeps {
        line(&mut panels, &sweep.setting).curve = samples(sweep);
    }
    for run in &answer.comparisons {
        add_measured(line(&mut panels, &run.setting), run);
    }
    let panels = panels.into_iter().map(panel).collect();
    let mut marks = vec!["line: predicted", "band: 80 % interval"];
    if !answer.comparisons.is_empty() {
        marks.push("dots: measured");
    }
    Chart {
        title: format!("Bus bandwidth of collectives on {}", name(&answer.cluster, 60)),
        description: description(answer),
        quantity: "Bus bandwidth (GB/s)".into(),
        marks,
        panels,
    }
    .draw()
}

/// An operation's lines in order of ranks.
fn panel((title, mut lines): (String, Vec<Line>)) -> Panel {
    lines.sort_by_key(|line| (line.setting.ranks, line.setting.nodes, line.setting.extra_latency));
    Panel { title, series: lines.into_iter().map(Line::series).collect() }
}

/// The curve of one setting.
struct Line {
    setting: Setting,
    curve: Vec<Sample>,
    dots: Vec<Dot>,
}

impl Line {
    fn series(mut self) -> Series {
        self.curve.sort_by_key(|sample| sample.size);
        self.curve.dedup_by_key(|sample| sample.size);
        Series { label: label(&self.setting), curve: self.curve, dots: self.dots }
    }
}

/// The line of a setting, made if there is none.
fn line<'a>(panels: &'a mut Vec<(String, Vec<Line>)>, setting: &Setting) -> &'a mut Line {
    let title = setting.kind.to_string();
    let panel = panels.iter().position(|(known, _)| *known == title).unwrap_or_else(|| {
        panels.push((title, Vec::new()));
        panels.len() - 1
    });
    let lines = &mut panels[panel].1;
    let at = lines.iter().position(|line| line.setting == *setting).unwrap_or_else(|| {
        lines.push(Line { setting: *setting, curve: Vec::new(), dots: Vec::new() });
        lines.len() - 1
    });
    &mut lines[at]
}

fn samples(sweep: &Sweep) -> Vec<Sample> {
    sweep.points.iter().map(|point| sample(point.size, &point.predicted)).collect()
}

fn sample(size: Bytes, predicted: &CollectiveTime) -> Sample {
    let bus = bus_range(predicted);
    Sample {
        size,
        value: bus.value.gb_per_sec(),
        low: bus.low.gb_per_sec(),
        high: bus.high.gb_per_sec(),
    }
}

/// Measured rows as dots, and what was predicted for them as part of the curve.
fn add_measured(line: &mut Line, run: &Comparison) {
    // A size of zero has no place on a logarithmic axis.
    for row in run.rows.iter().filter(|row| row.size > Bytes::ZERO) {
        line.curve.push(sample(row.size, &row.predicted));
        line.dots.push(Dot {
            size: row.size,
            value: row.measured_bus_bandwidth.gb_per_sec(),
            says: format!(
                "{}: measured {} GB/s, predicted {} GB/s",
                whole_size(row.size),
                gb_per_s(row.measured_bus_bandwidth),
                gb_per_s(row.predicted.bus_bandwidth)
            ),
        });
    }
}

fn label(setting: &Setting) -> String {
    let nodes = counted(setting.nodes as usize, "node");
    let latency = match setting.extra_latency {
        Nanos::ZERO => String::new(),
        latency => format!(", +{}", whole_time(latency)),
    };
    format!("{} on {nodes}{latency}", counted(setting.ranks as usize, "GPU"))
}

/// What a screen reader says: where each curve ends.
fn description(answer: &CollectivesAnswer) -> String {
    let ends = answer.sweeps.iter().map(|sweep| {
        let plateau = gb_per_s(sweep.plateau.bus_bandwidth);
        format!("{} among {} rises to {plateau} GB/s", sweep.setting.kind, label(&sweep.setting))
    });
    let measured = answer.comparisons.iter().map(|run| {
        let rows = counted(run.rows.len(), "measured row");
        format!("{rows} of {} among {}", run.setting.kind, label(&run.setting))
    });
    let said: Vec<String> = ends.chain(measured).collect();
    format!("Bus bandwidth against message size. {}.", said.join("; "))
}
