//! `borehole heap compare`: changes between heaps.

mod text;

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{bail, ensure};
use borehole::heap::compare::{
    FurtherChange, HeapComparison, HolderChange, HolderList, MetricSeries, TotalChange, compare,
    growth_percent,
};
use borehole::heap::retention::Follow;
use borehole::heap::sql::Access;
use borehole::heap::{Graph, HeapFile, Opened};
use clap::Args;

use super::database::with;
use super::file::HeapInputArgs;
use super::output::{TextOutput, document};
use super::password;
use crate::cell::terminal_width;
use crate::exit::Exit;
use crate::messages::say;
use crate::values::{RowLimit, percent, size};

/// `borehole heap compare`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// Heaps, the oldest first, or one database with two runs
    #[arg(value_name = "FILE", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// The run of the first heap, in a database [default: the last; of a single database, the one before]
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id_baseline: Option<i64>,

    /// The run of the last heap, in a database [default: the last]
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id_target: Option<i64>,

    /// Hide changes of less than this percentage
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value_t = 0.0)]
    pub(crate) threshold: f64,

    /// Rows of each table; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    pub(crate) limit: RowLimit,

    // The name of that option.
    #[arg(skip = "--limit")]
    pub(crate) limit_option: &'static str,

    /// Exit with 1 if memory grew by more than this: 64M, 500K, 10%
    #[arg(long, value_name = "SIZE")]
    pub(crate) fail_over: Option<Allowance>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Indent JSON
    #[arg(long, requires = "json")]
    pub(crate) pretty: bool,

    #[command(flatten)]
    pub(crate) output: TextOutput,

    #[command(flatten)]
    pub(crate) memory: HeapInputArgs,
}

/// The error for a heap that would be compared with itself.
fn twice(name: &str, run: i64) -> String {
    format!("{name}: expected two different runs, found run {run} twice")
}

/// The columns of a comparison in a file.
const REPORT_COLUMNS: usize = 100;

/// How much memory may grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Allowance {
    Bytes(u64),
    Percent(f64),
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected a size such as 64M or a percentage such as 10%, found {text}");
        if text.ends_with('%') {
            return percent(text).map(Self::Percent).map_err(|_| expected());
        }
        size(text).map(Self::Bytes).map_err(|_| expected())
    }
}

impl Allowance {
    fn is_crossed(self, comparison: &HeapComparison) -> bool {
        let (Some(first), Some(last)) = (comparison.heaps.first(), comparison.heaps.last()) else {
            return false;
        };
        let grown = last.bytes.saturating_sub(first.bytes);
        match self {
            Self::Bytes(bytes) => grown > bytes,
            Self::Percent(percent) => growth_percent(grown.try_into().unwrap_or(i64::MAX), first.bytes)
                .map_or(grown > 0, |grown| grown > percent),
        }
    }
}

impl CompareArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        self.output.check_ending(self.json)?;
        self.output.check()?;
        let (exit, comparison) = self.compared()?;
        let text = match (self.json, self.pretty) {
            (true, pretty) => document(self.kept(comparison.clone()), pretty)?,
            (false, _) => text::text(self, &comparison),
        };
        self.output.write(&text)?;
        if self.fail_over.is_some_and(|allowance| allowance.is_crossed(&comparison)) {
            say("failed: memory grew by more than --fail-over allows");
            return Ok(Exit::Crossed);
        }
        Ok(exit)
    }

    fn compared(&self) -> anyhow::Result<(Exit, HeapComparison)> {
        let files: anyhow::Result<Vec<HeapFile>> =
            self.inputs.iter().map(|path| password::open(path, self.memory.waits)).collect();
        let files = files?;
        let mut opened: Vec<Opened<'_>> = Vec::with_capacity(files.len().max(2));
        if let [one] = files.as_slice() {
            for run in self.runs_of(one)? {
                opened.push(self.memory_of(Some(run)).graph_with_warning(one)?);
            }
        } else {
            self.refuse_twice(&files)?;
            for (position, file) in files.iter().enumerate() {
                opened.push(self.memory_of(self.run_at(position)).graph_with_warning(file)?);
            }
        }
        let graphs: Vec<&dyn Graph> = opened.iter().map(|opened| -> &dyn Graph { &*opened.graph }).collect();
        let damaged = opened.iter().find(|opened| opened.recovery.lost_bytes > 0).or(opened.first());
        let exit = damaged.map_or(Exit::Done, |opened| Exit::after(&opened.recovery));
        Ok((exit, compare(&graphs, Follow::default())))
    }

    /// The run that was chosen for the heap at this position.
    fn run_at(&self, position: usize) -> Option<i64> {
        match position {
            0 => self.run_id_baseline,
            last if last + 1 == self.inputs.len() => self.run_id_target,
            _ => None,
        }
    }

    fn memory_of(&self, run: Option<i64>) -> HeapInputArgs {
        HeapInputArgs { run_id: run.or(self.memory.run_id), ..self.memory.clone() }
    }

    /// The two runs of a single database. Any other single heap is refused: compared with itself, it never grows.
    fn runs_of(&self, file: &HeapFile) -> anyhow::Result<[i64; 2]> {
        let name = file.name();
        ensure!(
            file.is_database(),
            "{name}: expected two heaps, or a database with two runs, found one: {}",
            file.format().name()
        );
        let of_all = self.memory.run_id;
        let [baseline, target] = [self.run_id_baseline, self.run_id_target].map(|run| run.or(of_all));
        let (target, before) = with(&self.inputs[0], Access::Read, self.memory.waits, |database| {
            let target = database.run(target)?;
            let before = database.run_ids()?.into_iter().take_while(|&run| run != target).last();
            Ok((target, before))
        })?;
        match baseline.or(before) {
            Some(baseline) if baseline != target => Ok([baseline, target]),
            Some(_) => bail!("{}", twice(name, target)),
            None => bail!("{name}: expected two runs, found none before run {target}"),
        }
    }

    /// Refuses a database that is named twice with the same run.
    fn refuse_twice(&self, files: &[HeapFile]) -> anyhow::Result<()> {
        let mut found = Vec::new();
        for (position, file) in files.iter().enumerate().filter(|(_, file)| file.is_database()) {
            let (input, wanted) = (&self.inputs[position], self.memory_of(self.run_at(position)).run_id);
            let run = with(input, Access::Read, self.memory.waits, |database| Ok(database.run(wanted)?))?;
            // The address of a server is not a path and stays as it is.
            let heap = (fs::canonicalize(input).unwrap_or_else(|_| input.clone()), run);
            ensure!(!found.contains(&heap), "{}", twice(file.name(), run));
            found.push(heap);
        }
        Ok(())
    }

    fn columns(&self) -> usize {
        if self.output.path().is_some() { REPORT_COLUMNS } else { terminal_width() }
    }

    /// Whether a change is large enough to be shown.
    fn is_shown(&self, growth: i64, before: Option<u64>) -> bool {
        growth != 0
            && growth_percent(growth, before.unwrap_or(0))
                .is_none_or(|percent| percent.abs() >= self.threshold)
    }

    /// The changes that are shown.
    fn kept(&self, mut comparison: HeapComparison) -> HeapComparison {
        let is_shown = |series: &MetricSeries| {
            let percent = series.growth_percent();
            series.growth() != 0.0 && percent.is_none_or(|percent| percent.abs() >= self.threshold)
        };
        comparison.metrics.retain(is_shown);
        comparison.types.retain(|row| self.is_shown_total(row));
        comparison.classes.retain(|row| self.is_shown_total(row));
        for list in [&mut comparison.holders, &mut comparison.added, &mut comparison.removed] {
            list.retain(|growth, before| self.is_shown(growth, before));
            list.limit(self.limit.count());
        }
        comparison
    }

    fn shown<'r, T>(&self, rows: impl Iterator<Item = &'r T>) -> (Vec<&'r T>, usize) {
        let rows: Vec<&T> = rows.collect();
        let of = rows.len();
        (rows.into_iter().take(self.limit.count()).collect(), of)
    }

    fn holders<'c>(&self, list: &'c HolderList) -> impl Iterator<Item = &'c HolderChange> {
        list.rows.iter().filter(|row| self.is_shown(row.growth, row.retained.first().copied().flatten()))
    }

    /// The changes beyond those with paths.
    fn further<'c>(&self, list: &'c HolderList) -> impl Iterator<Item = &'c FurtherChange> {
        list.further.iter().filter(|change| self.is_shown(change.growth, change.retained_before))
    }

    fn changes<'c>(&self, rows: &'c [TotalChange]) -> impl Iterator<Item = &'c TotalChange> {
        rows.iter().filter(|row| self.is_shown_total(row))
    }

    fn is_shown_total(&self, row: &TotalChange) -> bool {
        let counts_differ = row.counts.first() != row.counts.last();
        counts_differ && row.growth() == 0 || self.is_shown(row.growth(), row.bytes.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use borehole::heap::compare::Compared;

    use super::*;

    #[test]
    fn what_grew_from_nothing_grew_by_more_than_any_share() {
        let crosses = |allowance: &str, [before, after]: [u64; 2]| {
            let heaps = [before, after].map(|bytes| Compared { bytes, ..Compared::default() });
            let comparison = HeapComparison { heaps: heaps.into(), ..HeapComparison::default() };
            allowance.parse::<Allowance>().unwrap().is_crossed(&comparison)
        };
        assert!(crosses("10%", [0, 1]));
        assert!(!crosses("10%", [0, 0]));
        assert!(crosses("10%", [100, 111]));
        assert!(!crosses("10%", [100, 110]));
    }
}
