//! Profiles and heaps served to people, programs and assistants.
//!
//! The catalogue lists the inputs below some paths, the cache holds what was read of them, and questions are answered from
//! there, in the same words whoever asks: the explorer in a browser, the JSON API, an assistant, or the command line.
//!
//! Nothing outside the paths is read. A file that cannot be read is an answer, never the end of the server.

#![forbid(unsafe_code)]

mod api;
mod assistant;
mod cache;
mod catalogue;
mod command;
mod desk;
mod guard;
mod lakes;
mod limits;
mod opened;
mod pages;
mod questions;
mod received;
mod recordings;
mod refusal;
mod server;
mod stalls;
mod tls;

pub use assistant::ToolSet;
pub use command::{QueryAnswer, assist, query};
pub use lakes::LakeOptions;
pub use recordings::RecordingCommand;
pub use refusal::{Refusal, RefusalKind};
pub use server::{ServeOptions, Server};
pub use tls::TlsFiles;
