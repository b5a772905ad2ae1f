//! The small JSON files of an encoder's folder, and what is said when one is wrong.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

/// The JSON that a file holds; `None` if there is no such file.
pub(super) fn read_optional(file: &Path) -> Result<Option<Value>> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", file, error)),
    };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let place = Place::line(file, error.line() as u64);
            Err(InputError::new(InputErrorKind::InvalidJson, place)
                .expected("JSON")
                .found(error.to_string())
                .help("the file may have been cut short: copy or download it again")
                .into())
        }
    }
}

/// The JSON object that a file must hold.
pub(super) fn read_object(file: &Path) -> Result<Map<String, Value>> {
    match read_optional(file)? {
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(InputError::new(InputErrorKind::WrongType, Place::file(file))
            .expected("a JSON object")
            .found(other.to_string())
            .help("copy the file that came with the model")
            .into()),
        None => Err(InputError::new(InputErrorKind::MissingFile, Place::file(file))
            .expected("a file of this name in the encoder's folder")
            .found("nothing")
            .help("copy it from where the other files of the model came from")
            .into()),
    }
}

/// A setting that is understood and not done here.
pub(super) fn unsupported(file: &Path, key: &str) -> InputError {
    InputError::new(InputErrorKind::Unsupported, Place::file(file).field(key))
}

/// A setting that is missing or makes no sense.
pub(super) fn wrong(file: &Path, key: &str, found: &Value) -> InputError {
    let (kind, found) = match found {
        Value::Null => (InputErrorKind::MissingField, "nothing".to_owned()),
        other => (InputErrorKind::WrongType, other.to_string()),
    };
    InputError::new(kind, Place::file(file).field(key))
        .found(found)
        .help("copy the file that came with the model")
}
