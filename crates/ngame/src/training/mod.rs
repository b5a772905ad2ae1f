//! From a data set to a model: what was asked becomes a plan, and the plan a run.
//!
//! ```text
//! preset < file < --set < flags ──> TrainConfig ──┐
//! Dataset ──> Corpus (distinct texts, tokens) ────┼──> TrainPlan ──> run ──> model folder
//! the encoder to start from ──────────────────────┘      ^            │
//!                                                    checkpoints <────┘
//! ```
//!
//! - [`TrainConfig`] is what was asked, with every field documented; fields left open are chosen by
//!   [`TrainPlan::new`], which looks at the data and says why.
//! - [`train`] does what a plan says, in a run folder beside the model to be; a run that was stopped
//!   goes on from its last checkpoint and ends with the same bytes.

mod batch_texts;
mod calibration;
mod checkpoint;
mod choices;
mod classifier_stage;
mod config;
mod corpus;
mod cost;
mod encoder_run;
mod encoder_step;
mod history;
mod lexical_stage;
mod lost_labels;
mod machine_speed;
mod metrics_log;
mod model_config;
mod plan;
mod preset;
mod run_folder;
mod stages;
mod start;
mod validation;
mod vectors;

pub use calibration::Estimate;
pub use choices::Choice;
pub use config::{
    BatchingConfig, Embeddings, EncoderConfig, LossConfig, LossKind, Mode, Negatives,
    OptimiserConfig, RateDecay, RunConfig, SamplerKind, Stage, TrainConfig, ValidationConfig,
    ValidationMetric, config_from, parse_setting,
};
pub use corpus::Corpus;
pub use cost::LaterStages;
pub use encoder_run::EncoderSummary;
pub use history::{History, StageDone};
pub use model_config::{
    ClassifierConfig, FusionConfig, IndexChoice, IndexConfig, ObjectiveKind, ViewChoice, ViewSet,
};
pub use plan::{DataFacts, TrainPlan};
pub use preset::Preset;
pub use run_folder::RunFolder;
pub use stages::{Trained, train};
pub use start::start_encoder;
pub use validation::Retrieval;
