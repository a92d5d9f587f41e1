//! Curves with bands and dots over sizes, in panels below each other.

use foretrain_core::Bytes;

use super::axis::{Axis, round_ticks};
use super::element::{Document, at};
use crate::text::units::{plain, whole_size};

/// A picture.
pub(super) struct Chart {
    pub(super) title: String,
    /// What a screen reader says beyond the title.
    pub(super) description: String,
    /// The label of the vertical axes, with its unit.
    pub(super) quantity: String,
    /// What lines, bands and dots are.
    pub(super) marks: Vec<&'static str>,
    pub(super) panels: Vec<Panel>,
}

/// One pair of axes.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) series: Vec<Series>,
}

/// One line of the legend.
#[derive(Default)]
pub(super) struct Series {
    pub(super) label: String,
    pub(super) curve: Vec<Sample>,
    pub(super) dots: Vec<Dot>,
}

/// A value with its interval.
pub(super) struct Sample {
    pub(super) size: Bytes,
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A measured value.
pub(super) struct Dot {
    pub(super) size: Bytes,
    pub(super) value: f64,
    /// Shown by the pointer.
    pub(super) says: String,
}

pub(super) const WIDTH: f64 = 880.0;
pub(super) const LEFT: f64 = 76.0;
pub(super) const RIGHT: f64 = 650.0;
pub(super) const LEGEND: f64 = 672.0;
pub(super) const HEAD: f64 = 62.0;
pub(super) const PLOT: f64 = 300.0;
/// From one plot's end to the next one's begin.
pub(super) const BETWEEN: f64 = 92.0;
pub(super) const LINE: f64 = 20.0;
/// A band is cut where it would squash the curves.
const BAND_OVER_CURVE: f64 = 1.5;

/// Hues of like lightness, apart from each other on white and on black.
const COLOURS: [&str; 8] =
    ["#2f7fc8", "#d9730d", "#2c9a5b", "#d6455d", "#8a6ad8", "#12979b", "#c4599f", "#8c8a1e"];
/// Dashes of the curves after all colours have been used once, twice.
const DASHES: [&str; 3] = ["none", "7 4", "2 4"];

// Plain colours, since not every viewer knows variables; those that know nothing of dark
// surroundings show the light picture.
pub(super) const CSS: &str = "
.foretrain text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.foretrain .title { font-size: 17px; font-weight: 600 }
.foretrain .panel { font-size: 14px; font-weight: 600 }
.foretrain .dim { fill: #59636e }
.foretrain .paper { fill: #ffffff }
.foretrain .grid { stroke: #d9dee3 }
.foretrain .axis { stroke: #59636e }
.foretrain .curve { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
.foretrain .dot { stroke: #ffffff }
@media (prefers-color-scheme: dark) {
  .foretrain text { fill: #e6e9ed }
  .foretrain .dim { fill: #9aa4af }
  .foretrain .paper { fill: #14171b }
  .foretrain .grid { stroke: #363c44 }
  .foretrain .axis { stroke: #9aa4af }
  .foretrain .dot { stroke: #14171b }
}
";

impl Chart {
    /// The SVG text.
    pub(super) fn draw(&self) -> String {
        let tops = self.tops();
        let height = tops.last().map_or(HEAD, |(_, bottom)| *bottom);
        let mut document = begin(height, &self.title, &self.description, &self.marks.join(" · "));
        for (panel, (top, _)) in self.panels.iter().zip(&tops) {
            self.panel(panel, *top, &mut document);
        }
        document.finish()
    }

    /// Where each plot begins, and where the next panel may.
    fn tops(&self) -> Vec<(f64, f64)> {
        let mut top = HEAD;
        let place = |panel: &Panel| {
            let begin = top + 30.0;
            let legend = LINE * panel.series.len() as f64 + LINE;
            top = begin + PLOT.max(legend) + BETWEEN - 30.0;
            (begin, top)
        };
        self.panels.iter().map(place).collect()
    }

    fn panel(&self, panel: &Panel, top: f64, document: &mut Document) {
        let bottom = top + PLOT;
        let (x, y, ticks) = panel.axes(top);
        label(document, "panel", (LEFT, top - 12.0), "start", &panel.title);
        for tick in ticks {
            let height = y.pixel(tick);
            rule(document, "grid", (LEFT, height), (RIGHT, height));
            label(document, "dim", (LEFT - 8.0, height + 4.0), "end", &tick_text(tick));
        }
        for octave in x.whole_ticks(12) {
            let across = x.pixel(f64::from(octave));
            rule(document, "axis", (across, bottom), (across, bottom + 4.0));
            let size = Bytes::new(1_u64 << octave.clamp(0, 63));
            label(document, "dim", (across, bottom + 18.0), "middle", &whole_size(size));
        }
        rule(document, "axis", (LEFT, bottom), (RIGHT, bottom));
        label(document, "dim", ((LEFT + RIGHT) / 2.0, bottom + 38.0), "middle", "Message size");
        let turned = format!("rotate(-90 22 {})", at((top + bottom) / 2.0));
        document.text(
            "text",
            &[
                ("class", "dim"),
                ("x", "22"),
                ("y", &at((top + bottom) / 2.0)),
                ("text-anchor", "middle"),
                ("transform", &turned),
            ],
            &self.quantity,
        );
        // Bands of many curves overlap and must not hide each other.
        let opacity = format!("{:.2}", (0.4 / panel.series.len() as f64).clamp(0.04, 0.13));
        let series = || panel.series.iter().enumerate();
        series().for_each(|(index, series)| series.band(index, &opacity, x, y, document));
        series().for_each(|(index, series)| series.line(index, x, y, document));
        series().for_each(|(index, series)| series.dots(index, x, y, document));
        for (index, series) in panel.series.iter().enumerate() {
            series.legend(index, top + 8.0 + LINE * index as f64, document);
        }
    }
}

impl Panel {
    /// Both axes and the ticks of the vertical one.
    fn axes(&self, top: f64) -> (Axis, Axis, Vec<f64>) {
        let curves = || self.series.iter().flat_map(|series| &series.curve);
        let dots = || self.series.iter().flat_map(|series| &series.dots);
        let sizes = curves().map(|s| s.size).chain(dots().map(|d| d.size)).map(octave);
        let (first, last) = sizes.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), size| {
            (low.min(size), high.max(size))
        });
        let (first, last) = if first <= last { (first, last) } else { (0.0, 0.0) };
        let highest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let line = highest(&mut curves().map(|s| s.value).chain(dots().map(|d| d.value)));
        let band = highest(&mut curves().map(|s| s.high));
        let ticks = round_ticks(line.max(band.min(line * BAND_OVER_CURVE)), 6.0);
        let most = ticks.last().copied().unwrap_or(1.0);
        let x = Axis::new((first, last), (LEFT, RIGHT));
        (x, Axis::new((0.0, most), (top + PLOT, top)), ticks)
    }
}

impl Series {
    fn band(&self, index: usize, opacity: &str, x: Axis, y: Axis, document: &mut Document) {
        if self.curve.len() < 2 {
            return;
        }
        let high = self.curve.iter().map(|sample| point(x, y, sample.size, sample.high));
        let low = self.curve.iter().rev().map(|sample| point(x, y, sample.size, sample.low));
        let path = format!("M{}Z", high.chain(low).collect::<Vec<_>>().join("L"));
        document.empty("path", &[("fill", look(index).0), ("fill-opacity", opacity), ("d", &path)]);
    }

    fn line(&self, index: usize, x: Axis, y: Axis, document: &mut Document) {
        let Some(first) = self.curve.first() else { return };
        let (colour, dash) = look(index);
        let mut points: Vec<String> =
            self.curve.iter().map(|sample| point(x, y, sample.size, sample.value)).collect();
        if self.curve.len() == 1 {
            // A line without length, which a round pen draws as a dot.
            points.push(point(x, y, first.size, first.value));
        }
        let path = format!("M{}", points.join("L"));
        document.open(
            "path",
            &[("class", "curve"), ("stroke", colour), ("stroke-dasharray", dash), ("d", &path)],
        );
        document.text("title", &[], &self.label);
        document.close();
    }

    fn dots(&self, index: usize, x: Axis, y: Axis, document: &mut Document) {
        for dot in &self.dots {
            document.open(
                "circle",
                &[
                    ("class", "dot"),
                    ("fill", look(index).0),
                    ("r", "3.6"),
                    ("cx", &at(x.pixel(octave(dot.size)))),
                    ("cy", &at(y.pixel(dot.value))),
                ],
            );
            document.text("title", &[], &dot.says);
            document.close();
        }
    }

    fn legend(&self, index: usize, y: f64, document: &mut Document) {
        let (colour, dash) = look(index);
        let path = format!("M{} {}h22", at(LEGEND), at(y - 4.0));
        document.empty(
            "path",
            &[("class", "curve"), ("stroke", colour), ("stroke-dasharray", dash), ("d", &path)],
        );
        if !self.dots.is_empty() {
            let (x, y) = (at(LEGEND + 11.0), at(y - 4.0));
            document.empty(
                "circle",
                &[("class", "dot"), ("fill", colour), ("r", "3.6"), ("cx", &x), ("cy", &y)],
            );
        }
        label(document, "", (LEGEND + 30.0, y), "start", &self.label);
    }
}

/// The head of a picture.
pub(super) fn begin(height: f64, title: &str, description: &str, marks: &str) -> Document {
    let mut document = Document::default();
    document.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("class", "foretrain"),
            ("role", "img"),
            ("aria-labelledby", "foretrain-title foretrain-description"),
            ("viewBox", &format!("0 0 {WIDTH} {}", at(height))),
            ("width", &at(WIDTH)),
            ("height", &at(height)),
        ],
    );
    document.text("title", &[("id", "foretrain-title")], title);
    document.text("desc", &[("id", "foretrain-description")], description);
    document.text("style", &[], CSS);
    document.empty("rect", &[("class", "paper"), ("width", "100%"), ("height", "100%")]);
    label(&mut document, "title", (LEFT, 28.0), "start", title);
    label(&mut document, "dim", (LEFT, 46.0), "start", marks);
    document
}

/// A point of a path.
fn point(x: Axis, y: Axis, size: Bytes, value: f64) -> String {
    format!("{} {}", at(x.pixel(octave(size))), at(y.pixel(value)))
}

/// Colour and dash of a curve.
pub(super) fn look(index: usize) -> (&'static str, &'static str) {
    (COLOURS[index % COLOURS.len()], DASHES[index / COLOURS.len() % DASHES.len()])
}

fn octave(size: Bytes) -> f64 {
    size.as_f64().max(1.0).log2()
}

pub(super) fn tick_text(tick: f64) -> String {
    if tick.fract() == 0.0 { format!("{tick:.0}") } else { plain(tick) }
}

pub(super) fn label(
    document: &mut Document,
    class: &str,
    (x, y): (f64, f64),
    anchor: &str,
    text: &str,
) {
    let (x, y) = (at(x), at(y));
    document.text("text", &[("class", class), ("x", &x), ("y", &y), ("text-anchor", anchor)], text);
}

pub(super) fn rule(document: &mut Document, class: &str, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(at);
    document.empty("line", &[("class", class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
}
