//! What the claims' traces are made of.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use borehole_formats::rbt::{
    Definitions, Frame, FrameDef, FrameRef, FunctionName, Reader, Record, Sample, StackId, Writer,
};
use borehole_testkit::fuzzing::Random;

/// The stacks of a trace, and in which order they were sampled.
pub(crate) struct Trace {
    pub(crate) stacks: Vec<Stack>,
    pub(crate) samples: Vec<usize>,
}

/// Frames from the leaf to the root, with strings of their own.
pub(crate) struct Stack(Vec<OwnedFrame>);

struct OwnedFrame {
    namespace: Vec<u8>,
    class: Vec<u8>,
    method: Vec<u8>,
    file: Vec<u8>,
    line: i64,
}

impl Trace {
    /// The PHP frames of the `rbt` trace at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path)?;
        let mut reader = Reader::new(bytes.as_slice());
        let mut trace = Self { stacks: Vec::new(), samples: Vec::new() };
        while let Some(record) = reader.next_record()? {
            if let Record::Sample(sample) = record {
                trace.add(&sample);
            }
        }
        Ok(trace)
    }

    fn add(&mut self, sample: &Sample<'_>) {
        let stack = sample.stack.index();
        // References are given out in the order in which stacks are first sampled.
        if stack == self.stacks.len() {
            let frames = sample.definitions.frames_leaf_first(sample.stack).iter();
            self.stacks
                .push(Stack(frames.filter_map(|&frame| OwnedFrame::of(sample.definitions, frame)).collect()));
        }
        self.samples.extend((0..sample.count).map(|_| stack));
    }

    pub(crate) fn define<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<Vec<StackId>> {
        self.stacks.iter().map(|stack| writer.define_trace(&stack.frames())).collect()
    }

    pub(crate) fn mean_depth(&self) -> f64 {
        let frames: usize = self.samples.iter().map(|&stack| self.stacks[stack].0.len()).sum();
        frames as f64 / self.samples.len() as f64
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
    fn of(definitions: &Definitions, frame: FrameRef) -> Option<Self> {
        let Frame::Php { namespace, class, method, file, line, .. } = *definitions.frame(frame) else {
            return None;
        };
        let [namespace, class, method, file] =
            [namespace, class, method, file].map(|string| definitions.string(string).to_vec());
        Some(Self { namespace, class, method, file, line })
    }

    fn name(&self) -> FunctionName<'_> {
        FunctionName { namespace: &self.namespace, class: &self.class, method: &self.method }
    }

    fn borrowed(&self) -> FrameDef<'_> {
        FrameDef::Php { name: self.name(), file: &self.file, line: self.line, opcode: None }
    }
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
