//! Charts as SVG for pages and reports: a line with axes and a unit ([`LineChart`]), and a small
//! line without axes ([`sparkline`]).
//!
//! A chart has no inline styles, because the policy of the pages forbids them. The style sheet of
//! the page gives the classes their colours. All texts are escaped.

use askama::Template;

/// Size of a chart, in user units of the SVG. All lengths in this file have this unit.
const SIZE: (i64, i64) = (640, 220);
/// The corners of the area of the line.
const LEFT: i64 = 60;
const RIGHT: i64 = 620;
const TOP: i64 = 26;
const BOTTOM: i64 = 170;
/// Minimum distance between two labels of the horizontal axis.
const LABEL: i64 = 84;
/// Maximum number of characters in a label of the horizontal axis.
const MAX_LABEL: usize = 13;
/// Approximate number of intervals on the vertical axis.
const INTERVALS: f64 = 4.0;
/// Size of a small line.
const SPARK: (i64, i64) = (100, 24);

/// A line chart with axes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineChart<'a> {
    /// What the chart shows, for example `Pass rate`.
    pub name: &'a str,
    /// The unit of the values, for example `%`.
    pub unit: &'a str,
    /// The name of the horizontal axis.
    pub axis: &'a str,
    /// The largest possible value, if there is one.
    pub most: Option<f64>,
    /// The points, from left to right.
    pub points: Vec<ChartPoint>,
}

/// A point of a chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartPoint {
    /// The value: finite and not negative.
    pub value: f64,
    /// The position on the horizontal axis as text. If neighbours have the same label, only the
    /// first shows it.
    pub label: String,
    /// A description of the point.
    pub title: String,
    /// Address of the page about the point.
    pub href: String,
}

#[derive(Template)]
#[template(path = "chart.html")]
struct Drawing<'a> {
    chart: &'a LineChart<'a>,
    ticks: Vec<Tick>,
    labels: Vec<Label>,
    dots: Vec<(i64, i64, &'a ChartPoint)>,
    line: String,
    size: (i64, i64),
    left: i64,
    right: i64,
    bottom: i64,
}

/// A line of the vertical axis.
struct Tick {
    y: i64,
    text: String,
}

/// A label of the horizontal axis.
struct Label {
    x: i64,
    text: String,
}

/// The vertical axis: its ends, and the distance between its lines.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl LineChart<'_> {
    /// Returns the chart as an SVG element. Returns an empty text for fewer than two points.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn svg(&self) -> Result<String, askama::Error> {
        if self.points.len() < 2 {
            return Ok(String::new());
        }
        let scale = Scale::of(self.points.iter().map(|point| point.value), self.most);
        let last = self.points.len() - 1;
        let place = |(at, point): (usize, &ChartPoint)| (x(at, last), scale.y(point.value, TOP, BOTTOM));
        let places: Vec<(i64, i64)> = self.points.iter().enumerate().map(place).collect();
        let dots = places.iter().zip(&self.points).map(|(&(x, y), point)| (x, y, point)).collect();
        let drawing = Drawing {
            chart: self,
            ticks: scale.ticks(),
            labels: labels(&self.points),
            dots,
            line: coordinates(&places),
            size: SIZE,
            left: LEFT,
            right: RIGHT,
            bottom: BOTTOM,
        };
        drawing.render()
    }
}

impl Scale {
    /// Returns a scale for these values, with round numbers at its lines.
    fn of(values: impl Iterator<Item = f64>, most: Option<f64>) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (least, greatest) =
            finite.fold((f64::MAX, 0.0_f64), |(least, greatest), value| (least.min(value), greatest.max(value)));
        let least = least.min(greatest);
        // A constant value is in the middle of the chart.
        let margin = if greatest > least { 0.0 } else { (greatest * 0.05).max(0.5) };
        let (least, greatest) = ((least - margin).max(0.0), greatest + margin);
        let step = round_step((greatest - least) / INTERVALS);
        let high = (greatest / step).ceil() * step;
        Scale { low: (least / step).floor() * step, high: most.map_or(high, |most| high.min(most)), step }
    }

    /// Returns the vertical position of a value between the positions of the two ends.
    fn y(self, value: f64, top: i64, bottom: i64) -> i64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        bottom - ((bottom - top) as f64 * share).round() as i64
    }

    fn ticks(self) -> Vec<Tick> {
        let decimals = if self.step >= 1.0 { 0 } else { (-self.step.log10()).ceil().min(6.0) as usize };
        let values = (0..=8).map(|at| self.low + f64::from(at) * self.step);
        let shown = values.take_while(|value| *value <= self.high + self.step * 0.01);
        shown.map(|value| Tick { y: self.y(value, TOP, BOTTOM), text: format!("{value:.decimals$}") }).collect()
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-6).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// Returns the horizontal position of the point at index `at`. `last` is at least 1.
fn x(at: usize, last: usize) -> i64 {
    LEFT + ((RIGHT - LEFT) as f64 * at as f64 / last as f64).round() as i64
}

/// Returns the labels of the horizontal axis that fit. The label of the first point always fits.
fn labels(points: &[ChartPoint]) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let x = x(at, points.len().saturating_sub(1).max(1));
        let is_new = at.checked_sub(1).and_then(|before| points.get(before)).is_none_or(|one| one.label != point.label);
        if is_new && labels.last().is_none_or(|last| x - last.x >= LABEL) {
            labels.push(Label { x, text: shortened(&point.label) });
        }
    }
    labels
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= MAX_LABEL {
        return label.to_owned();
    }
    label.chars().take(MAX_LABEL - 1).chain(['…']).collect()
}

fn coordinates(places: &[(i64, i64)]) -> String {
    places.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
}

#[derive(Template)]
#[template(path = "spark.html")]
struct Spark<'a> {
    name: &'a str,
    line: String,
    end: (i64, i64),
    size: (i64, i64),
}

/// Returns values as a small line without axes. `name` describes the line, for readers who do not
/// see it. Returns an empty text for fewer than two values.
///
/// # Errors
/// The text cannot be written.
pub fn sparkline(values: &[f64], name: &str) -> Result<String, askama::Error> {
    let last = values.len().saturating_sub(1);
    if last == 0 {
        return Ok(String::new());
    }
    let scale = Scale::of(values.iter().copied(), None);
    let (width, height) = SPARK;
    let x = |at: usize| 3 + ((width - 6) as f64 * at as f64 / last as f64).round() as i64;
    let places: Vec<(i64, i64)> =
        values.iter().enumerate().map(|(at, value)| (x(at), scale.y(*value, 3, height - 3))).collect();
    let end = places.last().copied().unwrap_or_default();
    Spark { name, line: coordinates(&places), end, size: SPARK }.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn the_lines_of_a_scale_are_round_numbers() {
        for (values, most, lines) in [
            (&[91.0, 97.5][..], Some(100.0), &["90", "92", "94", "96", "98"][..]),
            (&[100.0, 100.0][..], Some(100.0), &["95", "100"][..]),
            (&[0.0, 0.0][..], None, &["0.0", "0.2", "0.4", "0.6"][..]),
            (&[0.0, 1000.0][..], None, &["0", "500", "1000"][..]),
            (&[f64::NAN, 3.0, 4.0][..], None, &["3.0", "3.5", "4.0"][..]),
        ] {
            let scale = Scale::of(values.iter().copied(), most);
            assert_eq!(texts(scale), lines, "{values:?}");
            assert!(scale.high > scale.low, "{values:?}");
        }
    }

    #[test]
    fn a_chart_has_axes_a_unit_and_a_label_for_each_version() {
        let point = |value, label: &str| ChartPoint {
            value,
            label: label.into(),
            title: format!("{label} <b>"),
            href: "/runs/x".into(),
        };
        let points = vec![point(50.0, "1.0"), point(50.0, "1.0"), point(100.0, "<1.1>")];
        let chart = LineChart { name: "Pass rate", unit: "%", axis: "firmware", most: Some(100.0), points };
        let svg = chart.svg().unwrap();
        assert!(svg.contains("points=\"60,146 340,146 620,26\""), "{svg}");
        assert!(svg.contains(">Pass rate, %</text>") && svg.contains(">firmware</text>"), "{svg}");
        assert_eq!(svg.matches(">1.0</text>").count(), 1, "{svg}");
        assert!(svg.contains("&#60;1.1&#62;</text>") && !svg.contains("<b>") && !svg.contains("style="), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert_eq!(LineChart { points: chart.points[..1].to_vec(), ..chart }.svg().unwrap(), "");
    }

    #[test]
    fn a_small_line_needs_two_values() {
        assert_eq!(sparkline(&[1.0], "x").unwrap(), "");
        let svg = sparkline(&[0.0, 100.0], "from 0 % to 100 %").unwrap();
        assert!(svg.contains("points=\"3,21 97,3\"") && svg.contains("aria-label=\"from 0 % to 100 %\""), "{svg}");
    }
}
