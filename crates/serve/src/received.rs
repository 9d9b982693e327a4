//! Files that others give to the server: uploads, and what it records.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, BodyDataStream};
use borehole_text::bytes;
use futures::StreamExt as _;
use tempfile::TempDir;

use crate::limits::UploadLimits;
use crate::refusal::{Refusal, RefusalKind};

/// The folder of what the server gets while it runs. It goes when the server ends.
pub(crate) struct ReceivedFiles {
    folder: TempDir,
    /// The bytes of all uploads.
    held: AtomicU64,
    numbers: AtomicU64,
}

impl ReceivedFiles {
    pub(crate) fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("borehole-serve-").tempdir()?;
        for name in [UPLOADS, RECORDINGS] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder, held: AtomicU64::new(0), numbers: AtomicU64::new(0) })
    }

    /// Removes all files: connections that still hold the folder must not keep it.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(self.folder.path());
    }

    /// The folders whose files are inputs.
    pub(crate) fn folders(&self) -> [PathBuf; 2] {
        [UPLOADS, RECORDINGS].map(|name| self.folder.path().join(name))
    }

    /// A path for a new recording, and its number.
    pub(crate) fn recording(&self) -> (u64, PathBuf) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        (number, self.folder.path().join(RECORDINGS).join(format!("recording-{number}.rbt")))
    }

    /// Writes an upload to a file, which appears when it is whole, and returns its name.
    pub(crate) async fn upload(&self, name: &str, body: Body) -> Result<String, Refusal> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("{number}-{}", safe(name));
        let folder = self.folder.path().join(UPLOADS);
        // Hidden files are not listed.
        let unfinished = Unfinished(folder.join(format!(".{number}")));
        let written = self.write(&unfinished.0, body.into_data_stream()).await;
        let added = match written {
            Ok(()) => fs::rename(&unfinished.0, folder.join(&name)).map_err(|error| failed(&error)),
            Err(refusal) => Err(refusal),
        };
        added.map(|()| name)
    }

    async fn write(&self, path: &Path, mut body: BodyDataStream) -> Result<(), Refusal> {
        let mut file = File::create_new(path).map_err(|error| failed(&error))?;
        let mut taken = Taken { held: &self.held, bytes: 0 };
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| Refusal::invalid(format!("upload ended early: {error}")))?;
            taken.add(piece.len() as u64)?;
            file.write_all(&piece).map_err(|error| failed(&error))?;
        }
        if taken.bytes == 0 {
            return Err(Refusal::invalid("empty upload: expected the bytes of a profile or heap"));
        }
        taken.keep();
        Ok(())
    }
}

const UPLOADS: &str = "uploads";
const RECORDINGS: &str = "recordings";

/// Bytes of an upload, which count until it fails.
struct Taken<'a> {
    held: &'a AtomicU64,
    bytes: u64,
}

impl Taken<'_> {
    fn add(&mut self, more: u64) -> Result<(), Refusal> {
        let all = self.held.fetch_add(more, Ordering::Relaxed) + more;
        self.bytes += more;
        for (found, most, what) in
            [(self.bytes, UploadLimits::BYTES, "an upload"), (all, UploadLimits::ALL_BYTES, "all uploads")]
        {
            if found > most {
                let message = format!("upload too large: {what} may have {}", bytes(most));
                return Err(Refusal::new(RefusalKind::TooLarge, message)
                    .with_help("put the file into a folder that is served"));
            }
        }
        Ok(())
    }

    fn keep(&mut self) {
        self.bytes = 0;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A file that goes unless it was renamed: the client may leave at any time.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A harmless form of a file's name, whose ending is a hint for people only.
fn safe(name: &str) -> String {
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || "._-".contains(*char);
    let plain: String = name.chars().filter(is_plain).take(UploadLimits::NAME_CHARS).collect();
    if plain.is_empty() { "upload".to_owned() } else { plain }
}

fn failed(error: &io::Error) -> Refusal {
    Refusal::new(RefusalKind::Internal, format!("cannot keep the upload: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_uploads_stay_in_their_folder() {
        assert_eq!(safe("../../etc/passwd"), "....etcpasswd");
        assert_eq!(safe("<script>.rbt"), "script.rbt");
        assert_eq!(
            (safe("/"), safe(&"x".repeat(900)).len()),
            ("upload".to_owned(), UploadLimits::NAME_CHARS)
        );
    }

    #[test]
    fn uploads_count_until_they_fail() {
        let held = AtomicU64::new(0);
        let mut one = Taken { held: &held, bytes: 0 };
        one.add(UploadLimits::BYTES).unwrap();
        assert_eq!(one.add(1).unwrap_err().kind, RefusalKind::TooLarge);
        drop(one);
        assert_eq!(held.load(Ordering::Relaxed), 0);
        for _ in 0..UploadLimits::ALL_BYTES / UploadLimits::BYTES {
            let mut kept = Taken { held: &held, bytes: 0 };
            kept.add(UploadLimits::BYTES).unwrap();
            kept.keep();
        }
        assert!(Taken { held: &held, bytes: 0 }.add(1).is_err());
    }
}
