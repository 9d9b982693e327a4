//! Imports profiles into the model.

use std::collections::BTreeMap;
use std::io::BufRead;

use borehole_model::{
    Frame, FrameId, Label, LabelValue, LabelsId, Mode, ProfileSink, Recovery, Segment, TableFull, Tables,
    ValueType, Warning,
};

use super::cpu::{CpuProfileWords, CpuRecord};
use super::held::{HeldSample, HeldSamples, HeldStack};
use super::maps::MappedFile;
use super::text::{self, SampleNumbers, TextKind};
use super::{CPU_NAME, NAME};
use crate::documents::whole::{DocumentDamage, cut_off, read_whole};
use crate::lines::text::{Lines, excerpt};
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads the text of a heap, contention or count profile.
///
/// Heap profiles have the values `alloc_objects`, `alloc_space`, `inuse_objects` and `inuse_space`, of sampled ones scaled up as
/// pprof does; contention profiles `contentions` and `delay`; others the one of their name. Frames are those that the text names;
/// without them, addresses in the mapped files.
///
/// # Errors
/// If the text is invalid and damage is not skipped, a limit is reached, the input cannot be read, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, legacy_pprof};
/// use borehole_model::{Count, Tables};
///
/// let text = b"goroutine profile: total 3\n3 @ 0x4b47df\n#\t0x4b47de\tmain.wait+0x1e\t/a.go:31\n";
/// let mut count = Count::default();
/// legacy_pprof::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(count.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let mut lines = Lines::new(input, NAME, &options.limits);
    let first = lines.next_line()?.map(<[u8]>::to_vec).unwrap_or_default();
    let Some(kind) = TextKind::of(&first) else {
        let message = format!("expected the first line of a profile, found {:?}", excerpt(&first));
        damage.meet(Error::malformed(NAME, Position::Line(1), message), 0)?;
        return damage.finish(sink);
    };
    let mut reader =
        TextReader { kind, tables, held: HeldSamples::default(), open: None, clock: Clock::default() };
    while let Some(line) = lines.next_line()? {
        let taken = reader.line(line);
        let (number, is_whole) = (lines.number(), lines.is_terminated());
        match taken {
            Ok(true) => {}
            Ok(false) if !is_whole => {
                damage.recovery.warn(Warning::truncated(format!("truncated: the last line (line {number})")));
            }
            Ok(false) => {
                let message = "expected a sample, a frame or a mapped file";
                damage.meet(Error::malformed(NAME, Position::Line(number), message), 0)?;
            }
            Err(full) => return Err(full.into()),
        }
        reader.held.check(NAME, Position::Line(number), &damage)?;
    }
    reader.end()?;
    let TextReader { kind, held, .. } = reader;
    let segment =
        Segment { format: NAME, value_types: value_types(&kind), is_uncounted: true, ..Segment::default() };
    held.deliver(&segment, &mut damage, tables, sink)?;
    damage.finish(sink)
}

fn value_types(kind: &TextKind) -> Vec<ValueType> {
    let types =
        |types: &[(&str, &str)]| types.iter().map(|&(kind, unit)| ValueType::new(kind, unit)).collect();
    match kind {
        TextKind::Heap { .. } => types(&[
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ]),
        TextKind::Contention => types(&[("contentions", "count"), ("delay", "nanoseconds")]),
        TextKind::Count(name) => vec![ValueType::new(String::from_utf8_lossy(name), "count")],
    }
}

/// The clock and the sampling of a contention profile.
#[derive(Clone, Copy, Debug)]
struct Clock {
    cycles_per_second: u64,
    /// One in so many is in the profile.
    period: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { cycles_per_second: 1_000_000_000, period: 1 }
    }
}

struct TextReader<'a> {
    kind: TextKind,
    tables: &'a mut Tables,
    held: HeldSamples,
    open: Option<OpenText>,
    clock: Clock,
}

/// The sample whose frames are being read.
struct OpenText {
    start: usize,
    frames_leaf_first: Vec<FrameId>,
    labels: Option<LabelsId>,
}

impl TextReader<'_> {
    /// Takes a line; returns whether it belongs to a profile.
    fn line(&mut self, line: &[u8]) -> Result<bool, TableFull> {
        let line = line.trim_ascii_end();
        if let Some((numbers, rest)) = text::sample(line, &self.kind) {
            self.end()?;
            return Ok(self.begin(numbers, rest));
        }
        if let Some(open) = &mut self.open {
            if let Some(frame) = text::named_frame(line) {
                if frame.address != b"0x0" || frame.function.is_some() {
                    open.frames_leaf_first.push(intern(&frame, self.tables)?);
                }
                return Ok(true);
            }
            if let Some(json) = text::labels(line) {
                let Ok(labels) = serde_json::from_slice::<BTreeMap<String, String>>(json) else {
                    return Ok(false);
                };
                let mut interned = Vec::new();
                for (key, value) in labels {
                    let value = LabelValue::Text(self.tables.intern_string(value.as_bytes())?);
                    interned.push(Label { key: self.tables.intern_string(key.as_bytes())?, value });
                }
                open.labels = Some(self.tables.intern_labels(&interned)?);
                return Ok(true);
            }
        }
        if line.is_empty() || line.starts_with(b"#") || line == b"MAPPED_LIBRARIES:" {
            return Ok(true);
        }
        if let (TextKind::Contention, Some((key, value))) = (&self.kind, text::setting(line)) {
            match key {
                b"cycles/second" => self.clock.cycles_per_second = value.max(1),
                b"sampling period" => self.clock.period = value.max(1),
                _ => {}
            }
            return Ok(true);
        }
        let file = MappedFile::parse(line);
        // Memory without a file is listed, too.
        let is_map = file.is_some()
            || line.split(|&byte| byte == b' ').next().is_some_and(|range| range.contains(&b'-'));
        self.held.files.extend(file);
        Ok(is_map)
    }

    /// Begins a sample; returns whether its addresses are valid.
    fn begin(&mut self, numbers: SampleNumbers, rest: &[u8]) -> bool {
        let start = self.held.addresses.len();
        for address in text::addresses(rest) {
            let Some(address) = address else {
                self.held.addresses.truncate(start);
                return false;
            };
            // That of the call, not of where it returns to.
            self.held.addresses.push(address.saturating_sub(1));
        }
        self.values(numbers);
        self.open = Some(OpenText { start, frames_leaf_first: Vec::new(), labels: None });
        true
    }

    #[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
    fn values(&mut self, numbers: SampleNumbers) {
        match numbers {
            SampleNumbers::Heap { in_use, all } => {
                let rate = if let TextKind::Heap { rate } = self.kind { rate } else { None };
                let whole = |pair| rate.map_or(pair, |rate| text::scaled(pair, rate));
                self.held.values.extend(whole(all));
                self.held.values.extend(whole(in_use));
            }
            SampleNumbers::Contention { cycles, count } => {
                let Clock { cycles_per_second, period } = self.clock;
                let delay_ns = cycles as f64 * period as f64 * 1e9 / cycles_per_second as f64;
                self.held.values.push(count.saturating_mul(i64::try_from(period).unwrap_or(i64::MAX)));
                self.held.values.push(delay_ns as i64);
            }
            SampleNumbers::Count(count) => self.held.values.push(count),
        }
    }

    /// Ends the sample being read.
    fn end(&mut self) -> Result<(), TableFull> {
        let Some(OpenText { start, frames_leaf_first, labels }) = self.open.take() else { return Ok(()) };
        let end = self.held.addresses.len();
        let stack = if frames_leaf_first.is_empty() {
            HeldStack::Addresses(start, end)
        } else {
            self.held.addresses.truncate(start);
            HeldStack::Named(self.tables.intern_stack_leaf_first(&frames_leaf_first)?)
        };
        self.held.samples.push(HeldSample { count: 1, stack, labels });
        Ok(())
    }
}

fn intern(frame: &text::NamedFrame<'_>, tables: &mut Tables) -> Result<FrameId, TableFull> {
    let function = tables.intern_string(frame.function.unwrap_or(frame.address))?;
    let file = frame.file.map(|file| tables.intern_string(file)).transpose()?;
    tables.intern_frame(&Frame { file, line: frame.line, ..Frame::named(function) })
}

/// Reads a CPU profile of gperftools: counts of stacks, and the period. A frame is named by its address in its file.
///
/// # Errors
/// If the input is not such a profile, exceeds the limit, or the sink fails. A cut-off end is a warning.
pub fn import_cpu(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let bytes = read_whole(CPU_NAME, input, &options.limits)?;
    let mut words = match CpuProfileWords::of(&bytes) {
        Some(Ok(words)) => words,
        Some(Err(error)) => {
            damage.meet(cut_off(CPU_NAME, error), bytes.len() as u64)?;
            return damage.finish(sink);
        }
        None => {
            let error = Error::malformed(CPU_NAME, Position::Byte(0), "expected the header of a CPU profile");
            damage.meet(error, bytes.len() as u64)?;
            return damage.finish(sink);
        }
    };
    let mut held = HeldSamples::default();
    loop {
        let start = held.addresses.len();
        match words.record(&mut held.addresses) {
            Ok(CpuRecord::End) => break,
            Ok(CpuRecord::Sample { count }) => {
                let end = held.addresses.len();
                held.addresses[start..end].iter_mut().skip(1).for_each(|at| *at = at.saturating_sub(1));
                held.samples.push(HeldSample {
                    count,
                    stack: HeldStack::Addresses(start, end),
                    labels: None,
                });
                held.check(CPU_NAME, Position::Byte(words.offset()), &damage)?;
            }
            Err(error) => {
                held.addresses.truncate(start);
                let message = "truncated: the profile does not end";
                damage.recovery.warn(Warning::truncated(message).at(error.offset()));
                break;
            }
        }
    }
    held.files.extend(words.rest().split(|&byte| byte == b'\n').filter_map(MappedFile::parse));
    let period_ns = words.period_us.checked_mul(1000).filter(|&period_ns| period_ns > 0);
    let segment = Segment { format: CPU_NAME, period_ns, mode: Mode::Cpu, ..Segment::default() };
    held.deliver(&segment, &mut damage, tables, sink)?;
    damage.finish(sink)
}
