//! Variables that both a frame and a symbol table have: those of code outside of functions, and of functions that use
//! `extract()` and the like.
//!
//! While the code runs, its frame holds the values, and the symbol table refers to their places (`IS_INDIRECT`). If the code
//! includes a file, the values of the variables that both use move on to the frame of that file: the first frame keeps copies
//! that no longer count, and whose values may be gone.
//!
//! Source: `zend_attach_symbol_table` and `zend_rebuild_symbol_table` in `Zend/zend_execute_API.c` of PHP 7.0 to 8.5.

use std::ops::Range;

use borehole_heap::HeapSink;
use hashbrown::HashSet;

use super::internals::table;
use super::values::Zval;
use super::{HeapReader, HeapWalker};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// The variables that frames lend to symbol tables.
#[derive(Clone, Debug, Default)]
pub(super) struct LentVariables {
    /// The variables of each frame with a symbol table, ascending.
    ranges: Vec<Range<u64>>,
    /// The symbol tables.
    tables: HashSet<u64>,
    /// The places that the symbol tables refer to.
    places: HashSet<u64>,
}

impl LentVariables {
    /// Whether a frame with this symbol table holds its variable in this place.
    pub(super) fn holds(&self, symbols: u64, place: u64) -> bool {
        !self.tables.contains(&symbols) || self.places.contains(&place)
    }

    fn contains(&self, place: u64) -> bool {
        let before = self.ranges.partition_point(|range| range.start <= place);
        self.ranges[..before].last().is_some_and(|range| range.contains(&place))
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Notes the variables that the frames from `first` outwards lend to symbol tables.
    pub(super) fn note_lent(&mut self, first: u64, most: u32) {
        if self.heap.failed.is_some() {
            // The frames may have been left, so they hold nothing for certain.
            return;
        }
        let heap = self.heap;
        for frame in heap.chain_from(first).take(most as usize) {
            let Some(header) = heap.view.array::<80>(frame).filter(|header| !heap.is_raising(header)) else {
                continue;
            };
            let Some(symbols) = heap.symbols_of(&header) else { continue };
            let function = u64_at(&header, fixed::FRAME_FUNCTION).unwrap_or_default();
            let count = heap.view.number(function, heap.layout.function_variable_count);
            let start = moved(frame, heap.layout.frame_size);
            self.lent.ranges.push(start..start.saturating_add(u64::from(count) * fixed::VALUE_SIZE));
            self.note_table(symbols);
        }
        self.lent.ranges.sort_unstable_by_key(|range| range.start);
    }

    fn note_table(&mut self, symbols: u64) {
        if self.is_given_up() || !self.lent.tables.insert(symbols) {
            return;
        }
        let Some((_, bytes, entries)) = table(symbols, &self.heap) else { return };
        self.graph.limits.meet_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
        let heap = self.heap;
        let is_indirect = |value| heap.view.array(moved(value, 8)) == Some([heap.layout.kind_indirect]);
        let places = entries.iter().filter(|entry| is_indirect(entry.value)).map(|entry| entry.pointer);
        self.lent.places.extend(places);
    }

    /// The place of a value that `value` refers to, if that is a variable of a frame.
    #[inline]
    pub(super) fn lent(&self, value: Zval) -> Option<u64> {
        let is_lent = value.kind == self.heap.layout.kind_indirect && self.lent.contains(value.word);
        is_lent.then_some(value.word)
    }
}

impl HeapReader<'_> {
    /// The address of a frame's symbol table; `None` if its code has none.
    pub(super) fn symbols_of(&self, header: &[u8; 80]) -> Option<u64> {
        let symbols = u64_at(header, self.php.layout.frame_previous + 8).filter(|&symbols| symbols != 0)?;
        let has_symbols = match self.layout.call_has_symbols {
            0 => {
                let function = u64_at(header, fixed::FRAME_FUNCTION)?;
                self.view.array(function).is_some_and(|[kind]| kind != fixed::FUNCTION_INTERNAL)
            }
            flag => u32_at(header, fixed::FRAME_CALL)? & flag != 0,
        };
        has_symbols.then_some(symbols)
    }
}
