//! Databases, filled with what reli saw in real heaps, and asked what reli's document asks.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

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

/// What reli saw in the heap of a program.
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
