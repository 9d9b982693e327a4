//! Databases with heaps that reli recorded, and the queries of reli's document.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod document;
mod hostile;
mod older;
mod questions;
mod runs;
mod servers;

use std::path::PathBuf;

use borehole_heap::{HeapGraph, json};
use borehole_sql::Database;
use borehole_testkit::{Scratch, corpus};

/// The heap of a program as reli recorded it.
fn heap(program: &str) -> HeapGraph {
    let path = corpus(&format!("php/reli-json/{program}.json.gz"));
    let file = std::fs::File::open(path).unwrap();
    let mut json = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(file), &mut json).unwrap();
    json::read(&json).unwrap()
}

/// A database with a run of each program.
fn database(scratch: &Scratch, programs: &[&str]) -> PathBuf {
    let path = scratch.path("heaps.sqlite3");
    for program in programs {
        let opened = if path.exists() { Database::open(&path) } else { Database::create(&path) };
        opened.unwrap().add_run(&heap(program), "2026-11-21T12:00:00Z").unwrap();
    }
    path
}
