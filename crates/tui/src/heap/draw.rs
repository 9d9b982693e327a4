//! Drawing of the heap explorer's screen.

use borehole_heap::views::{NodeField, ValueHolder};
use borehole_heap::{MemoryLocation, NodeId, Region, Strength};
use borehole_text::{KeptEnd, bytes, crop, grouped, printable, width};
use ratatui::layout::Rect;

use super::node::{MOST_SORTED, NodePane};
use super::rows::{beside, label, room};
use super::tree::{HeapDirection, HeapTree, TreeLine};
use super::{HeapAction, HeapApp, HeapIndex, HeapPrompt, HeapView};
use crate::canvas::{CellCanvas, split_bottom, split_top};
use crate::screen::{Explorer, ScreenCells};
use crate::theme::TextRole;

/// The maximum number of locations shown for a node.
const MOST_LOCATIONS: usize = 3;

/// The size of PHP's chunks of memory, which consist of pages.
///
/// Source: PHP, Zend/zend_alloc.c, `ZEND_MM_CHUNK_SIZE` and `ZEND_MM_PAGE_SIZE`.
const CHUNK: u64 = 2 << 20;
const PAGE: u64 = 4096;

impl Explorer for HeapApp<'_> {
    fn draw(&mut self, ScreenCells(buffer): ScreenCells<'_>) {
        let area = buffer.area;
        let Some(mut canvas) = CellCanvas::of_screen(buffer, self.settings.colours) else { return };
        let [header, rest] = split_top(area, 1);
        let [rest, footer] = split_bottom(rest, 1);
        let [rest, status] = split_bottom(rest, 1);
        self.draw_header(&mut canvas, header);
        self.areas = super::HeapAreas::default();
        if self.controls.shows_help {
            self.controls.draw_help(&mut canvas, rest, &self.settings.keymap.help());
        } else {
            self.draw_view(&mut canvas, rest);
        }
        let text = self.status(usize::from(status.width));
        canvas.line(status, 0, &text, canvas.colours.style(TextRole::Plain));
        self.draw_footer(&mut canvas, footer);
    }
}

impl HeapApp<'_> {
    fn draw_header(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let counts = self.known.heap.graph().counts();
        let [nodes, references] = [counts.nodes, counts.edges].map(|count| grouped(count as u64));
        let mut facts = vec![bytes(self.known.total()), format!("{nodes} nodes, {references} references")];
        if !self.filter.is_empty() {
            facts.push(format!("/{}", printable(self.filter.as_bytes())));
        }
        canvas.header(area, &self.settings.title, &facts);
    }

    fn draw_footer(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let keys = [
            (HeapAction::Quit, "quit"),
            (HeapAction::Help, "help"),
            (HeapAction::Focus, "look"),
            (HeapAction::Undo, "back"),
            (HeapAction::Classes, "classes"),
            (HeapAction::Roots, "roots"),
            (HeapAction::Largest, "largest"),
            (HeapAction::Held, "holds"),
            (HeapAction::Holders, "held by"),
            (HeapAction::Search, "search"),
            (HeapAction::Filter, "filter"),
            (HeapAction::Cycles, "cycles"),
            (HeapAction::Types, "types"),
            (HeapAction::Bookmark, "mark"),
        ];
        let text = self.settings.keymap.footer(&keys, usize::from(area.width));
        canvas.line(area, 0, &text, canvas.colours.style(TextRole::Bar));
    }

    /// The line above the keys: the prompt, a message, or the row under the cursor.
    fn status(&self, columns: usize) -> String {
        let name = |kind| match kind {
            HeapPrompt::Filter => "filter rows",
            HeapPrompt::Search => "search classes, contents, names, paths",
            HeapPrompt::GoTo => "go to #node or 0xaddress",
        };
        if let Some(text) = self.controls.status(columns, name) {
            return text;
        }
        if self.search.is_running || self.position.view == HeapView::Found {
            return self.search.progress(&self.known).unwrap_or_default();
        }
        self.current().map_or_else(String::new, |node| printable(&self.known.heap.near_path(node)))
    }

    fn draw_view(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        if self.panes.is_some() {
            return self.draw_node(canvas, area);
        }
        if let Some(mut tree) = self.tree.take() {
            self.draw_tree(canvas, area, &mut tree);
            self.tree = Some(tree);
            return;
        }
        let [title, rest] = split_top(area, 1);
        canvas.title(title, &self.title(), true);
        let [heading, rest] = split_top(rest, 1);
        canvas.line(heading, 0, self.heading(), canvas.colours.style(TextRole::Dim));
        self.areas.body = rest;
        let mut list = self.list;
        canvas.rows(rest, (&mut list, self.shown_count()), true, |place| {
            (self.row_text(self.row_at(place), usize::from(rest.width)), TextRole::Plain)
        });
        self.list = list;
        if self.shown_count() == 0 {
            canvas.line(rest, 0, "  no rows", canvas.colours.style(TextRole::Dim));
        }
    }

    /// The title of the list.
    fn title(&self) -> String {
        let (shown, all) = (grouped(self.shown_count() as u64), grouped(self.row_count() as u64));
        let count = if self.shown.is_some() { format!("{shown} of {all}") } else { all };
        match self.position.view {
            HeapView::Classes => format!("classes · {count} · by retained size"),
            HeapView::Objects(class) => {
                let name = self.known.classes.get(class).map_or(&b""[..], |class| &class.name);
                format!("objects of {} · {count}", printable(name))
            }
            HeapView::Types => format!("types of memory · {count}"),
            HeapView::Roots => format!("roots · {count}"),
            HeapView::Largest => format!("largest by retained size · {count}"),
            HeapView::Cycles => format!("cycles · {count}"),
            HeapView::Found => format!("found · {count}"),
            HeapView::Bookmarks => format!("bookmarks · {count}"),
            HeapView::Way => format!("path from the root · {count} steps"),
            HeapView::Held | HeapView::Holders | HeapView::Node => String::new(),
        }
    }

    fn draw_tree(&mut self, canvas: &mut CellCanvas<'_>, area: Rect, tree: &mut HeapTree) {
        let [title, rest] = split_top(area, 1);
        let of = tree
            .top()
            .map_or_else(|| "the whole heap".to_owned(), |node| label(&self.known.heap.brief(node)));
        let what = match tree.direction {
            HeapDirection::Held => format!("retained by {of}"),
            HeapDirection::Holders => format!("referrers of {of}"),
        };
        canvas.title(title, &what, true);
        self.areas.body = rest;
        let mut list = tree.list;
        canvas.rows(rest, (&mut list, tree.lines.len()), true, |row| {
            (self.known.line_text(tree, tree.lines[row], usize::from(rest.width)), TextRole::Plain)
        });
        tree.list = list;
    }

    fn draw_node(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let Some(mut panes) = self.panes.take() else { return };
        let known = &self.known;
        let columns = usize::from(area.width);
        let facts = known.facts(panes.node, columns);
        let [top, rest] = split_top(area, u16::try_from(facts.len()).unwrap_or(area.height));
        for (line, fact) in (0..).zip(&facts) {
            let role = if line == 0 { TextRole::Focus } else { TextRole::Plain };
            canvas.line(top, line, fact, canvas.colours.style(role));
        }
        let holders = u16::try_from(panes.holder_count.saturating_add(1)).unwrap_or(u16::MAX).max(2);
        let [above, below] = split_top(rest, holders.min(rest.height / 2));
        for (pane, area) in [(NodePane::Holders, above), (NodePane::Fields, below)] {
            let has_cursor = panes.pane == pane;
            let [title, area] = split_top(area, 1);
            let count = panes.len(pane);
            canvas.title(title, &pane_title(pane, count, self.sorts), has_cursor);
            match pane {
                NodePane::Holders => self.areas.holders = area,
                NodePane::Fields => self.areas.body = area,
            }
            let mut list = panes.lists[pane as usize];
            canvas.rows(area, (&mut list, count), has_cursor, |row| {
                let text = match pane {
                    NodePane::Holders => known.holder_text(panes.holder(known, row), columns),
                    NodePane::Fields => known.field_text(panes.field(known, row), columns),
                };
                (text, TextRole::Plain)
            });
            panes.lists[pane as usize] = list;
        }
        self.panes = Some(panes);
    }
}

fn pane_title(pane: NodePane, count: usize, sorts: bool) -> String {
    let what = match pane {
        NodePane::Holders => "referred to by",
        NodePane::Fields => "refers to",
    };
    let order = if !sorts || count > MOST_SORTED { ", as stored" } else { "" };
    format!("{what} · {}{order}", grouped(count as u64))
}

/// The kind of a reference that does not keep its target alive like a program's own.
const fn strength_text(strength: Strength) -> &'static str {
    match strength {
        Strength::Strong => "",
        Strength::Weak => " (weak)",
        Strength::Structural => " (engine)",
    }
}

impl HeapIndex<'_> {
    fn line_text(&self, tree: &HeapTree, line: TreeLine, columns: usize) -> String {
        let (place, more) = match line {
            TreeLine::Branch(place) => (place, None),
            TreeLine::More(place, left) => (place, Some(left)),
        };
        let branch = tree.branch(place);
        // Very deep rows must not be pushed off the screen.
        let indent = |depth: usize| " ".repeat((2 * depth).min(columns / 3));
        if let Some(left) = more {
            return format!(
                "{:>18}{}{} more; Enter shows them",
                "",
                indent(branch.depth + 1),
                grouped(left as u64)
            );
        }
        let mark = match (branch.all_below, branch.is_open) {
            (Some(0), _) => " ",
            (_, true) => "▾",
            (_, false) => "▸",
        };
        let what =
            branch.node.map_or_else(|| "(the whole heap)".to_owned(), |node| label(&self.heap.brief(node)));
        let weak = if branch.is_strong { "" } else { " (weak or engine)" };
        let name = crop(&printable(&branch.name), 48, KeptEnd::Right);
        let text = format!("{}{mark} {name}  {what}{weak}", indent(branch.depth));
        let numbers = format!("{} ", self.share_text(branch.retained));
        beside(numbers, &text, columns, KeptEnd::Left)
    }

    fn field_text(&self, field: Option<NodeField>, columns: usize) -> String {
        let Some(field) = field else { return "  (dangling reference)".to_owned() };
        let brief = self.heap.brief(field.node);
        let numbers = format!("{}  ", self.share_text(brief.retained_bytes));
        let name = crop(&printable(&field.name), 48, KeptEnd::Right);
        let text = format!("{name} = {}{}", label(&brief), strength_text(field.strength));
        beside(numbers, &text, columns, KeptEnd::Left)
    }

    fn holder_text(&self, holder: Option<ValueHolder>, columns: usize) -> String {
        let Some(holder) = holder else { return "  (unknown referrer)".to_owned() };
        let Some(node) = holder.node else { return format!("{:>19}root {}", "", printable(&holder.by)) };
        let brief = self.heap.brief(node);
        let numbers = format!("{}  ", self.share_text(brief.retained_bytes));
        let by = crop(&printable(&holder.by), 48, KeptEnd::Right);
        let text = format!("{}  {by}{}", label(&brief), strength_text(holder.strength));
        let left = room(columns, &numbers);
        let text = crop(&text, left, KeptEnd::Left);
        let space = left.saturating_sub(width(&text) + 2);
        let path = if space < 8 {
            String::new()
        } else {
            crop(&printable(&self.heap.near_path(node)), space, KeptEnd::Right)
        };
        format!("{numbers}{text}  {path}").trim_end().to_owned()
    }

    /// The facts about a node itself, one or two per line.
    fn facts(&self, node: NodeId, columns: usize) -> Vec<String> {
        let brief = self.heap.brief(node);
        let graph = self.heap.graph();
        let mut facts = vec![format!("  {}", label(&brief))];
        let locations: Vec<MemoryLocation> =
            graph.locations(node).take(MOST_LOCATIONS + 1).map(|row| graph.location(row)).collect();
        let refcount = locations.iter().find_map(|location| location.refcount);
        let refcount =
            refcount.map_or_else(String::new, |count| format!(" · refcount {}", grouped(u64::from(count))));
        facts.push(format!(
            "  {} · retains {} · shallow {}{refcount}{}",
            printable(graph.node_type_name(node)),
            bytes(brief.retained_bytes),
            bytes(brief.shallow_bytes),
            self.garbage_text(node),
        ));
        facts.extend(locations.iter().take(MOST_LOCATIONS).map(|location| self.location_text(location)));
        if locations.len() > MOST_LOCATIONS {
            facts.push(format!("  and {} more", graph.locations(node).len() - MOST_LOCATIONS));
        }
        facts.push(format!("  {}", printable(&self.heap.near_path(node))));
        facts.iter().map(|fact| crop(fact, columns, KeptEnd::Left)).collect()
    }

    fn garbage_text(&self, node: NodeId) -> &'static str {
        let retention = self.heap.retention();
        match (retention.is_reached(node), retention.is_held(node)) {
            (false, _) => " · unreachable",
            (true, false) => " · garbage: nothing keeps it alive",
            (true, true) => "",
        }
    }

    /// The allocator's block for a location.
    fn location_text(&self, location: &MemoryLocation) -> String {
        let graph = self.heap.graph();
        let name = graph.location_type_name(location.location_type);
        let name = name.strip_suffix(b"MemoryLocation").unwrap_or(name);
        let beyond = match location.bin_overhead {
            0 => String::new(),
            overhead => format!(" + {overhead} unused"),
        };
        let region = match location.region {
            Some(Region::HEAP) => {
                let (chunk, page) = (location.address & !(CHUNK - 1), location.address % CHUNK / PAGE);
                format!("chunk {chunk:#x}, page {page}")
            }
            Some(region) => printable(graph.region_name(region)),
            None => "outside PHP's heap".to_owned(),
        };
        format!("  {:#x} {} {} B{beyond} · {region}", location.address, printable(name), location.size)
    }
}
