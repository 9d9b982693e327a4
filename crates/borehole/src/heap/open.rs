//! Opening of files and databases that hold heaps.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use borehole_formats::detect::{DETECT_BYTES, detect};
use borehole_heap::{Graph, json, rmem};
use borehole_model::Recovery;
use borehole_text::cause;
use borehole_wire::envelope::{Envelope, MEMBER_MAGIC};

#[cfg(feature = "capture")]
use super::{Analysis, AnalyzeOptions};
use super::{Error, HeapFormat};
use crate::Advice;
use crate::heap_format::heap_format;
use crate::mapped::{Mappable, Mapped};
use crate::source::open_input;
use crate::spool::spool;

/// A file or a database that holds a heap.
pub struct HeapFile {
    name: String,
    format: HeapFormat,
    content: HeapContent,
}

enum HeapContent {
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
    /// How memory is analyzed.
    #[cfg(feature = "capture")]
    pub analyze: AnalyzeOptions<'o>,
    /// The root of the files that the process of a core file had mapped; `None` for their original paths.
    pub root: Option<&'o Path>,
}

/// An opened graph.
#[non_exhaustive]
pub struct Opened<'f> {
    /// The graph.
    pub graph: Box<dyn Graph + Send + Sync + 'f>,
    /// The results of the analysis, if one was needed.
    #[cfg(feature = "capture")]
    pub analysis: Option<Analysis>,
    /// The losses of a damaged memory file.
    pub recovery: Recovery,
}

/// The first bytes of compressed files: gzip, Zstandard.
const MEMBERS: [&[u8]; 2] = [&MEMBER_MAGIC, &[0x28, 0xb5, 0x2f, 0xfd]];

/// The largest graph unpacked, in bytes, because a hundred thousand bytes of Zstandard can expand to that much. It is the limit
/// for other documents too.
const UNPACKED_BYTES: usize = 4 << 30;

impl HeapFile {
    /// Opens the file at `path`, whatever its name, or the database of a server if `path` is its address.
    ///
    /// An uncompressed `.rmem` file is mapped into memory. If someone truncates it while it is read, the kernel ends the program
    /// (SIGBUS).
    ///
    /// # Errors
    /// If it cannot be read, or holds no heap.
    pub fn open(path: &Path) -> Result<Self, Error> {
        #[cfg(feature = "sql")]
        if let super::Address::Server(server) = super::Address::new(path) {
            return Ok(Self::of_server(server));
        }
        let name = path.display().to_string();
        match open_input(path) {
            Ok(file) => Self::of_file(name, file, Some(path)),
            Err(error) => Err(Error::new(&name, cause(&error))),
        }
    }

    /// Takes what `reader` gives, which goes through a temporary file if it is large. Core files and databases are read from
    /// files of their own only.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole::heap::{HeapFile, HeapFormat, OpenOptions};
    ///
    /// let json = br##"{"context":{"a":{"#node_id":0,"#type":"A","#locations":[]}}}"##;
    /// let heap = HeapFile::reader("upload", &json[..])?;
    /// assert_eq!(heap.format(), HeapFormat::Json);
    /// assert_eq!(heap.graph(&OpenOptions::default())?.graph.counts().nodes, 1);
    /// # Ok::<(), borehole::heap::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it cannot be read, or holds no heap.
    pub fn reader(name: impl Into<String>, mut reader: impl io::Read) -> Result<Self, Error> {
        let (name, mut file) = (name.into(), spool());
        match io::copy(&mut reader, &mut file).and_then(|_| file.into_file()) {
            Ok(file) => Self::of_file(name, file, None),
            Err(error) => Err(Error::new(&name, error)),
        }
    }

    fn of_file(name: String, mut file: File, path: Option<&Path>) -> Result<Self, Error> {
        let refused = |error: io::Error| Error::new(&name, cause(&error));
        let mut beginning = Vec::new();
        file.by_ref().take(DETECT_BYTES as u64).read_to_end(&mut beginning).map_err(refused)?;
        if MEMBERS.iter().any(|magic| beginning.starts_with(magic)) {
            file.rewind().map_err(refused)?;
            return Self::unpacked(name, file);
        }
        let format = heap_format(&beginning).ok_or_else(|| unknown(&name, &beginning))?;
        if !format.readable() {
            let message = format!("unsupported input: {} can be written but not read", format.name());
            return Err(Error::new(&name, message));
        }
        file.rewind().map_err(refused)?;
        let content = match (format, path) {
            #[cfg(feature = "sql")]
            (HeapFormat::Sqlite, Some(path)) => HeapContent::Database(super::Address::File(path.to_owned())),
            #[cfg(not(feature = "sql"))]
            (HeapFormat::Sqlite, Some(path)) => HeapContent::Path(path.to_owned()),
            (HeapFormat::Core, Some(path)) => HeapContent::Path(path.to_owned()),
            (HeapFormat::Sqlite | HeapFormat::Core, None) => {
                let message = format!("unsupported input: {} is read from a file of its own", format.name());
                return Err(Error::new(&name, message));
            }
            (HeapFormat::Rmem, _) => match Mappable::here(&file).and_then(|file| file.map_for_lookup()) {
                Some(mapped) => HeapContent::Mapped(mapped),
                None => HeapContent::Bytes(rest(file).map_err(refused)?),
            },
            _ => HeapContent::Stream(file),
        };
        Ok(Self { name, format, content })
    }

    /// Opens a compressed file, which must be a graph: memory and databases are not stored compressed.
    fn unpacked(name: String, file: File) -> Result<Self, Error> {
        let refused = |error: io::Error| Error::new(&name, cause(&error));
        let mut envelope = Envelope::new(BufReader::new(file));
        let mut bytes = Vec::new();
        envelope.by_ref().take(DETECT_BYTES as u64).read_to_end(&mut bytes).map_err(refused)?;
        let format = heap_format(&bytes).ok_or_else(|| unknown(&name, &bytes))?;
        if !matches!(format, HeapFormat::Json | HeapFormat::Rmem) {
            let message = format!("unsupported input: a compressed {}; decompress it first", format.name());
            return Err(Error::new(&name, message));
        }
        let content = match format {
            HeapFormat::Rmem => spooled(&bytes, envelope, UNPACKED_BYTES),
            _ => append(&mut bytes, envelope, UNPACKED_BYTES).map(|()| HeapContent::Bytes(bytes)),
        };
        let content = content.map_err(refused)?;
        Ok(Self { name, format, content })
    }

    /// Refers to the database of a server without connecting to it.
    #[cfg(feature = "sql")]
    #[must_use]
    pub fn of_server(server: borehole_sql::Server) -> Self {
        let address = super::Address::Server(server.clone());
        Self { name: address.name(), format: server.kind().into(), content: HeapContent::Database(address) }
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

    /// Whether it holds memory that still has to be analyzed.
    #[must_use]
    pub const fn is_memory(&self) -> bool {
        matches!(self.format, HeapFormat::Rdump | HeapFormat::Core)
    }

    /// Whether it is a database, which has runs.
    #[must_use]
    pub const fn is_database(&self) -> bool {
        matches!(self.format, HeapFormat::Sqlite | HeapFormat::Postgresql | HeapFormat::Mysql)
    }

    /// The graph: analyzed first if the file holds memory.
    ///
    /// # Errors
    /// If the file is damaged, or holds memory of a process without a supported PHP.
    pub fn graph(&self, options: &OpenOptions<'_>) -> Result<Opened<'_>, Error> {
        let plain = Opened::plain;
        match &self.content {
            HeapContent::Mapped(mapped) => Ok(plain(self.view(mapped.bytes())?)),
            HeapContent::Bytes(bytes) if self.format == HeapFormat::Json => Ok(plain(self.json(bytes)?)),
            HeapContent::Bytes(bytes) => Ok(plain(self.view(bytes)?)),
            HeapContent::Path(path) if self.format == HeapFormat::Core => self.of_core(path, options),
            HeapContent::Path(_) => {
                Err(Error::new(&self.name, "unsupported format: this build has no database support"))
            }
            #[cfg(feature = "sql")]
            HeapContent::Database(address) => {
                let mut database = address.open(borehole_sql::Access::Read)?;
                let run = database.run(options.run);
                let graph = run.and_then(|run| database.graph(run));
                Ok(plain(Box::new(graph.map_err(|error| address.refused(error))?)))
            }
            HeapContent::Stream(file) => {
                let refused = |error: io::Error| Error::new(&self.name, cause(&error));
                let mut file: &File = file;
                file.rewind().map_err(refused)?;
                if self.format == HeapFormat::Rdump {
                    return self.of_dump(file, options);
                }
                Ok(plain(self.json(&rest(file).map_err(refused)?)?))
            }
        }
    }

    fn json(&self, bytes: &[u8]) -> Result<Box<dyn Graph + Send + Sync>, Error> {
        let graph = json::read(bytes).map_err(|error| Error::new(&self.name, error))?;
        Ok(Box::new(graph))
    }

    fn view<'b>(&self, bytes: &'b [u8]) -> Result<Box<dyn Graph + Send + Sync + 'b>, Error> {
        let view = rmem::MappedGraph::open(bytes).map_err(|error| Error::new(&self.name, error))?;
        Ok(Box::new(view))
    }

    /// Without `capture`, memory is not analyzed.
    #[cfg(not(feature = "capture"))]
    fn of_dump(&self, _file: &File, _options: &OpenOptions<'_>) -> Result<Opened<'static>, Error> {
        Err(Error::new(&self.name, "unsupported format: this build does not analyze memory"))
    }

    #[cfg(not(feature = "capture"))]
    fn of_core(&self, _path: &Path, _options: &OpenOptions<'_>) -> Result<Opened<'static>, Error> {
        Err(Error::new(&self.name, "unsupported format: this build does not analyze memory"))
    }
}

impl<'f> Opened<'f> {
    fn plain(graph: Box<dyn Graph + Send + Sync + 'f>) -> Self {
        Self {
            graph,
            #[cfg(feature = "capture")]
            analysis: None,
            recovery: Recovery::default(),
        }
    }
}

/// The bytes of a graph that begins with `beginning`, in a temporary file rather than in memory: readers look at parts of it.
fn spooled(beginning: &[u8], input: impl io::Read, limit: usize) -> io::Result<HeapContent> {
    let mut spool = spool();
    let bytes = io::copy(&mut beginning.chain(readable(beginning.len(), input, limit)), &mut spool)?;
    within(bytes, limit)?;
    let file = spool.into_file()?;
    Ok(match Mappable::here(&file).and_then(|file| file.map_for_lookup()) {
        Some(mapped) => HeapContent::Mapped(mapped),
        None => HeapContent::Bytes(rest(file)?),
    })
}

/// Appends the readable rest of `input`, up to `limit` bytes in all.
fn append(bytes: &mut Vec<u8>, input: impl io::Read, limit: usize) -> io::Result<()> {
    readable(bytes.len(), input, limit).read_to_end(bytes)?;
    within(bytes.len() as u64, limit)
}

/// Input that follows `begun` bytes, up to the first byte beyond `limit`.
fn readable<R: io::Read>(begun: usize, input: R, limit: usize) -> io::Take<R> {
    input.take((limit.saturating_sub(begun) as u64).saturating_add(1))
}

fn within(bytes: u64, limit: usize) -> io::Result<()> {
    if bytes <= limit as u64 {
        return Ok(());
    }
    let message =
        format!("too large: expected at most {limit} bytes after decompression; decompress it first");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

fn rest(mut file: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
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
            "unsupported format: expected rdump, rmem, json, an SQLite database or a core file, found {found}"
        ),
    );
    match detect(beginning) {
        Some(_) => error.advising(Advice::Profile),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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
        let spooled = |limit| spooled(b"RMEM", io::repeat(b' ').take(96), limit);
        assert!(matches!(spooled(100).unwrap(), HeapContent::Mapped(mapped) if mapped.bytes().len() == 100));
        let refused = spooled(99).err().unwrap().to_string();
        assert!(refused.starts_with("too large: expected at most 99 bytes"), "{refused}");
    }

    #[test]
    fn a_compressed_graph_is_read_where_it_was_unpacked() {
        let scratch = borehole_testkit::Scratch::new();
        let node = br##"{"context":{"a":{"#node_id":0,"#type":"A","#locations":[]}}}"##;
        let (graph, mut plain) = (json::read(node).unwrap(), Vec::new());
        rmem::write(&graph, &mut plain).unwrap();
        let mut packed = borehole_wire::envelope::GzipWriter::new(Vec::new());
        packed.write_all(&plain).unwrap();
        let path = scratch.write("heap.rmem.gz", &packed.complete().unwrap());
        let file = HeapFile::open(&path).unwrap();
        assert!(matches!(&file.content, HeapContent::Mapped(mapped) if mapped.bytes() == plain));
        assert_eq!(file.graph(&OpenOptions::default()).unwrap().graph.counts(), graph.counts());
    }
}
