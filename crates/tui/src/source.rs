//! Source lines beside a frame.

use std::sync::Arc;

use borehole_analysis::FrameName;
use borehole_text::printable;

use crate::host::Host;

/// The pane of sources.
#[derive(Debug, Default)]
pub(crate) struct SourcePane {
    pub(crate) is_shown: bool,
    /// The source of the row under the cursor; `None` without a row.
    pub(crate) view: Option<SourceView>,
}

/// The source of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceView {
    path: Vec<u8>,
    /// The line of the frame, 1-based.
    pub(crate) line: Option<usize>,
    lines: Option<Arc<[String]>>,
}

impl SourceView {
    /// The source of a frame. Reuses `before` if it is the same file.
    pub(crate) fn of(name: &FrameName, before: Option<Self>, host: &mut dyn Host) -> Self {
        let path = name.file.clone().unwrap_or_default();
        let lines = match before.filter(|before| before.path == path) {
            Some(before) => before.lines,
            None if path.is_empty() => None,
            None => host.source(&path),
        };
        Self { line: name.line.and_then(|line| usize::try_from(line).ok()), path, lines }
    }

    /// The title above the lines.
    pub(crate) fn title(&self) -> String {
        let path = printable(&self.path);
        match (&self.lines, self.path.is_empty()) {
            (_, true) => "source: this frame has no file (n shows lines)".to_owned(),
            (Some(_), _) => path,
            (None, _) => format!("{path}: not found (--path-map FROM=TO maps paths)"),
        }
    }

    /// The numbered lines that fit, with the frame's line in the middle.
    pub(crate) fn window(&self, height: usize) -> Vec<(usize, String)> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let middle = self.line.unwrap_or(1).saturating_sub(1);
        let last = lines.len().saturating_sub(height);
        let first = middle.saturating_sub(height / 2).min(last);
        let shown = lines.iter().enumerate().skip(first).take(height);
        // Tabs are the one control character that is common in sources.
        shown.map(|(line, text)| (line + 1, printable(text.replace('\t', "    ").as_bytes()))).collect()
    }
}
