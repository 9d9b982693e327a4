//! Recording into a lake.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tempfile::TempDir;

use crate::external;
use crate::messages::say;
use crate::outputs::private_folder;
use crate::utc;
use crate::values::pair;

/// The program that manages lakes.
const PROGRAM: &str = "borehole-lake";

/// Options for the output, which a lake determines itself.
const ELSEWHERE: [&str; 6] = ["output", "format", "rotate", "force", "threads", "timestamps"];

/// The options for recording into a lake.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct LakeArgs {
    /// Add the recording to this lake when it is complete, with timestamps (see borehole lake --help)
    #[arg(long, value_name = "LAKE", conflicts_with_all = ELSEWHERE)]
    pub(super) lake: Option<String>,

    /// Service name of the recording in the lake
    // Without these conflicts, clap would accept the other options instead of the required `--lake`.
    #[arg(long, value_name = "NAME", requires = "lake", conflicts_with_all = ELSEWHERE)]
    service: Option<String>,

    /// Label of the recording in the lake, such as version=1.5; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, requires = "lake", conflicts_with_all = ELSEWHERE)]
    lake_label: Vec<(String, String)>,
}

/// The recording until it is in the lake, in a folder that only the user can access, because recordings are confidential.
/// Dropping it removes the recording.
pub(super) struct WaitingPlace {
    folder: TempDir,
    recording: PathBuf,
}

impl WaitingPlace {
    fn new() -> anyhow::Result<Self> {
        let folder = private_folder()?;
        let name = format!("borehole-{}-{}.rbt", utc::iso_name(utc::now_s()), std::process::id());
        Ok(Self { recording: folder.path().join(name), folder })
    }

    pub(super) fn recording(&self) -> &Path {
        &self.recording
    }

    /// Keeps the recording, and prints its path.
    pub(super) fn keep(self) {
        if self.recording.exists() {
            say(&format!("note: {}: the recording was kept", self.recording.display()));
            let _ = self.folder.keep();
        }
    }
}

impl LakeArgs {
    /// Creates the place for the recording. Fails if borehole-lake is missing or the lake cannot be opened, rather than
    /// failing after the recording.
    pub(super) fn waiting_place(&self, lake: &str) -> anyhow::Result<WaitingPlace> {
        let mut look = external::command(&external::LAKE)?;
        let looked = look.args(["info", "--only-look", "--", lake]).stdin(Stdio::null()).status();
        // The program has already printed the error.
        ensure!(
            looked.with_context(|| PROGRAM.to_owned())?.success(),
            "{lake}: cannot record into this lake"
        );
        WaitingPlace::new()
    }

    /// Adds the recording, which states its times, to the lake. If that fails, the recording is kept.
    pub(super) fn add(&self, lake: &str, waiting: WaitingPlace) -> anyhow::Result<()> {
        if !waiting.recording().exists() {
            return Ok(());
        }
        let mut add = external::command(&external::LAKE)?;
        add.arg("add");
        if let Some(service) = &self.service {
            add.arg("--service").arg(service);
        }
        for (key, value) in &self.lake_label {
            add.arg("--label").arg(format!("{key}={value}"));
        }
        let ended = add.arg("--").arg(lake).arg(waiting.recording()).status();
        if !ended.as_ref().is_ok_and(ExitStatus::success) {
            let recording = waiting.recording().display().to_string();
            waiting.keep();
            ended.with_context(|| PROGRAM.to_owned())?;
            bail!("{recording}: not added to {lake}");
        }
        Ok(())
    }
}
