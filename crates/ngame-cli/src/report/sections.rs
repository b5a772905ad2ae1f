//! The parts of the page. A part that has nothing to tell is empty.

use std::fmt::Write;

use ngame::evaluation::Reached;
use ngame::metrics::GroupMetrics;
use ngame::training::History;

use super::examples::{Example, Examples};
use super::told::Told;
use crate::chart::{BarChart, Line, LineChart, Scale, colour, escaped};
use crate::terminal::{bytes, counted, duration, grouped};

/// The most points of a drawn line.
const DRAWN: usize = 160;

/// All parts about one model or run, in order.
pub(super) const ALL: [fn(&Told) -> String; 8] =
    [tiles, accuracy, curves, costs, groups, methods, examples, decisions];

/// Metrics that people look at first, in percent, and where they are found.
type Headline = (&'static str, fn(&Reached) -> Option<f64>);

const HEADLINES: [Headline; 6] = [
    ("P@1", |reached| at(&reached.metrics.precision, 1)),
    ("P@5", |reached| at(&reached.metrics.precision, 5)),
    ("nDCG@5", |reached| at(&reached.metrics.ndcg, 5)),
    ("PSP@1", |reached| at(reached.metrics.psprecision.as_ref()?, 1)),
    ("PSP@5", |reached| at(reached.metrics.psprecision.as_ref()?, 5)),
    ("R@100", |reached| Some(100.0 * reached.recall_100)),
];

fn at(values: &[f64], k: usize) -> Option<f64> {
    values.get(k - 1).map(|value| 100.0 * value)
}

fn section(title: &str, content: &str) -> String {
    format!("<section>\n<h3>{title}</h3>\n{content}</section>\n")
}

/// A table; cells are HTML already.
fn table(header: &[&str], rows: &[(&str, Vec<String>)]) -> String {
    let mut html = "<table><thead><tr>".to_owned();
    for cell in header {
        let _ = write!(html, "<th scope=\"col\">{cell}</th>");
    }
    html.push_str("</tr></thead><tbody>\n");
    for (class, cells) in rows {
        let _ = write!(
            html,
            "<tr{}>",
            if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
        );
        for cell in cells {
            let _ = match cell.strip_prefix('*') {
                Some(best) => write!(html, "<td class=\"best\">{best}</td>"),
                None => write!(html, "<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
    html
}

/// Models and runs side by side: a table, their curves, their deciles.
pub(super) fn comparison(all: &[Told]) -> String {
    let best = HEADLINES.map(|(_, read)| {
        let values = all.iter().filter_map(|told| read(&told.evaluation()?.fused));
        values.fold(f64::NEG_INFINITY, f64::max)
    });
    let rows = all.iter().map(|told| {
        let mut cells = vec![escaped(&told.name)];
        for ((_, read), best) in HEADLINES.iter().zip(best) {
            let value = told.evaluation().and_then(|evaluation| read(&evaluation.fused));
            cells.push(match value {
                Some(value) if value >= best => format!("*{value:.2}"),
                Some(value) => format!("{value:.2}"),
                None => "–".to_owned(),
            });
        }
        cells.push(duration(told.seconds()));
        cells.push(told.model.as_ref().map_or("–".to_owned(), |model| bytes(model.bytes)));
        ("", cells)
    });
    let header: Vec<&str> = std::iter::once("")
        .chain(HEADLINES.map(|(name, _)| name))
        .chain(["training", "size"])
        .collect();
    let mut html =
        "<p>Test points, fused scores. The best of each column is bold.</p>\n".to_owned();
    html.push_str(&table(&header, &rows.collect::<Vec<_>>()));
    html.push_str("<div class=\"charts\">\n");
    let clock = Clock::of(all.iter().map(|told| &told.history));
    let lines: Vec<Line> = all
        .iter()
        .filter(|told| !told.history.validations.is_empty())
        .map(|told| Line {
            name: told.name.clone(),
            ..validation_line(&told.history, |v| v.precision_5, clock)
        })
        .collect();
    if !lines.is_empty() {
        let chart = LineChart {
            title: "P@5 of the encoder on held-out points",
            subtitle: "by label embedding; each run holds out its own points",
            x_name: clock.axis(),
            scale: Scale::Linear,
            lines,
            x_ticks: Vec::new(),
        };
        html.push_str(&chart.svg());
    }
    let evaluated: Vec<(&Told, &[GroupMetrics])> = all
        .iter()
        .filter_map(|told| Some((told, told.evaluation()?.head_torso_tail.as_slice())))
        .collect();
    if let Some((_, groups)) = evaluated.first() {
        let chart = BarChart {
            title: "Labels found, by how frequent they are",
            subtitle: "share of the true pairs among the first five, %",
            names: groups.iter().map(|group| group.name.clone()).collect(),
            series: evaluated
                .iter()
                .map(|(told, groups)| (told.name.clone(), found(groups)))
                .collect(),
        };
        html.push_str(&chart.svg());
    }
    html.push_str("</div>\n");
    section("Side by side", &html)
}

/// The numbers one asks for first.
fn tiles(told: &Told) -> String {
    let mut tiles: Vec<(String, &str)> = Vec::new();
    if let Some(evaluation) = told.evaluation() {
        for (name, read) in HEADLINES.iter().filter(|(name, _)| *name != "nDCG@5") {
            tiles.extend(read(&evaluation.fused).map(|value| (format!("{value:.2}"), *name)));
        }
    }
    if let Some(data) = told.plan.as_ref().map(|plan| &plan.data) {
        tiles.push((grouped(data.n_train), "training points"));
        tiles.push((grouped(data.n_labels as u64), "labels"));
    }
    tiles.push((duration(told.seconds()), "training"));
    if let Some(model) = &told.model {
        tiles.push((bytes(model.bytes), "model folder"));
    }
    let mut html = "<section class=\"tiles\">\n".to_owned();
    for (value, name) in tiles {
        let _ = writeln!(html, "<div><b>{}</b><span>{name}</span></div>", escaped(&value));
    }
    html.push_str("</section>\n");
    html
}

/// What was reached on test points, with intervals, and what each part would reach alone.
fn accuracy(told: &Told) -> String {
    let Some(evaluation) = told.evaluation() else { return String::new() };
    let parts = [
        ("label embedding alone", &evaluation.embedding),
        ("classifiers alone", &evaluation.classifier),
        ("fused", &evaluation.fused),
    ];
    let rows = parts.iter().map(|(name, reached)| {
        let intervals = reached.intervals.as_ref();
        let interval = |name: &str| {
            let intervals = intervals?;
            let of = |values: &[_], k: usize| values.get(k - 1).copied();
            match name {
                "P@1" => of(&intervals.precision, 1),
                "P@5" => of(&intervals.precision, 5),
                "nDCG@5" => of(&intervals.ndcg, 5),
                "PSP@1" => of(intervals.psprecision.as_ref()?, 1),
                "PSP@5" => of(intervals.psprecision.as_ref()?, 5),
                _ => None,
            }
        };
        let mut cells = vec![(*name).to_owned()];
        for (metric, read) in HEADLINES {
            let value = read(reached).map_or("–".to_owned(), |value| format!("{value:.2}"));
            let around = interval(metric).map(|around| {
                format!("<small>{:.1}–{:.1}</small>", 100.0 * around.low, 100.0 * around.high)
            });
            cells.push(value + &around.unwrap_or_default());
        }
        (if *name == "fused" { "chosen" } else { "" }, cells)
    });
    let header: Vec<&str> = std::iter::once("%").chain(HEADLINES.map(|(name, _)| name)).collect();
    let mut html = format!(
        "<p>{}, {}. The index finds {:.1} % of what exact search would.</p>\n",
        counted(evaluation.n_points as u64, "test point"),
        counted(evaluation.n_labels as u64, "label"),
        100.0 * evaluation.index_recall,
    );
    html.push_str(&table(&header, &rows.collect::<Vec<_>>()));
    section("What it reaches, and what its parts would", &html)
}

/// What time is counted in on an axis: short runs in seconds.
#[derive(Clone, Copy)]
enum Clock {
    Seconds,
    Minutes,
}

impl Clock {
    fn of<'a>(histories: impl IntoIterator<Item = &'a History>) -> Self {
        let longest = histories.into_iter().map(History::encoder_seconds).fold(0.0, f64::max);
        if longest < 180.0 { Self::Seconds } else { Self::Minutes }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Seconds => "seconds of training",
            Self::Minutes => "minutes of training",
        }
    }

    fn read(self, seconds: f64) -> f64 {
        match self {
            Self::Seconds => seconds,
            Self::Minutes => seconds / 60.0,
        }
    }
}

/// A duration, with tenths where seconds alone would say nothing.
fn brief(seconds: f64) -> String {
    if seconds < 9.95 { format!("{seconds:.1} s") } else { duration(seconds) }
}

/// A few of many, the last always among them.
fn thinned<T: Clone>(many: &[T]) -> Vec<T> {
    let stride = many.len().div_ceil(DRAWN).max(1);
    let mut few: Vec<T> = many.iter().rev().step_by(stride).cloned().collect();
    few.reverse();
    few
}

fn validation_line(
    history: &History,
    read: fn(&ngame::progress::ValidationProgress) -> f64,
    clock: Clock,
) -> Line {
    let points: Vec<(f64, f64)> = history
        .validations
        .iter()
        .map(|one| (clock.read(one.seconds), 100.0 * read(one)))
        .collect();
    Line {
        name: String::new(),
        points: thinned(&points),
        intervals: Vec::new(),
        marked: points.len() <= 60,
    }
}

/// The encoder's way: held-out accuracy, loss, how hard its negatives were.
fn curves(told: &Told) -> String {
    let history = &told.history;
    if history.steps.is_empty() {
        return String::new();
    }
    let clock = Clock::of([history]);
    let chart = |title, subtitle, lines: Vec<Line>| {
        let x_name = clock.axis();
        LineChart { title, subtitle, x_name, scale: Scale::Linear, lines, x_ticks: Vec::new() }
            .svg()
    };
    let named = |name: &str, line: Line| Line { name: name.to_owned(), ..line };
    let mut html = "<div class=\"charts\">\n".to_owned();
    if !history.validations.is_empty() {
        html.push_str(&chart(
            "Held-out points",
            "%, by label embedding",
            vec![
                named("P@1", validation_line(history, |one| one.precision_1, clock)),
                named("P@5", validation_line(history, |one| one.precision_5, clock)),
                named("R@100", validation_line(history, |one| one.recall_100, clock)),
            ],
        ));
    }
    // Means of neighbouring steps: single ones jump.
    let chunk = history.steps.len().div_ceil(DRAWN).max(1);
    let line = |name: &str, read: fn(&ngame::progress::StepProgress) -> f64| Line {
        name: name.to_owned(),
        points: history
            .steps
            .chunks(chunk)
            .map(|steps| {
                let mean = steps.iter().map(read).sum::<f64>() / steps.len() as f64;
                (clock.read(steps[steps.len() / 2].seconds), mean)
            })
            .filter(|point| point.1.is_finite())
            .collect(),
        intervals: Vec::new(),
        marked: false,
    };
    html.push_str(&chart(
        "Loss",
        "means of neighbouring steps",
        vec![line("loss", |step| step.loss)],
    ));
    html.push_str(&chart(
        "How hard the negatives are",
        "mean score of those compared, and the share that still pushes",
        vec![line("score", |step| step.hardness), line("share active", |step| step.active)],
    ));
    html.push_str(&chart(
        "Points of a cluster",
        "the curriculum: batches of larger clusters have harder negatives",
        vec![line("cluster size", |step| step.cluster_size as f64)],
    ));
    html.push_str("</div>\n");
    section("Training the encoder", &html)
}

/// Where the time went.
fn costs(told: &Told) -> String {
    let history = &told.history;
    let mut parts: Vec<(&str, f64)> = vec![
        ("encoder: steps", history.encoder_seconds()),
        ("encoder: mining", history.mining_seconds()),
    ];
    parts.extend(history.stages.iter().map(|stage| (stage.stage.as_str(), stage.seconds)));
    parts.retain(|part| part.1 > 0.0);
    let total: f64 = parts.iter().map(|part| part.1).sum();
    if total == 0.0 {
        return String::new();
    }
    let (mut bar, mut keys) = (String::new(), String::new());
    for (number, (name, seconds)) in parts.iter().enumerate() {
        let share = 100.0 * seconds / total;
        let (name, colour) = (escaped(name), colour(number));
        let _ = write!(
            bar,
            "<i style=\"width:{share:.2}%;background:{colour}\" title=\"{name}: {}\"></i>",
            brief(*seconds)
        );
        let _ = writeln!(
            keys,
            "<li><i style=\"background:{colour}\"></i>{name} {} ({share:.1} %)</li>",
            brief(*seconds)
        );
    }
    let mining = match history.encoder_seconds() {
        0.0 => String::new(),
        steps => format!(
            "<p>Mining hard negatives took {:.2} % of the encoder's steps.</p>\n",
            100.0 * history.mining_seconds() / steps
        ),
    };
    let html =
        format!("{mining}<div class=\"parts\">{bar}</div>\n<ul class=\"keys\">\n{keys}</ul>\n");
    section("Where the time went", &html)
}

/// The share of a group's true pairs that is found, in percent.
fn found(groups: &[GroupMetrics]) -> Vec<f64> {
    groups.iter().map(|group| 100.0 * group.recall.last().copied().unwrap_or(0.0)).collect()
}

/// Frequent labels and rare ones.
fn groups(told: &Told) -> String {
    let Some(evaluation) = told.evaluation() else { return String::new() };
    let deciles = &evaluation.deciles;
    let part = |group: &GroupMetrics| 100.0 * group.precision.last().copied().unwrap_or(0.0);
    let names: Vec<String> =
        deciles.iter().map(|group| group.name.replace("decile ", "")).collect();
    let chart = |title, subtitle, values| {
        let series = vec![("share".to_owned(), values)];
        BarChart { title, subtitle, names: names.clone(), series }.svg()
    };
    let mut html = "<p>Labels sorted by their training points and cut into groups of equally many pairs: \
                    decile 1 has a few frequent labels, decile 10 very many rare ones.</p>\n<div class=\"charts\">\n"
        .to_owned();
    html.push_str(&chart(
        "Part of P@5",
        "%; the parts add up to P@5",
        deciles.iter().map(part).collect(),
    ));
    html.push_str(&chart(
        "Found among the first five",
        "% of the group's true pairs",
        found(deciles),
    ));
    html.push_str("</div>\n");
    let rows = evaluation.head_torso_tail.iter().map(|group| {
        let cells = vec![
            escaped(&group.name),
            grouped(group.n_labels),
            grouped(group.n_true_pairs),
            format!("{:.2}", part(group)),
            format!("{:.2}", 100.0 * group.recall.last().copied().unwrap_or(0.0)),
        ];
        ("", cells)
    });
    let header = ["", "labels", "true pairs", "part of P@5, %", "found, %"];
    html.push_str(&table(&header, &rows.collect::<Vec<_>>()));
    section("Frequent labels and rare ones", &html)
}

/// How candidates could be scored, tried on held-out points.
fn methods(told: &Told) -> String {
    let Some(model) = told.model.as_ref().filter(|model| !model.tried.is_empty()) else {
        return String::new();
    };
    let rows = model.tried.iter().map(|tried| {
        let values =
            [tried.precision_1, tried.precision_5, tried.psprecision_1, tried.psprecision_5];
        let mut cells = vec![escaped(&tried.method)];
        cells.extend(values.map(|value| format!("{:.2}", 100.0 * value)));
        cells.push(if tried.chosen { "chosen" } else { "" }.to_owned());
        (if tried.chosen { "chosen" } else { "" }, cells)
    });
    let html = format!(
        "<p>On points held out of every stage. Views: {}.</p>\n{}",
        escaped(&model.views.join(", ")),
        table(&["%", "P@1", "P@5", "PSP@1", "PSP@5", ""], &rows.collect::<Vec<_>>()),
    );
    section("Ways to score a candidate", &html)
}

/// Points with their labels.
fn examples(told: &Told) -> String {
    let Some(Examples { right, wrong }) = &told.examples else { return String::new() };
    let kinds = [("Right at once", right), ("Wrong at first", wrong)];
    let sections =
        kinds.iter().filter(|(_, examples)| !examples.is_empty()).map(|(title, examples)| {
            let shown: String = examples.iter().map(example).collect();
            section(title, &format!("<div class=\"examples\">\n{shown}</div>\n"))
        });
    sections.collect()
}

fn example(example: &Example) -> String {
    const MOST_MISSED: usize = 5;
    let mut html =
        format!("<div class=\"example\"><p>{}</p>\n<ol>\n", escaped(&beginning(&example.text)));
    for found in &example.found {
        let (class, mark) = if found.is_right { (" class=\"right\"", "✓") } else { ("", "✗") };
        let _ = writeln!(
            html,
            "<li{class}><b>{mark}</b><span>{}</span><em>{:.0} %</em></li>",
            escaped(&beginning(&found.text)),
            100.0 * found.probability,
        );
    }
    html.push_str("</ol>\n<ul>\n");
    for text in example.missed.iter().take(MOST_MISSED) {
        let _ = writeln!(
            html,
            "<li class=\"missed\"><b>○</b><span>missed: {}</span></li>",
            escaped(&beginning(text))
        );
    }
    if let Some(n) = example.missed.len().checked_sub(MOST_MISSED).filter(|&n| n > 0) {
        let _ = writeln!(html, "<li class=\"missed\"><b></b><span>and {n} more missed</span></li>");
    }
    html.push_str("</ul></div>\n");
    html
}

/// As much of a text as is read at a glance.
fn beginning(text: &str) -> String {
    const MOST: usize = 140;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// What it was trained on and how; what was left open, and how it was decided.
fn decisions(told: &Told) -> String {
    let Some(plan) = &told.plan else { return String::new() };
    let data = &plan.data;
    let model = told.model.as_ref().map(|model| {
        format!(
            " The model has {} of {} numbers and keeps {}.",
            counted(model.n_labels as u64, "label"),
            model.dim,
            counted(model.n_points as u64, "training point")
        )
    });
    let mut html = format!(
        "<p>Trained on {} ({} held out) with {} and {}, on {}, from <code>{}</code>.{}</p>\n",
        counted(data.n_points as u64, "point"),
        grouped(data.n_held_out as u64),
        counted(data.n_labels as u64, "label"),
        counted(data.n_pairs, "pair"),
        counted(plan.threads as u64, "thread"),
        escaped(&last_part(&plan.config.encoder.start)),
        model.unwrap_or_default(),
    );
    let rows = plan.choices.iter().map(|choice| {
        let start = &plan.config.encoder.start;
        let why = choice.why.replace(start.as_str(), &last_part(start));
        ("", vec![escaped(&choice.setting), escaped(&choice.value), escaped(&why)])
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let _ = write!(
            html,
            "<details><summary>What was left open, and how it was decided</summary>\n{}</details>\n",
            table(&["setting", "value", "why"], &rows)
                .replace("<th scope=\"col\">why", "<th class=\"words\" scope=\"col\">why"),
        );
    }
    section("What was trained on what", &html)
}

/// Where an encoder lies is nobody's business; its name is.
fn last_part(path: &str) -> String {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}
