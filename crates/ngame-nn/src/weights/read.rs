//! Weights from a file, whatever it calls them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use half::{bf16, f16};
use memmap2::Mmap;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;

use super::error::{WeightsError, WeightsProblem};
use super::header::SafetensorsFile;
use super::names::{Family, older_spelling};
use crate::parameters::{Layout, Parameters};

/// What a file of weights holds.
#[derive(Clone, Debug)]
pub struct Weights {
    /// The weights of the encoder.
    pub parameters: Parameters,
    /// How the file spells their names.
    pub family: Family,
    /// Tensors that the encoder does not use and that belong to the model all the same.
    pub extras: Vec<Extra>,
}

/// A tensor as it stands in a file, to be written back unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Extra {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

/// Reads the weights of an encoder from a `.safetensors` file.
///
/// Names may be BERT's or DistilBERT's, with anything in front (`bert.`, `0.auto_model.`), and
/// numbers F32, F16, BF16 or F64. The pooler's tensors are kept as extras; all others that the
/// layout does not name are passed over.
pub fn read_weights(path: &Path, layout: &Arc<Layout>) -> Result<Weights, WeightsError> {
    let with_path = |problem| WeightsError { path: path.to_owned(), problem };
    let io = |source| with_path(WeightsProblem::Io { action: "read", source });
    let file = File::open(path).map_err(io)?;
    // SAFETY: a map must not change under its reader. It lives only as long as this function, and
    // weights are replaced by renaming, not written in place; a foreign program that cuts the file
    // in this moment ends the process, as it would for any reader of maps.
    let map = unsafe { Mmap::map(&file) }.map_err(io)?;
    read_bytes(&map, layout).map_err(with_path)
}

/// Reads the weights of an encoder from the bytes of a file.
pub(super) fn read_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Weights, WeightsProblem> {
    let file = SafetensorsFile::new(bytes)?;
    let (prefix, family) = spelling(&file, layout)?;
    // All tensors are found and measured before memory is taken, so that a config of absurd sizes
    // can claim no more than a file of that size holds.
    let sources = layout
        .tensors()
        .iter()
        .map(|tensor| {
            let (name, info, bytes) = find(&file, &prefix, family, &tensor.name)?;
            check(&name, info, &tensor.shape)?;
            Ok((name, info.dtype, bytes))
        })
        .collect::<Result<Vec<_>, WeightsProblem>>()?;
    let mut parameters = Parameters::zeros(layout);
    let mut rest = parameters.values_mut();
    for (tensor, (name, dtype, bytes)) in layout.tensors().iter().zip(sources) {
        let (values, behind) = rest.split_at_mut(tensor.len());
        convert(dtype, bytes, values);
        if let Some(position) = values.iter().position(|value| !value.is_finite()) {
            let found = values[position];
            return Err(WeightsProblem::NotFinite { tensor: name, found, position });
        }
        rest = behind;
    }
    Ok(Weights { parameters, family, extras: extras(&file, &prefix) })
}

/// What stands before the names of the encoder's tensors, and how they are spelled.
fn spelling(
    file: &SafetensorsFile<'_>,
    layout: &Layout,
) -> Result<(String, Family), WeightsProblem> {
    // The first tensor is the table of word vectors, which has the same name in all families.
    let Some(first) = layout.tensors().first() else { return Ok((String::new(), Family::Bert)) };
    let prefixes: Vec<String> = file
        .names()
        .filter_map(|name| name.strip_suffix(first.name.as_str()))
        .filter(|prefix| prefix.is_empty() || prefix.ends_with('.'))
        .map(str::to_owned)
        .collect();
    let prefix = match &prefixes[..] {
        [] => return Err(missing(file, first.name.clone())),
        // In alphabetical order the empty one is first.
        [plain, ..] if plain.is_empty() => String::new(),
        [only] => only.clone(),
        _ => return Err(WeightsProblem::SeveralEncoders { prefixes }),
    };
    let layers = format!("{prefix}transformer.layer.");
    let is_distil = file.names().any(|name| name.starts_with(&layers));
    Ok((prefix, if is_distil { Family::DistilBert } else { Family::Bert }))
}

/// A tensor of the layout in the file: its name there, what it is, its bytes.
fn find<'f, 'a>(
    file: &'f SafetensorsFile<'a>,
    prefix: &str,
    family: Family,
    name: &str,
) -> Result<(String, &'f TensorInfo, &'a [u8]), WeightsProblem> {
    let spelled = format!("{prefix}{}", family.spell(name));
    for candidate in [Some(spelled.clone()), older_spelling(&spelled)].into_iter().flatten() {
        if let Some((info, bytes)) = file.tensor(&candidate) {
            return Ok((candidate, info, bytes));
        }
    }
    Err(missing(file, spelled))
}

/// A tensor that is not there, and what is: names that begin alike, or else the first few.
fn missing(file: &SafetensorsFile<'_>, tensor: String) -> WeightsProblem {
    const SHOWN: usize = 3;
    let mut stem = tensor.as_str();
    let alike = loop {
        let alike: Vec<&str> = file.names().filter(|name| name.starts_with(stem)).collect();
        match stem.rfind('.') {
            _ if !alike.is_empty() => break alike,
            Some(dot) => stem = &stem[..dot],
            None => break file.names().collect(),
        }
    };
    let found = match alike.len() {
        0 => "no tensor at all".to_owned(),
        n if n <= SHOWN => alike.join(", "),
        n => format!("{} and {} more", alike[..SHOWN].join(", "), n - SHOWN),
    };
    WeightsProblem::MissingTensor { tensor, found }
}

/// Refuses a tensor of another shape, or of numbers that are not read.
fn check(name: &str, info: &TensorInfo, expected: &[usize]) -> Result<(), WeightsProblem> {
    let tensor = name.to_owned();
    if info.shape != expected {
        let (expected, found) = (expected.to_vec(), info.shape.clone());
        return Err(WeightsProblem::WrongShape { tensor, expected, found });
    }
    match info.dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::F64 => Ok(()),
        other => Err(WeightsProblem::WrongType { tensor, found: format!("{other:?}") }),
    }
}

/// The numbers of a tensor as f32. Its type and length were checked.
fn convert(dtype: Dtype, bytes: &[u8], values: &mut [f32]) {
    fn each<const N: usize>(bytes: &[u8], values: &mut [f32], number: impl Fn([u8; N]) -> f32) {
        let (numbers, _) = bytes.as_chunks::<N>();
        for (value, bytes) in values.iter_mut().zip(numbers) {
            *value = number(*bytes);
        }
    }
    match dtype {
        Dtype::F16 => each(bytes, values, |number| f16::from_le_bytes(number).to_f32()),
        Dtype::BF16 => each(bytes, values, |number| bf16::from_le_bytes(number).to_f32()),
        Dtype::F64 => each(bytes, values, |number| f64::from_le_bytes(number) as f32),
        _ => each(bytes, values, f32::from_le_bytes),
    }
}

/// The pooler's tensors, without what stands before their names.
fn extras(file: &SafetensorsFile<'_>, prefix: &str) -> Vec<Extra> {
    let of = |name: &str| {
        let plain = name.strip_prefix(prefix).filter(|name| name.starts_with("pooler."))?;
        let (info, bytes) = file.tensor(name)?;
        Some(Extra {
            name: plain.to_owned(),
            dtype: info.dtype,
            shape: info.shape.clone(),
            bytes: bytes.to_vec(),
        })
    };
    file.names().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
