//! The model card: what people want to know of a model, from the records in its folder.

use std::collections::BTreeMap;

use ngame::model::{Manifest, Model};
use ngame::training::History;
use serde_json::Value;

use crate::types::{LossPoint, ModelCard, TrainingCurve, TriedMethod, ValidationPoint};

/// The most points of a curve: a line on a screen has no room for more.
const CURVE_POINTS: usize = 120;

/// Texts that are offered to try.
const EXAMPLES: usize = 6;

/// Puts together the card of a model.
pub(crate) fn card(name: &str, manifest: &Manifest, model: &Model) -> ModelCard {
    let records = &model.records;
    let fusion = &model.fusion;
    let tried = fusion.tried.iter().map(|one| TriedMethod {
        method: one.method.clone(),
        precision_1: one.precision_1,
        precision_5: one.precision_5,
        psprecision_1: one.psprecision_1,
        psprecision_5: one.psprecision_5,
        chosen: one.chosen,
    });
    ModelCard {
        name: name.to_owned(),
        reloads: 0,
        n_labels: manifest.n_labels,
        n_points: manifest.n_points,
        dim: manifest.dim,
        bytes: manifest.bytes(),
        written_by: manifest.written_by.clone(),
        views: fusion.views.iter().map(|view| view.name().to_owned()).collect(),
        method: fusion.method.name().to_owned(),
        plan: plan(&records.plan),
        metrics: serde_json::from_str(&records.evaluation).ok(),
        tried: tried.collect(),
        training: curve(&History::parse(&records.metrics)),
        examples: examples(model),
    }
}

/// The plan, without the folders it names: where files lie is nobody's business.
fn plan(text: &str) -> BTreeMap<String, Value> {
    let mut plan: BTreeMap<String, Value> = toml::from_str(text).unwrap_or_default();
    let start = plan.get("config").and_then(|config| config["encoder"]["start"].as_str());
    let start = start.unwrap_or_default().to_owned();
    if let Some(short) = last_part(&start).map(str::to_owned) {
        plan.values_mut().for_each(|value| replace(value, &start, &short));
    }
    if let Some(config) = plan.get_mut("config") {
        shorten_paths(config);
    }
    plan
}

/// The last part of what may be a path; none if it has one part only.
fn last_part(text: &str) -> Option<&str> {
    let (_, last) = text.trim_end_matches(['/', '\\']).rsplit_once(['/', '\\'])?;
    Some(last)
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = text.replace(from, to),
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, from, to)),
        Value::Object(values) => values.values_mut().for_each(|value| replace(value, from, to)),
        _ => {}
    }
}

fn shorten_paths(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(last) = last_part(text) {
                *text = last.to_owned();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(shorten_paths),
        Value::Object(values) => values.values_mut().for_each(shorten_paths),
        _ => {}
    }
}

/// How training went: losses as means of neighbouring steps, all validations up to a number that can be
/// drawn.
fn curve(history: &History) -> TrainingCurve {
    let steps: Vec<LossPoint> = history
        .steps
        .iter()
        .filter(|step| step.loss.is_finite())
        .map(|step| LossPoint { step: step.step, loss: step.loss })
        .collect();
    let losses = steps.chunks(steps.len().div_ceil(CURVE_POINTS).max(1)).map(|chunk| LossPoint {
        step: chunk.last().map_or(0, |last| last.step),
        loss: chunk.iter().map(|point| point.loss).sum::<f64>() / chunk.len() as f64,
    });
    let validations = &history.validations;
    let stride = validations.len().div_ceil(CURVE_POINTS).max(1);
    // Counted from the end, so that the last is always there.
    let mut few: Vec<ValidationPoint> = validations
        .iter()
        .rev()
        .step_by(stride)
        .map(|one| ValidationPoint {
            step: one.step,
            precision_1: one.precision_1,
            precision_5: one.precision_5,
        })
        .collect();
    few.reverse();
    TrainingCurve { losses: losses.collect(), validations: few }
}

/// Texts to try: training texts of a length that can be read at a glance, spread over the data; label
/// texts where no training texts are kept.
fn examples(model: &Model) -> Vec<String> {
    let texts = model.points.as_ref().map_or(&model.labels.texts, |points| &points.texts);
    let stride = (texts.len() / EXAMPLES).max(1);
    let mut chosen: Vec<String> = Vec::new();
    for begin in (0..texts.len()).step_by(stride).take(EXAMPLES) {
        let mut near = (begin..texts.len().min(begin + stride)).map(|at| texts.get(at).trim());
        let readable = |text: &&str| (20..=90).contains(&text.chars().count());
        let found = near.clone().find(readable).or_else(|| near.find(|text| !text.is_empty()));
        // The beginning of a text may be kept only; its first line is example enough.
        let line = found.and_then(|text| text.lines().next()).map(str::to_owned);
        chosen.extend(line.filter(|line| !chosen.contains(line)));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_nothing_of_where_files_lie() {
        let text = "threads = 2\n[config.encoder]\nstart = \"/home/me/encoders/MiniLM/\"\ndim = 3\n\
                    [config.other]\nfile = \"C:\\\\secret\\\\x.csv\"\n[[choices]]\nsetting = \"a\"\n\
                    why = \"found in /home/me/encoders/MiniLM/ there\"\n";
        let plan = serde_json::to_value(plan(text)).unwrap();
        assert_eq!(plan["config"]["encoder"]["start"], "MiniLM");
        assert_eq!(plan["config"]["other"]["file"], "x.csv");
        assert_eq!(plan["choices"][0]["why"], "found in MiniLM there");
        assert_eq!(plan["config"]["encoder"]["dim"], 3);
        let text = plan.to_string();
        assert!(!text.contains("home") && !text.contains("secret"), "{text}");
        assert!(super::plan("no = toml = at all").is_empty());
    }

    #[test]
    fn a_curve_has_few_points_and_the_last_of_them() {
        let mut lines = String::from("not JSON\n{\"kind\":\"stage\",\"seconds\":1}\n");
        for step in 1..=1_000 {
            lines += &format!(
                "{{\"kind\":\"step\",\"step\":{step},\"loss\":{},\"epoch\":1,\"n_epochs\":1,\"n_steps\":1000,\
                 \"active\":0,\"hardness\":0,\"cluster_size\":1,\"learning_rate\":0,\"gradient\":0,\
                 \"tokens_per_second\":0,\"step_seconds\":0,\"encoder_seconds\":0,\"seconds\":0,\
                 \"mining_seconds\":0,\"seconds_left\":0}}\n\
                 {{\"kind\":\"validation\",\"step\":{step},\"epoch\":1,\"precision_1\":0.5,\"precision_5\":0.25,\
                 \"recall_100\":0.75,\"is_best\":false,\"seconds\":0}}\n",
                step % 2
            );
        }
        let curve = curve(&History::parse(&lines));
        assert!(curve.losses.len() <= CURVE_POINTS && curve.validations.len() <= CURVE_POINTS);
        assert!(curve.losses.len() > CURVE_POINTS / 2);
        assert_eq!(curve.losses.last().unwrap().step, 1_000);
        assert_eq!(curve.validations.last().unwrap().step, 1_000);
        let whole = &curve.losses[..curve.losses.len() - 1];
        assert!(whole.iter().all(|point| (point.loss - 0.5).abs() < 0.1));
        assert_eq!(super::curve(&History::default()), TrainingCurve::default());
    }
}
