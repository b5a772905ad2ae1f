//! Weights to a file that `transformers` loads.

use std::collections::HashMap;
use std::io::{self, Write};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::header::LENGTH_BYTES;
use super::names::Family;
use super::read::Extra;
use crate::parameters::Parameters;

/// Writes a safetensors file: the weights under the names of a family, then the extras.
///
/// The same weights give the same bytes.
pub fn write_weights(
    output: &mut impl Write,
    parameters: &Parameters,
    family: Family,
    extras: &[Extra],
) -> io::Result<()> {
    // Wide numbers first, so that every tensor lies at a multiple of the width of its numbers.
    let mut wide: Vec<&Extra> = extras.iter().collect();
    wide.sort_by_key(|extra| std::cmp::Reverse(extra.dtype.bitsize()));
    let (wide, narrow): (Vec<&Extra>, Vec<&Extra>) =
        wide.into_iter().partition(|extra| extra.dtype.bitsize() > Dtype::F32.bitsize());

    let mut infos = Vec::new();
    let mut end = 0;
    let mut add = |name: String, dtype: Dtype, shape: &[usize], n_bytes: usize| {
        let data_offsets = (end, end + n_bytes);
        infos.push((name, TensorInfo { dtype, shape: shape.to_vec(), data_offsets }));
        end += n_bytes;
    };
    for extra in &wide {
        add(extra.name.clone(), extra.dtype, &extra.shape, extra.bytes.len());
    }
    for tensor in parameters.layout().tensors() {
        let n_bytes = tensor.len() * size_of::<f32>();
        add(family.spell(&tensor.name), Dtype::F32, &tensor.shape, n_bytes);
    }
    for extra in &narrow {
        add(extra.name.clone(), extra.dtype, &extra.shape, extra.bytes.len());
    }
    output.write_all(&header(infos)?)?;
    wide.iter().try_for_each(|extra| output.write_all(&extra.bytes))?;
    write_values(output, parameters.values())?;
    narrow.iter().try_for_each(|extra| output.write_all(&extra.bytes))
}

/// The bytes before the tensors.
fn header(infos: Vec<(String, TensorInfo)>) -> io::Result<Vec<u8>> {
    // Loaders of `transformers` refuse a file that does not say which framework wrote it.
    let format = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let metadata = Metadata::new(Some(format), infos).map_err(io::Error::other)?;
    let mut json = serde_json::to_vec(&metadata)?;
    json.resize(json.len().next_multiple_of(LENGTH_BYTES), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok(header)
}

/// Numbers as they stand in a file, a few at a time.
fn write_values(output: &mut impl Write, values: &[f32]) -> io::Result<()> {
    const AT_ONCE: usize = 1 << 16;
    let mut bytes = Vec::with_capacity(AT_ONCE * size_of::<f32>());
    for values in values.chunks(AT_ONCE) {
        bytes.clear();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        output.write_all(&bytes)?;
    }
    Ok(())
}
