//! The header of a safetensors file: what tensors there are and where.
//!
//! The bytes are 8 for the header's length, the header as JSON, and the tensors back to back. The
//! `safetensors` crate checks a header against itself; that it fits the file is checked here, with
//! arithmetic that cannot overflow whatever a header claims.

use std::collections::BTreeMap;

use safetensors::tensor::{Metadata, TensorInfo};

use super::error::WeightsProblem;

/// The bytes before the header, which say how long it is.
pub(super) const LENGTH_BYTES: usize = 8;

/// The longest header that is read; the format allows no longer one.
const LONGEST: u64 = 100_000_000;

/// A safetensors file in memory.
pub(super) struct SafetensorsFile<'a> {
    infos: BTreeMap<String, TensorInfo>,
    data: &'a [u8],
}

impl<'a> SafetensorsFile<'a> {
    /// Reads the header and checks that the file is whole.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, WeightsProblem> {
        let damaged = |found: String| WeightsProblem::Damaged { found };
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(damaged(format!("a file of {} bytes", bytes.len())));
        };
        let length = u64::from_le_bytes(*length);
        if length > LONGEST || length > rest.len() as u64 {
            let found = format!("a header of {length} bytes in a file of {}", bytes.len());
            return Err(damaged(found));
        }
        let (header, data) = rest.split_at(length as usize);
        let metadata: Metadata = serde_json::from_slice(header)
            .map_err(|error| damaged(format!("a header that cannot be read: {error}")))?;
        if metadata.data_len() != data.len() {
            let (found, expected) = (data.len(), metadata.data_len());
            let found = format!("{found} bytes of tensors where the header says {expected}");
            return Err(damaged(found));
        }
        let infos = metadata.tensors();
        let infos = infos.into_iter().map(|(name, info)| (name, info.clone())).collect();
        Ok(Self { infos, data })
    }

    /// The names of all tensors, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.infos.keys().map(String::as_str)
    }

    /// What the header says about a tensor, and its bytes.
    pub(super) fn tensor(&self, name: &str) -> Option<(&TensorInfo, &'a [u8])> {
        let info = self.infos.get(name)?;
        let (begin, end) = info.data_offsets;
        Some((info, self.data.get(begin..end)?))
    }
}
