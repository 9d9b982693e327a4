//! What the roots that are known did not lead to: garbage, what only modules or the machine's stack refer to, and the rest.

use std::ops::Range;

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength, Value};
use borehole_process::Mapping;

use crate::heap::allocator::{CHUNK_BYTES, PAGE_BYTES};
use crate::heap::blocks::Block;
use crate::heap::garbage::{self, Garbage};
use crate::heap::guess::{self, Guess};
use crate::heap::internals::scan::Scan;
use crate::heap::walk::{Kind, Shape, Walker};

/// How much memory is looked through at once: a chunk of the heap is one, and the last part of a huge block.
const PART: u64 = CHUNK_BYTES;

impl<S: HeapSink> Walker<'_, S> {
    /// Garbage that has not been collected: the table of objects has its objects, which holds nothing.
    pub(crate) fn garbage(&mut self) {
        // It has all objects, and holds none.
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

    /// The objects that there are, by handle.
    fn stored_objects(&self) -> Vec<(u32, u64)> {
        let Some((first, count)) = self.object_store() else { return Vec::new() };
        let bytes = self.view.bytes(first, u64::from(count) * 8);
        let words =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        // A place that is free has its lowest bit set.
        (0..).zip(words).filter(|&(handle, address)| handle > 0 && address != 0 && address % 2 == 0).collect()
    }

    /// What only the variables of modules, or the memory of the C library, or the machine's stack refer to.
    pub(crate) fn modules(&mut self) {
        let mut root = None;
        for (name, range) in self.places() {
            if self.account.unreached().next().is_none() {
                return;
            }
            for scan in self.scans_of(&range) {
                if !self.leads_somewhere(&scan) {
                    continue;
                }
                let node = *root.get_or_insert_with(|| self.root_node("modules", NodeType::MODULES));
                let base = scan.start - range.start;
                self.scan(Scan { node, ..scan }, &|offset| format!("{name}+{:#x}", base + offset as u64));
                self.run();
                self.finish_scans();
            }
        }
    }

    /// What there is of `range` that is not the heap's.
    fn scans_of(&self, range: &Range<u64>) -> Vec<Scan> {
        let mut scans = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start - start % PART + PART);
            if !self.blocks.is_heap(start) {
                self.add_scans(start..end, &mut scans);
            }
            start = end;
        }
        scans
    }

    /// What there is of `range`: pages may be missing.
    fn add_scans(&self, range: Range<u64>, scans: &mut Vec<Scan>) {
        let mut start = range.start;
        while start < range.end {
            let bytes = (self.view.rest(start).len() as u64).min(range.end - start) / 8 * 8;
            if bytes > 0 {
                scans.push(Scan { node: NodeId(0), start, bytes });
            }
            start += if bytes > 0 { bytes } else { PAGE_BYTES - start % PAGE_BYTES };
        }
    }

    /// The writable memory that is no part of the heap, with names: that of files first, the machine's stack last.
    fn places(&self) -> Vec<(String, Range<u64>)> {
        let mut files: Vec<(String, Range<u64>)> = Vec::new();
        let (mut others, mut stacks) = (Vec::new(), Vec::new());
        let mut file: Option<(u64, u64, String)> = None;
        for mapping in self.view.mappings() {
            let Mapping { start, end, .. } = *mapping;
            if mapping.shows_file() {
                let name = file_name(mapping);
                let base =
                    file.take().filter(|(.., before)| *before == name).map_or(start, |(base, ..)| base);
                file = Some((base, end, name));
            }
            if !mapping.readable || !mapping.writable || mapping.shared || mapping.path.starts_with(b"[v") {
                continue;
            }
            let range = start..end;
            match &file {
                // The variables that begin as 0 follow those that the file has.
                Some((base, file_end, name))
                    if mapping.shows_file() || (*file_end == start && mapping.path.is_empty()) =>
                {
                    files.push((format!("{name}+{:#x}", start - base), range));
                }
                _ if mapping.path == b"[stack]" => stacks.push(("stack".to_owned(), range)),
                _ if mapping.path == b"[heap]" => others.push(("heap".to_owned(), range)),
                _ => others.push((format!("{start:#x}"), range)),
            }
        }
        files.into_iter().chain(others).chain(stacks).collect()
    }

    /// What nothing is known to lead to, by size.
    pub(crate) fn unattributed(&mut self) {
        let mut blocks: Vec<Block> = self.account.unreached().collect();
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

fn file_name(mapping: &Mapping) -> String {
    let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
