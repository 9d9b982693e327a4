//! Claims on heaps in databases: rows a second of whole exports, indexes included, beside what the database's own tools take
//! for the same rows and indexes; of the rows alone; and what questions and paths take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use borehole_heap::rmem::MappedGraph;
use borehole_sql::{AddStep, Database};
use borehole_testkit::servers::{DATABASE, DatabaseServer, ServerKind};
use serde_json::Value;
use xtask::command;

use super::heap::HeapSetting;
use super::{Bench, Claim, ClaimUnit, Goal};

/// How many objects the heap has whose rows are counted by the second.
const OBJECTS: u32 = 100_000;

/// The questions of which each is to be answered within [`QUESTION_SECONDS`].
const QUESTIONS: [&str; 11] = [
    "types",
    "classes",
    "duplicate-strings",
    "high-refcounts",
    "depths",
    "empty-arrays",
    "back-references",
    "roots",
    "large-strings",
    "wasteful-arrays",
    "regions",
];

const QUESTION_SECONDS: f64 = 2.0;

/// The part of the database's own speed that is wanted.
const RATIO: f64 = 0.7;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let Some(heap) = HeapSetting::new(bench, OBJECTS)?.map(Rc::new) else { return Ok(Vec::new()) };
    xtask::peers::sqlite_shell()?;
    let name = |what: &str| format!("PHP heap, {OBJECTS} objects: {what}");
    let (ours, theirs) = (Rc::clone(&heap), Rc::clone(&heap));
    let mut claims = vec![
        Claim::new(
            name("rows into SQLite"),
            ClaimUnit::PerSecond,
            Goal::Ratio(RATIO),
            Box::new(move || per_second(&ours, |heap| sqlite(heap).map(drop))),
        )
        .against("sqlite3 .import".to_owned(), Box::new(move || per_second(&theirs, import))),
    ];
    let ours = Rc::clone(&heap);
    let inserted = move || inserted(&ours);
    let what = name("rows into SQLite, before indexes");
    claims.push(Claim::new(what, ClaimUnit::PerSecond, Goal::Value(1_000_000.0), Box::new(inserted)));
    let (ours, theirs) = (Rc::clone(&heap), Rc::clone(&heap));
    claims.push(
        Claim::new(
            name("rows into PostgreSQL"),
            ClaimUnit::PerSecond,
            Goal::Both { value: 250_000.0, ratio: RATIO },
            Box::new(move || served(&ours, ServerKind::Postgresql)),
        )
        .against("COPY of pg_dump's file".to_owned(), Box::new(move || restored(&theirs))),
    );
    let (ours, theirs) = (Rc::clone(&heap), Rc::clone(&heap));
    claims.push(
        Claim::new(
            name("rows into MariaDB"),
            ClaimUnit::PerSecond,
            Goal::Both { value: 150_000.0, ratio: RATIO },
            Box::new(move || served(&ours, ServerKind::Mariadb)),
        )
        .against("LOAD DATA of its own files".to_owned(), Box::new(move || loaded(&theirs))),
    );
    claims.extend(asked(&heap, name));
    if let Some(million) = HeapSetting::new(bench, 1_000_000)?.map(Rc::new) {
        let export = move || seconds(|| sqlite(&million).map(drop));
        let name = "PHP heap, 1000000 objects: into SQLite".to_owned();
        claims.push(Claim::new(name, ClaimUnit::Seconds, Goal::Value(180.0), Box::new(export)).once());
    }
    Ok(claims)
}

/// The questions to the database file.
fn asked(heap: &Rc<HeapSetting>, name: impl Fn(&str) -> String) -> Vec<Claim> {
    let mut claims: Vec<Claim> = QUESTIONS
        .into_iter()
        .map(|question| {
            let heap = Rc::clone(heap);
            let ask = move || {
                let database = existing(&heap)?;
                seconds(|| succeed(heap.command(["heap", "query", "--named", question]).arg(&database)))
            };
            let what = name(&format!("question {question}"));
            Claim::new(what, ClaimUnit::Seconds, Goal::Value(QUESTION_SECONDS), Box::new(ask))
        })
        .collect();
    let heap = Rc::clone(heap);
    let paths = move || {
        let database = existing(&heap)?;
        seconds(|| succeed(heap.command(["heap", "paths"]).arg(&database)))
    };
    claims.push(Claim::new(name("paths"), ClaimUnit::Seconds, Goal::Value(3.0), Box::new(paths)));
    claims
}

fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn per_second(heap: &HeapSetting, work: impl FnOnce(&HeapSetting) -> Result<()>) -> Result<f64> {
    let rows = rows(heap)?;
    Ok(rows / seconds(|| work(heap))?)
}

/// How many rows the heap has in all tables of its graph.
fn rows(heap: &HeapSetting) -> Result<f64> {
    let info = command::output(heap.command(["heap", "info", "--json"]).arg(heap.graph()?))?;
    let info: Value = serde_json::from_str(&info)?;
    let count =
        |what: &str| info["counts"][what].as_f64().with_context(|| format!("expected a count of {what}"));
    Ok(count("nodes")? + count("edges")? + count("locations")? + count("attributes")?)
}

/// Writes a new database file.
fn sqlite(heap: &HeapSetting) -> Result<PathBuf> {
    let (graph, database) = (heap.graph()?, heap.file("sqlite3"));
    succeed(heap.command(["heap", "export", "--force"]).arg(graph).arg("--output").arg(&database))?;
    Ok(database)
}

/// Rows a second until all are in their tables, and indexes come next.
fn inserted(heap: &HeapSetting) -> Result<f64> {
    let (rows, bytes) = (rows(heap)?, fs::read(heap.graph()?)?);
    let (graph, file) = (MappedGraph::open(&bytes)?, heap.file("inserted.sqlite3"));
    if file.is_file() {
        fs::remove_file(&file)?;
    }
    let (begin, mut seconds) = (Instant::now(), f64::INFINITY);
    Database::create(&file)?.add_run_in_steps(&graph, "2026-11-22T00:00:00Z", &mut |step| {
        if step == AddStep::Rows {
            seconds = begin.elapsed().as_secs_f64();
        }
    })?;
    fs::remove_file(&file)?;
    Ok(rows / seconds)
}

fn existing(heap: &HeapSetting) -> Result<PathBuf> {
    let database = heap.file("sqlite3");
    if database.is_file() { Ok(database) } else { sqlite(heap) }
}

/// The tables of a database file with rows that are worth measuring.
const TABLES: [&str; 4] =
    ["context_nodes", "context_edges", "context_node_locations", "context_node_attributes"];

/// The rows written by SQLite's own program, with the same indexes behind them, as settings allow.
fn import(heap: &HeapSetting) -> Result<()> {
    let database = existing(heap)?;
    let mut script =
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;\n".to_owned();
    let statements = |kind: &str| {
        let query =
            format!("SELECT sql || ';' FROM sqlite_schema WHERE type = '{kind}' AND sql LIKE 'CREATE%'");
        command::output(Command::new("sqlite3").arg(&database).arg(query))
    };
    script +=
        &statements("table")?.lines().filter(|line| !line.contains("sqlite_")).collect::<Vec<_>>().join("\n");
    for table in TABLES {
        let rows = heap.file(&format!("{table}.csv"));
        if !rows.is_file() {
            let csv = command::output(
                Command::new("sqlite3").args(["-csv"]).arg(&database).arg(format!("SELECT * FROM {table}")),
            )?;
            fs::write(&rows, csv)?;
        }
        script += &format!("\n.mode csv\n.import {} {table}", rows.display());
    }
    script += &format!("\n{}", statements("index")?);
    let (file, fresh) = (heap.file("import.sql"), heap.file("import.sqlite3"));
    fs::write(&file, script)?;
    if fresh.is_file() {
        fs::remove_file(&fresh)?;
    }
    succeed(Command::new("sqlite3").arg(&fresh).arg(format!(".read {}", file.display())))
}

/// Rows a second into a fresh server, in its own configuration.
fn served(heap: &HeapSetting, kind: ServerKind) -> Result<f64> {
    let server = DatabaseServer::start(kind).context("the server is left out")?;
    let address = server.address(DATABASE);
    per_second(heap, |heap| {
        succeed(heap.command(["heap", "export"]).arg(heap.graph()?).args(["--output", &address]))
    })
}

/// Rows a second of a dump with its `COPY` statements and its indexes.
fn restored(heap: &HeapSetting) -> Result<f64> {
    let server = DatabaseServer::start(ServerKind::Postgresql).context("the server is left out")?;
    let (dump, address) = (heap.file("pg.sql"), server.address(DATABASE));
    if !dump.is_file() {
        succeed(heap.command(["heap", "export"]).arg(heap.graph()?).args(["--output", &address]))?;
        succeed(server.program("pg_dump").args(["--no-owner", "--file"]).arg(&dump).arg(&address))?;
    }
    let other = server.address("postgres");
    per_second(heap, |_| restore(&server, &other, &dump))
}

fn restore(server: &DatabaseServer, address: &str, dump: &Path) -> Result<()> {
    succeed(
        server
            .program("psql")
            .args(["--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", "--file"])
            .arg(dump)
            .arg(address),
    )
}

/// Rows a second of files that the server itself has written, into tables of the same shape, and then the same indexes.
fn loaded(heap: &HeapSetting) -> Result<f64> {
    let server = DatabaseServer::start(ServerKind::Mariadb).context("the server is left out")?;
    succeed(
        heap.command(["heap", "export"]).arg(heap.graph()?).args(["--output", &server.address(DATABASE)]),
    )?;
    let client = |statements: &str| {
        let port = format!("--port={}", server.port());
        let named =
            ["--protocol=tcp", "--host=127.0.0.1", &port, "--user=root", "--batch", "--skip-column-names"];
        command::output(server.program("mariadb").args(named).arg(format!("--execute={statements}")))
    };
    let folder = server.authority().parent().context("the server has a folder")?.to_owned();
    let mut load = String::new();
    client("CREATE DATABASE ready")?;
    for table in TABLES {
        let file = folder.join(table).display().to_string();
        client(&format!("SELECT * INTO OUTFILE '{file}' CHARACTER SET utf8mb4 FROM {DATABASE}.{table}"))?;
        client(&format!("CREATE TABLE ready.{table} LIKE {DATABASE}.{table}"))?;
        load += &format!("LOAD DATA INFILE '{file}' INTO TABLE ready.{table} CHARACTER SET utf8mb4;\n");
    }
    let tables = TABLES.map(|table| format!("'{table}'")).join(", ");
    let indexes = |statement: &str| {
        client(&format!(
            "SELECT {statement} FROM information_schema.statistics WHERE table_schema = '{DATABASE}' \
             AND table_name IN ({tables}) AND index_name <> 'PRIMARY' GROUP BY table_name, index_name"
        ))
    };
    client(&indexes("CONCAT('DROP INDEX ', index_name, ' ON ready.', table_name, ';')")?)?;
    load += &indexes(
        "CONCAT('CREATE INDEX ', index_name, ' ON ready.', table_name, '(', GROUP_CONCAT(column_name, \
         IF(sub_part IS NULL, '', CONCAT('(', sub_part, ')')) ORDER BY seq_in_index), ');')",
    )?;
    per_second(heap, |_| client(&load).map(drop))
}
