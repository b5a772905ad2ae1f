//! How a run went, read back from its `metrics.jsonl`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::progress::{StepProgress, ValidationProgress};

/// Every step, every look at held-out points, every stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The encoder's steps.
    pub steps: Vec<StepProgress>,
    /// The encoder on held-out points.
    pub validations: Vec<ValidationProgress>,
    /// Stages after the encoder.
    pub stages: Vec<StageDone>,
}

/// A stage that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageDone {
    /// What it is called.
    pub stage: String,
    /// How long it took.
    pub seconds: f64,
}

impl History {
    /// Reads the lines; one that cannot be read was being written when the process ended, and is left out.
    pub fn parse(lines: &str) -> Self {
        let mut history = Self::default();
        for line in lines.lines() {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            match value["kind"].as_str() {
                Some("step") => history.steps.extend(serde_json::from_value(value).ok()),
                Some("validation") => {
                    history.validations.extend(serde_json::from_value(value).ok());
                }
                Some("stage") => history.stages.extend(serde_json::from_value(value).ok()),
                _ => {}
            }
        }
        history
    }

    /// Seconds that the encoder was trained, without mining and validation.
    pub fn encoder_seconds(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.seconds)
    }

    /// Seconds of mining.
    pub fn mining_seconds(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.mining_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_what_is_cut_off_left_out() {
        let step = StepProgress {
            epoch: 1,
            n_epochs: 2,
            step: 3,
            n_steps: 9,
            loss: 0.5,
            active: 0.25,
            hardness: 0.75,
            cluster_size: 8,
            learning_rate: 1e-3,
            gradient: 2.0,
            tokens_per_second: 100.0,
            step_seconds: 0.5,
            encoder_seconds: 0.25,
            seconds: 1.5,
            mining_seconds: 0.125,
            seconds_left: 3.0,
        };
        let validation = ValidationProgress {
            epoch: 1,
            step: 3,
            precision_1: 0.5,
            precision_5: 0.25,
            recall_100: 0.75,
            is_best: true,
            seconds: 1.5,
        };
        let stage = StageDone { stage: "index".to_owned(), seconds: 2.0 };
        let line = |kind: &str, mut value: Value| {
            value["kind"] = kind.into();
            format!("{value}\n")
        };
        let lines = line("step", serde_json::to_value(&step).unwrap())
            + &line("validation", serde_json::to_value(&validation).unwrap())
            + "something else\n{\"kind\":\"other\"}\n"
            + &line("stage", serde_json::to_value(&stage).unwrap())
            + "{\"kind\":\"step\",\"ste";
        let history = History::parse(&lines);
        assert_eq!(
            history,
            History { steps: vec![step], validations: vec![validation], stages: vec![stage] }
        );
        assert_eq!((history.encoder_seconds(), history.mining_seconds()), (1.5, 0.125));
        assert_eq!(History::parse("").encoder_seconds(), 0.0);
    }
}
