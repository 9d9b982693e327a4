//! The frames and samples of the claims' traces.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;
use borehole_formats::rbt::{
    DefinedFrame, Definitions, FrameDef, FrameIndex, FunctionName, Reader, Record, StackId, StoredSample,
    Writer,
};
use borehole_testkit::fuzzing::Random;

/// The stacks of a trace, and in which order they were sampled.
pub(crate) struct Trace {
    pub(crate) stacks: Vec<Stack>,
    pub(crate) samples: Vec<usize>,
}

/// Frames from the leaf to the root.
pub(crate) struct Stack(Vec<OwnedFrame>);

/// A frame whose strings are those of equal frames, as in a program that reads each name once.
#[derive(Clone)]
struct OwnedFrame {
    namespace: Rc<[u8]>,
    class: Rc<[u8]>,
    method: Rc<[u8]>,
    file: Rc<[u8]>,
    line: i64,
}

type TraceStrings = HashSet<Rc<[u8]>>;

impl Trace {
    /// The PHP frames of the `rbt` trace at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path)?;
        let mut reader = Reader::new(bytes.as_slice());
        let mut trace = Self { stacks: Vec::new(), samples: Vec::new() };
        let mut strings = TraceStrings::new();
        while let Some(record) = reader.next_record()? {
            if let Record::Sample(sample) = record {
                trace.add(&sample, &mut strings);
            }
        }
        Ok(trace)
    }

    fn add(&mut self, sample: &StoredSample<'_>, strings: &mut TraceStrings) {
        let stack = sample.stack.index();
        // References are given out in the order in which stacks are first sampled.
        if stack == self.stacks.len() {
            let frames = sample.definitions.frames_leaf_first(sample.stack);
            let frames = frames.filter_map(|frame| OwnedFrame::of(sample.definitions, frame, strings));
            self.stacks.push(Stack(frames.collect()));
        }
        self.samples.extend((0..sample.count).map(|_| stack));
    }

    pub(crate) fn define<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<Vec<StackId>> {
        self.stacks.iter().map(|stack| writer.define_trace(&stack.frames())).collect()
    }

    /// The trace with stacks of `depth` frames each: a shallow one gets callers of the deepest one, a deep
    /// one loses callers.
    pub(crate) fn of_depth(&self, depth: usize) -> Self {
        let deepest = self.stacks.iter().max_by_key(|stack| stack.0.len());
        let callers = deepest.map_or(&[][..], |stack| &stack.0);
        let resized = |stack: &Stack| {
            let missing = depth.saturating_sub(stack.0.len());
            let mut frames: Vec<_> = stack.0.iter().take(depth).cloned().collect();
            let mut more: Vec<_> = callers.iter().rev().cycle().take(missing).cloned().collect();
            more.reverse();
            frames.append(&mut more);
            Stack(frames)
        };
        Self { stacks: self.stacks.iter().map(resized).collect(), samples: self.samples.clone() }
    }
}

impl Stack {
    pub(crate) fn frames(&self) -> Vec<FrameDef<'_>> {
        self.0.iter().map(OwnedFrame::borrowed).collect()
    }

    /// Name, file and line of each frame.
    pub(crate) fn places(&self) -> impl Iterator<Item = (String, String, i64)> {
        self.0.iter().map(|frame| {
            let mut name = Vec::new();
            frame.name().join_into(&mut name);
            (text(&name), text(&frame.file), frame.line)
        })
    }
}

impl OwnedFrame {
    fn of(definitions: &Definitions, frame: FrameIndex, strings: &mut TraceStrings) -> Option<Self> {
        let DefinedFrame::Php { namespace, class, method, file, line, .. } = *definitions.frame(frame) else {
            return None;
        };
        let [namespace, class, method, file] =
            [namespace, class, method, file].map(|string| shared(strings, definitions.string(string)));
        Some(Self { namespace, class, method, file, line })
    }

    fn name(&self) -> FunctionName<'_> {
        FunctionName { namespace: &self.namespace, class: &self.class, method: &self.method }
    }

    fn borrowed(&self) -> FrameDef<'_> {
        FrameDef::Php { name: self.name(), file: &self.file, line: self.line, opcode: None }
    }
}

/// The one copy of `string`.
fn shared(strings: &mut TraceStrings, string: &[u8]) -> Rc<[u8]> {
    strings.get(string).cloned().unwrap_or_else(|| {
        let copy: Rc<[u8]> = string.into();
        strings.insert(Rc::clone(&copy));
        copy
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An endless order of things in which no two neighbours are equal: long enough that no branch predictor
/// learns it, short enough to take no time itself.
pub(crate) struct Order;

impl Order {
    const LENGTH: usize = 1 << 16;

    pub(crate) fn restless<T: Copy + PartialEq>(things: &[T]) -> impl Iterator<Item = T> {
        let mut random = Random::new(1);
        let mut order: Vec<T> = (0..Self::LENGTH).map(|_| things[random.below(things.len())]).collect();
        order.dedup();
        if order.first() == order.last() {
            order.pop();
        }
        order.into_iter().cycle()
    }
}
