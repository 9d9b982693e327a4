//! Checks all files of a lake against the journal.

use bytes::Bytes;
use datafusion::parquet::file::reader::FileReader as _;
use datafusion::parquet::file::serialized_reader::SerializedFileReader;
use sha2::{Digest as _, Sha256};

use crate::checksum::hex;
use crate::journal::DataFile;
use crate::tables::SCHEMA_VERSION;
use crate::{Error, Lake};

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The number of files that were read from end to end.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of objects that no commit names: left behind by writers, or being written.
    pub strays: u64,
    /// The problems found.
    pub findings: Vec<LakeFinding>,
}

/// A problem with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeFinding {
    /// The path of the file below the lake.
    pub path: String,
    /// The expected and the found value.
    pub message: String,
}

impl Lake {
    /// Reads every file of the lake and compares it with the journal.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn check(&self) -> Result<Checked, Error> {
        let state = self.state()?;
        let mut checked = Checked::default();
        for file in state.files.values() {
            checked.files += 1;
            match self.block_on(self.place.get(&file.path)) {
                Err(error) => checked.find(file, error.to_string()),
                Ok(None) => checked.find(file, "missing file"),
                Ok(Some(bytes)) => {
                    checked.bytes += bytes.len() as u64;
                    if let Err(message) = check_file(file, bytes) {
                        checked.find(file, message);
                    }
                }
            }
        }
        let unused = self.block_on(self.unused_objects(&state))?;
        checked.strays =
            unused.objects.iter().filter(|object| !state.removed.contains_key(&object.path)).count() as u64;
        Ok(checked)
    }
}

impl Checked {
    fn find(&mut self, file: &DataFile, message: impl Into<String>) {
        self.findings.push(LakeFinding { path: file.path.clone(), message: message.into() });
    }
}

fn check_file(file: &DataFile, bytes: Vec<u8>) -> Result<(), String> {
    if bytes.len() as u64 != file.bytes {
        return Err(format!("invalid size: expected {} bytes, found {}", file.bytes, bytes.len()));
    }
    let sum = hex(&Sha256::digest(&bytes));
    if sum != file.sha256 {
        return Err(format!("invalid contents: expected SHA-256 {}, found {sum}", file.sha256));
    }
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(|error| error.to_string())?;
    let metadata = reader.metadata().file_metadata();
    let facts = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let version: Option<u32> = facts
        .iter()
        .find(|fact| fact.key == "borehole.lake")
        .and_then(|fact| fact.value.as_ref()?.parse().ok());
    match version {
        Some(version) if version <= SCHEMA_VERSION => Ok(()),
        Some(version) => {
            Err(format!("unsupported table version: expected at most {SCHEMA_VERSION}, found {version}"))
        }
        None => Err("missing table version".to_owned()),
    }
}
