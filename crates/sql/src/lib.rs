//! PHP heaps in databases: writes a heap graph in the schema of reli's memory database, and reads it back.
//!
//! [`schema`] describes the tables once; [`dialect`] translates them to the SQL of SQLite, PostgreSQL and MySQL.
#![forbid(unsafe_code)]

mod answer;
mod backend;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
mod cells;
mod database;
pub mod dialect;
#[cfg_attr(
    not(any(feature = "postgresql", feature = "mysql")),
    expect(dead_code, reason = "an address is read before it is known that there is no client for it")
)]
mod encryption;
mod error;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "postgresql", feature = "mysql"))]
mod number;
mod page;
mod paths;
mod percent;
mod pipe;
#[cfg(feature = "postgresql")]
mod postgresql;
mod queries;
mod rows;
pub mod schema;
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
pub use borehole_model::text;
#[cfg(feature = "sqlite")]
mod replaced;
#[cfg(all(feature = "tls", feature = "postgresql"))]
mod tls;

pub use answer::{Answer, AnswerSink, Value};
pub use database::{Added, Database, Keep, Step};
pub use error::{Error, ErrorKind};
pub use page::page;
pub use paths::{PathSizes, Paths};
pub use queries::{QUERIES, Query};
#[cfg(feature = "sqlite")]
pub use replaced::Replaced;
pub use server::{Access, Server, ServerKind};

/// A run of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the run.
    pub id: i64,
    /// The time when its heap was captured, in ISO 8601; empty if unknown.
    pub created_at: String,
    /// The number of nodes.
    pub nodes: u64,
}

/// The parameters of a [`Query`]. A second run or a node that is needed and absent is `NULL`, which equals nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The run; `None`: the last one.
    pub run: Option<i64>,
    /// A second run.
    pub other: Option<i64>,
    /// A node.
    pub node: Option<i64>,
}

impl Parameters {
    /// Parameters with only a run.
    pub(crate) const fn of_run(run: i64) -> Self {
        Self { run: Some(run), other: None, node: None }
    }

    /// The parameters with their names.
    pub(crate) const fn all(self) -> [(&'static str, Option<i64>); 3] {
        [(":run", self.run), (":other", self.other), (":node", self.node)]
    }
}
