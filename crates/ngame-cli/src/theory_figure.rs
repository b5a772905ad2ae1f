//! The bound and what was missed over the radii, drawn.

use ngame::theory::{AtRadius, Estimate, Theory};

use crate::chart::{Line, LineChart, Scale};
use crate::terminal::grouped;

/// Shares below this are drawn at the bottom.
const LEAST: f64 = 1e-7;

/// What is drawn: a name, how it is read, and how its interval is.
type Drawn = (&'static str, fn(&AtRadius) -> f64, Option<fn(&AtRadius) -> Estimate>);

const LINES: [Drawn; 6] = [
    ("missed", |at| at.missed.value, Some(|at| at.missed)),
    ("bound c₁ε₁ + c₂ε₂", |at| at.bound.value, Some(|at| at.bound)),
    ("sharp bound", |at| at.sharp.value, None),
    ("ε₁, the encoder", |at| at.epsilon_1, None),
    ("ε₂, the clusters", |at| at.epsilon_2.value, None),
    ("hard negatives", |at| at.hard.value, None),
];

/// The figure as SVG: radii to the right, shares of all pairs upwards by powers of ten.
pub(crate) fn figure(theory: &Theory) -> String {
    let mut radii: Vec<AtRadius> = theory.radii.clone();
    radii.sort_by(|a, b| a.radius.total_cmp(&b.radius));
    let subtitle = format!(
        "{} points, {} labels, {} clusters{}",
        grouped(theory.constants.n_points as u64),
        grouped(theory.constants.n_labels as u64),
        grouped(theory.n_clusters as u64),
        if theory.exact { "" } else { "; bars are 95 % intervals" },
    );
    let lines = LINES.iter().map(|&(name, value, interval)| Line {
        name: name.to_owned(),
        points: radii.iter().map(|at| (at.radius.into(), value(at))).collect(),
        intervals: match interval.filter(|_| !theory.exact) {
            None => Vec::new(),
            Some(interval) => {
                let of = |at: &AtRadius| (at.radius.into(), interval(at).low, interval(at).high);
                radii.iter().map(of).collect()
            }
        },
        marked: true,
    });
    let chart = LineChart {
        title: "Missed hard negatives and what the theorem allows",
        subtitle: &subtitle,
        x_name: "radius r",
        scale: Scale::Log { least: LEAST },
        lines: lines.collect(),
        x_ticks: radii.iter().map(|at| at.radius.into()).collect(),
    };
    chart.svg()
}
