//! `borehole lake add`.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use borehole::heap::{HeapFile, OpenOptions, info};
use borehole::model::Tables;
use borehole::{Error, Format, Input, InputOptions, OnDamage, ReadOptions, Recovery, SampleKind, Source};
use borehole_query::{AddedInput, Adding, Addition, Lake};
use borehole_text::counted;
use clap::Args;
use serde_json::json;

use super::times::instant;
use crate::exit::Exit;
use crate::inputs::{format_name, is_stdin};
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

    /// Service of the inputs [default: `service` in the file, or `unnamed`]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Machine of the inputs [default: `host` in the file]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Start of inputs that do not record it, such as 2026-11-22T10:30Z [default: the file's modification time]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<i64>,

    /// Format of the inputs, instead of detecting it (`borehole formats` lists them)
    #[arg(long, value_name = "FORMAT", value_parser = format_name)]
    from: Option<Format>,

    /// Print one JSON object per input
    #[arg(long)]
    json: bool,
}

/// An input whose bytes can be read twice: for the checksum, and to add it.
struct Readable {
    name: String,
    file: File,
    /// A path under which the file can be opened again.
    path: PathBuf,
    sha256: [u8; 32],
    modified_unix_ns: Option<i64>,
}

pub(crate) fn run(args: &AddArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let lake = Lake::open_or_create(&args.lake)?;
    let mut exit = Exit::Done;
    let mut adding = lake.adding();
    for path in &args.inputs {
        // Other inputs may be sound.
        let of_input = add(args, &lake, &mut adding, path).unwrap_or_else(|error| messages::failure(&error));
        exit = exit.and(of_input);
        if interrupt::requested() {
            return Ok(Exit::Interrupted);
        }
    }
    Ok(exit)
}

fn add(args: &AddArgs, lake: &Lake, adding: &mut Adding<'_>, path: &Path) -> anyhow::Result<Exit> {
    let readable = Readable::open(path)?;
    if lake.holds(&readable.sha256)? {
        return already(args, &readable.name);
    }
    let read =
        ReadOptions { on_damage: OnDamage::ReadOn, samples: SampleKind::All, ..ReadOptions::default() };
    let source = Source::file(&readable.name, readable.file.try_clone()?)?;
    let input = Input::open(progress::shown(source), &InputOptions { format: args.from, read });
    let (format, input) = match input {
        Ok(input) => (input.format().name().to_owned(), Ok(input)),
        // A heap is not a profile and is detected separately.
        Err(error) => match HeapFile::open(&readable.path) {
            Ok(heap) => (heap.format().name().to_owned(), Err(heap.called(&readable.name))),
            Err(_) => return Err(error.into()),
        },
    };
    let (tables, mut addition) = adding.input(borehole_query::InputDetails {
        name: readable.name.clone(),
        format,
        sha256: readable.sha256,
        service: args.service.clone(),
        host: args.host.clone(),
        began_unix_ns: args.at.map(|us| us.saturating_mul(1000)),
        modified_unix_ns: readable.modified_unix_ns,
    });
    let recovery = match input {
        Ok(input) => read_profile(input, tables, &mut addition),
        Err(heap) => read_heap(&heap, &mut addition),
    };
    let recovery = match recovery {
        Ok(recovery) if !interrupt::requested() => recovery,
        Ok(_) => {
            addition.abandon();
            return Ok(Exit::Interrupted);
        }
        Err(error) => {
            addition.abandon();
            return Err(error);
        }
    };
    messages::warnings(&readable.name, &recovery);
    match addition.commit(tables, &recovery) {
        Ok(added) => tell(args, &readable.name, &added, &recovery),
        Err(error) if error.is_already_added() => already(args, &readable.name),
        Err(error) => Err(error.into()),
    }
}

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

fn tell(args: &AddArgs, name: &str, added: &AddedInput, recovery: &Recovery) -> anyhow::Result<Exit> {
    if added.is_dated_by_file {
        say(&format!(
            "note: {name}: start time missing, counting from the file's modification time; --at sets it"
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
            "bytes": added.bytes,
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
            "{name}: {}{events}{services}; {}; {} written",
            counted(added.samples, "sample"),
            counted(added.stacks, "new stack"),
            counted(added.bytes, "byte")
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
        let sha256 = borehole_query::sha256(&mut file).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let modified_unix_ns = modified.and_then(|since| i64::try_from(since.as_nanos()).ok());
        Ok(Self { name, file, path, sha256, modified_unix_ns })
    }
}

/// A copy of an input that can be read only once, in an unnamed temporary file. Its path is that of its descriptor.
fn spooled(reader: &mut dyn Read) -> io::Result<(File, PathBuf)> {
    let mut file = tempfile::tempfile()?;
    io::copy(reader, &mut file)?;
    file.rewind()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, path.into()))
}
