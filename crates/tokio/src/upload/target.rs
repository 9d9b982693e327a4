//! Copies files to where they shall be.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{self, Path};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use borehole_recorder::trc::dial9::metadata;
use borehole_recorder::trc::{Reader, Value};
use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::queue::{UploadQueue, WaitingFile};

/// A place for files.
pub(crate) enum Target {
    /// A folder, or storage behind a URL.
    Storage { store: Arc<dyn ObjectStore>, prefix: object_store::path::Path },
    /// A lake, which a program of Borehole fills.
    Lake { program: OsString, lake: OsString },
}

/// The largest piece of a file that is in memory. S3 wants at least 5 MiB for all but the last.
const PIECE_BYTES: usize = 8 << 20;

/// A file is tried so many times.
const ATTEMPTS: usize = 3;

impl Target {
    pub(crate) fn storage(
        address: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> io::Result<Self> {
        let url = if address.contains("://") { parsed(address)? } else { of_folder(address)? };
        let opened = object_store::parse_url_opts(&url, options);
        let (store, prefix) = opened.map_err(|error| invalid(address, error))?;
        Ok(Self::Storage { store: Arc::from(store), prefix })
    }

    /// Copies files until the recording has ended.
    pub(crate) fn copy_all(&self, queue: &UploadQueue) {
        let runtime = Builder::new_current_thread().enable_all().build();
        while let Some(file) = queue.next() {
            let begun = Instant::now();
            let is_copied = runtime.as_ref().is_ok_and(|runtime| self.try_copy(runtime, &file, queue));
            queue.done(&file, is_copied);
            if matches!(self, Self::Lake { .. }) {
                queue.pace(file.bytes, begun);
            }
        }
    }

    fn try_copy(&self, runtime: &Runtime, file: &WaitingFile, queue: &UploadQueue) -> bool {
        (0..ATTEMPTS).any(|_| self.copy(runtime, file, queue).is_ok())
    }

    fn copy(&self, runtime: &Runtime, file: &WaitingFile, queue: &UploadQueue) -> io::Result<()> {
        match self {
            Self::Storage { store, prefix } => {
                let place = prefix.parts().chain(place_of(&file.path)?.parts()).collect();
                runtime.block_on(put(store.as_ref(), &place, &file.path, queue))
            }
            Self::Lake { program, lake } => {
                let mut add = Command::new(program);
                add.args(["add", "--"]).arg(lake).arg(&file.path);
                let status = add.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
                if status.success() { Ok(()) } else { Err(io::Error::other("borehole-lake has failed")) }
            }
        }
    }
}

/// Puts a file into storage, piece by piece, at the speed of the budget.
async fn put(
    store: &dyn ObjectStore,
    place: &object_store::path::Path,
    path: &Path,
    queue: &UploadQueue,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut begun = Instant::now();
    let mut piece = next_piece(&mut file)?;
    if piece.len() < PIECE_BYTES {
        let bytes = piece.len() as u64;
        store.put(place, PutPayload::from(piece)).await?;
        queue.pace(bytes, begun);
        return Ok(());
    }
    let mut upload = store.put_multipart(place).await?;
    while !piece.is_empty() {
        let bytes = piece.len() as u64;
        if let Err(error) = upload.put_part(PutPayload::from(piece)).await {
            // Otherwise the pieces stay in the storage, where nobody sees them.
            let _ = upload.abort().await;
            return Err(error.into());
        }
        queue.pace(bytes, begun);
        begun = Instant::now();
        piece = next_piece(&mut file)?;
    }
    upload.complete().await?;
    Ok(())
}

fn next_piece(file: &mut File) -> io::Result<Bytes> {
    let mut piece = Vec::new();
    file.take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
    Ok(Bytes::from(piece))
}

/// The place of a file below the prefix: `service=…/host=…/boot=…/MILLISECONDS-NAME`. Names of files are repeated by processes with
/// the same number, as in containers, so the time at which the file began stands before it.
fn place_of(path: &Path) -> io::Result<object_store::path::Path> {
    let facts = FileFacts::read(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parts = [
        format!("service={}", facts.service.as_deref().unwrap_or("unnamed")),
        format!("host={}", facts.host.as_deref().unwrap_or("unnamed")),
        format!("boot={}", facts.boot.as_deref().unwrap_or("unknown")),
        format!("{}-{name}", facts.begun_ms),
    ];
    Ok(parts.into_iter().collect())
}

/// The facts at the beginning of a file.
#[derive(Debug, Default)]
struct FileFacts {
    service: Option<String>,
    host: Option<String>,
    boot: Option<String>,
    begun_ms: u64,
}

impl FileFacts {
    fn read(path: &Path) -> io::Result<Self> {
        let mut facts = Self::default();
        let mut reader = Reader::new(File::open(path)?);
        while let Some(event) = reader.next_event().map_err(|error| io::Error::other(error.to_string()))? {
            if let Some(time_ns) = event.value_of("realtime_ns").and_then(Value::as_u64) {
                facts.begun_ms = time_ns / 1_000_000;
            }
            if let Some(Value::TextMap(entries)) = event.value_of("entries") {
                entries.for_each(|(key, value)| facts.set(key, value));
                break;
            }
        }
        if facts.begun_ms == 0 {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            facts.begun_ms = u64::try_from(since.as_millis()).unwrap_or(0);
        }
        Ok(facts)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        let fact = [
            ("service", &mut self.service),
            (metadata::HOST, &mut self.host),
            (metadata::BOOT, &mut self.boot),
        ];
        for (name, place) in fact {
            if name.as_bytes() == key {
                *place = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
}

fn parsed(address: &str) -> io::Result<Url> {
    Url::parse(address).map_err(|error| invalid(address, error))
}

fn of_folder(folder: &str) -> io::Result<Url> {
    std::fs::create_dir_all(folder)?;
    let folder = path::absolute(folder)?;
    Url::from_directory_path(&folder).map_err(|()| invalid(folder.display(), "expected a folder"))
}

fn invalid(address: impl Display, error: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{address}: cannot copy files there: {error}"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use borehole_testkit::Scratch;

    use super::*;

    #[test]
    fn a_lake_gets_files_from_its_program_and_a_failure_is_tried_again() {
        let folder = Scratch::new();
        let program = folder.write("program", b"#!/bin/sh\necho \"$@\" >> \"$3.log\"\nexit $(cat \"$3\")\n");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        for (name, status, is_copied, calls) in [("good", "0", true, 1), ("bad", "1", false, 3)] {
            let lake = folder.write(name, status.as_bytes());
            let target = Target::Lake { program: program.clone().into(), lake: lake.clone().into() };
            let file = WaitingFile { path: folder.path("trace.bin"), bytes: 1 };
            let runtime = Builder::new_current_thread().build().unwrap();
            assert_eq!(target.try_copy(&runtime, &file, &UploadQueue::new(1, 1)), is_copied);
            let log = fs::read_to_string(folder.path(&format!("{name}.log"))).unwrap();
            let line = format!("add -- {} {}\n", lake.display(), file.path.display());
            assert_eq!(log, line.repeat(calls));
        }
    }
}
