//! The tables of a lane, which hold what its samples refer to, and the strings of all lanes.

use borehole_model::{Frame, FrameId, StackId, StringId, Tables};
use hashbrown::HashMap;

use crate::own_frames;

/// The strings of a document, in order of first use.
#[derive(Debug)]
pub(super) struct Strings {
    list: Vec<Box<str>>,
    index: HashMap<Box<str>, u64>,
}

impl Strings {
    pub(super) fn new() -> Self {
        let mut strings = Self { list: Vec::new(), index: HashMap::new() };
        strings.place("(root)");
        strings
    }

    pub(super) fn place(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        let place = self.list.len() as u64;
        self.list.push(text.into());
        self.index.insert(text.into(), place);
        place
    }

    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        self.place(&String::from_utf8_lossy(bytes))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|text| &**text)
    }
}

/// Categories that frames have, as places in the list of categories.
const PYTHON: u64 = 1;
const NATIVE: u64 = 2;
const GC: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct StackRow {
    pub(super) frame: u64,
    /// The place of the caller's row.
    pub(super) prefix: Option<u64>,
    pub(super) category: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrameRow {
    pub(super) function: u64,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionRow {
    pub(super) name: u64,
    pub(super) resource: u64,
    /// The name of the file and the line that was seen first, of code that has source.
    pub(super) file: Option<u64>,
    pub(super) line: Option<u64>,
    pub(super) category: u64,
}

/// What the samples of one lane refer to, in order of first use.
#[derive(Debug, Default)]
pub(super) struct LaneTables {
    pub(super) stacks: Vec<StackRow>,
    pub(super) frames: Vec<FrameRow>,
    pub(super) functions: Vec<FunctionRow>,
    pub(super) resources: Vec<u64>,
    stack_index: HashMap<(u64, Option<u64>), u64>,
    frame_index: HashMap<FrameRow, u64>,
    function_index: HashMap<(Option<StringId>, StringId), u64>,
    resource_index: HashMap<Option<StringId>, u64>,
    /// The rows of stacks and frames of the model; no row where there is nothing to show.
    known_stacks: HashMap<StackId, Option<u64>>,
    known_frames: HashMap<FrameId, Option<u64>>,
}

impl LaneTables {
    /// The row of a stack, without the profiler's own frames.
    pub(super) fn stack(&mut self, stack: StackId, tables: &Tables, strings: &mut Strings) -> Option<u64> {
        let (mut path, mut next, mut row) = (Vec::new(), Some(stack), None);
        while let Some(stack) = next {
            if let Some(&known) = self.known_stacks.get(&stack) {
                row = known;
                break;
            }
            path.push(stack);
            next = tables.parent(stack);
        }
        for &stack in path.iter().rev() {
            if let Some(frame) = self.frame(tables.leaf(stack), tables, strings) {
                row = Some(self.stack_row(frame, row));
            }
            self.known_stacks.insert(stack, row);
        }
        row
    }

    /// The row of a stack that has been looked up before.
    pub(super) fn row(&self, stack: StackId) -> Option<u64> {
        self.known_stacks.get(&stack).copied().flatten()
    }

    /// The category of a frame, which is that of its function.
    pub(super) fn category(&self, frame: &FrameRow) -> u64 {
        self.functions[index(frame.function)].category
    }

    fn stack_row(&mut self, frame: u64, prefix: Option<u64>) -> u64 {
        let Self { stacks, stack_index, frames, functions, .. } = self;
        *stack_index.entry((frame, prefix)).or_insert_with(|| {
            let category = functions[index(frames[index(frame)].function)].category;
            stacks.push(StackRow { frame, prefix, category });
            stacks.len() as u64 - 1
        })
    }

    fn frame(&mut self, id: FrameId, tables: &Tables, strings: &mut Strings) -> Option<u64> {
        if let Some(&known) = self.known_frames.get(&id) {
            return known;
        }
        let frame = tables.frame(id);
        let row = (!own_frames::is_own(frame, tables)).then(|| self.frame_row(frame, tables, strings));
        self.known_frames.insert(id, row);
        row
    }

    fn frame_row(&mut self, frame: &Frame, tables: &Tables, strings: &mut Strings) -> u64 {
        let line = frame.line.and_then(|line| u64::try_from(line).ok()).filter(|&line| line > 0);
        let function = self.function(frame, line, tables, strings);
        let row = FrameRow { function, line, column: frame.column.map(u64::from) };
        let Self { frames, frame_index, .. } = self;
        *frame_index.entry(row).or_insert_with(|| {
            frames.push(row);
            frames.len() as u64 - 1
        })
    }

    fn function(&mut self, frame: &Frame, line: Option<u64>, tables: &Tables, strings: &mut Strings) -> u64 {
        let file = frame.file.or(frame.native.map(|native| native.module));
        if let Some(&known) = self.function_index.get(&(file, frame.function)) {
            return known;
        }
        let path = own_frames::file(frame, tables);
        let name = tables.string(frame.function);
        let category = category(path, name);
        let has_source = category == PYTHON;
        let row = FunctionRow {
            name: strings.bytes(name),
            resource: self.resource(file, path, strings),
            file: has_source.then(|| strings.bytes(base_name(path))),
            line: line.filter(|_| has_source),
            category,
        };
        self.functions.push(row);
        let place = self.functions.len() as u64 - 1;
        self.function_index.insert((file, frame.function), place);
        place
    }

    fn resource(&mut self, file: Option<StringId>, path: &[u8], strings: &mut Strings) -> u64 {
        let Self { resources, resource_index, .. } = self;
        *resource_index.entry(file).or_insert_with(|| {
            resources.push(strings.bytes(base_name(path)));
            resources.len() as u64 - 1
        })
    }
}

impl FunctionRow {
    /// Whether this is code of the profiled language.
    pub(super) const fn is_script(&self) -> bool {
        self.category == PYTHON
    }
}

fn index(place: u64) -> usize {
    usize::try_from(place).expect("places are indices of vectors")
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The category of a function. Markers of the profiler, whose file is `~`, have their own; `replay` calls them
/// Python code.
fn category(path: &[u8], name: &[u8]) -> u64 {
    match (path, name) {
        (b"~", b"<GC>") => GC,
        (b"~", _) => NATIVE,
        (b"<stdin>" | b"<string>", _) => PYTHON,
        _ if path.starts_with(b"<") => NATIVE,
        _ => PYTHON,
    }
}
