//! The command in use: the real program, real files, real pipes.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod archives;
#[cfg(feature = "serve")]
mod assistants;
mod browser;
mod capture;
mod check;
mod choosing;
mod conversions;
mod corrupted;
mod databases;
mod diff;
mod dump;
mod engine_modes;
mod envelopes;
mod explore;
#[cfg(feature = "serve")]
mod explorer;
#[cfg(feature = "serve")]
mod faults;
mod glossary;
mod heap;
mod heap_growth;
mod heap_holders;
mod heap_memory;
mod heap_query;
mod heap_walk;
mod info;
mod inputs;
mod interrupts;
mod kills;
#[cfg(feature = "lake")]
mod lake;
#[cfg(feature = "lake-azure")]
mod lake_azure;
#[cfg(feature = "lake-cluster")]
mod lake_cluster;
#[cfg(feature = "lake")]
mod lake_exports;
#[cfg(feature = "lake")]
mod lake_labels;
#[cfg(feature = "lake-s3")]
mod lake_storage;
mod leaks;
mod live_python;
mod nasty_names;
mod out_of_memory;
mod outputs;
mod page;
mod pages;
mod php_hosts;
mod pool;
mod pprof_top;
mod program;
mod python;
mod python_servers;
mod recipes;
mod recover;
mod reli;
mod report;
mod samplers;
mod serialized;
#[cfg(feature = "serve")]
mod serve;
mod sums;
mod suspensions;
mod symbolize;
mod terminal;
mod thread_names;
mod timeline;
mod tokio;
mod tokio_page;
mod values;
