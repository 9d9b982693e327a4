//! Drawing of the heap explorer's screen.

use borehole_heap::views::{Field, Holder};
use borehole_heap::{Location, NodeId, Region, Strength};
use ratatui::layout::Rect;

use super::node::{MOST_SORTED, Pane};
use super::rows::{beside, label, room};
use super::tree::{Direction, Line, Tree};
use super::{HeapAction, HeapApp, Known, PromptKind, View};
use crate::amount::{bytes, grouped};
use crate::draw::canvas::Canvas;
use crate::draw::{draw_keys, split_bottom, split_top};
use crate::screen::{Cells, Explorer};
use crate::text::{Anchor, crop, printable, width};
use crate::theme::Role;

/// The maximum number of locations shown for a node.
const MOST_LOCATIONS: usize = 3;

/// The size of PHP's chunks of memory, which consist of pages.
///
/// Source: PHP, Zend/zend_alloc.c, `ZEND_MM_CHUNK_SIZE` and `ZEND_MM_PAGE_SIZE`.
const CHUNK: u64 = 2 << 20;
const PAGE: u64 = 4096;

impl Explorer for HeapApp<'_> {
    fn draw(&mut self, Cells(buffer): Cells<'_>) {
        let area = buffer.area;
        let Some(mut canvas) = Canvas::of_screen(buffer, self.settings.colours) else { return };
        let [header, rest] = split_top(area, 1);
        let [rest, footer] = split_bottom(rest, 1);
        let [rest, status] = split_bottom(rest, 1);
        self.draw_header(&mut canvas, header);
        self.areas = super::Areas::default();
        if self.shows_help {
            draw_keys(&mut canvas, rest, &mut self.help, &self.settings.keymap.help());
        } else {
            self.draw_view(&mut canvas, rest);
        }
        let text = self.status(usize::from(status.width));
        canvas.line(status, 0, &text, canvas.colours.style(Role::Plain));
        self.draw_footer(&mut canvas, footer);
    }
}

impl HeapApp<'_> {
    fn draw_header(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let counts = self.known.heap.graph().counts();
        let [nodes, references] = [counts.nodes, counts.edges].map(|count| grouped(count as u64));
        let mut facts = vec![bytes(self.known.total()), format!("{nodes} nodes, {references} references")];
        if !self.filter.is_empty() {
            facts.push(format!("/{}", printable(self.filter.as_bytes())));
        }
        canvas.header(area, &self.settings.title, &facts);
    }

    fn draw_footer(&self, canvas: &mut Canvas<'_>, area: Rect) {
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
        canvas.line(area, 0, &text, canvas.colours.style(Role::Bar));
    }

    /// The line above the keys: the prompt, a message, or the row under the cursor.
    fn status(&self, columns: usize) -> String {
        if let Some(prompt) = &self.prompt {
            let name = match prompt.kind {
                PromptKind::Filter => "filter rows",
                PromptKind::Search => "search classes, contents, names, paths",
                PromptKind::GoTo => "go to #node or 0xaddress",
            };
            return prompt.line(name, columns);
        }
        if let Some(message) = &self.message {
            return printable(message.as_bytes());
        }
        if self.is_searching || self.place.view == View::Found {
            return self.progress().unwrap_or_default();
        }
        self.current().map_or_else(String::new, |node| printable(&self.known.heap.near_path(node)))
    }

    fn draw_view(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
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
        canvas.line(heading, 0, self.heading(), canvas.colours.style(Role::Dim));
        self.areas.body = rest;
        let window = self.list.window(self.shown_count(), usize::from(rest.height));
        if window.is_empty() {
            canvas.line(rest, 0, "  nothing", canvas.colours.style(Role::Dim));
        }
        for (line, place) in (0..).zip(window) {
            let text = self.row_text(self.row_at(place), usize::from(rest.width));
            let role = if place == self.list.cursor { Role::Cursor } else { Role::Plain };
            canvas.line(rest, line, &text, canvas.colours.style(role));
        }
    }

    /// The title of the list.
    fn title(&self) -> String {
        let (shown, all) = (grouped(self.shown_count() as u64), grouped(self.row_count() as u64));
        let count = if self.shown.is_some() { format!("{shown} of {all}") } else { all };
        match self.place.view {
            View::Classes => format!("classes · {count} · what their objects retain"),
            View::Objects(class) => {
                let name = self.known.classes.get(class).map_or(&b""[..], |class| &class.name);
                format!("objects of {} · {count}", printable(name))
            }
            View::Types => format!("types of memory · {count}"),
            View::Roots => format!("roots · {count}"),
            View::Largest => format!("what retains most · {count}"),
            View::Cycles => format!("cycles · {count}"),
            View::Found => format!("found · {count}"),
            View::Bookmarks => format!("bookmarks · {count}"),
            View::Way => format!("path from the root · {count} steps"),
            View::Held | View::Holders | View::Node => String::new(),
        }
    }

    fn draw_tree(&mut self, canvas: &mut Canvas<'_>, area: Rect, tree: &mut Tree) {
        let [title, rest] = split_top(area, 1);
        let of = tree
            .top()
            .map_or_else(|| "the whole heap".to_owned(), |node| label(&self.known.heap.brief(node)));
        let what = match tree.direction {
            Direction::Held => format!("what would be freed with {of}"),
            Direction::Holders => format!("what refers to {of}"),
        };
        canvas.title(title, &what, true);
        self.areas.body = rest;
        let window = tree.list.window(tree.lines.len(), usize::from(rest.height));
        for (line, row) in (0..).zip(window) {
            let text = self.known.line_text(tree, tree.lines[row], usize::from(rest.width));
            let role = if row == tree.list.cursor { Role::Cursor } else { Role::Plain };
            canvas.line(rest, line, &text, canvas.colours.style(role));
        }
    }

    fn draw_node(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let Some(mut panes) = self.panes.take() else { return };
        let known = &self.known;
        let columns = usize::from(area.width);
        let facts = known.facts(panes.node, columns);
        let [top, rest] = split_top(area, u16::try_from(facts.len()).unwrap_or(area.height));
        for (line, fact) in (0..).zip(&facts) {
            let role = if line == 0 { Role::Focus } else { Role::Plain };
            canvas.line(top, line, fact, canvas.colours.style(role));
        }
        let holders = u16::try_from(panes.holder_count.saturating_add(1)).unwrap_or(u16::MAX).max(2);
        let [above, below] = split_top(rest, holders.min(rest.height / 2));
        for (pane, area) in [(Pane::Holders, above), (Pane::Fields, below)] {
            let has_cursor = panes.pane == pane;
            let [title, area] = split_top(area, 1);
            let count = panes.len(pane);
            canvas.title(title, &pane_title(pane, count, self.sorts), has_cursor);
            match pane {
                Pane::Holders => self.areas.holders = area,
                Pane::Fields => self.areas.body = area,
            }
            let window = panes.lists[pane as usize].window(count, usize::from(area.height));
            for (line, row) in (0..).zip(window) {
                let text = match pane {
                    Pane::Holders => known.holder_text(panes.holder(known, row), columns),
                    Pane::Fields => known.field_text(panes.field(known, row), columns),
                };
                let is_cursor = row == panes.lists[pane as usize].cursor;
                let role = if is_cursor { Role::of_cursor(has_cursor) } else { Role::Plain };
                canvas.line(area, line, &text, canvas.colours.style(role));
            }
        }
        self.panes = Some(panes);
    }
}

fn pane_title(pane: Pane, count: usize, sorts: bool) -> String {
    let what = match pane {
        Pane::Holders => "referred to by",
        Pane::Fields => "refers to",
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

impl Known<'_> {
    fn line_text(&self, tree: &Tree, line: Line, columns: usize) -> String {
        let (place, more) = match line {
            Line::Branch(place) => (place, None),
            Line::More(place, left) => (place, Some(left)),
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
        let what = branch.node.map_or_else(|| "(the graph)".to_owned(), |node| label(&self.heap.brief(node)));
        let weak = if branch.is_strong { "" } else { " (weak or engine)" };
        let name = crop(&printable(&branch.name), 48, Anchor::Right);
        let text = format!("{}{mark} {name}  {what}{weak}", indent(branch.depth));
        let numbers = format!("{} ", self.share_text(branch.retained));
        beside(numbers, &text, columns, Anchor::Left)
    }

    fn field_text(&self, field: Option<Field>, columns: usize) -> String {
        let Some(field) = field else { return "  (a reference to nothing)".to_owned() };
        let brief = self.heap.brief(field.node);
        let numbers = format!("{}  ", self.share_text(brief.retained_bytes));
        let name = crop(&printable(&field.name), 48, Anchor::Right);
        let text = format!("{name} = {}{}", label(&brief), strength_text(field.strength));
        beside(numbers, &text, columns, Anchor::Left)
    }

    fn holder_text(&self, holder: Option<Holder>, columns: usize) -> String {
        let Some(holder) = holder else { return "  (a reference from nothing)".to_owned() };
        let Some(node) = holder.node else { return format!("{:>19}root {}", "", printable(&holder.by)) };
        let brief = self.heap.brief(node);
        let numbers = format!("{}  ", self.share_text(brief.retained_bytes));
        let by = crop(&printable(&holder.by), 48, Anchor::Right);
        let text = format!("{}  {by}{}", label(&brief), strength_text(holder.strength));
        let left = room(columns, &numbers);
        let text = crop(&text, left, Anchor::Left);
        let space = left.saturating_sub(width(&text) + 2);
        let path = if space < 8 {
            String::new()
        } else {
            crop(&printable(&self.heap.near_path(node)), space, Anchor::Right)
        };
        format!("{numbers}{text}  {path}").trim_end().to_owned()
    }

    /// The facts about a node itself, one or two per line.
    fn facts(&self, node: NodeId, columns: usize) -> Vec<String> {
        let brief = self.heap.brief(node);
        let graph = self.heap.graph();
        let mut facts = vec![format!("  {}", label(&brief))];
        let locations: Vec<Location> =
            graph.locations(node).take(MOST_LOCATIONS + 1).map(|row| graph.location(row)).collect();
        let refcount = locations.iter().find_map(|location| location.refcount);
        let refcount =
            refcount.map_or_else(String::new, |count| format!(" · refcount {}", grouped(u64::from(count))));
        facts.push(format!(
            "  {} · retains {} · own {}{refcount}{}",
            printable(graph.node_type_name(node)),
            bytes(brief.retained_bytes),
            bytes(brief.own_bytes),
            self.garbage_text(node),
        ));
        facts.extend(locations.iter().take(MOST_LOCATIONS).map(|location| self.location_text(location)));
        if locations.len() > MOST_LOCATIONS {
            facts.push(format!("  and {} more", graph.locations(node).len() - MOST_LOCATIONS));
        }
        facts.push(format!("  {}", printable(&self.heap.near_path(node))));
        facts.iter().map(|fact| crop(fact, columns, Anchor::Left)).collect()
    }

    fn garbage_text(&self, node: NodeId) -> &'static str {
        let retention = self.heap.retention();
        match (retention.is_reached(node), retention.is_held(node)) {
            (false, _) => " · nothing leads to it",
            (true, false) => " · garbage: nothing keeps it alive",
            (true, true) => "",
        }
    }

    /// The allocator's block for a location.
    fn location_text(&self, location: &Location) -> String {
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
            None => "not PHP's own memory".to_owned(),
        };
        format!("  {:#x} {} {} B{beyond} · {region}", location.address, printable(name), location.size)
    }
}
