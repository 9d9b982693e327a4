//! The files of a recording into a folder, one per sampling thread.
//!
//! A compressed file holds only whole segments, so it can be read at any time. The segment that is being written is beside it,
//! under a name with the file's name and the file's length before the segment, such as `.borehole-worker_7.rbt.gz-4096`. The
//! first segment becomes the file when it is whole, and others are appended. If a recording is killed, the next one into the
//! folder does that with what it left.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use borehole::capture::{SegmentStreams, SharedStream};
use borehole::formats::ReadOptions;
use borehole::formats::rbt::EventReader;
use borehole::formats::rbt::layout::EventType;
use borehole::{
    Compression, Existing, Format, Input, InputOptions, Output, Source, Target, append_live, import_all,
    open_live,
};
use borehole_text::counted;
use tempfile::TempPath;

use super::lock;
use super::output::Earlier;
use crate::messages::{described, say};

/// The beginning of the names of unfinished files.
const UNFINISHED: &str = ".borehole-";

/// The beginning of the names of a folder's files.
const WORKER: &str = "worker_";

/// The name of the file of a worker, which is told apart by a number.
pub(super) fn name(number: i32, compression: Compression) -> String {
    let extension = if compression == Compression::Gzip { "rbt.gz" } else { "rbt" };
    format!("{WORKER}{number}.{extension}")
}

/// A compressed file of whole segments.
pub(super) struct CompressedFile {
    path: PathBuf,
    earlier: Earlier,
    /// The file, once it has a segment; locked.
    whole: Option<File>,
    current: Option<UnfinishedSegment>,
}

/// A segment that is being written; locked.
struct UnfinishedSegment {
    path: PathBuf,
    file: File,
    /// The length of the file to which it will be appended.
    at: u64,
}

impl CompressedFile {
    pub(super) fn new(path: PathBuf, earlier: Earlier) -> Self {
        Self { path, earlier, whole: None, current: None }
    }

    /// The file of an earlier recording, if it is continued.
    fn earlier_file(&self) -> io::Result<Option<File>> {
        // Names the recording that writes the file.
        lock::check(&self.path)?;
        match (self.earlier, open_live(&self.path)) {
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            (_, Err(error)) => Err(error),
            (Earlier::Keep, Ok(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            (Earlier::Replace, Ok(_locked)) => fs::remove_file(&self.path).map(|()| None),
            (Earlier::Continue, Ok(file)) => Ok(Some(file)),
        }
    }
}

impl SegmentStreams for CompressedFile {
    fn open(&mut self, segment: u64) -> io::Result<SharedStream> {
        if segment == 0 {
            self.whole = self.earlier_file()?;
        }
        let at = self.whole.as_ref().map_or(Ok(0), |file| file.metadata().map(|found| found.len()))?;
        let path = unfinished(&self.path, at);
        lock::check(&path)?;
        let file = append_live(&path)?;
        file.set_len(0)?;
        let stream = SharedStream::from(file.try_clone()?);
        self.current = Some(UnfinishedSegment { path, file, at });
        Ok(stream)
    }

    fn complete(&mut self) -> io::Result<()> {
        let Some(mut segment) = self.current.take() else { return Ok(()) };
        if segment.file.metadata()?.len() == 0 {
            return fs::remove_file(&segment.path);
        }
        match &mut self.whole {
            Some(whole) => {
                append(&mut segment.file, whole, segment.at)?;
                fs::remove_file(&segment.path)
            }
            None => {
                become_file(segment.path, &self.path)?;
                self.whole = Some(segment.file);
                Ok(())
            }
        }
    }
}

/// The path of a segment that will be appended to the file at `path` when that has the length `at`.
fn unfinished(path: &Path, at: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{UNFINISHED}{name}-{at}"))
}

/// Renames a whole segment to be the file at `path`, which must not exist.
fn become_file(segment: PathBuf, path: &Path) -> io::Result<()> {
    let segment = TempPath::try_from_path(segment)?;
    segment.persist_noclobber(path).map_err(|failure| {
        // Dropping the path would remove the segment.
        let _ = failure.path.keep();
        failure.error
    })
}

/// Appends a whole segment to a file of the length `at`, which keeps that length if this fails.
fn append(segment: &mut File, whole: &mut File, at: u64) -> io::Result<()> {
    segment.rewind()?;
    let appended = whole.seek(SeekFrom::End(0)).and_then(|_| io::copy(segment, whole));
    appended.map(drop).inspect_err(|_| {
        let _ = whole.set_len(at);
    })
}

/// A segment that a killed recording left.
struct LeftSegment {
    path: PathBuf,
    /// The file that it belongs to.
    whole: PathBuf,
    at: u64,
}

/// Finishes the compressed segments that killed recordings left in `folder`.
pub(super) fn finish_left(folder: &Path) {
    for left in left_in(folder) {
        let whole = left.whole.display();
        match left.finish() {
            Ok(None | Some(0)) => {}
            Ok(Some(samples)) => {
                let samples = counted(samples, "sample");
                say(&format!("note: {whole}: added {samples} of a recording that was killed"));
            }
            Err(error) => {
                say(&format!("warning: {}: cannot be finished: {}", left.path.display(), described(&error)));
            }
        }
    }
}

fn left_in(folder: &Path) -> Vec<LeftSegment> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut left: Vec<_> = names
        .filter_map(|name| {
            let (whole, at) = name.strip_prefix(UNFINISHED)?.rsplit_once('-')?;
            let at = at.parse().ok().filter(|_| whole.starts_with(WORKER))?;
            Some(LeftSegment { path: folder.join(&name), whole: folder.join(whole), at })
        })
        .collect();
    left.sort_by(|one, other| one.path.cmp(&other.path));
    left
}

impl LeftSegment {
    /// Adds the samples that can be read to the file, and returns their number; `None` if a running recording writes it.
    fn finish(&self) -> anyhow::Result<Option<u64>> {
        let (segment, mut whole) = match (open_live(&self.path), open_live(&self.whole)) {
            (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
                return Ok(None);
            }
            (segment, Err(error)) if error.kind() == io::ErrorKind::NotFound => (segment?, None),
            (segment, whole) => (segment?, Some(whole.with_context(|| self.whole.display().to_string())?)),
        };
        let samples = self.save(&segment)?;
        let mut at = 0;
        if let Some(whole) = &whole {
            // The recording may have been killed while it appended the segment.
            at = whole.metadata()?.len();
            if (1..at).contains(&self.at) {
                whole.set_len(self.at)?;
                at = self.at;
            }
        }
        match &mut whole {
            Some(whole) if samples > 0 => append(&mut open_live(&self.path)?, whole, at)?,
            None if samples > 0 => {
                become_file(self.path.clone(), &self.whole)?;
                return Ok(Some(samples));
            }
            _ => {}
        }
        fs::remove_file(&self.path)?;
        Ok(Some(samples))
    }

    /// Replaces the segment by a whole one with the samples that can be read, and returns their number. If this program is
    /// killed too, the segment is one of both.
    fn save(&self, segment: &File) -> anyhow::Result<u64> {
        let name = self.path.display().to_string();
        let (format, read) = (Some(Format::Rbt), ReadOptions::lenient());
        let options = InputOptions { format, read, ..InputOptions::default() };
        let input = Input::open(Source::file(&name, segment.try_clone()?)?, &options)?;
        let mut output = Output::create(&self.path, Existing::Replace, Compression::Gzip)?;
        let recovery = import_all([input], &mut *Target::new(Format::Rbt).exporter(&mut output)?)?;
        output.complete()?;
        Ok(recovery.samples)
    }
}

/// The end of a segment in a file that is not compressed.
const SEGMENT_END: [u8; 2] = [EventType::SegmentEnd as u8, 0];

/// Ends the last segment of a file to which others will be appended, if a killed recording left it open: cuts off an incomplete
/// event. A damaged file is left as it is.
pub(super) fn end_left_segment(file: &mut File) -> io::Result<()> {
    if is_ended(file)? {
        return Ok(());
    }
    file.rewind()?;
    let mut events = EventReader::new(&*file, ReadOptions::default());
    loop {
        match events.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => return Ok(()),
        }
    }
    let cut_off: u64 = events.take_warnings().iter().map(|warning| warning.lost_bytes).sum();
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(cut_off))?;
    if !is_ended(file)? {
        file.seek(SeekFrom::End(0))?;
        file.write_all(&SEGMENT_END)?;
    }
    Ok(())
}

/// Whether the file is empty or ends in the end of a segment.
fn is_ended(file: &mut File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut end = [0; SEGMENT_END.len()];
    if let Some(before) = length.checked_sub(end.len() as u64) {
        file.seek(SeekFrom::Start(before))?;
        file.read_exact(&mut end)?;
    }
    Ok(length == 0 || end == SEGMENT_END)
}

#[cfg(test)]
mod tests {
    use borehole::model::Count;
    use borehole_testkit::{Scratch, corpus};

    use super::*;

    /// A trace of one segment, and the number of its samples.
    fn trace() -> (Vec<u8>, u64) {
        let trace = fs::read(corpus("rbt/realistic_54k_ts.rbt")).unwrap();
        let samples = samples(&trace);
        (trace, samples)
    }

    fn compressed(bytes: &[u8], path: &Path) -> Vec<u8> {
        let mut output = Output::direct("", File::create(path).unwrap(), Compression::Gzip).unwrap();
        output.write_all(bytes).unwrap();
        output.complete().unwrap();
        fs::read(path).unwrap()
    }

    /// The samples of a trace that is whole.
    fn samples(bytes: &[u8]) -> u64 {
        let source = Source::reader("trace", io::Cursor::new(bytes.to_vec()));
        let input = Input::open(source, &InputOptions::default()).unwrap();
        import_all([input], &mut Count::default()).unwrap().samples
    }

    #[test]
    fn a_segment_is_added_once_whenever_the_recording_was_killed() {
        let (trace, all) = trace();
        let scratch = Scratch::new();
        let file = scratch.path("worker_7.rbt.gz");
        let member = compressed(&trace, &file);
        let half = &member[..member.len() / 2];
        let [at_0, at_1] = [0, member.len() as u64].map(|at| unfinished(&file, at));
        /// The whole segments, the file of the segment that was begun, what is in it, and how many samples are found.
        type Case<'c> = (&'c [u8], &'c Path, &'c [u8], std::ops::RangeInclusive<u64>);
        let cases: [Case<'_>; 6] = [
            // While the first segment was written, and before it got its name.
            (b"", &at_0, half, 1..=all - 1),
            (b"", &at_0, &member, all..=all),
            (b"", &at_0, b"", 0..=0),
            // While the second segment was written, while it was appended, and after that.
            (&member, &at_1, half, all + 1..=2 * all - 1),
            (&[&member, half].concat(), &at_1, &member, 2 * all..=2 * all),
            (&[&*member, &*member].concat(), &at_1, &member, 2 * all..=2 * all),
        ];
        for (whole, segment, left, expected) in cases {
            let _ = fs::remove_file(&file);
            if !whole.is_empty() {
                fs::write(&file, whole).unwrap();
            }
            fs::write(segment, left).unwrap();
            finish_left(scratch.folder());
            assert!(!segment.exists());
            let found = if file.exists() { samples(&fs::read(&file).unwrap()) } else { 0 };
            assert!(expected.contains(&found), "{found}, not {expected:?}");
        }
    }

    #[test]
    fn a_segment_that_is_being_written_is_left_alone() {
        let (trace, _) = trace();
        let scratch = Scratch::new();
        let file = scratch.path("worker_7.rbt.gz");
        let member = compressed(&trace, &file);
        let mut running = CompressedFile::new(file.clone(), Earlier::Continue);
        let mut stream = running.open(0).unwrap();
        stream.write_all(&member).unwrap();
        finish_left(scratch.folder());
        assert_eq!(fs::read(&file).unwrap(), member);
        let other = CompressedFile::new(file.clone(), Earlier::Continue).open(0).err().unwrap();
        assert_eq!(other.kind(), io::ErrorKind::ResourceBusy, "{other}");
        running.complete().unwrap();
        assert_eq!(fs::read(&file).unwrap(), [&*member, &*member].concat());
    }

    #[test]
    fn an_open_segment_is_ended_before_another_is_appended() {
        let (trace, all) = trace();
        let scratch = Scratch::new();
        // A cut header, event, or end; or nothing is missing.
        for (missing, expected) in
            [(trace.len() - 7, 0..=0), (1000, 1..=all - 1), (1, all..=all), (0, all..=all)]
        {
            let path = scratch.write("worker_7.rbt", &trace[..trace.len() - missing]);
            let mut file = File::options().read(true).append(true).open(&path).unwrap();
            end_left_segment(&mut file).unwrap();
            file.write_all(&trace).unwrap();
            let found = samples(&fs::read(&path).unwrap()) - all;
            assert!(expected.contains(&found), "{missing}: {found}");
        }
    }
}
