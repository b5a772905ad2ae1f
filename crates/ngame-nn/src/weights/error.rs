//! What can be wrong with a file of weights.

use std::io;
use std::path::PathBuf;

/// A file of weights that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct WeightsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: WeightsProblem,
}

/// What is wrong with a file of weights.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsProblem {
    /// The operating system refused.
    #[error("cannot {action} the file: {source}")]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
    /// It is no safetensors file, or not a whole one.
    #[error("not a whole safetensors file: {found}")]
    Damaged {
        /// What was found instead.
        found: String,
    },
    /// A tensor of the encoder is not in the file.
    #[error("the tensor {tensor} is missing; the file has {found}")]
    MissingTensor {
        /// The tensor's name, as the file would spell it.
        tensor: String,
        /// What the file has instead.
        found: String,
    },
    /// A tensor has another shape than the encoder's.
    #[error("the tensor {tensor} has the shape {found:?}, expected {expected:?}")]
    WrongShape {
        /// The tensor's name in the file.
        tensor: String,
        /// The shape that the encoder's config leads to.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// A tensor's numbers are of a type that is not read.
    #[error("the tensor {tensor} is of type {found}, expected F32, F16, BF16 or F64")]
    WrongType {
        /// The tensor's name in the file.
        tensor: String,
        /// The type in the file.
        found: String,
    },
    /// A tensor holds infinity or "not a number".
    #[error("the tensor {tensor} holds {found} at position {position}, expected finite numbers")]
    NotFinite {
        /// The tensor's name in the file.
        tensor: String,
        /// The value.
        found: f32,
        /// Its place among the tensor's values.
        position: usize,
    },
    /// The file holds more than one encoder.
    #[error("the file holds several encoders, under the names {}", prefixes.join(", "))]
    SeveralEncoders {
        /// What stands before the names of their tensors.
        prefixes: Vec<String>,
    },
}

impl WeightsProblem {
    /// The tensor it is about, if it is about one.
    pub fn tensor(&self) -> Option<&str> {
        match self {
            Self::MissingTensor { tensor, .. }
            | Self::WrongShape { tensor, .. }
            | Self::WrongType { tensor, .. }
            | Self::NotFinite { tensor, .. } => Some(tensor),
            _ => None,
        }
    }
}
