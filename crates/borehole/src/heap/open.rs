//! Opening of files and databases that hold heaps.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use borehole_capture::heap::of_core;
use borehole_formats::detect::{DETECT_BYTES, detect};
use borehole_formats::envelope::{Envelope, MEMBER_MAGIC};
use borehole_heap::{Graph, json, rmem};
use borehole_model::shown::{cause, word};
use borehole_model::{Recovery, Warning};
use borehole_process::{Core, Dump, DumpRecovery, DumpWarning};

use super::{Analysis, AnalyzeOptions, Error, HeapFormat, analyze};
use crate::mapped::{Mappable, Mapped};

/// A file or a database that holds a heap.
pub struct HeapFile {
    name: String,
    format: HeapFormat,
    content: Content,
}

enum Content {
    Mapped(Mapped),
    Bytes(Vec<u8>),
    Stream(File),
    Path(PathBuf),
    #[cfg(feature = "sql")]
    Database(super::Address),
}

/// How a file is read.
#[derive(Default)]
pub struct OpenOptions<'o> {
    /// Whether to accept the readable rest of a damaged file.
    pub lenient: bool,
    /// The run of a database; `None` for the last.
    pub run: Option<i64>,
    /// How memory is analysed.
    pub analyze: AnalyzeOptions<'o>,
    /// The root of the files that the process of a core file had mapped; `None` for their original paths.
    pub root: Option<&'o Path>,
}

/// An opened graph.
pub struct Opened<'f> {
    /// The graph.
    pub graph: Box<dyn Graph + 'f>,
    /// The results of the analysis, if one was needed.
    pub analysis: Option<Analysis>,
    /// The losses of a damaged memory file.
    pub recovery: Recovery,
}

/// The first bytes of compressed files: gzip, Zstandard.
const MEMBERS: [&[u8]; 2] = [&MEMBER_MAGIC, &[0x28, 0xb5, 0x2f, 0xfd]];

/// The first keys of reli's memory profiler documents, in reli's order and in sorted order. Other JSON objects are not heaps.
///
/// Source: reli 0.12 `-f json`.
const JSON_KEYS: [&[u8]; 4] =
    [b"\"summary\"", b"\"context\"", b"\"location_types_summary\"", b"\"class_objects_summary\""];

/// The largest graph unpacked into memory, in bytes, because a hundred thousand bytes of Zstandard can expand to that much. It is
/// the limit for other documents too.
const UNPACKED_BYTES: usize = 4 << 30;

const LENIENT: &str = "--lenient analyses what is left; what lay in the rest is counted as missing";

impl HeapFile {
    /// Opens the file at `path`, whatever its name, or the database of a server if `path` is its address.
    ///
    /// # Errors
    /// If it cannot be read, or holds no heap.
    pub fn open(path: &Path) -> Result<Self, Error> {
        #[cfg(feature = "sql")]
        if let super::Address::Server(server) = super::Address::new(path) {
            return Ok(Self::of_server(server));
        }
        let name = path.display().to_string();
        let refused = |error: io::Error| Error::new(&name, cause(&error));
        let mut file = File::open(path).map_err(refused)?;
        let mut beginning = Vec::new();
        file.by_ref().take(DETECT_BYTES as u64).read_to_end(&mut beginning).map_err(refused)?;
        if MEMBERS.iter().any(|magic| beginning.starts_with(magic)) {
            file.rewind().map_err(refused)?;
            return Self::unpacked(name, file);
        }
        let format = tell(&beginning).ok_or_else(|| unknown(&name, &beginning))?;
        if !format.readable() {
            let message = format!("unsupported input: {} can be written, not read", format.name());
            return Err(Error::new(&name, message));
        }
        file.rewind().map_err(refused)?;
        let content = match format {
            #[cfg(feature = "sql")]
            HeapFormat::Sqlite => Content::Database(super::Address::File(path.to_owned())),
            #[cfg(not(feature = "sql"))]
            HeapFormat::Sqlite => Content::Path(path.to_owned()),
            HeapFormat::Core => Content::Path(path.to_owned()),
            HeapFormat::Rmem => match Mappable::here(&file).and_then(|file| file.map_for_lookup()) {
                Some(mapped) => Content::Mapped(mapped),
                None => Content::Bytes(rest(file).map_err(refused)?),
            },
            _ => Content::Stream(file),
        };
        Ok(Self { name, format, content })
    }

    /// Opens a compressed file, which must be a graph: memory and databases are not stored compressed.
    fn unpacked(name: String, file: File) -> Result<Self, Error> {
        let refused = |error: io::Error| Error::new(&name, cause(&error));
        let mut envelope = Envelope::new(BufReader::new(file));
        let mut bytes = Vec::new();
        envelope.by_ref().take(DETECT_BYTES as u64).read_to_end(&mut bytes).map_err(refused)?;
        let format = tell(&bytes).ok_or_else(|| unknown(&name, &bytes))?;
        if !matches!(format, HeapFormat::Json | HeapFormat::Rmem) {
            let message = format!("unsupported input: a compressed {}; decompress it first", format.name());
            return Err(Error::new(&name, message));
        }
        append(&mut bytes, envelope, UNPACKED_BYTES).map_err(refused)?;
        Ok(Self { name, format, content: Content::Bytes(bytes) })
    }

    /// Refers to the database of a server without connecting to it.
    #[cfg(feature = "sql")]
    #[must_use]
    pub fn of_server(server: borehole_sql::Server) -> Self {
        let address = super::Address::Server(server.clone());
        Self { name: address.name(), format: server.kind().into(), content: Content::Database(address) }
    }

    /// Sets the name for messages.
    #[must_use]
    pub fn called(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Its format.
    #[must_use]
    pub const fn format(&self) -> HeapFormat {
        self.format
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it holds memory that still has to be analysed.
    #[must_use]
    pub const fn is_memory(&self) -> bool {
        matches!(self.format, HeapFormat::Rdump | HeapFormat::Core)
    }

    /// Whether it is a database, which has runs.
    #[must_use]
    pub const fn is_database(&self) -> bool {
        matches!(self.format, HeapFormat::Sqlite | HeapFormat::Postgresql | HeapFormat::Mysql)
    }

    /// The graph: analysed first if the file holds memory.
    ///
    /// # Errors
    /// If the file is damaged, or holds memory of a process without a supported PHP.
    pub fn graph(&self, options: &OpenOptions<'_>) -> Result<Opened<'_>, Error> {
        let plain = |graph| Opened { graph, analysis: None, recovery: Recovery::default() };
        match &self.content {
            Content::Mapped(mapped) => Ok(plain(self.view(mapped.bytes())?)),
            Content::Bytes(bytes) if self.format == HeapFormat::Json => Ok(plain(self.json(bytes)?)),
            Content::Bytes(bytes) => Ok(plain(self.view(bytes)?)),
            Content::Path(path) if self.format == HeapFormat::Core => {
                let (dump, recovery) = self.core(path, options)?;
                self.analyzed(&dump, recovery, options)
            }
            Content::Path(_) => {
                Err(Error::new(&self.name, "unsupported format: this build reads no databases"))
            }
            #[cfg(feature = "sql")]
            Content::Database(address) => {
                let mut database = address.open(borehole_sql::Access::Read)?;
                let run = database.run(options.run);
                let graph = run.and_then(|run| database.graph(run));
                Ok(plain(Box::new(graph.map_err(|error| address.refused(error))?)))
            }
            Content::Stream(file) => {
                let refused = |error: io::Error| Error::new(&self.name, cause(&error));
                let mut file: &File = file;
                file.rewind().map_err(refused)?;
                if self.format == HeapFormat::Rdump {
                    let (dump, recovery) = self.dump(file, options)?;
                    return self.analyzed(&dump, recovery, options);
                }
                Ok(plain(self.json(&rest(file).map_err(refused)?)?))
            }
        }
    }

    fn json(&self, bytes: &[u8]) -> Result<Box<dyn Graph>, Error> {
        let graph = json::read(bytes).map_err(|error| Error::new(&self.name, error))?;
        Ok(Box::new(graph))
    }

    fn view<'b>(&self, bytes: &'b [u8]) -> Result<Box<dyn Graph + 'b>, Error> {
        let view = rmem::View::open(bytes).map_err(|error| Error::new(&self.name, error))?;
        Ok(Box::new(view))
    }

    fn dump(&self, file: &File, options: &OpenOptions<'_>) -> Result<(Dump, Recovery), Error> {
        let (dump, found) =
            Dump::recover(BufReader::new(file)).map_err(|error| Error::new(&self.name, error))?;
        match found.warnings.first() {
            Some(first) if !options.lenient => {
                let message = format!("{} (rdump, at byte {:#x})", first.message, first.offset);
                Err(Error::new(&self.name, message).with_hint(LENIENT))
            }
            _ => Ok((dump, recovery(found))),
        }
    }

    fn analyzed(
        &self,
        dump: &Dump,
        recovery: Recovery,
        options: &OpenOptions<'_>,
    ) -> Result<Opened<'static>, Error> {
        let analyzed = analyze(dump, &options.analyze).map_err(|error| error.in_file(&self.name));
        let (graph, analysis) = analyzed.map_err(|error| match recovery.warnings.first() {
            Some(lost) => {
                error.with_hint(format!("the file is not whole, and this may be why: {}", lost.message))
            }
            None => error,
        })?;
        Ok(Opened { graph: Box::new(graph), analysis: Some(analysis), recovery })
    }

    fn core(&self, path: &Path, options: &OpenOptions<'_>) -> Result<(Dump, Recovery), Error> {
        let root = options.root.unwrap_or(Path::new("/"));
        let core = Core::open(path, root).map_err(|error| Error::new(&self.name, error))?;
        let mut recovery = Recovery::default();
        match core.missing_bytes() {
            0 => {}
            missing => {
                let message =
                    format!("truncated core file: {missing} bytes of memory are missing at its end");
                if !options.lenient {
                    return Err(Error::new(&self.name, message).with_hint(LENIENT));
                }
                recovery.warn(Warning::new(message).losing(missing));
            }
        }
        let taken = of_core(&core, &options.analyze.attach).map_err(|error| Error::new(&self.name, error))?;
        Ok((taken.dump, recovery))
    }
}

/// The losses in the form that all readers report.
fn recovery(found: DumpRecovery) -> Recovery {
    let DumpRecovery { lost_bytes, warnings, more_warnings, .. } = found;
    let warning =
        |DumpWarning { offset, lost_bytes, message }| Warning::new(message).at(offset).losing(lost_bytes);
    Recovery {
        lost_bytes,
        warnings: warnings.into_iter().map(warning).collect(),
        more_warnings,
        ..Recovery::default()
    }
}

/// Appends the readable rest of `input`, up to `limit` bytes in all.
fn append(bytes: &mut Vec<u8>, input: impl io::Read, limit: usize) -> io::Result<()> {
    let room = limit.saturating_sub(bytes.len()) as u64;
    input.take(room.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() > limit {
        let message =
            format!("too large: expected at most {limit} bytes after decompression; decompress it first");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(())
}

fn rest(mut file: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The format of a file with this beginning.
pub(crate) fn tell(beginning: &[u8]) -> Option<HeapFormat> {
    match beginning {
        _ if beginning.starts_with(b"JAVA PROFILE ") => Some(HeapFormat::Hprof),
        _ if beginning.starts_with(b"{\"snapshot\":") => Some(HeapFormat::HeapSnapshot),
        _ if beginning.starts_with(b"{\"type\":\"heap\"") => Some(HeapFormat::Lines),
        _ if beginning.starts_with(&rmem::MAGIC) => Some(HeapFormat::Rmem),
        _ if beginning.starts_with(&Dump::MAGIC) => Some(HeapFormat::Rdump),
        _ if beginning.starts_with(b"SQLite format 3\0") => Some(HeapFormat::Sqlite),
        // An ELF file whose type, the half word behind its 16 bytes of identification, is ET_CORE.
        _ if beginning.starts_with(b"\x7fELF") && beginning.get(16) == Some(&4) => Some(HeapFormat::Core),
        _ if is_json(beginning) => Some(HeapFormat::Json),
        _ => None,
    }
}

fn is_json(beginning: &[u8]) -> bool {
    let first = beginning.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    first.is_some_and(|first| JSON_KEYS.iter().any(|key| first.starts_with(key)))
}

#[cold]
fn unknown(name: &str, beginning: &[u8]) -> Error {
    let found = match &beginning[..beginning.len().min(16)] {
        [] => "an empty file".to_owned(),
        begins => format!("a file that begins \"{}\"", begins.escape_ascii()),
    };
    let error = Error::new(
        name,
        format!(
            "unsupported format: expected rdump, rmem, json, a database of SQLite or a core file, found {found}"
        ),
    );
    match detect(beginning) {
        Some(_) => error.with_hint(format!("it holds a profile: borehole info {}", word(name))),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_from_its_beginning_however_often() {
        let scratch = borehole_testkit::Scratch::new();
        let node = br##"{"context":{"a":{"#node_id":0,"#type":"A"}}}"##;
        let json = HeapFile::open(&scratch.write("heap.json", node)).unwrap();
        let mut dump = borehole_testkit::read_corpus("php/heap/8.4.24.rdump");
        dump.truncate(dump.len() - 1);
        let dump = HeapFile::open(&scratch.write("cut.rdump", &dump)).unwrap();
        let lenient = OpenOptions { lenient: true, ..OpenOptions::default() };
        let refused = || dump.graph(&OpenOptions::default()).err().unwrap().to_string();
        let first = refused();
        let nodes = |file: &HeapFile| file.graph(&lenient).unwrap().graph.counts().nodes;
        assert!(nodes(&dump) > 1000, "{first}");
        assert_eq!(refused(), first);
        assert_eq!([nodes(&json), nodes(&json)], [1, 1]);
    }

    #[test]
    fn what_is_unpacked_has_a_limit() {
        let unpacked = |limit| {
            let mut bytes = b"{\"summ".to_vec();
            append(&mut bytes, io::repeat(b' ').take(94), limit).map(|()| bytes.len())
        };
        assert_eq!(unpacked(100).unwrap(), 100);
        let refused = unpacked(99).unwrap_err().to_string();
        assert!(refused.starts_with("too large: expected at most 99 bytes"), "{refused}");
    }
}
