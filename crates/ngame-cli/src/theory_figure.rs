//! The bound and what was missed over the radii, drawn.

use std::fmt::Write;

use ngame::theory::{AtRadius, Theory};

use crate::terminal::grouped;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;

/// Left, right, top, bottom.
const MARGINS: [f64; 4] = [70.0, 170.0, 50.0, 50.0];

/// Shares below this are drawn at the bottom: a logarithm has no zero.
const LEAST: f64 = 1e-7;

/// What is drawn: a name, a colour, and how it is read.
type Line = (&'static str, &'static str, fn(&AtRadius) -> f64);

const LINES: [Line; 6] = [
    ("bound c₁ε₁ + c₂ε₂", "#b3261e", |at| at.bound.value),
    ("sharp bound", "#e4572e", |at| at.sharp.value),
    ("ε₁, the encoder", "#e0a045", |at| at.epsilon_1),
    ("ε₂, the clusters", "#8a63d2", |at| at.epsilon_2.value),
    ("hard negatives", "#7a8794", |at| at.hard.value),
    ("missed", "#1b6ca8", |at| at.missed.value),
];

/// The figure as SVG: radii to the right, shares of all pairs upwards by powers of ten.
pub(crate) fn figure(theory: &Theory) -> String {
    let mut radii: Vec<AtRadius> = theory.radii.clone();
    radii.sort_by(|a, b| a.radius.total_cmp(&b.radius));
    let values = radii.iter().flat_map(|at| LINES.iter().map(move |line| line.2(at)));
    let (low, high) = values
        .filter(|value| *value > LEAST)
        .fold((1.0f64, 1.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let powers = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let [left, right, top, bottom] = MARGINS;
    let first = radii.first().map_or(0.0, |at| f64::from(at.radius));
    let last = radii.last().map_or(1.0, |at| f64::from(at.radius));
    let x = |radius: f64| {
        let share = if last > first { (radius - first) / (last - first) } else { 0.5 };
        left + share * (WIDTH - left - right)
    };
    let y = |value: f64| {
        let power = value.max(LEAST).log10().max(powers.0);
        HEIGHT - bottom - (power - powers.0) / (powers.1 - powers.0) * (HEIGHT - top - bottom)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{left}\" y=\"24\" font-size=\"15\" font-weight=\"600\">Missed hard negatives and \
         what the theorem allows</text>\n"
    );
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"41\" fill=\"#555\">{} points, {} labels, {} clusters{}</text>",
        grouped(theory.constants.n_points as u64),
        grouped(theory.constants.n_labels as u64),
        grouped(theory.n_clusters as u64),
        if theory.exact { "" } else { "; bars are 95 % intervals" },
    );
    for power in powers.0 as i32..=powers.1 as i32 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e3e6ea\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">10<tspan dy=\"-4\" \
             font-size=\"9\">{power}</tspan></text>",
            WIDTH - right,
            left - 8.0,
            at + 4.0,
        );
    }
    for at in &radii {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            x(at.radius.into()),
            HEIGHT - bottom + 18.0,
            at.radius,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">radius r</text>",
        (left + WIDTH - right) / 2.0,
        HEIGHT - 10.0,
    );
    for (number, (name, colour, value)) in LINES.iter().enumerate() {
        let points: Vec<String> = radii
            .iter()
            .map(|at| format!("{:.1},{:.1}", x(at.radius.into()), y(value(at))))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" "),
        );
        for point in &points {
            let (x, y) = point.split_once(',').unwrap_or_default();
            let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let (at, from) = (top + 14.0 + 22.0 * number as f64, WIDTH - right + 16.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{from}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\" \
             stroke-width=\"2\"/><text x=\"{}\" y=\"{}\">{name}</text>",
            from + 16.0,
            from + 22.0,
            at + 4.0,
        );
    }
    if !theory.exact {
        for at in &radii {
            for (estimate, colour) in [(at.bound, LINES[0].1), (at.missed, LINES[5].1)] {
                let x = x(at.radius.into());
                let _ = writeln!(
                    svg,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" \
                     stroke=\"{colour}\"/>",
                    y(estimate.low),
                    y(estimate.high),
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}
