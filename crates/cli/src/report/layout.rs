//! Which sections a report has, below and beside each other.

use crate::cell::{pad, width};

/// Columns between sections that stand beside each other.
const GAP: usize = 2;

/// A part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Samples by what `--by` says. Not known to reli.
    By,
    /// Where samples were taken.
    SelfTime,
    /// What was executing.
    TotalTime,
    /// What threads were doing meanwhile. Not known to reli.
    States,
    /// The answer to `--callers`.
    Callers,
    /// The answer to `--callees`.
    Callees,
    /// The answer to `--last`.
    Tail,
    /// What deserves a look in a Tokio program. This and the following are not known to reli.
    Flags,
    /// Its workers.
    Workers,
    /// Its polls.
    Polls,
    /// Its tasks.
    Tasks,
    /// How long tasks waited to be polled, and their wakes.
    Delays,
    /// Calls that blocked during polls.
    Blocking,
    /// Its global queue.
    Queue,
    /// Its spans.
    Spans,
    /// Its allocations that are not freed.
    Allocations,
    /// Further events of a trace.
    Events,
}

impl Section {
    const ALL: [(&'static str, Self); 17] = [
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
        ("blocking", Self::Blocking),
        ("queue", Self::Queue),
        ("spans", Self::Spans),
        ("allocations", Self::Allocations),
        ("events", Self::Events),
    ];

    /// What `tokio` stands for.
    const TOKIO: &'static str = "flags,workers,polls,tasks,delays,blocking,queue,spans,allocations,events";

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
pub(crate) struct Layout {
    rows: Vec<Vec<Section>>,
}

impl Layout {
    /// Everything that was asked for, each below the one before.
    pub(crate) const DEFAULT: &str = "tokio,by,self,total,states,callers,callees,tail";

    /// Reads `self+total,tail`: `,` separates rows, `+` the sections of a row. Empty parts are left out; `tokio` as
    /// a row of its own is all that there is about Tokio programs.
    pub(crate) fn parse(spec: &str) -> Result<Self, String> {
        let mut rows = Vec::new();
        let expanded = |row| if row == "tokio" { Section::TOKIO } else { row };
        for row in spec.split(',').map(str::trim).map(expanded).flat_map(|rows| rows.split(',')) {
            let names = row.split('+').map(str::trim).filter(|name| !name.is_empty());
            let row: Vec<_> = names.map(Section::parse).collect::<Result<_, _>>()?;
            rows.extend(Some(row).filter(|row| !row.is_empty()));
        }
        Ok(Self { rows })
    }

    /// All sections, row by row.
    pub(crate) fn sections(&self) -> impl Iterator<Item = Section> {
        self.rows.iter().flatten().copied()
    }

    /// Puts `section` first if it is not there.
    pub(crate) fn with(mut self, section: Section) -> Self {
        if !self.sections().any(|found| found == section) {
            self.rows.insert(0, vec![section]);
        }
        self
    }

    /// The lines of the report. `draw` is told a section and how many sections its row has.
    ///
    /// A section without lines takes no place, and neither does a row of such.
    pub(crate) fn lines(&self, mut draw: impl FnMut(Section, usize) -> Vec<String>) -> Vec<String> {
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

/// The columns that each of `sections` may take when they share `columns`; 0 where there is no room at all.
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
            Section::SelfTime => vec!["# self".to_owned(), "日".to_owned(), "3".to_owned()],
            Section::TotalTime => vec![format!("{sections} beside"), "t".to_owned()],
            Section::Tail => vec!["# tail".to_owned()],
            _ => Vec::new(),
        };
        Layout::parse(spec).unwrap().lines(lines).join("\n")
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
        let error = Layout::parse("self,tial").unwrap_err();
        let known = "expected by, self, total, states, callers, callees, tail, flags, workers, polls, tasks, delays, \
                     blocking, queue, spans, allocations, events or tokio";
        assert_eq!(error, format!("unknown section 'tial': {known}"));
    }

    #[test]
    fn tokio_stands_for_all_that_is_about_it() {
        let layout = |spec| Layout::parse(spec).unwrap();
        let spelt_out = format!("{},self", Section::TOKIO);
        assert_eq!(layout("tokio,self"), layout(&spelt_out));
        assert_eq!(layout("tokio").rows.len(), 10);
    }

    #[test]
    fn sections_beside_each_other_share_the_width() {
        assert_eq!([share_of(180, 1), share_of(180, 3), share_of(3, 2), share_of(2, 2)], [180, 58, 0, 0]);
    }

    #[test]
    fn a_section_that_is_asked_for_is_there() {
        let layout = |spec| Layout::parse(spec).unwrap();
        assert_eq!(layout("self").with(Section::By), layout("by,self"));
        assert_eq!(layout("self+by").with(Section::By), layout("self+by"));
    }
}
