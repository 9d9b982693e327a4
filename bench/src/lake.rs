//! Claims on lakes: what a fleet's traces take on the way in, and how soon questions about all of them are answered, beside
//! DuckDB, which reads the same files.

use std::cell::{Cell, OnceCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use borehole_testkit::LakeCluster;
use serde_json::Value;
use xtask::{command, peers};

use super::fleet::{self, SAMPLES};
use super::measure::{Usage, Work};
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// A lake of the whole fleet.
struct LakeSetting {
    program: PathBuf,
    folder: PathBuf,
    traces: Vec<PathBuf>,
    /// The cost of filling it in this run.
    filled: OnceCell<Usage>,
    /// Whether it was compacted then.
    is_compacted: Cell<bool>,
}

impl LakeSetting {
    /// The cost of filling a new lake, which is filled once a run.
    fn filled(&self) -> Result<Usage> {
        if let Some(&usage) = self.filled.get() {
            return Ok(usage);
        }
        if self.folder.is_dir() {
            fs::remove_dir_all(&self.folder)?;
        }
        let inputs = self.traces.iter().map(|trace| trace.as_os_str().to_owned());
        let arguments = ["add".into(), self.folder.as_os_str().to_owned()].into_iter().chain(inputs);
        let usage = Work::new(&self.program, arguments).run()?;
        Ok(*self.filled.get_or_init(|| usage))
    }

    /// The lake, filled and compacted, as users who care for theirs have it.
    fn there(&self) -> Result<&Path> {
        self.filled()?;
        if !self.is_compacted.get() {
            Work::new(&self.program, [Path::new("compact"), &self.folder]).run()?;
            self.is_compacted.set(true);
        }
        Ok(&self.folder)
    }

    /// All bytes of Parquet files, stacks included, a sample.
    fn bytes_a_sample(&self) -> Result<f64> {
        let folder = self.there()?;
        let info = command::output(Command::new(&self.program).arg("info").arg("--json").arg(folder))?;
        let info: Value = serde_json::from_str(&info)?;
        let tables = info["tables"].as_array().context("expected tables")?;
        let bytes = tables.iter().filter_map(|table| table["bytes"].as_f64()).sum::<f64>();
        Ok(bytes / SAMPLES as f64)
    }

    /// The time until all of an answer is there.
    fn seconds(&self, arguments: &[&str]) -> Result<f64> {
        let (question, rest) = arguments.split_first().context("a question")?;
        let mut asked = Command::new(&self.program);
        asked.arg(question).arg(self.there()?).args(rest).stdin(Stdio::null());
        let begin = Instant::now();
        let output = asked.output()?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(output.status.success(), "{asked:?}: {}", String::from_utf8_lossy(&output.stderr));
        ensure!(!output.stdout.is_empty(), "{asked:?} says nothing");
        Ok(seconds)
    }

    /// The files of a table as DuckDB reads them.
    fn view(&self, table: &str) -> Result<String> {
        let folder = self.there()?;
        let files =
            command::output(Command::new(&self.program).arg("info").arg(folder).args(["--files", table]))?;
        let files: Vec<_> = files.lines().map(|file| format!("'{}/{file}'", folder.display())).collect();
        let files = files.join(", ");
        Ok(format!("CREATE VIEW {table} AS SELECT * FROM read_parquet([{files}], hive_partitioning = true)"))
    }

    /// The time that DuckDB takes for `sql` over the same files, its own start left out.
    fn seconds_elsewhere(&self, duckdb: &[String], sql: &str) -> Result<f64> {
        let views = [self.view("samples")?, self.view("stacks")?];
        let zone = "SET TimeZone = 'UTC'";
        let answer =
            command::output(Command::new(&duckdb[0]).args(&duckdb[1..]).args(views).arg(zone).arg(sql))?;
        let last = answer.lines().last().context("DuckDB says nothing")?;
        ensure!(answer.lines().count() > 1, "expected rows from DuckDB");
        let said: Value = serde_json::from_str(last)?;
        said["seconds"].as_f64().with_context(|| format!("expected seconds, found {last}"))
    }
}

/// An hour of the fleet, as questions name it.
const SINCE: &str = "2026-11-02T10:00:00Z";
const UNTIL: &str = "2026-11-02T11:00:00Z";

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let lake = Rc::new(LakeSetting {
        program: bench.lake.clone(),
        folder: bench.folder.join("fleet-lake"),
        traces: fleet::traces(bench)?,
        filled: OnceCell::new(),
        is_compacted: Cell::new(false),
    });
    let fleet = format!("{} machines, {} million samples", fleet::HOSTS, SAMPLES / 1_000_000);
    let of_lake = |what: &str, unit, goal, work: fn(&LakeSetting) -> Result<f64>| {
        let lake = Rc::clone(&lake);
        let side: Side = Box::new(move || work(&lake));
        Claim::new(format!("lake of {fleet}: {what}"), unit, Goal::Value(goal), side).once()
    };
    let mut claims = vec![
        of_lake("samples added", ClaimUnit::PerSecond, 1.5e6, |lake| {
            Ok(SAMPLES as f64 / lake.filled()?.cpu_seconds)
        }),
        of_lake("memory of adding", ClaimUnit::Bytes, 256e6, |lake| Ok(lake.filled()?.peak_bytes)),
        of_lake(
            "bytes a sample, compacted, stacks included",
            ClaimUnit::Bytes,
            4.0,
            LakeSetting::bytes_a_sample,
        ),
        long_input(bench),
    ];
    claims.extend(questions(&lake, &fleet)?);
    claims.push(by_executors(&lake, &fleet));
    claims.push(of_late_minutes(bench));
    Ok(claims)
}

/// The minutes for which a fleet writes into a new lake.
const MINUTES: usize = 500;
/// The minutes at both ends that are compared.
const COMPARED_MINUTES: usize = 32;

/// The cost of adding to a lake that many minutes were added to, without a command but `add`: at most a fifth above the cost of
/// the first minutes.
fn of_late_minutes(bench: &Bench) -> Claim {
    let (program, folder) = (bench.lake.clone(), bench.folder.join("minutes"));
    let costs = Rc::new(OnceCell::<Vec<f64>>::new());
    let of = move |minutes: std::ops::Range<usize>| -> Side {
        let (program, folder, costs) = (program.clone(), folder.clone(), Rc::clone(&costs));
        Box::new(move || {
            if costs.get().is_none() {
                let _ = costs.set(costs_of_minutes(&program, &folder)?);
            }
            let costs = costs.get().context("costs")?;
            Ok(costs[minutes.clone()].iter().sum::<f64>() / minutes.len() as f64)
        })
    };
    let hosts = fleet::MinuteFleet::HOSTS;
    let name =
        format!("lake: adding a minute of {hosts} machines, a ten-second profile each, {MINUTES} minutes in");
    let first = format!("the first {COMPARED_MINUTES} minutes");
    Claim::new(name, ClaimUnit::Seconds, Goal::Ratio(1.0 / 1.2), of(MINUTES - COMPARED_MINUTES..MINUTES))
        .against(first, of(0..COMPARED_MINUTES))
        .once()
}

/// The CPU time that each minute takes to add, in a process of its own.
fn costs_of_minutes(program: &Path, folder: &Path) -> Result<Vec<f64>> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    let (fleet, lake) = (fleet::MinuteFleet::new(folder.join("traces"))?, folder.join("lake"));
    let cost = |minute| {
        let inputs = fleet.minute(minute)?;
        let arguments = ["add".into(), lake.clone()].into_iter().chain(inputs);
        Ok(Work::new(program, arguments).run()?.cpu_seconds)
    };
    (0..MINUTES).map(cost).collect()
}

/// How much sooner two executors answer than one: no goal is set, and two must not be slower.
fn by_executors(lake: &Rc<LakeSetting>, fleet: &str) -> Claim {
    let by = |executors| -> Side {
        let lake = Rc::clone(lake);
        Box::new(move || {
            let cluster = LakeCluster::start(|| Command::new(&lake.program), executors, |_| ())?;
            let question = ["top", "--cluster", cluster.url()];
            // The first question waits until the executors are known.
            lake.seconds(&question)?;
            lake.seconds(&question)
        })
    };
    let name = format!("lake of {fleet}: top functions of all, by two executors");
    Claim::new(name, ClaimUnit::Seconds, Goal::Ratio(1.0), by(2)).against("one executor".to_owned(), by(1))
}

/// The memory that one input takes which does not fit into it.
fn long_input(bench: &Bench) -> Claim {
    let (program, folder) = (bench.lake.clone(), bench.folder.join("long-lake"));
    let input = bench.folder.join("restless-100m.rbt");
    let side = move || {
        if folder.is_dir() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(Work::new(&program, [Path::new("add"), &folder, &input]).run()?.peak_bytes)
    };
    let name = "lake: memory of adding restless-100m.rbt".to_owned();
    Claim::new(name, ClaimUnit::Bytes, Goal::Value(256e6), Box::new(side)).once()
}

/// The questions that are asked most, beside DuckDB's answers where that is set up.
fn questions(lake: &Rc<LakeSetting>, fleet: &str) -> Result<Vec<Claim>> {
    let service = fleet::service_name(3);
    let of_hour = ["--service", &service, "--since", SINCE, "--until", UNTIL].map(str::to_owned);
    let condition = format!("service = '{service}' AND time >= '{SINCE}' AND time < '{UNTIL}'");
    let (all, hour) = (vec!["top".to_owned()], with(&["top".to_owned()], &of_hour));
    let flame = with(&hour, &["--to".to_owned(), "flamegraph".to_owned()]);
    let counts = format!(
        "SELECT stack, value FROM (SELECT stack_id, sum(value) AS value FROM samples WHERE {condition} GROUP BY 1) \
         JOIN stacks USING (stack_id)"
    );
    let asked = [
        ("top functions of all", 3.0, all, top("true")),
        ("top functions of a service in an hour", 0.3, hour, top(&condition)),
        ("flame graph of a service in an hour (beside: its stacks)", 0.5, flame, counts),
    ];
    let duckdb = peers::ready("duckdb")?;
    if duckdb.is_none() {
        eprintln!("WITHOUT duckdb: questions to lakes stand alone");
    }
    let claims = asked.into_iter().map(|(what, goal, arguments, sql)| {
        let ours = Rc::clone(lake);
        let side: Side =
            Box::new(move || ours.seconds(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
        let claim =
            Claim::new(format!("lake of {fleet}: {what}"), ClaimUnit::Seconds, Goal::Value(goal), side);
        let Some(duckdb) = &duckdb else { return claim };
        let (theirs, command) = (Rc::clone(lake), duckdb.command.clone());
        let name = format!("DuckDB {}", duckdb.version);
        claim.against(name, Box::new(move || theirs.seconds_elsewhere(&command, &sql)))
    });
    Ok(claims.collect())
}

fn with(arguments: &[String], more: &[String]) -> Vec<String> {
    [arguments, more].concat()
}

/// The question of `borehole lake top` in DuckDB's SQL.
fn top(condition: &str) -> String {
    format!(
        "SELECT function, sum(CASE WHEN function = leaf THEN value ELSE 0 END) AS self, sum(value) AS total FROM \
         (SELECT unnest(list_distinct(stack)) AS function, stack[-1] AS leaf, value FROM \
         (SELECT stack_id, sum(value) AS value FROM samples WHERE {condition} GROUP BY 1) JOIN stacks USING (stack_id)) \
         GROUP BY function ORDER BY self DESC, total DESC, function LIMIT 20"
    )
}
