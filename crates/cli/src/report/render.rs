//! Views as text.

use std::io::{self, Write};

use borehole_analysis::tokio::TokioView;
use borehole_analysis::{
    Breakdown, By, FrameGroup, FrameName, GroupValue, LabelText, PathStyle, ProfileSummary, RecentRun,
    ReportTable, ReportView, SampleGroup, Share, StateTable, ThreadStates,
};
use borehole_model::LaneId;
use borehole_text::{KeptEnd, TextTable, WIDEST_LAST, crop, grouped, percent, printable, with_unit};

use super::args::{ReportArgs, ReportDialect};
use super::layout::{ReportSection, share_of};
use crate::cell::is_wide;

/// Placeholder for an absent value.
const ABSENT: &str = "<none>";

/// Columns of `  [ 0] ` before a frame of the tail.
const TAIL_INDENT: usize = 7;

/// The longest text of a sample's frames, in bytes.
const LONGEST_STACK: usize = 16 << 20;

/// The columns of the lines of flags where there is no terminal.
const FLAG_COLUMNS: usize = 80;

/// The fewest columns that a cell is cut to: names of an event's fields begin alike.
const LEAST_COLUMNS: usize = 16;

/// Where lines are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crop {
    /// At so many columns per section; 0 never cuts.
    Columns(usize),
    /// At the section's share of the terminal.
    Auto,
}

/// Options for drawing a view.
pub(crate) struct Rendering<'a> {
    pub(crate) args: &'a ReportArgs,
    pub(crate) columns: usize,
    pub(crate) paths: PathStyle,
}

/// Writes `view` as text, with the views of Tokio programs.
///
/// # Errors
/// When `out` cannot be written.
pub(crate) fn render(
    view: &ReportView,
    tokio: &[TokioView],
    rendering: &Rendering<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let args = rendering.args;
    let lines = args.tables.layout().lines(|section, sections| {
        let columns = match args.tables.crop {
            None => 0,
            Some(Crop::Columns(columns)) => columns,
            Some(Crop::Auto) => share_of(rendering.columns, sections),
        };
        // Beside other sections a line must end where the next begins, and a width that the user named is kept.
        let may_break =
            args.tables.crop == Some(Crop::Auto) && sections == 1 && args.dialect == ReportDialect::Native;
        let is_whole = is_wide() || args.tables.crop == Some(Crop::Columns(0));
        let drawing = SectionDrawing { rendering, columns, may_break, is_whole, summary: &view.summary };
        let about_tokio = drawing.tokio(tokio, section);
        // A trace without samples has no tables of frames.
        let is_drawn = about_tokio.is_empty() && (tokio.is_empty() || view.summary.samples > 0);
        if is_drawn { drawing.section(view, section) } else { about_tokio }
    });
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Draws sections of one width.
pub(super) struct SectionDrawing<'a> {
    rendering: &'a Rendering<'a>,
    columns: usize,
    /// Whether a line may be wider than the terminal, if a cell that was cut to fit it would be unreadable.
    may_break: bool,
    /// Whether nothing is cut.
    is_whole: bool,
    summary: &'a ProfileSummary,
}

impl SectionDrawing<'_> {
    fn section(&self, view: &ReportView, section: ReportSection) -> Vec<String> {
        let args = self.rendering.args;
        let neighbours = |table: &Option<ReportTable>, what: &str, pattern: &Option<String>| {
            let title = || format!("{what} of frames matching /{}/", pattern.as_deref().unwrap_or_default());
            table.as_ref().map(|table| self.frames(&title(), table)).unwrap_or_default()
        };
        match section {
            ReportSection::SelfTime if args.wants_top() => {
                self.frames(&self.top_title("self", "self-time top"), &view.self_table)
            }
            ReportSection::TotalTime if args.wants_top() => {
                self.frames(&self.top_title("total", "total-time top (inclusive)"), &view.total_table)
            }
            ReportSection::States if args.wants_top() && self.is_native() => {
                view.states.as_ref().map(|states| self.states(states)).unwrap_or_default()
            }
            ReportSection::SelfTime | ReportSection::TotalTime | ReportSection::States => Vec::new(),
            ReportSection::Callers => neighbours(&view.callers, "callers", &args.tables.callers),
            ReportSection::Callees => neighbours(&view.callees, "callees", &args.tables.callees),
            ReportSection::Tail => view.last.as_deref().map(|last| self.tail(last)).unwrap_or_default(),
            ReportSection::By => match (&args.tables.by, &view.breakdown) {
                (Some(by), Some(breakdown)) => self.breakdown(&name_of(by), breakdown),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The title of a table of frames by self or total; `reli` is what reli calls it.
    fn top_title(&self, what: &str, reli: &str) -> String {
        match (self.is_native(), self.summary.is_valued) {
            (false, _) => reli.to_owned(),
            (true, false) => format!("top by {what} time"),
            (true, true) => format!("top by {what} {}", self.heading()),
        }
    }

    fn frames(&self, title: &str, table: &ReportTable) -> Vec<String> {
        let rows = table.rows.iter().map(|row| {
            let frame = printable(&row.frame.text(self.rendering.paths));
            [self.amount(row.share), self.percent(row.share), frame]
        });
        self.table(title, [&self.heading(), "pct", "frame"], rows.collect(), table.distinct)
    }

    /// The heading of the column of amounts: the value type, or `count`.
    fn heading(&self) -> String {
        let kind = || printable(self.summary.value_type.kind.as_bytes());
        if self.summary.is_valued { kind() } else { "count".to_owned() }
    }

    fn amount(&self, share: Share) -> String {
        if self.summary.is_valued {
            return printable(with_unit(share.value, &self.summary.value_type.unit).as_bytes());
        }
        if self.is_native() { grouped(share.count) } else { share.count.to_string() }
    }

    /// Reli pads percentages.
    fn percent(&self, share: Share) -> String {
        if self.is_native() { percent(share.percent) } else { format!("{:5.1}%", share.percent) }
    }

    /// The states of threads while frames were on their stacks. A state that was not recorded has no column.
    fn states(&self, table: &StateTable) -> Vec<String> {
        let title = "states of threads (while on the stack)";
        let frame = |frame: &FrameName| printable(&frame.text(self.rendering.paths));
        let knows_cpu = table.rows.iter().any(|row| row.states.on_cpu.is_some());
        let rows = table.rows.iter();
        if knows_cpu {
            let rows = rows.map(|row| {
                let ThreadStates { has_gil, on_cpu, waits_for_gil, has_exception, in_gc } = row.states;
                let cells =
                    [has_gil, on_cpu.unwrap_or(0.0), waits_for_gil, has_exception, in_gc].map(percent);
                let [gil, cpu, waits, exception, gc] = cells;
                [grouped(row.count), gil, cpu, waits, exception, gc, frame(&row.frame)]
            });
            let heads = ["count", "GIL", "CPU", "waits", "except", "GC", "frame"];
            return self.table(title, heads, rows.collect(), table.distinct);
        }
        let rows = rows.map(|row| {
            let ThreadStates { has_gil, waits_for_gil, has_exception, in_gc, .. } = row.states;
            let [gil, waits, exception, gc] = [has_gil, waits_for_gil, has_exception, in_gc].map(percent);
            [grouped(row.count), gil, waits, exception, gc, frame(&row.frame)]
        });
        self.table(title, ["count", "GIL", "waits", "except", "GC", "frame"], rows.collect(), table.distinct)
    }

    fn breakdown(&self, name: &str, breakdown: &Breakdown) -> Vec<String> {
        let name = &printable(name.as_bytes());
        match breakdown {
            Breakdown::Samples { rows, distinct } => {
                let has_time = rows.iter().any(|row| row.share.time_ns.is_some());
                let heading = &self.heading();
                let what = if self.summary.is_valued { heading } else { "samples" };
                let title = format!("{what} by {name}");
                if has_time {
                    let rows = rows.iter().map(|row| self.timed_row(row)).collect();
                    let time = self.summary.mode.name();
                    self.table(&title, [heading, "pct", time, name], rows, *distinct)
                } else {
                    let rows = rows.iter().map(|row| self.untimed_row(row)).collect();
                    self.table(&title, [heading, "pct", name], rows, *distinct)
                }
            }
            Breakdown::Frames { rows, distinct } => {
                let rows = rows.iter().map(|row| self.part_row(row)).collect();
                let title = match self.summary.is_valued {
                    true => format!("self and total {} by {name}", self.heading()),
                    false => format!("self and total time by {name}"),
                };
                self.table(&title, ["self", "pct", "total", "pct", name], rows, *distinct)
            }
        }
    }

    /// A title and a table; the last column is cut so that the lines fit.
    pub(super) fn table<const N: usize>(
        &self,
        title: &str,
        headers: [&str; N],
        rows: Vec<[String; N]>,
        distinct: usize,
    ) -> Vec<String> {
        let mut lines = vec![self.cut(&format!("# {}", printable(title.as_bytes())))];
        if rows.is_empty() {
            lines.push(self.cut("  (no matches)"));
            return lines;
        }
        let least = if self.may_break { LEAST_COLUMNS } else { 1 };
        let table = TextTable::of(headers, &rows, self.rendering.args.tables.crop_anchor);
        let table = table.fit(self.columns, least).whole(self.is_whole);
        lines.extend(if self.is_native() { table.lines() } else { table.bordered().lines() });
        if rows.len() < distinct && self.is_native() {
            let [shown, distinct] = [rows.len(), distinct].map(|rows| grouped(rows as u64));
            lines.push(self.cut(&format!("  ({shown} of {distinct} shown; --all for all)")));
        }
        lines
    }

    fn tail(&self, runs: &[RecentRun]) -> Vec<String> {
        let samples: u64 = runs.iter().map(|run| run.count).sum();
        let mut lines = vec![self.cut(&format!("# last {samples} sample(s)"))];
        if runs.is_empty() {
            lines.push(self.cut("  (no samples)"));
        }
        for run in runs {
            let stack = self.stack(run);
            for later in (0..run.count).rev() {
                let when = match run.age + later {
                    0 => "now".to_owned(),
                    age => format!("{age} ago"),
                };
                lines.push(self.cut(&format!("  ── sample ({when}) ──")));
                lines.extend_from_slice(&stack);
            }
        }
        lines
    }

    /// The frames and labels of a sample.
    fn stack(&self, run: &RecentRun) -> Vec<String> {
        let room = match self.line_columns() {
            0 => 0,
            columns => columns.saturating_sub(TAIL_INDENT).max(1),
        };
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for (depth, frame) in run.frames_leaf_first.iter().enumerate() {
            if bytes > LONGEST_STACK {
                let left_out = grouped((run.frames_leaf_first.len() - depth) as u64);
                lines.push(self.cut(&format!(
                    "  ({left_out} more do not fit into {} MiB of text)",
                    LONGEST_STACK >> 20
                )));
                break;
            }
            let frame = printable(&frame.text(self.rendering.paths));
            let frame = crop(&frame, room, self.rendering.args.tables.crop_anchor);
            lines.push(self.cut(&format!("  [{depth:2}] {frame}")));
            bytes += lines.last().map_or(0, String::len);
        }
        let more = run.depth.saturating_sub(run.frames_leaf_first.len());
        if more > 0 && self.is_native() {
            lines.push(self.cut(&format!("  ({} more; --last-depth=0 for all)", grouped(more as u64))));
        }
        for (key, value) in &run.labels {
            lines.push(self.cut(&format!("  # {} = {}", printable(key), label(value))));
        }
        lines
    }

    fn is_native(&self) -> bool {
        self.rendering.args.dialect == ReportDialect::Native
    }

    /// The most columns of a line; 0 for no limit.
    fn line_columns(&self) -> usize {
        match (self.is_whole, self.columns) {
            (true, _) => 0,
            (false, 0) => WIDEST_LAST,
            (false, columns) => columns,
        }
    }

    pub(super) fn cut(&self, line: &str) -> String {
        self.cut_at(line, self.line_columns())
    }

    /// Cuts a line at so many columns; 0 for no limit.
    pub(super) fn cut_at(&self, line: &str, columns: usize) -> String {
        crop(line, columns, KeptEnd::Left)
    }

    /// The columns of the lines of flags: those of the terminal, or 80 if there is none; the most if nothing is cut.
    pub(super) const fn flag_columns(&self) -> usize {
        match (self.is_whole, self.columns) {
            (true, _) => usize::MAX,
            (false, 0) => FLAG_COLUMNS,
            (false, columns) => columns,
        }
    }

    /// The number of the only flag that is asked for.
    pub(super) const fn flag(&self) -> Option<usize> {
        self.rendering.args.tables.flag
    }
}

// A double has enough digits for hundredths of a second.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn seconds(time_ns: u128) -> f64 {
    time_ns as f64 / 1e9
}

impl SectionDrawing<'_> {
    fn timed_row(&self, row: &SampleGroup) -> [String; 4] {
        let time = row.share.time_ns.map(|time_ns| format!("{:.2} s", seconds(time_ns))).unwrap_or_default();
        let [count, percent, value] = self.untimed_row(row);
        [count, percent, time, value]
    }

    fn untimed_row(&self, row: &SampleGroup) -> [String; 3] {
        [self.amount(row.share), self.percent(row.share), group(&row.value)]
    }

    fn part_row(&self, row: &FrameGroup) -> [String; 5] {
        let name = row.name.as_deref().map_or_else(|| ABSENT.to_owned(), printable);
        let FrameGroup { self_share, total_share, .. } = *row;
        let [self_amount, total_amount] = [self_share, total_share].map(|share| self.amount(share));
        [self_amount, self.percent(self_share), total_amount, self.percent(total_share), name]
    }
}

/// The value of a group as text.
fn group(value: &GroupValue) -> String {
    match value {
        GroupValue::Absent => ABSENT.to_owned(),
        GroupValue::Label(value) => label(value),
        GroupValue::Process(process) => LaneId::of_process(*process).to_string(),
        GroupValue::Interpreter(interpreter) => interpreter.to_string(),
        GroupValue::Thread { process, thread, name } => {
            let process =
                process.map(|process| format!("{}/", LaneId::of_process(process))).unwrap_or_default();
            let thread = LaneId::of(*thread);
            let name = name.as_deref().map(|name| format!(" ({})", printable(name))).unwrap_or_default();
            format!("{process}{thread}{name}")
        }
    }
}

fn label(value: &LabelText) -> String {
    match value {
        LabelText::Text(text) => printable(text),
        LabelText::Number(number, None) => number.to_string(),
        LabelText::Number(number, Some(unit)) => format!("{number} {}", printable(unit)),
    }
}

/// The argument of `--by`.
pub(crate) fn name_of(by: &By) -> String {
    match by {
        By::Process => "pid".to_owned(),
        By::Thread => "thread".to_owned(),
        By::Interpreter => "interpreter".to_owned(),
        By::File => "file".to_owned(),
        By::Class => "class".to_owned(),
        By::Label(key) => String::from_utf8_lossy(key).into_owned(),
    }
}
