//! PHP heaps in databases: the schema of reli's memory database, filled from a heap graph, and read back.
//!
//! [`schema`] describes the tables once; [`dialect`] says it in the words of SQLite, PostgreSQL and MySQL.
#![forbid(unsafe_code)]

pub mod dialect;
mod error;
mod rows;
pub mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod text;

pub use error::{Error, ErrorKind};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
