//! Values that the known roots do not lead to: garbage, values that only modules or the machine's stack refer to, and the rest.

use std::collections::BTreeMap;
use std::ops::Range;

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength, Value};
use borehole_process::{Mapping, Target as _};

use crate::heap::allocator::{CHUNK_BYTES, HUGE_ENTRY_BYTES};
use crate::heap::blocks::Block;
use crate::heap::garbage::{self, Garbage};
use crate::heap::guess::{self, Guess};
use crate::heap::internals::scan::Scan;
use crate::heap::walk::{Kind, Shape, View, Walker};
use crate::remote::moved;

/// The size of the parts that are searched: that of a chunk of the heap, or the last part of a huge block.
const PART: u64 = CHUNK_BYTES;

impl<S: HeapSink> Walker<'_, S> {
    /// Adds garbage that has not been collected. The table of objects lists its objects, but holds none.
    pub(crate) fn garbage(&mut self) {
        // It lists all objects, and holds none.
        if let Some(block) = self.object_store().and_then(|(first, _)| self.block_at(first)) {
            self.account.reach(&block);
        }
        let objects = self.stored_objects();
        let Garbage { objects, values } =
            garbage::find(self.view, &self.layout, &self.php.layout, &self.account, objects.into_iter());
        if objects.is_empty() && values.is_empty() {
            return;
        }
        let root = self.root_node("garbage", NodeType::GARBAGE);
        self.count_attribute(root, objects.len() as u64 + values.len() as u64);
        for (handle, address) in objects {
            self.refers(root, &handle.to_string(), Kind::Object, address, Strength::Weak);
            self.run();
        }
        for (guess, address) in values {
            let is_new = self.block_at(address).is_some_and(|block| !self.account.is_reached(&block));
            let kind = if guess == Guess::Array { Kind::Array } else { Kind::Reference };
            if is_new {
                self.refers(root, &format!("{address:#x}"), kind, address, Strength::Weak);
                self.run();
            }
        }
        self.finish_scans();
    }

    /// The existing objects, with their handles.
    fn stored_objects(&self) -> Vec<(u32, u64)> {
        let Some((first, count)) = self.object_store() else { return Vec::new() };
        let bytes = self.view.bytes(first, u64::from(count) * 8);
        let words =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        // A free place has its lowest bit set.
        (0..).zip(words).filter(|&(handle, address)| handle > 0 && address != 0 && address % 2 == 0).collect()
    }

    /// Adds values that only the variables of modules, the memory of the C library or the machine's stack refer to.
    pub(crate) fn modules(&mut self) {
        let held: Vec<Range<u64>> = self.view.dump().ranges().map(range_of).collect();
        let names = Names::new(self.view);
        let mut root = None;
        for place in places(self.view) {
            for scan in self.scans_of(&place.range, &held) {
                if self.account.is_complete() {
                    return;
                }
                if !self.leads_somewhere(&scan) {
                    continue;
                }
                let node = *root.get_or_insert_with(|| self.root_node("modules", NodeType::MODULES));
                let name = |offset| names.name(&place, moved(scan.start, offset));
                self.scan(Scan { node, ..scan }, &name);
                self.run();
                self.finish_scans();
            }
        }
    }

    /// The parts of `range` that are `held` and outside of the heap; each part is either completely in the heap or completely
    /// outside.
    fn scans_of(&self, range: &Range<u64>, held: &[Range<u64>]) -> Vec<Scan> {
        let mut scans = Vec::new();
        let first = held.partition_point(|held| held.end <= range.start);
        for held in held[first..].iter().take_while(|held| held.start < range.end) {
            let end = held.end.min(range.end);
            let mut start = held.start.max(range.start).checked_next_multiple_of(8).unwrap_or(end);
            while start < end {
                let part = end.min((start - start % PART).saturating_add(PART));
                if !self.blocks.is_heap(start) {
                    scans.push(Scan { node: NodeId(0), start, bytes: (part - start) / 8 * 8 });
                }
                start = part;
            }
        }
        scans
    }

    /// Adds the allocator's own use of the heap: its list of huge blocks.
    pub(crate) fn memory_manager(&mut self) {
        let huge = self.blocks.allocator().map_or(&[][..], |allocator| &allocator.huge);
        if huge.is_empty() {
            return;
        }
        let root = self.root_node("memory_manager", NodeType::MEMORY_MANAGER);
        self.count_attribute(root, huge.len() as u64);
        for (number, huge) in huge.iter().enumerate() {
            let shape = Shape::new(LocationType::HUGE_LIST, HUGE_ENTRY_BYTES as u64);
            let (name, kind) = (number.to_string(), NodeType::INTERNAL_DATA);
            self.block(root, &name, Strength::Structural, kind, huge.entry, shape);
        }
    }

    /// Adds the blocks that nothing is known to lead to, by size.
    pub(crate) fn unattributed(&mut self) {
        let most = self.most_listed();
        let mut blocks: Vec<Block> = self.account.unreached().take(most).collect();
        if blocks.is_empty() {
            return;
        }
        blocks.sort_unstable_by_key(|block| (block.bytes, block.address));
        let root = self.root_node("unattributed", NodeType::UNATTRIBUTED);
        self.count_attribute(root, blocks.len() as u64);
        for same in blocks.chunk_by(|a, b| a.bytes == b.bytes) {
            let bin = self.part(root, &same[0].bytes.to_string(), NodeType::UNATTRIBUTED_BIN);
            self.count_attribute(bin, same.len() as u64);
            for block in same {
                self.unattributed_block(bin, block);
            }
        }
        if blocks.len() == most {
            self.give_up();
        }
    }

    fn unattributed_block(&mut self, bin: NodeId, block: &Block) {
        let guess = guess::guess(self.view, &self.layout, block);
        let shape = Shape::new(LocationType::UNATTRIBUTED, block.bytes);
        let name = format!("{:#x}", block.address);
        let kind = NodeType::UNATTRIBUTED_BLOCK;
        if let Some(node) = self.block(bin, &name, Strength::Structural, kind, block.address, shape) {
            self.fact(node, "guess", Value::Text(guess.name().as_bytes()));
        }
    }
}

fn range_of((address, bytes): (u64, &[u8])) -> Range<u64> {
    address..address.saturating_add(bytes.len() as u64)
}

/// Memory that may refer to blocks of the heap, and the base of its addresses.
pub(crate) struct Place {
    name: String,
    pub(crate) base: u64,
    pub(crate) range: Range<u64>,
}

/// The writable memory of a process: first that of files, last the machine's stack.
pub(crate) fn places(view: View<'_>) -> Vec<Place> {
    let (mut files, mut others, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
    let mut file: Option<(String, u64, u64)> = None;
    for mapping in view.mappings() {
        if mapping.shows_file() {
            let name = file_name(mapping);
            let known = file.take().filter(|(before, ..)| *before == name);
            file = Some((name, known.map_or(mapping.start, |(_, base, _)| base), mapping.end));
        }
        let is_kernels = mapping.path.starts_with(b"[v");
        if !mapping.readable || !mapping.writable || mapping.shared || is_kernels {
            continue;
        }
        let range = mapping.start..mapping.end;
        let place = |name: &str, base| Place { name: name.to_owned(), base, range: range.clone() };
        match &file {
            // Zero-initialized variables follow those that are in the file.
            Some((name, base, end)) if mapping.shows_file() || *end == range.start => {
                files.push(place(name, *base));
            }
            _ if mapping.path == b"[stack]" => stacks.push(place("stack", range.start)),
            _ if mapping.path == b"[heap]" => others.push(place("heap", range.start)),
            _ => others.push(place("anonymous", 0)),
        }
    }
    files.into_iter().chain(others).chain(stacks).collect()
}

fn file_name(mapping: &Mapping) -> String {
    let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// The variables with known names, by address.
struct Names(BTreeMap<u64, (u64, String)>);

impl Names {
    fn new(view: View<'_>) -> Self {
        let files = view.mappings().iter().filter(|mapping| mapping.shows_file() && mapping.file_offset == 0);
        let symbols = files.filter_map(|file| view.dump().symbols(file).ok());
        let mut names = BTreeMap::new();
        for symbols in symbols {
            let variables = symbols.iter().filter(|(_, symbol)| !symbol.thread_local && symbol.size >= 8);
            names.extend(variables.map(|(name, symbol)| {
                (symbol.address, (symbol.size, String::from_utf8_lossy(name).into_owned()))
            }));
        }
        Self(names)
    }

    /// The name of an address that refers to something.
    fn name(&self, place: &Place, address: u64) -> String {
        let before = self.0.range(..=address).next_back();
        match before.filter(|&(&start, (size, _))| address - start < *size) {
            Some((start, (_, name))) => format!("{name}+{:#x}", address - start),
            None => format!("{}+{:#x}", place.name, address - place.base),
        }
    }
}
