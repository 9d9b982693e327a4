//! The tables of a lane, with the definitions of its samples, and the strings of all lanes.

use std::borrow::{Borrow, Cow};
use std::hash::{BuildHasher as _, Hash};

use borehole_model::{Frame, FrameId, StackId, StringId, Tables};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::frames::profiler;

/// The strings of a document, in order of first use.
#[derive(Debug, Default)]
pub(super) struct StringArray {
    strings: DistinctRows<Box<str>>,
    /// The number of strings that were not UTF-8.
    pub(super) broken: u64,
}

impl StringArray {
    pub(super) fn new() -> Self {
        let mut strings = Self::default();
        strings.place("(root)");
        strings
    }

    pub(super) fn place(&mut self, text: &str) -> u64 {
        self.strings.place(text, || text.into()).into()
    }

    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let text = String::from_utf8_lossy(bytes);
        let (known, place) = (self.strings.list.len(), self.place(&text));
        self.broken += u64::from(matches!(text, Cow::Owned(_)) && self.strings.list.len() > known);
        place
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.strings.list.iter().map(|text| &**text)
    }
}

/// The categories of frames, as indexes in the list of categories.
const PYTHON: u64 = 1;
const NATIVE: u64 = 2;
const GC: u64 = 3;

/// A stack. Most rows are stacks, so they are small: eight bytes, and five in the hash table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackRow {
    frame: u32,
    /// The index of the caller's row, plus one.
    prefix: u32,
}

impl StackRow {
    pub(super) fn frame(self) -> u64 {
        self.frame.into()
    }

    /// The index of the caller's row.
    pub(super) fn prefix(self) -> Option<u64> {
        self.prefix.checked_sub(1).map(u64::from)
    }
}

/// The rows of the model's frames and stacks in the lane that is being written.
///
/// Lanes are written one after the other, so one column of each serves all.
#[derive(Debug, Default)]
pub(super) struct KnownRows {
    lane: u32,
    frames: KnownColumn,
    stacks: KnownColumn,
}

impl KnownRows {
    /// Forgets the lane before.
    pub(super) fn next_lane(&mut self, tables: &Tables) {
        self.lane = self.lane.checked_add(1).unwrap_or_else(|| {
            for known in [&mut self.frames, &mut self.stacks] {
                known.0.fill((0, 0));
            }
            1
        });
        self.frames.0.resize(tables.frame_count(), (0, 0));
        self.stacks.0.resize(tables.stack_count(), (0, 0));
    }
}

/// By id: the lane of its last look-up, and its row plus one there; 0 if nothing of it is displayed.
#[derive(Debug, Default)]
struct KnownColumn(Vec<(u32, u32)>);

impl KnownColumn {
    #[inline]
    fn get(&self, lane: u32, index: usize) -> Option<u32> {
        let (known_in, row) = self.0[index];
        (known_in == lane).then_some(row)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrameRow {
    pub(super) function: u64,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionRow {
    pub(super) name: u64,
    pub(super) resource: u64,
    /// The name of the file and the first line seen, for code with source.
    pub(super) file: Option<u64>,
    pub(super) line: Option<u64>,
    pub(super) category: u64,
}

/// Rows, each stored once. There may be many: the hash table holds only indexes.
#[derive(Debug)]
pub(super) struct DistinctRows<T> {
    pub(super) list: Vec<T>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for DistinctRows<T> {
    fn default() -> Self {
        Self { list: Vec::new(), index: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }
}

impl<T> DistinctRows<T> {
    /// The index of `row`, added by `make` if it is new.
    fn place<R: Eq + Hash + ?Sized>(&mut self, row: &R, make: impl FnOnce() -> T) -> u32
    where
        T: Borrow<R>,
    {
        let Self { list, index, hasher } = self;
        let hash = hasher.hash_one(row);
        if let Some(&place) = index.find(hash, |&place| list[place as usize].borrow() == row) {
            return place;
        }
        let next = number(list.len() as u64);
        index.insert_unique(hash, next, |&place| hasher.hash_one(list[place as usize].borrow()));
        list.push(make());
        next
    }

    /// Adds a row that is new.
    fn push(&mut self, row: T) -> u32 {
        self.list.push(row);
        number(self.list.len() as u64 - 1)
    }
}

/// The definitions of one lane's samples, in order of first use.
#[derive(Debug, Default)]
pub(super) struct LaneTables {
    /// Whether no two frames have the same displayed form, and so no two stacks.
    are_distinct: bool,
    pub(super) stacks: DistinctRows<StackRow>,
    pub(super) frames: DistinctRows<FrameRow>,
    pub(super) functions: Vec<FunctionRow>,
    pub(super) resources: Vec<u64>,
    path: Vec<StackId>,
    function_index: HashMap<(Option<StringId>, StringId), u64>,
    resource_index: HashMap<Option<StringId>, u64>,
}

impl LaneTables {
    /// Creates tables of frames that are distinct, see [`are_distinct`], or not.
    pub(super) fn new(are_distinct: bool) -> Self {
        Self { are_distinct, ..Self::default() }
    }

    /// The row of a stack without the profiler's own frames, added if it is new; `None` if no other frames are left.
    #[inline]
    pub(super) fn stack(
        &mut self,
        stack: StackId,
        known: &mut KnownRows,
        tables: &Tables,
        strings: &mut StringArray,
    ) -> Option<u64> {
        let row = known.stacks.get(known.lane, stack.index());
        let row = row.unwrap_or_else(|| self.new_stack(stack, known, tables, strings));
        row.checked_sub(1).map(u64::from)
    }

    fn new_stack(
        &mut self,
        stack: StackId,
        known: &mut KnownRows,
        tables: &Tables,
        strings: &mut StringArray,
    ) -> u32 {
        let (mut next, mut row) = (Some(stack), 0);
        while let Some(stack) = next {
            if let Some(found) = known.stacks.get(known.lane, stack.index()) {
                row = found;
                break;
            }
            self.path.push(stack);
            next = tables.parent(stack);
        }
        while let Some(stack) = self.path.pop() {
            if let Some(frame) = self.frame(tables.leaf(stack), known, tables, strings) {
                let new = StackRow { frame, prefix: row };
                let place =
                    if self.are_distinct { self.stacks.push(new) } else { self.stacks.place(&new, || new) };
                row = place + 1;
            }
            known.stacks.0[stack.index()] = (known.lane, row);
        }
        row
    }

    /// The category of a frame: that of its function.
    pub(super) fn category(&self, frame: &FrameRow) -> u64 {
        self.functions[index(frame.function)].category
    }

    /// The category of a stack: that of its frame.
    pub(super) fn stack_category(&self, row: StackRow) -> u64 {
        self.category(&self.frames.list[index(row.frame())])
    }

    /// The row of a frame; `None` if it is the profiler's own.
    fn frame(
        &mut self,
        id: FrameId,
        known: &mut KnownRows,
        tables: &Tables,
        strings: &mut StringArray,
    ) -> Option<u32> {
        let row = known.frames.get(known.lane, id.index()).unwrap_or_else(|| {
            let frame = tables.frame(id);
            let is_shown = !profiler::is_profiler(&frame, tables);
            let row = if is_shown { self.frame_row(&frame, tables, strings) + 1 } else { 0 };
            known.frames.0[id.index()] = (known.lane, row);
            row
        });
        row.checked_sub(1)
    }

    fn frame_row(&mut self, frame: &Frame, tables: &Tables, strings: &mut StringArray) -> u32 {
        let line = line(frame);
        let function = self.function(frame, line, tables, strings);
        let row = FrameRow { function, line, column: frame.column };
        if self.are_distinct { self.frames.push(row) } else { self.frames.place(&row, || row) }
    }

    fn function(
        &mut self,
        frame: &Frame,
        line: Option<u64>,
        tables: &Tables,
        strings: &mut StringArray,
    ) -> u64 {
        let file = file(frame);
        if let Some(&known) = self.function_index.get(&(file, frame.function)) {
            return known;
        }
        let path = profiler::file(frame, tables);
        let name = tables.string(frame.function);
        let category = category(path, name);
        let has_source = category == PYTHON;
        let row = FunctionRow {
            name: strings.bytes(name),
            resource: self.resource(file, path, strings),
            // The whole path, which `replay` cuts: the viewer shows its end, and finds the source by all of it.
            file: has_source.then(|| strings.bytes(path)),
            line: line.filter(|_| has_source),
            category,
        };
        self.functions.push(row);
        let place = self.functions.len() as u64 - 1;
        self.function_index.insert((file, frame.function), place);
        place
    }

    fn resource(&mut self, file: Option<StringId>, path: &[u8], strings: &mut StringArray) -> u64 {
        let Self { resources, resource_index, .. } = self;
        *resource_index.entry(file).or_insert_with(|| {
            resources.push(strings.bytes(base_name(path)));
            resources.len() as u64 - 1
        })
    }
}

/// Whether every frame is displayed, all in different forms, so that all stacks have different forms.
pub(super) fn are_distinct(tables: &Tables) -> bool {
    let shown = |id: FrameId| {
        let frame = tables.frame(id);
        (file(&frame), frame.function, line(&frame), frame.column)
    };
    let hasher = DefaultHashBuilder::default();
    // Ids instead of displayed forms: there may be many frames.
    let mut seen = HashTable::with_capacity(tables.frame_count());
    tables.frame_ids().all(|id| {
        let row = shown(id);
        let is_same = |&other: &FrameId| shown(other) == row;
        match seen.entry(hasher.hash_one(row), is_same, |&other| hasher.hash_one(shown(other))) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(id);
                !profiler::is_profiler(&tables.frame(id), tables)
            }
        }
    })
}

fn file(frame: &Frame) -> Option<StringId> {
    frame.file.or(frame.native.map(|native| native.module))
}

/// The displayed line.
fn line(frame: &Frame) -> Option<u64> {
    frame.line.and_then(|line| u64::try_from(line).ok()).filter(|&line| line > 0)
}

impl FunctionRow {
    /// Whether this is code of the profiled language.
    pub(super) const fn is_script(&self) -> bool {
        self.category == PYTHON
    }
}

/// An index in its stored form: there are at most as many displayed stacks, frames and strings as the model has.
fn number(place: u64) -> u32 {
    u32::try_from(place).expect("stacks, frames and strings are numbered with 32 bits")
}

fn index(place: u64) -> usize {
    usize::try_from(place).expect("places are indices of vectors")
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The category of a function. Markers of the profiler, whose file is `~`, have their own; `replay` calls them Python
/// code.
fn category(path: &[u8], name: &[u8]) -> u64 {
    match (path, name) {
        (b"~", b"<GC>") => GC,
        (b"~", _) => NATIVE,
        (b"<stdin>" | b"<string>", _) => PYTHON,
        _ if path.starts_with(b"<") => NATIVE,
        _ => PYTHON,
    }
}
