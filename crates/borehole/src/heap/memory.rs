//! Opening of files that hold memory, which is analyzed first.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use borehole_capture::heap::of_core;
use borehole_model::{Recovery, Warning};
use borehole_process::{CoreFile, Dump, DumpRecovery};

use super::{Error, HeapFile, OpenOptions, Opened, analyze};
use crate::Advice;

impl HeapFile {
    pub(super) fn of_dump(&self, file: &File, options: &OpenOptions<'_>) -> Result<Opened<'static>, Error> {
        let (dump, recovery) = self.dump(file, options)?;
        self.analyzed(dump, recovery, options)
    }

    pub(super) fn of_core(&self, path: &Path, options: &OpenOptions<'_>) -> Result<Opened<'static>, Error> {
        let (dump, recovery) = self.core(path, options)?;
        self.analyzed(dump, recovery, options)
    }

    fn dump(&self, file: &File, options: &OpenOptions<'_>) -> Result<(Dump, Recovery), Error> {
        let (dump, found) =
            Dump::recover(BufReader::new(file)).map_err(|error| Error::new(self.name(), error))?;
        match found.warnings.first() {
            Some(first) if !options.lenient => {
                Err(Error::new(self.name(), first.to_error("rdump")).advising(Advice::ReadOn))
            }
            _ => Ok((dump, recovery(found))),
        }
    }

    fn analyzed(
        &self,
        dump: Dump,
        recovery: Recovery,
        options: &OpenOptions<'_>,
    ) -> Result<Opened<'static>, Error> {
        let analyzed = analyze(dump, &options.analyze).map_err(|error| error.in_file(self.name()));
        let (graph, analysis) = analyzed.map_err(|error| match recovery.warnings.first() {
            Some(lost) => error.advising(Advice::Damaged(lost.message.clone())),
            None => error,
        })?;
        Ok(Opened { graph: Box::new(graph), analysis: Some(analysis), recovery })
    }

    fn core(&self, path: &Path, options: &OpenOptions<'_>) -> Result<(Dump, Recovery), Error> {
        let root = options.root.unwrap_or(Path::new("/"));
        let core = CoreFile::open(path, root).map_err(|error| Error::new(self.name(), error))?;
        let mut recovery = Recovery::default();
        match core.missing_bytes() {
            0 => {}
            missing => {
                let message =
                    format!("truncated core file: {missing} bytes of memory are missing at its end");
                if !options.lenient {
                    return Err(Error::new(self.name(), message).advising(Advice::ReadOn));
                }
                recovery.warn(Warning::new(message).losing(missing));
            }
        }
        let taken =
            of_core(&core, &options.analyze.attach).map_err(|error| Error::new(self.name(), error))?;
        Ok((taken.dump, recovery))
    }
}

/// The losses in the form that all readers report.
fn recovery(found: DumpRecovery) -> Recovery {
    let DumpRecovery { lost_bytes, warnings, more_warnings, .. } = found;
    Recovery { lost_bytes, warnings, more_warnings, ..Recovery::default() }
}
