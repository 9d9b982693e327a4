//! PHP heaps in databases: the schema of reli's memory database, filled from a heap graph, and read back.
//!
//! [`schema`] describes the tables once; [`dialect`] says it in the words of SQLite, PostgreSQL and MySQL.
#![forbid(unsafe_code)]

mod answer;
pub mod dialect;
mod error;
mod page;
mod paths;
mod queries;
mod rows;
pub mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod text;

pub use answer::{Answer, Value};
pub use error::{Error, ErrorKind};
pub use page::page;
pub use paths::{PathSizes, Paths};
pub use queries::{QUERIES, Query};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;

/// A run of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// When it was written, in ISO 8601.
    pub created_at: String,
    /// How many nodes it has.
    pub nodes: u64,
}

/// What the names in a [`Query`] stand for. One that the query needs and that is absent is `NULL`, which nothing equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The run.
    pub run: Option<i64>,
    /// A second run.
    pub other: Option<i64>,
    /// A node.
    pub node: Option<i64>,
}
