//! Recordings that go into a lake.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::exit::Exit;
use crate::external;
use crate::messages::say;
use crate::utc;

/// The program that knows lakes.
const PROGRAM: &str = "borehole-lake";

/// Which lake.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct LakeArgs {
    /// Add what is sampled to a lake when it is complete, with the time of each sample (see borehole lake --help)
    #[arg(long, value_name = "LAKE", conflicts_with_all = ["output", "format", "rotate", "force"])]
    pub(super) lake: Option<String>,

    /// The service that it is of, in the lake
    #[arg(long, value_name = "NAME", requires = "lake")]
    service: Option<String>,
}

impl LakeArgs {
    /// Where the recording waits until it is complete. Fails if the program is missing that will take it.
    pub(super) fn waiting_place(&self) -> anyhow::Result<PathBuf> {
        external::command(PROGRAM)?;
        let name = format!("borehole-{}-{}.rbt", utc::iso_name(utc::now_s()), std::process::id());
        Ok(std::env::temp_dir().join(name))
    }

    /// Adds the recording, whose first sample was taken at `began_s`, to the lake. What cannot be added stays where it is.
    pub(super) fn add(&self, recording: &Path, began_s: u64) -> anyhow::Result<Exit> {
        let Some(lake) = self.lake.as_ref().filter(|_| recording.exists()) else { return Ok(Exit::Done) };
        let mut add = external::command(PROGRAM)?;
        add.arg("add").arg("--at").arg(utc::iso(began_s));
        if let Some(service) = &self.service {
            add.arg("--service").arg(service);
        }
        let ended = add.arg("--").arg(lake).arg(recording).status().with_context(|| PROGRAM.to_owned())?;
        if !ended.success() {
            bail!("{}: not added to {lake}; the recording is still there", recording.display());
        }
        if let Err(error) = fs::remove_file(recording) {
            say(&format!("note: {}: {error}", recording.display()));
        }
        Ok(Exit::Done)
    }
}
