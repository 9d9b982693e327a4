//! Commands that inspect and maintain a lake.

use borehole_query::{Cleared, Lake, LakeInfo, Retention, format_time_us};
use borehole_text::{TextColumn, TextTable, counted, grouped};
use clap::Args;
use serde_json::json;

use super::open;
use crate::cell::sized;
use crate::exit::Exit;
use crate::messages::{out, show};

/// `borehole lake info`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LakeInfoArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Print the paths of a table's files, for other engines that read Parquet
    #[arg(long, value_name = "TABLE", conflicts_with = "json")]
    files: Option<String>,

    /// Print SQL for DuckDB that makes a view of each table, and functions as in our SQL
    #[arg(long, conflicts_with_all = ["json", "files"])]
    duckdb: bool,

    /// Print SQL for DuckDB that makes the tables of a DuckLake catalog, attached as `lake`, which other programs then read
    #[arg(long, conflicts_with_all = ["json", "files", "duckdb"])]
    ducklake: bool,

    /// Print nothing, and fail only if nothing could be added to this lake, whether it exists or not
    #[arg(long, hide = true, conflicts_with_all = ["json", "files", "duckdb", "ducklake"])]
    only_look: bool,
}

/// `borehole lake check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LakeCheckArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `borehole lake compact`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompactArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,
}

/// `borehole lake retain`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RetainArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// Delete files whose rows are all older than this many days
    #[arg(long, value_name = "DAYS")]
    days: u32,

    /// Delete only rows of this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Delete only rows of this table, such as events
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,

    /// Delete only measures of this kind, such as alloc_space
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
}

pub(crate) fn info(args: &LakeInfoArgs) -> anyhow::Result<Exit> {
    if args.only_look {
        Lake::check_place(&args.lake)?;
        return Ok(Exit::Done);
    }
    let lake = open(&args.lake)?;
    if let Some(table) = &args.files {
        lake.files(table)?.iter().try_for_each(|path| out(path))?;
        return Ok(Exit::Done);
    }
    if args.duckdb {
        return print(&lake.duckdb_views()?);
    }
    if args.ducklake {
        return print(&lake.ducklake_catalog()?);
    }
    let info = lake.info()?;
    if args.json {
        out(&object(&info).to_string())?;
        return Ok(Exit::Done);
    }
    out(&format!(
        "{}: {} added, version {}, changed {}",
        args.lake,
        counted(info.sources, "input"),
        info.version,
        format_time_us(info.changed_us)
    ))?;
    show(&format!("services: {}", info.services.join(", ")))?;
    let numbers = ["files", "rows", "bytes", "bytes/row"].map(TextColumn::number);
    let columns = [TextColumn::name("table")].into_iter().chain(numbers);
    let mut tables = sized(TextTable::new(columns.chain([TextColumn::name("time range")])));
    for table in info.tables.iter().filter(|table| table.files > 0) {
        #[expect(clippy::cast_precision_loss, reason = "an average with two digits")]
        let average = table.bytes as f64 / table.rows.max(1) as f64;
        let span = table.span_us.map_or_else(String::new, |(first, last)| {
            format!("{} {}", format_time_us(first), format_time_us(last))
        });
        let [files, rows, bytes] = [table.files, table.rows, table.bytes].map(grouped);
        tables.row([table.name, &files, &rows, &bytes, &format!("{average:.2}"), &span]);
    }
    tables.lines().iter().try_for_each(|line| out(line))?;
    Ok(Exit::Done)
}

/// Prints text that is data.
fn print(text: &str) -> anyhow::Result<Exit> {
    out(text.trim_end())?;
    Ok(Exit::Done)
}

fn object(info: &LakeInfo) -> serde_json::Value {
    let tables = info.tables.iter().map(|table| {
        json!({
            "name": table.name,
            "files": table.files,
            "rows": table.rows,
            "bytes": table.bytes,
            "first_us": table.span_us.map(|(first, _)| first),
            "last_us": table.span_us.map(|(_, last)| last),
        })
    });
    json!({
        "schema_version": 1,
        "version": info.version,
        "changed_us": info.changed_us,
        "sources": info.sources,
        "services": info.services,
        "tables": tables.collect::<Vec<_>>(),
    })
}

pub(crate) fn check(args: &LakeCheckArgs) -> anyhow::Result<Exit> {
    let checked = open(&args.lake)?.check()?;
    if args.json {
        let findings = checked
            .findings
            .iter()
            .map(|finding| json!({ "path": finding.path, "message": finding.message }));
        let object = json!({
            "schema_version": 1,
            "files": checked.files,
            "bytes": checked.bytes,
            "strays": checked.strays,
            "findings": findings.collect::<Vec<_>>(),
        });
        out(&object.to_string())?;
    } else {
        for finding in &checked.findings {
            show(&format!("{}: {}", finding.path, finding.message))?;
        }
        let (files, found) =
            (counted(checked.files, "file"), counted(checked.findings.len() as u64, "finding"));
        out(&format!("{files}, {}: {found}", counted(checked.bytes, "byte")))?;
        if checked.strays > 0 {
            out(&format!(
                "{} in no commit: being written, or left behind and deleted after two days",
                counted(checked.strays, "file")
            ))?;
        }
    }
    Ok(if checked.findings.is_empty() { Exit::Done } else { Exit::Damaged })
}

pub(crate) fn compact(args: &CompactArgs) -> anyhow::Result<Exit> {
    let done = open(&args.lake)?.compact()?;
    let (before, after) = (counted(done.files_before, "file"), counted(done.files_after, "file"));
    out(&format!(
        "merged {before} ({}) into {after} ({})",
        counted(done.bytes_before, "byte"),
        counted(done.bytes_after, "byte")
    ))?;
    if done.overtaken > 0 {
        out(&format!("{} left to a concurrent compaction", counted(done.overtaken, "group")))?;
    }
    cleared(done.cleared)
}

pub(crate) fn retain(args: &RetainArgs) -> anyhow::Result<Exit> {
    let RetainArgs { days, service, table, kind, .. } = args.clone();
    let done = open(&args.lake)?.retain(&Retention { days, service, table, kind })?;
    out(&format!(
        "deleted {} of {} ({}) and {}",
        counted(done.rows.values().sum(), "row"),
        counted(done.files, "file"),
        counted(done.bytes, "byte"),
        counted(done.stacks, "stack")
    ))?;
    cleared(done.cleared)
}

pub(super) fn cleared(cleared: Cleared) -> anyhow::Result<Exit> {
    if cleared.files > 0 {
        out(&format!(
            "deleted {} ({}) that no reader needs",
            counted(cleared.files, "file"),
            counted(cleared.bytes, "byte")
        ))?;
    }
    if cleared.waiting > 0 {
        out(&format!(
            "{} to be deleted later, when no reader or writer can be active",
            counted(cleared.waiting, "file")
        ))?;
    }
    Ok(Exit::Done)
}
