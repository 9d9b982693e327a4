//! A search of the whole heap.

use borehole_heap::NodeId;
use borehole_heap::views::{NodeSearch, SearchTarget};
use borehole_text::{grouped, printable};

use super::HeapIndex;

/// The amount of search work between checks for keys.
const WORK: usize = 20_000;

/// The latest search, if there was one.
#[derive(Default)]
pub(super) struct SearchState {
    search: Option<NodeSearch>,
    /// The text as typed.
    text: String,
    pub(super) is_running: bool,
}

impl SearchState {
    pub(super) fn new(target: SearchTarget, text: String) -> Self {
        Self { search: Some(NodeSearch::new(target)), text, is_running: true }
    }

    pub(super) const fn is_any(&self) -> bool {
        self.search.is_some()
    }

    /// The first nodes found.
    pub(super) fn found(&self) -> &[NodeId] {
        self.search.as_ref().map_or(&[], NodeSearch::found)
    }

    /// Continues the search for a while, if it is running.
    pub(super) fn advance(&mut self, known: &HeapIndex<'_>) {
        if let Some(search) = self.search.as_mut().filter(|_| self.is_running) {
            self.is_running = search.advance(&known.heap, WORK);
        }
    }

    /// The node at the address that was searched for: the last one found, which lies inside the others.
    pub(super) fn at_address(&self) -> Option<NodeId> {
        self.search.as_ref().filter(|search| search.is_for_address())?.found().last().copied()
    }

    /// The message for a finished search without a match.
    pub(super) fn failure(&self) -> Option<String> {
        let is_empty = self.search.as_ref().is_some_and(|search| search.count() == 0);
        is_empty.then(|| format!("no matches for {}", self.text))
    }

    /// The progress of the search, in words.
    pub(super) fn progress(&self, known: &HeapIndex<'_>) -> Option<String> {
        let search = self.search.as_ref()?;
        let (count, kept) = (search.count(), search.found().len() as u64);
        let matches = if count == 1 { "match" } else { "matches" };
        let mut text = format!("{} {matches} for {}", grouped(count), printable(self.text.as_bytes()));
        if kept < count {
            text += &format!(" (first {} shown)", grouped(kept));
        }
        if self.is_running {
            let seen = search.seen() as u64 * 100 / (known.node_count() as u64).max(1);
            text += &format!(", {seen}% searched; Esc cancels");
        }
        Some(text)
    }
}
