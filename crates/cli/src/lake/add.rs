//! `borehole lake add`.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use borehole::heap::{HeapFile, OpenOptions, info};
use borehole::model::{CodePlaces, StatedModules, Tables};
use borehole::{
    Error, Format, Input, InputOptions, OnDamage, ReadOptions, Recovery, SampleKind, Source, decompressed,
};
use borehole_query::{
    AddedInput, Adding, Addition, ContentPrefixes, FinishedInput, InputDetails, Lake, content_sums,
};
use borehole_text::counted;
use clap::Args;
use serde_json::json;

use super::clock::undated_length_ns;
use super::origin::OriginArgs;
use super::times::instant;
use crate::exit::Exit;
use crate::inputs::is_stdin;
use crate::interrupt::{self, Interruptible};
use crate::messages::{self, out, say, show};
use crate::progress;

/// `borehole lake add`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AddArgs {
    /// The lake; created if it does not exist
    #[arg(value_name = "LAKE")]
    lake: String,

    /// Profiles, traces and PHP heaps, in any readable format; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    origin: OriginArgs,

    /// Start of inputs that do not record it, such as 2026-11-22T10:30Z [default: as long before the file's
    /// modification as the input lasts]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<i64>,

    /// Format of the inputs, instead of detecting it (`borehole formats` lists them)
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,

    /// Print one JSON object per input
    #[arg(long)]
    json: bool,
}

/// An input whose bytes can be read twice: for the checksum, and to add it.
pub(super) struct Readable {
    pub(super) name: String,
    pub(super) file: File,
    /// A path under which the file can be opened again.
    path: PathBuf,
    /// The checksum of its contents, which are the same if they are compressed.
    sha256: [u8; 32],
    prefixes: ContentPrefixes,
    modified_unix_ns: Option<i64>,
}

/// Adds inputs, many in one commit, and says of each what was added once it is in the lake.
struct LakeAdder<'l> {
    args: &'l AddArgs,
    lake: &'l Lake,
    adding: Adding<'l>,
    waiting: Vec<WaitingInput>,
}

/// The outcome of reading an input.
enum WholeInput {
    Read(Box<(FinishedInput, Recovery)>),
    Interrupted,
    /// It is to be read again, with these files of its native code.
    Again(StatedModules),
}

/// An input that is in the lake with the next commit.
struct WaitingInput {
    path: PathBuf,
    name: String,
    recovery: Recovery,
    /// Keeps the copy of standard input, to read it again.
    _file: File,
}

pub(crate) fn run(args: &AddArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let lake = Lake::open_or_create(&args.lake)?;
    let mut adder = LakeAdder { args, lake: &lake, adding: lake.adding(), waiting: Vec::new() };
    let mut exit = Exit::Done;
    for path in &args.inputs {
        // Other inputs may be sound.
        let of_input = adder.add(path).unwrap_or_else(|error| messages::failure(&error));
        exit = exit.and(of_input);
        if interrupt::requested() {
            break;
        }
    }
    let of_rest = adder.commit().unwrap_or_else(|error| messages::failure(&error));
    Ok(if interrupt::requested() { Exit::Interrupted } else { exit.and(of_rest) })
}

impl LakeAdder<'_> {
    /// Reads an input. It is in the lake after a commit, which happens here if enough inputs wait.
    fn add(&mut self, path: &Path) -> anyhow::Result<Exit> {
        let readable = Readable::open(path)?;
        if self.adding.holds(&readable.sha256)? {
            return already(self.args, &readable.name);
        }
        let mut exit = Exit::Done;
        if self.adding.may_be_continued(&readable.prefixes) {
            exit = self.commit()?;
        }
        let Some((input, recovery)) = self.read(&readable)? else { return Ok(Exit::Interrupted) };
        messages::warnings(&readable.name, &recovery);
        self.adding.add(input)?;
        let Readable { name, file, path, .. } = readable;
        self.waiting.push(WaitingInput { path, name, recovery, _file: file });
        let is_full = self.adding.is_full() || self.waiting.len() >= OPEN_INPUTS;
        Ok(if is_full { exit.and(self.commit()?) } else { exit })
    }

    /// Reads an input; `None` if that was interrupted.
    fn read(&mut self, readable: &Readable) -> anyhow::Result<Option<(FinishedInput, Recovery)>> {
        let read = ReadOptions {
            on_damage: OnDamage::ReadOn,
            samples: SampleKind::All,
            code_places: CodePlaces::All,
            ..ReadOptions::default()
        };
        let options = InputOptions { format: self.args.from, read, ..InputOptions::default() };
        let length_ns = if self.args.at.is_none() { undated_length_ns(readable, &options)? } else { 0 };
        let mut details = self.details(readable, length_ns)?;
        loop {
            match self.read_as(&details, readable, &options)? {
                WholeInput::Read(input) => return Ok(Some(*input)),
                WholeInput::Interrupted => return Ok(None),
                // The files of native code are behind the samples.
                WholeInput::Again(modules) => details.modules = modules,
            }
            (&readable.file).rewind()?;
        }
    }

    fn read_as(
        &mut self,
        details: &InputDetails,
        readable: &Readable,
        options: &InputOptions,
    ) -> anyhow::Result<WholeInput> {
        let source = Source::file(&readable.name, readable.file.try_clone()?)?;
        let input = Input::open(progress::shown(source), options);
        let (format, input) = match input {
            Ok(input) => (input.format().name().to_owned(), Ok(input)),
            // A heap is not a profile and is detected separately.
            Err(error) => match HeapFile::open(&readable.path) {
                Ok(heap) => (heap.format().name().to_owned(), Err(heap.called(&readable.name))),
                Err(_) => return Err(error.into()),
            },
        };
        let (tables, mut addition) = self.adding.input(InputDetails { format, ..details.clone() });
        let recovery = match input {
            Ok(input) => read_profile(input, tables, &mut addition),
            Err(heap) => read_heap(&heap, &mut addition),
        };
        let late = addition.late_modules().filter(|_| details.modules.is_empty()).cloned();
        match (recovery, late) {
            (Ok(_), _) if interrupt::requested() => {
                addition.abandon();
                Ok(WholeInput::Interrupted)
            }
            (Ok(recovery), None) => Ok(WholeInput::Read(Box::new((addition.finish(&recovery)?, recovery)))),
            (Ok(_), Some(modules)) => {
                addition.abandon();
                Ok(WholeInput::Again(modules))
            }
            (Err(error), _) => {
                addition.abandon();
                Err(error)
            }
        }
    }

    /// The properties of an input that lasts this long, if it does not say when it began.
    fn details(&self, readable: &Readable, length_ns: i64) -> anyhow::Result<InputDetails> {
        let args = self.args;
        let OriginArgs { service, host, label: labels } = args.origin.clone();
        let mut replaces = Vec::new();
        for earlier in self.lake.precursors(&readable.prefixes)? {
            let mut beginning = decompressed(&readable.file).take(earlier.bytes);
            let sum = borehole_query::sha256(&mut beginning);
            (&readable.file).rewind()?;
            if sum.is_ok_and(|sum| earlier.is_of(&sum)) {
                say(&format!("note: {}: replaces the shorter file that was added before", readable.name));
                replaces.push(earlier);
            }
        }
        Ok(InputDetails {
            name: readable.name.clone(),
            format: String::new(),
            sha256: readable.sha256,
            prefixes: readable.prefixes.clone(),
            replaces,
            service,
            host,
            labels,
            modules: StatedModules::default(),
            began_unix_ns: args.at.map(|us| us.saturating_mul(1000)),
            modified_unix_ns: readable.modified_unix_ns.map(|end| end.saturating_sub(length_ns)),
        })
    }

    /// Adds the inputs that wait, and says so.
    fn commit(&mut self) -> anyhow::Result<Exit> {
        let waiting = std::mem::take(&mut self.waiting);
        let committed = match self.adding.commit() {
            Ok(committed) => committed,
            Err(error) if error.is_already_added() => return self.add_singly(waiting),
            Err(error) => return Err(error.into()),
        };
        if let Some(error) = &committed.maintenance {
            say(&format!("warning: {}: added, but not compacted: {error}", self.args.lake));
        }
        let mut exit = Exit::Done;
        for (input, added) in waiting.iter().zip(&committed.inputs) {
            let bytes = (waiting.len() == 1).then_some(committed.bytes);
            exit = exit.and(tell(self.args, &input.name, added, &input.recovery, bytes)?);
        }
        if waiting.len() > 1 && !self.args.json {
            let (inputs, bytes) = (counted(waiting.len() as u64, "input"), counted(committed.bytes, "byte"));
            show(&format!("{inputs} added together; {bytes} written"))?;
        }
        Ok(exit)
    }

    /// Adds inputs in commits of their own, because another writer has added one of them meanwhile.
    fn add_singly(&mut self, inputs: Vec<WaitingInput>) -> anyhow::Result<Exit> {
        let mut exit = Exit::Done;
        for input in inputs {
            let readable = Readable::open(&input.path)?;
            let readable = Readable { name: input.name, ..readable };
            let Some((finished, recovery)) = self.read(&readable)? else { return Ok(Exit::Interrupted) };
            self.adding.add(finished)?;
            let of_input = match self.adding.commit() {
                Ok(committed) => match &committed.inputs[..] {
                    [added] => tell(self.args, &readable.name, added, &recovery, Some(committed.bytes))?,
                    _ => Exit::Done,
                },
                Err(error) if error.is_already_added() => already(self.args, &readable.name)?,
                Err(error) => messages::failure(&error.into()),
            };
            exit = exit.and(of_input);
        }
        Ok(exit)
    }
}

/// The number of inputs in a commit, each of which is an open file.
const OPEN_INPUTS: usize = 200;

fn read_profile(input: Input, tables: &mut Tables, addition: &mut Addition<'_>) -> anyhow::Result<Recovery> {
    Ok(input.read_into(tables, &mut Interruptible(addition))?)
}

fn read_heap(heap: &HeapFile, addition: &mut Addition<'_>) -> anyhow::Result<Recovery> {
    let opened = heap.graph(&OpenOptions { lenient: true, ..OpenOptions::default() })?;
    addition.take_heap(&info(&&*opened.graph))?;
    Ok(opened.recovery)
}

fn already(args: &AddArgs, name: &str) -> anyhow::Result<Exit> {
    say(&format!("note: {name}: already added"));
    if args.json {
        out(&json!({ "name": name, "added": false }).to_string())?;
    }
    Ok(Exit::Done)
}

fn tell(
    args: &AddArgs,
    name: &str,
    added: &AddedInput,
    recovery: &Recovery,
    bytes: Option<u64>,
) -> anyhow::Result<Exit> {
    if added.is_dated_by_file {
        say(&format!(
            "note: {name}: start time missing, so it ends when the file was modified; --at sets the start"
        ));
    }
    if added.future > 0 {
        let count = added.future;
        say(&format!(
            "warning: {name}: {count} samples or events more than a day in the future; its clock may be wrong"
        ));
    }
    if args.json {
        let object = json!({
            "name": name,
            "added": true,
            "services": added.services,
            "samples": added.samples,
            "events": recovery.events,
            "stacks": added.stacks,
            "bytes": bytes,
            "lost_bytes": recovery.lost_bytes,
            "future": added.future,
        });
        out(&object.to_string())?;
    } else {
        let services = match added.services.join(", ") {
            none if none.is_empty() => none,
            services => format!(" of {services}"),
        };
        let events = if recovery.events > 0 {
            format!(", {}", counted(recovery.events, "event"))
        } else {
            String::new()
        };
        show(&format!(
            "{name}: {}{events}{services}; {}{}",
            counted(added.samples, "sample"),
            counted(added.stacks, "stack"),
            bytes.map_or_else(String::new, |bytes| format!("; {} written", counted(bytes, "byte")))
        ))?;
    }
    Ok(Exit::after(recovery))
}

impl Readable {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let name = if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
        let failed = |source: io::Error| Error::Open { name: name.clone(), source };
        let (mut file, path) = if is_stdin(path) {
            spooled(&mut io::stdin().lock()).map_err(failed)?
        } else {
            let mut file = File::open(path).map_err(failed)?;
            let is_file = file.metadata().map_err(failed)?.is_file();
            if is_file { (file, path.into()) } else { spooled(&mut file).map_err(failed)? }
        };
        let modified = file.metadata().and_then(|metadata| metadata.modified()).ok();
        let modified = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
        let (sha256, prefixes) = sums(&mut file).map_err(failed)?;
        let modified_unix_ns = modified.and_then(|since| i64::try_from(since.as_nanos()).ok());
        Ok(Self { name, file, path, sha256, prefixes, modified_unix_ns })
    }
}

/// The checksums of the contents of a file; those of the file itself if it cannot be decompressed.
fn sums(file: &mut File) -> io::Result<([u8; 32], ContentPrefixes)> {
    let of_contents = content_sums(&mut decompressed(&mut *file));
    file.rewind()?;
    let sums = match of_contents {
        Ok(sums) => sums,
        Err(_) => content_sums(file)?,
    };
    file.rewind()?;
    Ok(sums)
}

/// A copy of an input that can be read only once, in an unnamed temporary file. Its path is that of its descriptor.
fn spooled(reader: &mut dyn Read) -> io::Result<(File, PathBuf)> {
    let mut file = tempfile::tempfile()?;
    io::copy(reader, &mut file)?;
    file.rewind()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, path.into()))
}
