//! An encoder of texts: a tokenizer, an architecture and its weights, in a folder.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ngame_nn::{
    Bag, BagConfig, Encoder, Extra, Family, Parameters, Precision, Transformer, TransformerConfig,
    WeightsError, WeightsProblem, read_weights,
};
use serde_json::{Map, Value};

use super::config::{Architecture, read_config};
use super::embed::Embedder;
use super::json_file::unsupported;
use super::sentence_files::SentenceFiles;
use crate::error::{InputError, InputErrorKind, Place};
use crate::tokens::Tokenizer;
use crate::{Error, Result};

/// The longest text where nothing says otherwise, in tokens.
const USUAL_MAX_TOKENS: usize = 512;

/// Files that are kept as they are from loading to saving.
const CARRIED: [&str; 4] = [
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "config_sentence_transformers.json",
];

/// A tokenizer and an encoder with its weights: texts in, unit vectors out.
pub struct TextEncoder {
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) architecture: Architecture,
    pub(super) encoder: Box<dyn Encoder>,
    pub(super) parameters: Parameters,
    pub(super) max_tokens: usize,
    /// What the folder it came from has beyond that, to be saved again.
    pub(super) origin: Origin,
}

/// What a folder holds that the encoder has no use for and that belongs to it all the same.
#[derive(Default)]
pub(super) struct Origin {
    /// All of `config.json`.
    pub(super) config: Map<String, Value>,
    /// The pooler's weights.
    pub(super) extras: Vec<Extra>,
    /// Files by name.
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
}

impl TextEncoder {
    /// Loads the folder of a BERT or DistilBERT model, as `transformers` or `sentence-transformers`
    /// saved it, or of a bag of token vectors.
    ///
    /// It needs `config.json`, `model.safetensors` and a tokenizer. How tokens are pooled and how
    /// long texts may be is read from the files of `sentence-transformers`; without them it is the
    /// mean, and 512 tokens or as many as the model has positions for.
    pub fn load(folder: &Path) -> Result<Self> {
        if !folder.is_dir() {
            return Err(InputError::new(InputErrorKind::MissingFile, Place::file(folder))
                .expected("a folder with config.json, model.safetensors and tokenizer.json")
                .found(if folder.exists() { "a file" } else { "nothing" })
                .help("check the path, or download the model's files into such a folder")
                .into());
        }
        let sentence = SentenceFiles::read(folder)?;
        let inner = &sentence.transformer;
        let config_file = inner.join("config.json");
        let (architecture, config) = read_config(&config_file, sentence.pooling)?;
        let tokenizer = Tokenizer::load(inner)?;
        let encoder = architecture.build();
        check_vocabulary(&tokenizer, &*encoder, &config_file)?;
        if sentence.lowercase && !tokenizer.lowercases() {
            let file = inner.join("sentence_bert_config.json");
            return Err(unsupported(&file, "do_lower_case")
                .expected("a tokenizer that lowercases by itself")
                .found("one that does not")
                .help("lowercase your texts, and write false as `do_lower_case`")
                .into());
        }
        let weights = read_model(inner, &*encoder)?;
        let max_tokens = match &architecture {
            Architecture::Transformer(..) => sentence.max_tokens,
            Architecture::Bag(_) => {
                config.get("max_tokens").and_then(Value::as_u64).map(|n| n as usize)
            }
        };
        let max_tokens = max_tokens.unwrap_or(USUAL_MAX_TOKENS).min(encoder.max_tokens());
        let origin = Origin { config, extras: weights.extras, files: read_carried(folder, inner)? };
        let parameters = weights.parameters;
        Self {
            tokenizer: Arc::new(tokenizer),
            architecture,
            encoder,
            parameters,
            max_tokens,
            origin,
        }
        .with_max_tokens(max_tokens)
    }

    /// A transformer with fresh random weights, for texts of at most `max_tokens` tokens.
    pub fn new_transformer(
        config: TransformerConfig,
        tokenizer: Tokenizer,
        max_tokens: usize,
        seed: u64,
    ) -> Result<Self> {
        check_config(config.problem())?;
        let family = if config.n_token_types > 0 { Family::Bert } else { Family::DistilBert };
        let parameters = Transformer::new(config.clone()).initial_weights(seed);
        Self::new(Architecture::Transformer(family, config), tokenizer, parameters, max_tokens)
    }

    /// A bag of token vectors with fresh random weights, for texts of at most `max_tokens` tokens.
    /// `token_weights` says for every token id how much it counts at first, such as its inverse
    /// document frequency.
    pub fn new_bag(
        config: BagConfig,
        tokenizer: Tokenizer,
        token_weights: &[f32],
        max_tokens: usize,
        seed: u64,
    ) -> Result<Self> {
        check_config(config.problem())?;
        let usable = token_weights.iter().all(|weight| *weight > 0.0 && weight.is_finite());
        if !usable || token_weights.len() != config.vocabulary_size {
            return Err(Error::Option {
                option: "token weights",
                expected: format!("{} positive numbers", config.vocabulary_size),
                found: format!("{} numbers, positive: {usable}", token_weights.len()),
            });
        }
        let parameters = Bag::new(config.clone()).initial_weights(seed, token_weights);
        Self::new(Architecture::Bag(config), tokenizer, parameters, max_tokens)
    }

    fn new(
        architecture: Architecture,
        tokenizer: Tokenizer,
        parameters: Parameters,
        max_tokens: usize,
    ) -> Result<Self> {
        let encoder = architecture.build();
        check_vocabulary(&tokenizer, &*encoder, Path::new("the encoder's settings"))?;
        let origin = Origin::default();
        Self {
            tokenizer: Arc::new(tokenizer),
            architecture,
            encoder,
            parameters,
            max_tokens,
            origin,
        }
        .with_max_tokens(max_tokens)
    }

    /// The same encoder for texts of at most `max_tokens` tokens, special tokens included.
    pub fn with_max_tokens(mut self, max_tokens: usize) -> Result<Self> {
        self.tokenizer.check_max_tokens(max_tokens)?;
        if max_tokens > self.encoder.max_tokens() {
            return Err(Error::Option {
                option: "max_tokens",
                expected: format!("at most {}, as the encoder takes", self.encoder.max_tokens()),
                found: max_tokens.to_string(),
            });
        }
        self.max_tokens = max_tokens;
        Ok(self)
    }

    /// What cuts texts into tokens.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The architecture.
    pub fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// The weights.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The architecture, and its weights to be trained.
    pub fn parts_mut(&mut self) -> (&dyn Encoder, &mut Parameters) {
        (&*self.encoder, &mut self.parameters)
    }

    /// The length of a vector.
    pub fn dim(&self) -> usize {
        self.encoder.dim()
    }

    /// The longest text, in tokens; longer ones are cut.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The encoder with its weights packed for answering.
    pub fn embedder(&self, precision: Precision) -> Embedder {
        let frozen = self.encoder.freeze(&self.parameters, precision);
        let vocabulary_size = self.encoder.vocabulary_size();
        Embedder::new(Arc::clone(&self.tokenizer), frozen, self.max_tokens, vocabulary_size)
    }
}

impl fmt::Debug for TextEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextEncoder")
            .field("architecture", &self.architecture)
            .field("max_tokens", &self.max_tokens)
            .field("tokenizer", &self.tokenizer)
            .finish_non_exhaustive()
    }
}

impl Architecture {
    /// The encoder, without weights.
    pub(super) fn build(&self) -> Box<dyn Encoder> {
        match self {
            Self::Transformer(_, config) => Box::new(Transformer::new(config.clone())),
            Self::Bag(config) => Box::new(Bag::new(config.clone())),
        }
    }

    /// How its weights are named in a file.
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Transformer(family, _) => *family,
            Self::Bag(_) => Family::Bert,
        }
    }
}

/// Numbers that make no encoder together are a mistake of whoever chose them.
fn check_config(problem: Option<String>) -> Result<()> {
    match problem {
        None => Ok(()),
        Some(found) => Err(Error::Option {
            option: "encoder",
            expected: "numbers that make an encoder".to_owned(),
            found,
        }),
    }
}

/// Every id that the tokenizer gives must have a vector in the model.
fn check_vocabulary(tokenizer: &Tokenizer, encoder: &dyn Encoder, config: &Path) -> Result<()> {
    let (ids, rows) = (tokenizer.vocabulary_size(), encoder.vocabulary_size());
    if ids <= rows {
        return Ok(());
    }
    Err(InputError::new(InputErrorKind::CountMismatch, Place::file(config).field("vocab_size"))
        .expected(format!("at least {ids}, as the tokenizer has ids up to {}", ids - 1))
        .found(rows.to_string())
        .help("put the tokenizer that came with the model into its folder")
        .into())
}

/// The weights in a model's folder.
fn read_model(folder: &Path, encoder: &dyn Encoder) -> Result<ngame_nn::Weights> {
    let file = folder.join("model.safetensors");
    if !file.exists() {
        let is_there = |name: &str| folder.join(name).exists();
        let save_again = |options: &str| {
            let folder = folder.display();
            format!(
                "save it again in Python: from transformers import AutoModel; \
                 AutoModel.from_pretrained(\"{folder}\").save_pretrained(\"{folder}\"{options})"
            )
        };
        let (found, help) = if is_there("model.safetensors.index.json") {
            ("weights in several files", save_again(", max_shard_size=\"100GB\""))
        } else if is_there("pytorch_model.bin") {
            ("only pytorch_model.bin, which can run code when it is loaded", save_again(""))
        } else {
            ("nothing", "copy it from where the other files of the model came from".to_owned())
        };
        return Err(InputError::new(InputErrorKind::MissingFile, Place::file(file))
            .expected("the weights in one file of this name")
            .found(found)
            .help(help)
            .into());
    }
    read_weights(&file, encoder.layout()).map_err(|error| weights_error(error, encoder))
}

/// What a problem with a file of weights means to the user.
fn weights_error(error: WeightsError, encoder: &dyn Encoder) -> Error {
    let WeightsError { path, problem } = error;
    let place = match problem.tensor() {
        Some(tensor) => Place::file(&path).field(tensor),
        None => Place::file(&path),
    };
    let again = "download the file again, and see that config.json came with it";
    let (kind, expected, found, help) = match problem {
        WeightsProblem::Io { action, source } => return Error::io(action, path, source),
        WeightsProblem::Damaged { found } => {
            (InputErrorKind::DamagedFile, "a whole safetensors file".to_owned(), found, again)
        }
        WeightsProblem::MissingTensor { found, .. } => {
            let n_tensors = encoder.layout().tensors().len();
            let expected = format!("this tensor, one of {n_tensors} that config.json asks for");
            (InputErrorKind::MissingField, expected, found, again)
        }
        WeightsProblem::WrongShape { expected, found, .. } => (
            InputErrorKind::CountMismatch,
            format!("the shape {expected:?}, which follows from config.json"),
            format!("the shape {found:?}"),
            again,
        ),
        WeightsProblem::WrongType { found, .. } => (
            InputErrorKind::Unsupported,
            "numbers of type F32, F16, BF16 or F64".to_owned(),
            found,
            "use the model's weights as they were before they were quantised",
        ),
        WeightsProblem::NotFinite { found, position, .. } => (
            InputErrorKind::DamagedFile,
            "finite numbers".to_owned(),
            format!("{found} at position {position}"),
            "use weights from before the training went astray",
        ),
        other => (
            InputErrorKind::Unsupported,
            "the weights of one encoder".to_owned(),
            other.to_string(),
            "save the encoder you want into a file of its own",
        ),
    };
    InputError::new(kind, place).expected(expected).found(found).help(help).into()
}

/// The files that are kept as they are. Those about the tokenizer lie with it, the others at the
/// top.
fn read_carried(folder: &Path, inner: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut files = Vec::new();
    for name in CARRIED {
        for path in [inner.join(name), folder.join(name)] {
            match std::fs::read(&path) {
                Ok(bytes) => {
                    files.push((name, bytes));
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read", path, error)),
            }
        }
    }
    Ok(files)
}
