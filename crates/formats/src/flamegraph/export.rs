//! Export of the model to a flame graph.

use std::cmp::Ordering;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, Tables, ValueType, nanoseconds_per};
use inferno::flamegraph;

use super::NameStyle;
use crate::lines::folded::FoldedLines;
use crate::lines::text::common_prefix;
use crate::sums::losses::SampleLosses;
use crate::sums::stacks::{EMPTY_STACK, StackCounts};
use crate::{Export, Losses};

/// The options of a flame graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The title above the graph.
    pub title: String,
    /// The counted things, a plural such as `samples`. Values of another kind are named by their unit and kind.
    pub count_name: String,
    /// The direction of growth.
    pub direction: Direction,
    /// The form of frame names.
    pub names: NameStyle,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            title: "Flame Graph".to_owned(),
            count_name: "samples".to_owned(),
            direction: Direction::default(),
            names: NameStyle::default(),
        }
    }
}

/// The direction of growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// Upwards, with the root at the bottom.
    #[default]
    Flames,
    /// Downwards, with the root at the top.
    Icicles,
}

/// The divisor of the narrowest frame's share. The drawing library leaves out frames below a ten-thousandth of all samples;
/// half of that leaves a margin. Source: inferno 0.12, `Options::min_width`.
const NARROWEST: u64 = 20_000;

/// The most calls above each other that are drawn: browsers show pictures of at most 32,767 pixels, and a call takes 16.
const DEEPEST: u32 = 2_000;

/// The longest name that is drawn whole, in bytes.
const LONGEST_NAME: usize = 4_000;

/// The longest text of all drawn stacks together, in bytes. The drawing library holds all of it.
const LONGEST_TEXT: u64 = 256 << 20;

/// Adds samples up by stack and draws them.
///
/// Calls above the 2,000th are counted as their callers, and names are cut after 4,000 bytes. Fewer calls are drawn if the stacks
/// would not fit into 256 MiB of text.
///
/// Samples without a stack become a frame `[empty stack]`. A profile without samples becomes a picture that says so.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, flamegraph, folded};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let (mut tables, mut svg) = (Tables::default(), Vec::new());
/// let mut exporter = flamegraph::Exporter::new(&mut svg, flamegraph::ExportOptions::default());
/// folded::import(&b"main;query 12\nmain 3\n"[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(String::from_utf8(svg)?.contains("query (12 samples, 80.00%)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    options: ExportOptions,
    counts: StackCounts,
    /// The value type of the counts, if they are not samples.
    value_type: Option<ValueType>,
    losses: SampleLosses,
    /// The number of calls of the deepest stack that are not drawn.
    too_deep: u32,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that draws to `output` at the end.
    pub fn new(output: W, options: ExportOptions) -> Self {
        Self {
            output: BufWriter::with_capacity(1 << 16, output),
            options,
            counts: StackCounts::default(),
            value_type: None,
            losses: SampleLosses::default(),
            too_deep: 0,
        }
    }

    /// The stacks in the form of the drawing library, the last first. Their order keeps the callees of a caller together, which
    /// the order of the lines does not, because `;` sorts after the digits. Frames too narrow for the library are left out.
    fn lines(&mut self, tables: &Tables) -> io::Result<Vec<DrawnStack>> {
        let (mut lines, mut line) = (Vec::new(), Vec::new());
        let mut stacks = FoldedLines::new(tables, &self.counts, self.options.names, LONGEST_NAME)?;
        let least = self.total()? / NARROWEST;
        stacks.gather(least, u32::MAX);
        let deepest = stacks.depth();
        let mut depth = deepest;
        while depth > DEEPEST || (depth > 1 && stacks.text_bytes() > LONGEST_TEXT) {
            depth = if depth > DEEPEST { DEEPEST } else { depth / 2 };
            stacks.gather(least, depth);
        }
        self.too_deep = deepest - depth;
        let text_bytes = usize::try_from(stacks.text_bytes()).unwrap_or(usize::MAX);
        tables.check_room(text_bytes).map_err(io::Error::from)?;
        stacks.each(|stack, count| {
            line.clear();
            stack.put(&mut line, |_| io::Result::Ok(()))?;
            lines.push(DrawnStack::new(&line, count));
            io::Result::Ok(())
        })?;
        lines.sort_by(|one, other| frame_by_frame(other.stack(), one.stack()));
        Ok(lines)
    }

    fn total(&self) -> io::Result<u64> {
        let mut counts = self.counts.iter().map(|(_, count)| count);
        counts.try_fold(0u64, u64::checked_add).ok_or_else(too_many_samples)
    }

    fn drawing(&self) -> flamegraph::Options<'static> {
        let mut drawing = flamegraph::Options::default();
        drawing.title = drawable(&self.options.title);
        drawing.count_name = drawable(&self.options.count_name);
        drawing.direction = match self.options.direction {
            Direction::Flames => flamegraph::Direction::Straight,
            Direction::Icicles => flamegraph::Direction::Inverted,
        };
        // Frame names begin with the function, so a narrow box shows it.
        drawing.text_truncate_direction = flamegraph::TextTruncateDirection::Right;
        // Keeps the order of the lines, and takes the last first.
        drawing.flame_chart = true;
        // Derives colours from names, so that equal profiles give equal files.
        drawing.deterministic = true;
        self.name_counts(&mut drawing);
        drawing
    }

    /// Sets the name of the counts; times get a unit that leaves some thousands.
    fn name_counts(&self, drawing: &mut flamegraph::Options<'static>) {
        let Some(ValueType { kind, unit }) = &self.value_type else { return };
        let unit = match nanoseconds_per(unit) {
            // Times below ten seconds are shown in microseconds, so that short ones keep their digits.
            Some(1) if self.total().is_ok_and(|total| total < 10_000_000_000) => {
                drawing.factor = 1e-3;
                "us"
            }
            Some(1) => {
                drawing.factor = 1e-6;
                "ms"
            }
            _ => unit,
        };
        drawing.count_name = drawable(&format!("{unit} {kind}"));
        drawing.subtitle = Some(drawable(&format!("{kind} in {unit}")));
    }
}

#[cold]
fn too_many_samples() -> io::Error {
    let message = format!("too many samples for a flame graph: expected at most {}", u64::MAX);
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// A stack and a count in the form of the drawing library.
struct DrawnStack {
    text: String,
    /// The length of the stack within it.
    stack_bytes: usize,
}

impl DrawnStack {
    fn new(stack: &[u8], count: u64) -> Self {
        let count = count.to_string();
        let mut text = String::with_capacity(stack.len() + 1 + count.len());
        put_drawable(stack, &mut text);
        let stack_bytes = text.len();
        text.extend([" ", &count]);
        Self { text, stack_bytes }
    }

    fn stack(&self) -> &[u8] {
        &self.text.as_bytes()[..self.stack_bytes]
    }
}

/// Appends the frames of a stack. Characters that XML cannot hold are replaced; control characters are spelled out.
fn put_drawable(stack: &[u8], line: &mut String) {
    match str::from_utf8(stack) {
        Ok("") => line.push_str(EMPTY_STACK),
        Ok(ascii) if stack.iter().all(|byte| (b' '..=b'~').contains(byte)) => line.push_str(ascii),
        _ => String::from_utf8_lossy(stack).chars().for_each(|c| borehole_text::push_document(c, line)),
    }
}

/// Compares two stacks by their frames, which contain no bytes below a space.
fn frame_by_frame(one: &[u8], other: &[u8]) -> Ordering {
    let rest = common_prefix(one, other);
    let next = |line: &[u8]| line.get(rest).map(|&byte| if byte == b';' { 0 } else { byte });
    next(one).cmp(&next(other))
}

fn drawable(text: &str) -> String {
    let mut drawable = String::with_capacity(text.len());
    text.chars().for_each(|c| borehole_text::push_document(c, &mut drawable));
    drawable
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.losses.all_but_stack(at, sample);
        self.counts.add(sample.stack, sample.count);
        Ok(ControlFlow::Continue(()))
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let lines = self.lines(tables)?;
        let drawn = flamegraph::from_lines(
            &mut self.drawing(),
            lines.iter().map(|line| line.text.as_str()),
            &mut self.output,
        );
        if !lines.is_empty() {
            drawn?;
        }
        // Without samples the library writes a picture that says so and returns an error; the picture suffices.
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn counted(&mut self, value_type: &ValueType) {
        self.value_type = Some(value_type.clone());
    }

    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("call levels too deep to draw", self.too_deep.into());
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_turns_the_direction_of_writing_is_spelled_out() {
        let line = DrawnStack::new("main;\u{202e}live\u{202c}\u{200b};ü\u{85}".as_bytes(), 3);
        assert_eq!(line.text, "main;\\u{202e}live\\u{202c}\\u{200b};ü\u{fffd} 3");
        let options = ExportOptions { title: "a\u{2067}b".to_owned(), ..ExportOptions::default() };
        assert_eq!(Exporter::new(Vec::new(), options).drawing().title, "a\\u{2067}b");
    }

    #[test]
    fn stacks_are_in_the_order_of_their_frames() {
        let long = "x".repeat(70);
        let more = ["", ";", ";y", "!", "!;y", ";;y", "y", " 1", ";ä"].map(|end| format!("{long}{end}"));
        let short = ["", ";", "a", "a;", "a;b", "a;b;c", "a!", "a b", "a;;b", "ä;b", "b"].map(str::to_owned);
        for one in short.iter().chain(&more) {
            for other in short.iter().chain(&more) {
                let expected = one.split(';').cmp(other.split(';'));
                assert_eq!(frame_by_frame(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
            }
        }
    }
}
