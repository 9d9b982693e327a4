//! The rows of the views that are lists.

use std::ops::Range;

use borehole_heap::NodeId;
use borehole_heap::views::{Brief, NodeKind};
use borehole_text::{KeptEnd, bytes, crop, grouped, pad, percent, percent_of, printable, width};

use super::{HeapApp, HeapIndex, HeapView};

/// The longest list that is filtered; for longer ones a key would have to wait.
pub(super) const MOST_FILTERED: usize = 3_000;

impl HeapApp<'_> {
    /// The number of rows of the view, shown or not.
    pub(super) fn row_count(&self) -> usize {
        let known = &self.known;
        match self.position.view {
            HeapView::Classes => known.classes.len(),
            HeapView::Objects(class) => known.objects(class).len(),
            HeapView::Types => known.types.len(),
            HeapView::Roots => known.roots.len(),
            HeapView::Largest => known.largest.len(),
            HeapView::Cycles => known.cycles.len(),
            HeapView::Found => self.search.found().len(),
            HeapView::Bookmarks => self.bookmarks.len(),
            HeapView::Way => self.way.len(),
            HeapView::Held | HeapView::Holders | HeapView::Node => 0,
        }
    }

    /// The number of rows shown.
    pub(super) fn shown_count(&self) -> usize {
        self.shown.as_ref().map_or_else(|| self.row_count(), Vec::len)
    }

    /// The row at an index among those shown.
    pub(super) fn row_at(&self, place: usize) -> usize {
        self.shown.as_ref().and_then(|shown| shown.get(place).copied()).unwrap_or(place)
    }

    /// The node of a row.
    pub(super) fn row_node(&self, row: usize) -> Option<NodeId> {
        let known = &self.known;
        let of = |nodes: &[NodeId]| nodes.get(row).copied();
        match self.position.view {
            HeapView::Classes => known.classes.get(row).map(|class| class.largest),
            HeapView::Objects(class) => of(known.objects(class)),
            HeapView::Roots => of(&known.roots),
            HeapView::Largest => of(&known.largest),
            HeapView::Cycles => known.cycles.get(row).map(|cycle| cycle.first),
            HeapView::Found => of(self.search.found()),
            HeapView::Bookmarks => of(&self.bookmarks),
            HeapView::Way => of(&self.way),
            HeapView::Types | HeapView::Held | HeapView::Holders | HeapView::Node => None,
        }
    }

    /// The text of a row.
    pub(super) fn row_text(&self, row: usize, columns: usize) -> String {
        match self.position.view {
            HeapView::Classes => self.class_text(row, columns),
            HeapView::Types => self.type_text(row),
            HeapView::Cycles => self.cycle_text(row, columns),
            HeapView::Way => {
                self.way.get(row).map_or_else(String::new, |&node| self.known.step_text(node, columns))
            }
            _ => self.row_node(row).map_or_else(String::new, |node| self.known.node_text(node, columns)),
        }
    }

    fn class_text(&self, row: usize, columns: usize) -> String {
        let Some(class) = self.known.classes.get(row) else { return String::new() };
        let numbers = format!(
            "{} {:>10} {:>10}  ",
            self.known.share_text(class.retained_bytes),
            bytes(class.shallow_bytes),
            grouped(class.count)
        );
        beside(numbers, &printable(&class.name), columns, KeptEnd::Right)
    }

    fn type_text(&self, row: usize) -> String {
        let Some(found) = self.known.types.get(row) else { return String::new() };
        let name = found.name.strip_suffix(b"MemoryLocation").unwrap_or(&found.name);
        format!("{:>10} {:>13}  {}", bytes(found.memory_usage), grouped(found.count), printable(name))
    }

    fn cycle_text(&self, row: usize, columns: usize) -> String {
        let Some(cycle) = self.known.cycles.get(row) else { return String::new() };
        let classes = cycle.classes.iter().take(3);
        let classes: Vec<_> =
            classes.map(|(name, count)| format!("{} {}", grouped(*count), printable(name))).collect();
        let numbers =
            format!("{} {:>10}  ", self.known.share_text(cycle.retained_bytes), grouped(cycle.nodes));
        let path = printable(&self.known.heap.near_path(cycle.first));
        let text = format!("{}  {path}", classes.join(", "));
        beside(numbers, &text, columns, KeptEnd::Left)
    }

    /// The headings of the list's columns.
    pub(super) const fn heading(&self) -> &'static str {
        match self.position.view {
            HeapView::Classes => "  retained  share    shallow    objects  class",
            HeapView::Types => "     bytes         count  type",
            HeapView::Cycles => "  retained  share      nodes  objects, path of the first",
            HeapView::Way => "  retained  share  step",
            _ => "  retained  share  what                              path",
        }
    }

    /// The text of a row that filters search.
    fn needle_text(&self, row: usize) -> String {
        self.row_text(row, 1_000).to_lowercase()
    }

    /// Recomputes which rows are shown after the rows have changed. The cursor stays in place.
    pub(super) fn filter_again(&mut self) {
        let cursor = self.list.cursor;
        self.refilter();
        self.list.cursor = cursor.min(self.shown_count().saturating_sub(1));
    }

    /// Applies the filter to rows that a search has found since.
    pub(super) fn filter_more(&mut self) {
        let count = self.row_count();
        if self.shown.is_none() || count == self.filtered {
            return;
        }
        if count > MOST_FILTERED {
            return self.filter_again();
        }
        let more = self.wanted(self.filtered..count);
        self.filtered = count;
        self.shown.get_or_insert_default().extend(more);
    }

    /// Recomputes which rows are shown.
    pub(super) fn refilter(&mut self) {
        let count = self.row_count();
        self.shown = None;
        if self.filter.is_empty() {
            return;
        }
        if count > MOST_FILTERED {
            let (count, most) = (grouped(count as u64), grouped(MOST_FILTERED as u64));
            return self
                .say(format!("too many rows to filter: {count}, at most {most}; F searches the whole heap"));
        }
        self.filtered = count;
        self.shown = Some(self.wanted(0..count));
        self.list.cursor = 0;
    }

    /// The rows that match the filter.
    fn wanted(&self, rows: Range<usize>) -> Vec<usize> {
        let needle = self.filter.to_lowercase();
        rows.filter(|&row| self.needle_text(row).contains(&needle)).collect()
    }
}

/// The columns left for a text after another.
pub(super) fn room(columns: usize, before: &str) -> usize {
    columns.saturating_sub(width(before)).max(1)
}

/// Joins numbers and as much of a text as fits after them.
pub(super) fn beside(numbers: String, text: &str, columns: usize, anchor: KeptEnd) -> String {
    let text = crop(text, room(columns, &numbers), anchor);
    numbers + &text
}

impl HeapIndex<'_> {
    pub(super) fn objects(&self, class: usize) -> &[NodeId] {
        self.classes.get(class).map_or(&[], |class| self.instances.class(&class.name))
    }

    /// Formats a size and its share of the heap.
    pub(super) fn share_text(&self, size: u64) -> String {
        format!("{:>10} {:>6}", bytes(size), percent(percent_of(size, self.total())))
    }

    /// The label of a node and its path.
    fn node_text(&self, node: NodeId, columns: usize) -> String {
        let brief = self.heap.brief(node);
        let numbers = format!("{}  ", self.share_text(brief.retained_bytes));
        let left = room(columns, &numbers);
        let label = pad(&crop(&label(&brief), (left * 2 / 5).max(32).min(left), KeptEnd::Left), 32);
        let path = printable(&self.heap.near_path(node));
        let path = crop(&path, left.saturating_sub(width(&label) + 2).max(1), KeptEnd::Right);
        format!("{numbers}{label}  {path}")
    }

    /// A step of a path: the name of the reference and the node it leads to.
    fn step_text(&self, node: NodeId, columns: usize) -> String {
        let brief = self.heap.brief(node);
        let numbers = format!("{}  ", self.share_text(brief.retained_bytes));
        let text = format!("{}  {}", printable(&self.heap.name(node)), label(&brief));
        beside(numbers, &text, columns, KeptEnd::Left)
    }
}

/// A node's kind, text and number.
pub(super) fn label(brief: &Brief) -> String {
    let text = printable(&brief.text);
    let number = brief.node.0;
    match (brief.kind, brief.count) {
        (NodeKind::String, Some(length)) => {
            let text = crop(&text, 60, KeptEnd::Left);
            format!("\"{text}\" ({}) #{number}", grouped(length))
        }
        (NodeKind::Array | NodeKind::Other, Some(elements)) => {
            format!("{text}({}) #{number}", grouped(elements))
        }
        _ => format!("{text} #{number}"),
    }
}
