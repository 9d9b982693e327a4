//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! PHP heaps in databases: writes a heap graph in the schema of reli's memory database, and reads it back.
//!
//! [`schema`] describes the tables once; [`dialect`] translates them to the SQL of SQLite, PostgreSQL and MySQL.
#![forbid(unsafe_code)]
// Without any kind of database, what they share has no user.
#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgresql", feature = "mysql")),
    allow(dead_code, unused_imports)
)]

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
#[cfg(feature = "sqlite")]
mod foreign;
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
#[cfg_attr(
    not(any(feature = "postgresql", feature = "mysql")),
    expect(dead_code, reason = "an address is read before it is known that there is no client for it")
)]
mod time_limits;
pub use borehole_text::lossless as text;
#[cfg(feature = "sqlite")]
mod replaced;
#[cfg(all(feature = "tls", feature = "postgresql"))]
mod tls;

pub use answer::{AnswerSink, QueryAnswer, SqlValue};
pub use database::{AddStep, AddedRun, Database, Keep, StoredRun};
pub use error::{Error, ErrorKind, SpentLimit};
pub use page::page;
pub use paths::{NodePaths, PathSizes};
pub use queries::{NamedQuery, Parameters, QUERIES};
#[cfg(feature = "sqlite")]
pub use replaced::Replaced;
pub use server::{Access, Server, ServerSoftware};
