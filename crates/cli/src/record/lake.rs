//! Recordings that go into a lake.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tempfile::TempDir;

use crate::external;
use crate::messages::say;
use crate::outputs::private_folder;
use crate::utc;

/// The program that knows lakes.
const PROGRAM: &str = "borehole-lake";

/// What says where recordings go and how they are written, which a lake knows by itself.
const ELSEWHERE: [&str; 6] = ["output", "format", "rotate", "force", "threads", "timestamps"];

/// Which lake.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct LakeArgs {
    /// Add what is sampled to a lake when it is complete, with the time of each sample (see borehole lake --help)
    #[arg(long, value_name = "LAKE", conflicts_with_all = ELSEWHERE)]
    pub(super) lake: Option<String>,

    /// The service that it is of, in the lake
    // What conflicts with the lake would do instead of it for clap.
    #[arg(long, value_name = "NAME", requires = "lake", conflicts_with_all = ELSEWHERE)]
    service: Option<String>,
}

/// Where a recording waits until the lake has it: in a folder that only the user may look into, for the recording tells of
/// processes what not everybody may know. What is not kept goes.
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

    /// Leaves what was recorded where it is, and says where.
    pub(super) fn keep(self) {
        if self.recording.exists() {
            say(&format!("note: {}: the recording is still there", self.recording.display()));
            let _ = self.folder.keep();
        }
    }
}

impl LakeArgs {
    /// Where the recording waits until it is complete. Fails if the program is missing that will take it, or the lake cannot be
    /// opened: better now than after a night of sampling.
    pub(super) fn waiting_place(&self, lake: &str) -> anyhow::Result<WaitingPlace> {
        let mut look = external::command(PROGRAM)?;
        let looked = look.args(["info", "--only-look", "--", lake]).stdin(Stdio::null()).status();
        // The program says itself what is wrong.
        ensure!(looked.with_context(|| PROGRAM.to_owned())?.success(), "{lake}: cannot be recorded into");
        WaitingPlace::new()
    }

    /// Adds the recording, whose first sample was taken at `began_s`, to the lake. What cannot be added stays where it is.
    pub(super) fn add(&self, lake: &str, waiting: WaitingPlace, began_s: u64) -> anyhow::Result<()> {
        if !waiting.recording().exists() {
            return Ok(());
        }
        let mut add = external::command(PROGRAM)?;
        add.arg("add").arg("--at").arg(utc::iso(began_s));
        if let Some(service) = &self.service {
            add.arg("--service").arg(service);
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
