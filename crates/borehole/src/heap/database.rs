//! Heaps in databases.

use std::env;
use std::path::{Path, PathBuf};

use borehole_heap::Graph;
#[cfg(feature = "sqlite")]
use borehole_sql::Replaced;
use borehole_sql::{Access, AddedRun, Database, ErrorKind, Server, ServerSoftware};

use super::{Error, HeapFile, HeapFormat};
use crate::Advice;
#[cfg(feature = "sqlite")]
use crate::Output;

/// The environment variable with the password of a server whose address has none.
pub const PASSWORD_VARIABLE: &str = "BOREHOLE_DB_PASSWORD";

/// The address of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An SQLite file.
    File(PathBuf),
    /// A database of a server.
    Server(Server),
}

impl Address {
    /// Parses `address`: a server if it begins with `postgresql://` or `mysql://`, otherwise a file. The password of a server
    /// may be in [`PASSWORD_VARIABLE`].
    #[must_use]
    pub fn new(address: &Path) -> Self {
        match address.to_str().and_then(Server::parse) {
            Some(server) => Self::Server(with_password(server)),
            None => Self::File(address.to_owned()),
        }
    }

    /// The name for messages, without the password.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Server(server) => server.name().to_owned(),
        }
    }

    /// Opens the database.
    ///
    /// # Errors
    /// If there is no such database, or it cannot hold heaps.
    pub fn open(&self, access: Access) -> Result<Database, Error> {
        self.connect(access).map_err(|error| self.refused(error))
    }

    fn connect(&self, access: Access) -> Result<Database, borehole_sql::Error> {
        match (self, access) {
            (Self::Server(server), access) => Database::connect(server, access),
            #[cfg(feature = "sqlite")]
            (Self::File(path), Access::Read) => Database::read(path),
            #[cfg(feature = "sqlite")]
            (Self::File(path), Access::Write) => Database::open(path),
            #[cfg(not(feature = "sqlite"))]
            (Self::File(_), _) => Err(borehole_sql::Error::without_sqlite()),
        }
    }

    /// The error of this database, with advice.
    #[must_use]
    pub fn refused(&self, error: borehole_sql::Error) -> Error {
        let (kind, spent) = (error.kind(), error.spent());
        let error = Error::new(&self.name(), error);
        let is_graph = |path| HeapFile::open(path).is_ok_and(|file| !file.is_database());
        let advice = match (kind, self) {
            (ErrorKind::Denied, Self::Server(server)) if !server.has_password() => {
                Advice::Password(PASSWORD_VARIABLE)
            }
            (ErrorKind::Missing, Self::File(_)) => Advice::OtherRun,
            (ErrorKind::Unsupported, Self::File(path)) if is_graph(path) => Advice::Import,
            (ErrorKind::Damaged, _) => Advice::Salvage,
            (ErrorKind::Connection, Self::Server(_)) => Advice::TryAgain { was_waited_for: spent.is_some() },
            _ => return error,
        };
        error.advising(advice)
    }
}

fn with_password(server: Server) -> Server {
    match env::var(PASSWORD_VARIABLE) {
        Ok(password) if !server.has_password() => server.with_password(password),
        _ => server,
    }
}

impl From<ServerSoftware> for HeapFormat {
    fn from(kind: ServerSoftware) -> Self {
        match kind {
            ServerSoftware::Postgresql => Self::Postgresql,
            ServerSoftware::Mysql => Self::Mysql,
        }
    }
}

/// Adds `graph` as a run to the database at `address`. While others write to a file, it waits for its turn, and calls `waiting`
/// once.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use borehole::heap::{Address, HeapFile, OpenOptions, add_run, write_database};
/// use borehole::{Existing, Output};
///
/// let json = br##"{"context":{"a":{"#node_id":0,"#type":"A","#locations":[]}}}"##;
/// let heap = HeapFile::reader("upload", &json[..])?;
/// let opened = heap.graph(&OpenOptions::default())?;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("heaps.db");
/// write_database(&*opened.graph, Output::create_private(&path, Existing::Keep)?, "2026-01-31T12:00:00Z")?;
/// add_run(&*opened.graph, &Address::new(&path), "2026-01-31T12:01:00Z", &mut || println!("waiting"))?;
/// // Without a choice, the newest run is opened.
/// assert_eq!(HeapFile::open(&path)?.graph(&OpenOptions::default())?.graph.counts().nodes, 1);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the database cannot be written.
pub fn add_run(
    graph: &dyn Graph,
    address: &Address,
    created_at: &str,
    waiting: &mut dyn FnMut(),
) -> Result<AddedRun, Error> {
    let attempt =
        || address.connect(Access::Write).and_then(|mut database| database.add_run(&graph, created_at));
    let mut added = attempt();
    // Servers know turns themselves.
    if matches!(address, Address::File(_)) && is_locked(&added) {
        waiting();
        while is_locked(&added) {
            added = attempt();
        }
    }
    added.map_err(|error| address.refused(error))
}

fn is_locked<T>(done: &Result<T, borehole_sql::Error>) -> bool {
    done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Locked)
}

/// Writes `graph` as the only run of a new SQLite database, which becomes visible only when it is complete. If it replaces a
/// database that a writer left unfinished, that one is first rolled back, so that none of its journal files reach the new one.
///
/// # Examples
///
/// ```
/// use borehole::heap::{HeapFile, HeapFormat, OpenOptions, write_database};
/// use borehole::{Existing, Output};
///
/// let json = br##"{"context":{"a":{"#node_id":0,"#type":"A","#locations":[]}}}"##;
/// let heap = HeapFile::reader("upload", &json[..])?;
/// let opened = heap.graph(&OpenOptions::default())?;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("heap.db");
/// write_database(&*opened.graph, Output::create_private(&path, Existing::Keep)?, "2026-01-31T12:00:00Z")?;
/// assert_eq!(HeapFile::open(&path)?.format(), HeapFormat::Sqlite);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be written, someone is writing the database that it replaces, or someone else has created a file that
/// is to be kept, which [`Error::is_taken`] tells.
#[cfg(feature = "sqlite")]
pub fn write_database(graph: &dyn Graph, output: Output, created_at: &str) -> Result<(), Error> {
    let name = output.name().to_owned();
    let refused = |error: borehole_sql::Error| Error::new(&name, error);
    let (Some(unfinished), Some(destination)) = (output.unfinished(), output.destination()) else {
        return Err(Error::new(&name, "expected a file"));
    };
    let mut database = Database::create(unfinished).map_err(refused)?;
    database.add_run(&graph, created_at).map_err(refused)?;
    // Closing it writes everything to the file.
    drop(database);
    // The files beside a database that someone else has created are not leftovers.
    if output.is_taken() {
        return Err(Error::new("", output.taken()));
    }
    let _replaced = Replaced::at(destination).map_err(refused)?;
    // The error contains the name already.
    output.complete().map_err(|error| Error::new("", error))
}
