//! The layout of a report: its sections, below and beside each other.

use borehole_text::{pad, width};

/// Columns between sections that stand beside each other.
const GAP: usize = 2;

/// A part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportSection {
    /// Samples grouped by `--by`. Reli lacks it.
    By,
    /// Frames by self.
    SelfTime,
    /// Frames by total.
    TotalTime,
    /// States of threads. Reli lacks it.
    States,
    /// The table of `--callers`.
    Callers,
    /// The table of `--callees`.
    Callees,
    /// The stacks of `--last`.
    Tail,
    /// Red flags of a Tokio program. Reli lacks this section and those below.
    Flags,
    /// Its workers.
    Workers,
    /// Its polls.
    Polls,
    /// Its tasks.
    Tasks,
    /// How long tasks waited to be polled, and their wakes.
    Delays,
    /// CPU samples during polls.
    Cpu,
    /// Calls that blocked during polls.
    Blocking,
    /// Its global queue.
    Queue,
    /// Its spans.
    Spans,
    /// Its allocations that were not freed.
    Allocations,
    /// Other events of a trace.
    Events,
}

impl ReportSection {
    const ALL: [(&'static str, Self); 18] = [
        ("by", Self::By),
        ("self", Self::SelfTime),
        ("total", Self::TotalTime),
        ("states", Self::States),
        ("callers", Self::Callers),
        ("callees", Self::Callees),
        ("tail", Self::Tail),
        ("flags", Self::Flags),
        ("workers", Self::Workers),
        ("polls", Self::Polls),
        ("tasks", Self::Tasks),
        ("delays", Self::Delays),
        ("cpu", Self::Cpu),
        ("blocking", Self::Blocking),
        ("queue", Self::Queue),
        ("spans", Self::Spans),
        ("allocations", Self::Allocations),
        ("events", Self::Events),
    ];

    /// The sections that `tokio` stands for.
    const TOKIO: &'static str =
        "flags,workers,polls,tasks,delays,cpu,blocking,queue,spans,allocations,events";

    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, section)| *section).ok_or_else(|| {
            let known = Self::ALL.map(|(known, _)| known).join(", ");
            format!("unknown section '{name}': expected {known} or tokio")
        })
    }
}

/// Rows of sections: the sections of a row stand beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportLayout {
    rows: Vec<Vec<ReportSection>>,
}

impl ReportLayout {
    /// All sections, each below the one before.
    pub(crate) const DEFAULT: &str = "tokio,by,self,total,states,callers,callees,tail";

    /// Parses `self+total,tail`: `,` separates rows, `+` the sections of a row. Empty parts are ignored; a row `tokio` stands
    /// for all sections about Tokio programs.
    pub(crate) fn parse(spec: &str) -> Result<Self, String> {
        let mut rows = Vec::new();
        let expanded = |row| if row == "tokio" { ReportSection::TOKIO } else { row };
        for row in spec.split(',').map(str::trim).map(expanded).flat_map(|rows| rows.split(',')) {
            let names = row.split('+').map(str::trim).filter(|name| !name.is_empty());
            let row: Vec<_> = names.map(ReportSection::parse).collect::<Result<_, _>>()?;
            rows.extend(Some(row).filter(|row| !row.is_empty()));
        }
        Ok(Self { rows })
    }

    /// A single section.
    pub(crate) fn one(section: ReportSection) -> Self {
        Self { rows: vec![vec![section]] }
    }

    /// All sections, row by row.
    pub(crate) fn sections(&self) -> impl Iterator<Item = ReportSection> {
        self.rows.iter().flatten().copied()
    }

    /// Puts `section` first if it is not there.
    pub(crate) fn with(mut self, section: ReportSection) -> Self {
        if !self.sections().any(|found| found == section) {
            self.rows.insert(0, vec![section]);
        }
        self
    }

    /// The lines of the report. `draw` gets a section and the number of sections in its row. Sections and rows without lines are
    /// left out.
    pub(crate) fn lines(&self, mut draw: impl FnMut(ReportSection, usize) -> Vec<String>) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &self.rows {
            let drawn = row.iter().map(|&section| draw(section, row.len()));
            let columns: Vec<_> = drawn.filter(|lines| !lines.is_empty()).collect();
            if columns.is_empty() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(beside(columns));
        }
        lines
    }
}

/// The columns for each of `sections` that share `columns`; 0 if there is no room.
pub(crate) const fn share_of(columns: usize, sections: usize) -> usize {
    if sections == 0 {
        return 0;
    }
    columns.saturating_sub((sections - 1) * GAP) / sections
}

/// Blocks of lines side by side, without spaces at the ends of lines.
fn beside(mut blocks: Vec<Vec<String>>) -> Vec<String> {
    if blocks.len() == 1 {
        return blocks.remove(0);
    }
    let height = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<_> =
        blocks.iter().map(|block| block.iter().map(|line| width(line)).max().unwrap_or(0)).collect();
    let line = |row: usize| {
        let cells = blocks.iter().zip(&widths);
        let cells = cells.map(|(block, &width)| pad(block.get(row).map_or("", String::as_str), width));
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(spec: &str) -> String {
        let lines = |section, sections| match section {
            ReportSection::SelfTime => vec!["# self".to_owned(), "日".to_owned(), "3".to_owned()],
            ReportSection::TotalTime => vec![format!("{sections} beside"), "t".to_owned()],
            ReportSection::Tail => vec!["# tail".to_owned()],
            _ => Vec::new(),
        };
        ReportLayout::parse(spec).unwrap().lines(lines).join("\n")
    }

    #[test]
    fn commas_put_below_and_pluses_beside() {
        assert_eq!(draw("tail,total"), "# tail\n\n1 beside\nt");
        assert_eq!(draw("self+total,tail"), "# self  2 beside\n日      t\n3\n\n# tail");
        assert_eq!(draw(" total + self + , ,"), "2 beside  # self\nt         日\n          3");
    }

    #[test]
    fn sections_without_lines_take_no_place() {
        assert_eq!(draw("callers,self+callees,by,tail"), "# self\n日\n3\n\n# tail");
        assert_eq!(draw("callers"), "");
        assert_eq!(draw(""), "");
    }

    #[test]
    fn an_unknown_section_is_named() {
        let error = ReportLayout::parse("self,tial").unwrap_err();
        let known = "expected by, self, total, states, callers, callees, tail, flags, workers, polls, tasks, delays, \
                     cpu, blocking, queue, spans, allocations, events or tokio";
        assert_eq!(error, format!("unknown section 'tial': {known}"));
    }

    #[test]
    fn tokio_stands_for_all_that_is_about_it() {
        let layout = |spec| ReportLayout::parse(spec).unwrap();
        let spelt_out = format!("{},self", ReportSection::TOKIO);
        assert_eq!(layout("tokio,self"), layout(&spelt_out));
        assert_eq!(layout("tokio").rows.len(), 11);
    }

    #[test]
    fn sections_beside_each_other_share_the_width() {
        assert_eq!([share_of(180, 1), share_of(180, 3), share_of(3, 2), share_of(2, 2)], [180, 58, 0, 0]);
    }

    #[test]
    fn a_section_that_is_asked_for_is_there() {
        let layout = |spec| ReportLayout::parse(spec).unwrap();
        assert_eq!(layout("self").with(ReportSection::By), layout("by,self"));
        assert_eq!(layout("self+by").with(ReportSection::By), layout("self+by"));
    }
}
