//! Charts as SVG: lines over numbers, bars over names. Text and grid take the colours of the page they
//! stand on (`--ink`, `--grid`), and plain ones where there is none.

use std::fmt::Write;

/// Colours that can be told apart, by everyone, on white and on black.
const COLOURS: [&str; 12] = [
    "#3b82c4", "#d9622b", "#2f9e6e", "#b0529c", "#b8901f", "#7a8794", "#c23b3b", "#3aa6a6",
    "#6a5fc1", "#8c6d46", "#7fae3c", "#d06f9c",
];

const WIDTH: f64 = 600.0;

/// Left, right, top, bottom.
const MARGINS: [f64; 4] = [52.0, 20.0, 58.0, 46.0];

/// Room beside the chart for the names of the lines.
const LEGEND: f64 = 150.0;

/// The colour of the line or bar of this number.
pub(crate) fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// How values become heights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear,
    /// Powers of ten; values below the least are drawn at the bottom, as a logarithm has no zero.
    Log {
        least: f64,
    },
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// An interval around some of its points: where, from, to.
    pub(crate) intervals: Vec<(f64, f64, f64)>,
    /// Whether its points are marked.
    pub(crate) marked: bool,
}

/// Lines over numbers.
#[derive(Clone, Debug)]
pub(crate) struct LineChart<'a> {
    pub(crate) title: &'a str,
    pub(crate) subtitle: &'a str,
    pub(crate) x_name: &'a str,
    pub(crate) scale: Scale,
    pub(crate) lines: Vec<Line>,
    /// Where numbers stand below the chart; round ones if there are none.
    pub(crate) x_ticks: Vec<f64>,
}

impl LineChart<'_> {
    /// The chart as an SVG element.
    pub(crate) fn svg(&self) -> String {
        const HEIGHT: f64 = 330.0;
        let [left, narrow, top, bottom] = MARGINS;
        let legend = self.lines.len() > 1;
        let (right, floor) = (WIDTH - if legend { LEGEND } else { narrow }, HEIGHT - bottom);
        let all = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let (x_low, x_high) = range(all().map(|point| point.0)).unwrap_or((0.0, 1.0));
        let shares = Shares::new(self.scale, all().map(|point| point.1));
        let x = |value: f64| match x_high > x_low {
            true => left + (value - x_low) / (x_high - x_low) * (right - left),
            false => (left + right) / 2.0,
        };
        let y = |value: f64| floor - shares.of(value) * (floor - top);
        let mut svg = opening(self.title, self.subtitle, HEIGHT);
        for (value, name) in shares.ticks() {
            rule(&mut svg, left, right, y(value), &name);
        }
        let ticks = match self.x_ticks.is_empty() {
            true => round_ticks(x_low, x_high),
            false => self.x_ticks.clone(),
        };
        for tick in ticks {
            text(&mut svg, x(tick), floor + 18.0, "middle", &short(tick));
        }
        text(&mut svg, (left + right) / 2.0, HEIGHT - 8.0, "middle", self.x_name);
        for (number, line) in self.lines.iter().enumerate() {
            let colour = colour(number);
            let drawn: Vec<String> = line
                .points
                .iter()
                .map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-linejoin=\"round\"/>",
                drawn.join(" "),
            );
            if line.marked {
                for &(at, value) in &line.points {
                    let _ = writeln!(
                        svg,
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {}</title></circle>",
                        x(at),
                        y(value),
                        escaped(&line.name),
                        precise(value),
                    );
                }
            }
            for &(at, low, high) in &line.intervals {
                let x = x(at);
                let _ = writeln!(
                    svg,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
                    y(low),
                    y(high),
                );
            }
            if legend {
                key(&mut svg, right + 16.0, top + 8.0 + 22.0 * number as f64, colour, &line.name);
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Bars over names, side by side where there are several series.
#[derive(Clone, Debug)]
pub(crate) struct BarChart<'a> {
    pub(crate) title: &'a str,
    pub(crate) subtitle: &'a str,
    pub(crate) names: Vec<String>,
    /// A name, and a value for every name below the bars.
    pub(crate) series: Vec<(String, Vec<f64>)>,
}

impl BarChart<'_> {
    /// The chart as an SVG element.
    pub(crate) fn svg(&self) -> String {
        const HEIGHT: f64 = 300.0;
        let [left, narrow, top, bottom] = MARGINS;
        let legend = self.series.len() > 1;
        let (right, floor) = (WIDTH - if legend { LEGEND } else { narrow }, HEIGHT - bottom);
        let values = self.series.iter().flat_map(|(_, values)| values.iter().copied());
        let shares = Shares::new(Scale::Linear, values.chain([0.0]));
        let y = |value: f64| floor - shares.of(value) * (floor - top);
        let mut svg = opening(self.title, self.subtitle, HEIGHT);
        for (value, name) in shares.ticks() {
            rule(&mut svg, left, right, y(value), &name);
        }
        let slot = (right - left) / self.names.len().max(1) as f64;
        let width = (slot * 0.8 / self.series.len().max(1) as f64).min(48.0);
        for (place, name) in self.names.iter().enumerate() {
            let middle = left + slot * (place as f64 + 0.5);
            text(&mut svg, middle, floor + 18.0, "middle", name);
            let begin = middle - width * self.series.len() as f64 / 2.0;
            for (number, (of, values)) in self.series.iter().enumerate() {
                let Some(&value) = values.get(place) else { continue };
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"1.5\" \
                     fill=\"{}\"><title>{}, {}: {}</title></rect>",
                    begin + width * number as f64,
                    y(value),
                    (width - 1.5).max(0.5),
                    (floor - y(value)).max(0.0),
                    colour(number),
                    escaped(of),
                    escaped(name),
                    precise(value),
                );
            }
        }
        if legend {
            for (number, (name, _)) in self.series.iter().enumerate() {
                key(&mut svg, right + 16.0, top + 8.0 + 22.0 * number as f64, colour(number), name);
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// How values become shares of the height, and where numbers stand beside it.
struct Shares {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Shares {
    fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        match scale {
            Scale::Linear => {
                let (low, high) = range(values).unwrap_or((0.0, 1.0));
                // A curve far above nothing is read better close up.
                let low = if low >= 0.0 && low < 0.6 * high { 0.0 } else { low };
                let high = if high > low { high } else { low + 1.0 };
                let step = round_step(low, high);
                Self { scale, low: (low / step).floor() * step, high: (high / step).ceil() * step }
            }
            Scale::Log { least } => {
                let (low, high) =
                    range(values.filter(|&value| value > least)).unwrap_or((0.1, 1.0));
                let low = low.log10().floor();
                Self { scale, low, high: high.log10().ceil().max(low + 1.0) }
            }
        }
    }

    fn of(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log { least } => value.max(least).log10(),
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Values, and how they are written.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                round_ticks(self.low, self.high).into_iter().map(|at| (at, short(at))).collect()
            }
            Scale::Log { .. } => (self.low as i32..=self.high as i32)
                .map(|power| {
                    let raised = format!("10<tspan dy=\"-4\" font-size=\"9\">{power}</tspan>");
                    (10f64.powi(power), raised)
                })
                .collect(),
        }
    }
}

/// The least and the greatest of the finite values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// A step of 1, 2 or 5 times a power of ten that cuts a range into about five.
fn round_step(low: f64, high: f64) -> f64 {
    let rough = ((high - low) / 5.0).max(1e-12);
    let power = 10f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= rough * 0.999);
    times.unwrap_or(10.0) * power
}

fn round_ticks(low: f64, high: f64) -> Vec<f64> {
    let step = round_step(low, high);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// A number on an axis: as few digits as tell it from its neighbours.
fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if size >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        _ if size >= 1e4 => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let written = format!("{value:.3}");
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number that somebody asked for by pointing at it.
fn precise(value: f64) -> String {
    if value.abs() >= 1e-3 || value == 0.0 { trimmed(value) } else { format!("{value:.2e}") }
}

fn opening(title: &str, subtitle: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{0}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"var(--paper, #fff)\"/>\n\
         <text x=\"{left}\" y=\"22\" font-size=\"15\" font-weight=\"600\" fill=\"var(--ink, #1c2126)\">{0}</text>\n\
         <text x=\"{left}\" y=\"41\" fill=\"var(--soft, #5b6570)\">{1}</text>\n",
        escaped(title),
        escaped(subtitle),
        left = MARGINS[0],
    )
}

/// A line across the chart at a value; its name is SVG already.
fn rule(svg: &mut String, left: f64, right: f64, y: f64, name: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"var(--grid, #e3e6ea)\"/>\
         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"var(--soft, #5b6570)\">{name}</text>",
        left - 8.0,
        y + 4.0,
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"var(--soft, #5b6570)\">{}</text>",
        escaped(words),
    );
}

/// The name of a line or of bars, beside its colour.
fn key(svg: &mut String, x: f64, y: f64, colour: &str, name: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"3\"/>\
         <text x=\"{}\" y=\"{}\" fill=\"var(--ink, #1c2126)\">{}</text>",
        x + 14.0,
        x + 20.0,
        y + 4.0,
        escaped(&clipped(name)),
    );
}

/// As much of a name as there is room for: both of its ends, since names of a kind differ in either.
fn clipped(name: &str) -> String {
    const MOST: usize = 18;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= MOST {
        return name.to_owned();
    }
    let (begin, end) = (&letters[..MOST / 2 - 1], &letters[letters.len() - MOST / 2..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

/// Text that may stand in HTML and SVG, between tags and in quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in XML, whatever one writes for it.
            control if control.is_control() && !matches!(control, '\n' | '\t') => {
                safe.push('\u{fffd}')
            }
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(round_ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(round_ticks(0.0, 47.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(round_ticks(3.0, 3.0).len(), 1);
        assert_eq!(short(12_500.0), "12.5k");
        assert_eq!(short(0.600_000_000_1), "0.6");
        assert_eq!(short(2_000_000.0), "2M");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(clipped("short"), "short");
        assert_eq!(clipped("msdocs-seealso-title-bag-0"), "msdocs-s…tle-bag-0");
    }

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(
            escaped("<a b=\"c\" d='e'>&\u{1}"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd}"
        );
        let chart = BarChart {
            title: "</svg><script>",
            subtitle: "",
            names: vec!["<x>".to_owned()],
            series: vec![("\"y\"".to_owned(), vec![f64::NAN, 1.0])],
        };
        let svg = chart.svg();
        assert!(!svg.contains("<script>") && !svg.contains("<x>"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn a_line_stays_inside_the_chart() {
        let line = |points: &[(f64, f64)]| Line {
            name: "line".to_owned(),
            points: points.to_vec(),
            intervals: vec![(1.0, 0.0, 9.0)],
            marked: true,
        };
        let scales = [Scale::Linear, Scale::Log { least: 1e-7 }];
        let all =
            [&[][..], &[(1.0, 0.0)], &[(0.0, 1e-9), (10.0, 3.0)], &[(1.0, -2.0), (2.0, -1.0)]];
        for (scale, points) in
            scales.into_iter().flat_map(|scale| all.map(|points| (scale, points)))
        {
            let lines = vec![line(points)];
            let chart =
                LineChart { title: "t", subtitle: "s", x_name: "x", scale, lines, x_ticks: vec![] };
            let svg = chart.svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let heights = svg.split("cy=\"").skip(1).filter_map(|rest| rest.split('"').next());
            assert!(
                heights.map(|y| y.parse::<f64>().unwrap()).all(|y| (58.0..=284.0).contains(&y))
            );
        }
    }
}
