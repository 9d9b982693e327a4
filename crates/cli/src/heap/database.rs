//! `borehole heap runs`, `query` and `paths`: commands on databases.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use borehole::heap::sql::{
    self, Access, AnswerSink as _, Database, Keep, NamedQuery, Parameters, QUERIES, SqlValue, StoredRun,
};
use borehole::heap::{Address, NodeId};
use borehole_text::{TextTable, bytes, counted};
use clap::Args;

use super::password::{self, WaitArgs};
use super::table::{Form, Printer};
use crate::exit::Exit;
use crate::messages::{out, say};
use crate::utc;
use crate::values::{duration, node, size};

/// Runs `act` on a database, whose name is added to errors.
pub(super) fn with<T>(
    path: &Path,
    access: Access,
    waits: WaitArgs,
    act: impl FnOnce(&mut Database) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let address = password::asked(Address::new(path), access, waits)?;
    let mut database = address.open(access)?;
    if let Some(timeout) = waits.timeout {
        database.set_timeout(timeout);
    }
    act(&mut database).map_err(|error| match error.downcast::<sql::Error>() {
        Ok(error) => address.refused(error).into(),
        // Errors of the output name it themselves.
        Err(error) if error.is::<borehole::Error>() => error,
        Err(error) => error.context(address.name()),
    })
}

/// `borehole heap runs`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunsArgs {
    /// A database: a file, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE
    #[arg(value_name = "FILE")]
    database: PathBuf,

    /// Delete this run
    #[arg(long, value_name = "RUN", group = "deletion")]
    delete_run: Option<i64>,

    /// Delete all but the last COUNT runs
    #[arg(long, value_name = "COUNT", group = "deletion")]
    keep_last: Option<u64>,

    /// Delete runs captured longer ago than this, such as 30d or 12h; runs without a time stay
    #[arg(long, value_name = "DURATION", value_parser = duration, group = "deletion")]
    older_than: Option<Duration>,

    /// Print one JSON object per run
    #[arg(long, conflicts_with = "deletion")]
    json: bool,

    #[command(flatten)]
    waits: WaitArgs,
}

impl RunsArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if let Some(run) = self.delete_run {
            with(&self.database, Access::Write, self.waits, |database| Ok(database.delete_run(run)?))?;
            return Ok(Exit::Done);
        }
        if let Some(keep) = self.keep() {
            let old = with(&self.database, Access::Write, self.waits, |database| {
                Ok(database.delete_old_runs(&keep)?)
            })?;
            say(&format!("{} deleted", counted(old.len() as u64, "run")));
            return Ok(Exit::Done);
        }
        let runs = with(&self.database, Access::Read, self.waits, |database| Ok(database.runs()?))?;
        let row = |run: StoredRun| {
            vec![
                SqlValue::Integer(run.id),
                SqlValue::Text(run.created_at),
                SqlValue::Integer(run.nodes.cast_signed()),
            ]
        };
        let mut printer = Printer::new(if self.json { Form::Json } else { Form::Text });
        printer.columns(&["run_id", "created_at", "nodes"].map(str::to_owned))?;
        runs.into_iter().try_for_each(|run| printer.row(row(run)))?;
        printer.finish()?;
        Ok(Exit::Done)
    }

    fn keep(&self) -> Option<Keep> {
        let since = |age: Duration| Keep::Since(utc::iso(utc::now_s().saturating_sub(age.as_secs())));
        self.keep_last.map(Keep::Last).or_else(|| self.older_than.map(since))
    }
}

/// `borehole heap query`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HeapQueryArgs {
    /// A database: a file, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE
    #[arg(value_name = "FILE")]
    database: PathBuf,

    /// An SQL statement; :run, :other and :node stand for the values of --run-id, --other-run and --node
    #[arg(value_name = "SQL", required_unless_present_any = ["named", "list"], conflicts_with_all = ["named", "list"])]
    statement: Option<String>,

    /// A named query
    #[arg(long, value_name = "NAME")]
    named: Option<String>,

    /// List the named queries
    #[arg(long)]
    list: bool,

    /// The run [default: the last]
    #[arg(long, value_name = "RUN")]
    run_id: Option<i64>,

    /// A second run to compare with
    #[arg(long, value_name = "RUN")]
    other_run: Option<i64>,

    /// A node, such as #40
    #[arg(long, value_name = "NODE", value_parser = node)]
    node: Option<NodeId>,

    /// Print one JSON object per row
    #[arg(long)]
    json: bool,

    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    waits: WaitArgs,
}

impl HeapQueryArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if self.list {
            let mut queries = TextTable::facts();
            QUERIES.iter().for_each(|query| queries.row([query.name, query.doc]));
            queries.lines().iter().try_for_each(|line| out(line))?;
            return Ok(Exit::Done);
        }
        let mut printer = Printer::new(match (self.json, self.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Text,
        });
        with(&self.database, Access::Read, self.waits, |database| match (&self.statement, &self.named) {
            (Some(statement), _) => self.query(database, statement, &mut printer),
            (None, Some(name)) => self.ask(database, name, &mut printer),
            (None, None) => bail!("missing query: expected a statement, --named NAME or --list"),
        })?;
        printer.finish()?;
        Ok(Exit::Done)
    }

    fn query(
        &self,
        database: &mut Database,
        statement: &str,
        printer: &mut Printer<impl Write>,
    ) -> anyhow::Result<()> {
        let dialect = database.dialect();
        self.check("the statement", |name| dialect.uses(statement, name))?;
        database.query_into(statement, self.parameters(), printer)
    }

    fn ask(
        &self,
        database: &mut Database,
        name: &str,
        printer: &mut Printer<impl Write>,
    ) -> anyhow::Result<()> {
        let query = NamedQuery::find(name)
            .ok_or_else(|| anyhow!("unsupported query: found {name}; --list prints the named queries"))?;
        self.check(name, |parameter| query.needs(parameter))?;
        database.ask_into(query, self.parameters(), printer)
    }

    /// The node's number in databases.
    fn node(&self) -> Option<i64> {
        self.node.map(|NodeId(number)| number.into())
    }

    fn parameters(&self) -> Parameters {
        Parameters { run: self.run_id, other: self.other_run, node: self.node() }
    }

    /// Fails if an option that the query `needs` is missing, or if one that it does not use is given.
    fn check(&self, question: &str, needs: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        let options = [
            (":run", self.run_id, "--run-id"),
            (":other", self.other_run, "--other-run"),
            (":node", self.node(), "--node"),
        ];
        for (name, value, option) in options {
            match (needs(name), value) {
                // The last run is the default.
                (true, None) if name == ":run" => {}
                (true, None) => bail!("missing {option}: {question} needs it"),
                (false, Some(value)) => {
                    bail!("unsupported {option} {value}: {question} does not use {name}")
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// `borehole heap paths`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PathsArgs {
    /// A database: a file, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE
    #[arg(value_name = "FILE")]
    database: PathBuf,

    /// The run [default: all]
    #[arg(long, value_name = "RUN")]
    run_id: Option<i64>,

    /// Write only the parent of each node, into node_parents, which takes far less space; the view v_parent_paths derives paths
    #[arg(long)]
    compact: bool,

    /// The most that the paths of a run may take as text; a long list takes the square of its length
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4G", conflicts_with = "compact")]
    max_size: u64,

    /// Only print how much would be written
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    waits: WaitArgs,
}

impl PathsArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let form = match (self.dry_run, self.compact) {
            (true, _) => PathForm::None,
            (false, true) => PathForm::Compact,
            (false, false) => PathForm::Whole { most_bytes: self.max_size },
        };
        paths(&self.database, self.run_id, form, self.waits)
    }
}

/// The form in which paths are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathForm {
    /// Not at all.
    None,
    /// The parent of each node.
    Compact,
    /// Each path from its root.
    Whole {
        /// The maximum number of bytes per run.
        most_bytes: u64,
    },
}

impl PathForm {
    /// Each path from its root, with the default limit.
    pub(crate) const WHOLE: Self = Self::Whole { most_bytes: 4 << 30 };
}

/// Writes the paths of a run, or of all runs.
pub(crate) fn paths(path: &Path, run: Option<i64>, form: PathForm, waits: WaitArgs) -> anyhow::Result<Exit> {
    let access = if matches!(form, PathForm::None) { Access::Read } else { Access::Write };
    with(path, access, waits, |database| {
        let runs = match run {
            Some(run) => vec![run],
            None => database.run_ids()?,
        };
        for run in runs {
            let paths = database.paths(run)?;
            let sizes = paths.sizes();
            say(&format!(
                "run {run}: {} paths, {} as text, {} compact",
                sizes.nodes,
                bytes(sizes.bytes),
                bytes(sizes.link_bytes)
            ));
            match form {
                PathForm::None => {}
                PathForm::Compact => database.write_parents(&paths)?,
                PathForm::Whole { most_bytes } => {
                    ensure!(
                        sizes.bytes <= most_bytes,
                        "run {run}: paths too large: expected at most {}, found {}; write them with borehole heap paths --compact, or \
                         raise --max-size",
                        bytes(most_bytes),
                        bytes(sizes.bytes)
                    );
                    database.write_paths(&paths)?;
                }
            }
        }
        Ok(Exit::Done)
    })
}
