//! Writes the document: lanes as threads, each with its tables.
//!
//! Source: the processed profile format, version 57, of Firefox Profiler, and what CPython 3.15.2 writes of it
//! (`tachyon/corpus/expected/*.gecko.json`).

use std::io::{self, Write};

use borehole_model::{FrameId, LaneId, StackId, Tables, ThreadNames};

use super::lane::{StateKind, ThreadLane, WeightType};
use super::tables::{KnownRows, LaneTables, StringArray, are_distinct};
use crate::documents::chains::{Pull, SampleSpool};
use crate::documents::json_stream::JsonStream;

const META: &str = r#""processType":0,"categories":[
{"name":"Other","color":"grey","subcategories":["Other"]},
{"name":"Python","color":"yellow","subcategories":["Other"]},
{"name":"Native","color":"blue","subcategories":["Other"]},
{"name":"GC","color":"orange","subcategories":["Other"]},
{"name":"GIL","color":"green","subcategories":["Other"]},
{"name":"CPU","color":"purple","subcategories":["Other"]},
{"name":"Code Type","color":"red","subcategories":["Other"]},
{"name":"Opcodes","color":"magenta","subcategories":["Other"]},
{"name":"Exception","color":"lightblue","subcategories":["Other"]}],
"stackwalk":0,"toolkit":"","version":32,"preprocessedProfileVersion":57,"appBuildID":"","abi":"","oscpu":"",
"platform":"","misc":"","physicalCPUs":0,"logicalCPUs":0,"CPUName":"","symbolicated":true,
"extensions":{"id":[],"name":[],"baseURL":[],"length":0},"#;

const OPCODE_SCHEMA: &str = r#"{"name":"Opcode","display":["marker-table","marker-chart"],
"tooltipLabel":"{marker.data.opname}","tableLabel":"{marker.data.opname} at line {marker.data.line}",
"chartLabel":"{marker.data.opname}","fields":[
{"key":"opname","label":"Opcode","format":"string","searchable":true},
{"key":"line","label":"Line","format":"integer"},
{"key":"column","label":"Column","format":"integer"},
{"key":"function","label":"Function","format":"string"},
{"key":"duration","label":"Duration","format":"duration"}]}"#;

/// The common facts of all lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileMeta {
    pub(super) interval_ns: u64,
    pub(super) start_unix_ns: Option<i64>,
}

/// A document that is being written.
pub(super) struct GeckoWriter<'a, W> {
    output: JsonStream<W>,
    spool: &'a mut SampleSpool,
    tables: &'a Tables,
    strings: StringArray,
    known: KnownRows,
    frames_are_distinct: bool,
    /// The time of the earliest sample.
    base_ns: i64,
    pub(super) stacks: &'a [StackId],
    pub(super) instructions: &'a [FrameId],
    pub(super) names: Option<&'a ThreadNames>,
}

/// A marker: its state, start and duration, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Marker {
    kind: StateKind,
    state: u64,
    start_ns: u64,
    length_ns: u64,
}

impl<'a, W: Write> GeckoWriter<'a, W> {
    pub(super) fn new(output: W, spool: &'a mut SampleSpool, tables: &'a Tables) -> Self {
        Self {
            output: JsonStream::new(output),
            spool,
            tables,
            strings: StringArray::new(),
            known: KnownRows::default(),
            frames_are_distinct: are_distinct(tables),
            base_ns: 0,
            stacks: &[],
            instructions: &[],
            names: None,
        }
    }

    /// Writes the document; returns the number of names changed because they are not UTF-8.
    pub(super) fn write(mut self, facts: &ProfileMeta, lanes: &[ThreadLane]) -> io::Result<u64> {
        self.base_ns = lanes.iter().filter_map(|lane| lane.start_ns).min().unwrap_or(0);
        self.put_meta(facts, lanes);
        self.output.raw(",\n\"libs\":[],\n\"threads\":[");
        for (index, lane) in lanes.iter().enumerate() {
            self.output.raw(if index == 0 { "\n" } else { ",\n" });
            self.put_lane(lane)?;
        }
        self.output.raw("],\n\"pages\":[],\n\"shared\":{\"stringArray\":");
        self.output.raw("[").list(self.strings.iter(), |output, text| {
            output.string(text);
        })?;
        self.output.raw("],\"sources\":{\"length\":0,\"uuid\":[],\"filename\":[]}}}\n");
        self.output.finish()?;
        Ok(self.strings.broken)
    }

    fn put_meta(&mut self, facts: &ProfileMeta, lanes: &[ThreadLane]) {
        let is_python = lanes.iter().any(|lane| lane.is_python);
        let start =
            facts.start_unix_ns.and_then(|start| u64::try_from(start.checked_add(self.base_ns)?).ok());
        let output = &mut self.output;
        output.raw("{\"meta\":{\"interval\":").milliseconds(facts.interval_ns);
        output.raw(",\"startTime\":").milliseconds(start.unwrap_or(0)).raw(",");
        output.raw(META).raw("\"product\":").string(if is_python { "Python" } else { "Borehole" });
        output.raw(",\"importedFrom\":").string(concat!("borehole ", env!("CARGO_PKG_VERSION")));
        output.raw(",\"markerSchema\":[");
        if !self.instructions.is_empty() {
            output.raw(OPCODE_SCHEMA);
        }
        output.raw("]}");
    }

    fn put_lane(&mut self, lane: &ThreadLane) -> io::Result<()> {
        self.put_lane_facts(lane);
        let lane_tables = self.put_samples(lane)?;
        self.put_stack_table(&lane_tables)?;
        self.put_frame_table(&lane_tables)?;
        self.put_function_table(&lane_tables)?;
        self.put_resource_table(&lane_tables)?;
        drop(lane_tables);
        self.put_markers(lane)?;
        self.output.raw("}");
        Ok(())
    }

    fn put_lane_facts(&mut self, lane: &ThreadLane) {
        let name = self.lane_name(lane);
        let output = &mut self.output;
        output.raw("{\"name\":").string(&name);
        output.raw(",\"isMainThread\":").raw(if lane.is_main { "true" } else { "false" });
        output.raw(",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0");
        output.raw(",\"unregisterTime\":null,\"pausedRanges\":[],\"pid\":");
        output.string(&LaneId::of_process(lane.key.lane.process.unwrap_or(0)).to_string());
        output.raw(",\"tid\":");
        put_thread(output, lane);
        // The format has no field for it, and the name omits the first one; the viewer ignores this member.
        if let Some(interpreter) = lane.key.lane.interpreter {
            output.raw(",\"borehole\":{\"interpreter\":").number(interpreter).raw("}");
        }
        let process = if lane.is_python { "Python Process" } else { "Process" };
        output.raw(",\"processType\":\"default\",\"processName\":").string(process);
    }

    /// The name that `replay` gives a lane, with the thread's name if it is known and the interpreter if it is not the
    /// first.
    fn lane_name(&self, lane: &ThreadLane) -> String {
        let key = lane.key.lane;
        let known = key.thread().zip(self.names).and_then(|(thread, names)| names.of(thread));
        let mut name = match (known, key.thread) {
            (Some(&name), _) => String::from_utf8_lossy(self.tables.string(name)).into_owned(),
            (None, Some(thread)) => format!("Thread-{}", LaneId::of(thread)),
            (None, None) => "All samples".to_owned(),
        };
        if let Some(interpreter) = key.interpreter.filter(|&interpreter| interpreter != 0) {
            name.push_str(&format!(" (interpreter {interpreter})"));
        }
        name
    }

    /// Writes the samples of a lane; returns their tables.
    fn put_samples(&mut self, lane: &ThreadLane) -> io::Result<LaneTables> {
        self.output.raw(",\n\"samples\":{\"stack\":[");
        let mut lane_tables = LaneTables::new(self.frames_are_distinct);
        let mut known = std::mem::take(&mut self.known);
        known.next_lane(self.tables);
        let mut strings = std::mem::take(&mut self.strings);
        let (stacks, tables) = (self.stacks, self.tables);
        self.output.entries(self.spool, &lane.chain, |output, [stack, ..]| {
            let stack = stacks[index_of(stack)];
            output.optional(lane_tables.stack(stack, &mut known, tables, &mut strings));
        })?;
        (self.known, self.strings) = (known, strings);
        self.output.raw("],\"time\":[");
        let mut time_ns = self.since_base(lane);
        self.output.entries(self.spool, &lane.chain, |output, [_, since, _]| {
            time_ns = time_ns.saturating_add(since);
            output.milliseconds(time_ns);
        })?;
        self.output.raw("],\"eventDelay\":[");
        self.output.repeated("null", lane.samples)?;
        self.output.raw("],\"weight\":");
        if lane.has_weights {
            self.output.raw("[");
            let weights = lane.key.weights;
            self.output.entries(self.spool, &lane.chain, |output, [_, _, weight]| {
                let weight = weight.cast_signed();
                output.raw(if weight < 0 { "-" } else { "" });
                match weights {
                    WeightType::Times => output.milliseconds(weight.unsigned_abs()),
                    WeightType::Counts | WeightType::Bytes => output.number(weight.unsigned_abs()),
                };
            })?;
            self.output.raw("]");
        } else {
            self.output.raw("null");
        }
        self.output.raw(",\"weightType\":").string(lane.key.weights.name());
        self.output.raw(",\"length\":").number(lane.samples).raw("}");
        Ok(lane_tables)
    }

    fn since_base(&self, lane: &ThreadLane) -> u64 {
        let since = lane.start_ns.map(|start_ns| i128::from(start_ns) - i128::from(self.base_ns));
        since.and_then(|since| u64::try_from(since).ok()).unwrap_or(0)
    }

    /// Writes a column of numbers; absent ones are `null`.
    fn put_column<T, N: Into<Option<u64>>>(
        &mut self,
        name: &str,
        rows: &[T],
        number: impl Fn(&T) -> N,
    ) -> io::Result<()> {
        self.output.raw("\"").raw(name).raw("\":[").list(rows, |output, row| {
            output.optional(number(row).into());
        })?;
        self.output.raw("],");
        Ok(())
    }

    /// Writes columns of one value.
    fn put_same<T>(&mut self, names: &[&str], rows: &[T], value: &str) -> io::Result<()> {
        names.iter().try_for_each(|name| {
            self.output.raw("\"").raw(name).raw("\":[").repeated(value, rows.len() as u64)?;
            self.output.raw("],");
            Ok(())
        })
    }

    fn put_length<T>(&mut self, rows: &[T]) {
        self.output.raw("\"length\":").number(rows.len() as u64).raw("}");
    }

    fn put_stack_table(&mut self, lane_tables: &LaneTables) -> io::Result<()> {
        let rows = &lane_tables.stacks.list;
        self.output.raw(",\n\"stackTable\":{");
        self.put_column("frame", rows, |row| row.frame())?;
        self.put_column("category", rows, |row| lane_tables.stack_category(*row))?;
        self.put_same(&["subcategory"], rows, "0")?;
        self.put_column("prefix", rows, |row| row.prefix())?;
        self.put_length(rows);
        Ok(())
    }

    fn put_frame_table(&mut self, lane_tables: &LaneTables) -> io::Result<()> {
        let rows = &lane_tables.frames.list;
        self.output.raw(",\n\"frameTable\":{");
        self.put_same(&["address"], rows, "-1")?;
        self.put_column("category", rows, |row| lane_tables.category(row))?;
        self.put_same(&["subcategory", "inlineDepth"], rows, "0")?;
        self.put_column("func", rows, |row| row.function)?;
        self.put_column("line", rows, |row| row.line)?;
        self.put_column("column", rows, |row| row.column.map(u64::from))?;
        let unknown = ["innerWindowID", "implementation", "optimizations", "nativeSymbol"];
        self.put_same(&unknown, rows, "null")?;
        self.put_length(rows);
        Ok(())
    }

    fn put_function_table(&mut self, lane_tables: &LaneTables) -> io::Result<()> {
        let rows = &lane_tables.functions;
        self.output.raw(",\n\"funcTable\":{");
        self.put_column("name", rows, |row| row.name)?;
        for name in ["\"isJS\":[", "\"relevantForJS\":["] {
            self.output.raw(name).list(rows, |output, row| {
                output.raw(if row.is_script() { "true" } else { "false" });
            })?;
            self.output.raw("],");
        }
        self.put_column("resource", rows, |row| row.resource)?;
        self.put_column("fileName", rows, |row| row.file)?;
        self.put_column("lineNumber", rows, |row| row.line)?;
        self.put_same(&["columnNumber"], rows, "null")?;
        self.put_length(rows);
        Ok(())
    }

    fn put_resource_table(&mut self, lane_tables: &LaneTables) -> io::Result<()> {
        let rows = &lane_tables.resources;
        self.output.raw(",\n\"resourceTable\":{");
        self.put_same(&["lib", "host"], rows, "null")?;
        self.put_column("name", rows, |&name| name)?;
        self.put_same(&["type"], rows, "1")?;
        self.put_length(rows);
        self.output.raw(
            ",\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}",
        );
        Ok(())
    }

    /// Writes the markers, in the order of their starts.
    fn put_markers(&mut self, lane: &ThreadLane) -> io::Result<()> {
        self.output.raw(",\n\"markers\":{");
        self.put_marker_column("data", lane, |writer, marker| writer.put_marker_data(lane, marker))?;
        self.put_marker_column("name", lane, |writer, marker| {
            let name = writer.marker_name(marker);
            let place = writer.strings.place(&name);
            writer.output.number(place);
        })?;
        self.put_marker_column("startTime", lane, |writer, marker| {
            writer.output.milliseconds(marker.start_ns);
        })?;
        self.put_marker_column("endTime", lane, |writer, marker| {
            writer.output.milliseconds(marker.start_ns.saturating_add(marker.length_ns));
        })?;
        self.put_marker_column("phase", lane, |writer, _| {
            writer.output.raw("1");
        })?;
        self.put_marker_column("category", lane, |writer, marker| {
            writer.output.number(marker.kind.category());
        })?;
        let count = lane.stretches.iter().map(|stretches| stretches.count).sum();
        self.output.raw("\"length\":").number(count).raw("}");
        Ok(())
    }

    /// Writes a column with `put`: a value for each interval of any kind, merged by their starts.
    fn put_marker_column(
        &mut self,
        name: &str,
        lane: &ThreadLane,
        mut put: impl FnMut(&mut Self, &Marker),
    ) -> io::Result<()> {
        self.output.raw("\"").raw(name).raw("\":[");
        let start_ns = self.since_base(lane);
        let mut heads = Vec::new();
        for (kind, stretches) in StateKind::ALL.into_iter().zip(&lane.stretches) {
            let mut pull = Pull::of(&stretches.chain);
            if let Some(marker) = self.next_marker(kind, start_ns, &mut pull)? {
                heads.push((marker, pull));
            }
        }
        let mut separator = "";
        while let Some(first) = (0..heads.len()).min_by_key(|&head| heads[head].0.start_ns) {
            let (marker, pull) = &mut heads[first];
            self.output.raw(std::mem::replace(&mut separator, ","));
            put(self, marker);
            self.output.spill()?;
            match self.next_marker(marker.kind, marker.start_ns, pull)? {
                Some(next) => *marker = next,
                None => drop(heads.remove(first)),
            }
        }
        self.output.raw("],");
        Ok(())
    }

    fn next_marker(
        &mut self,
        kind: StateKind,
        before_ns: u64,
        pull: &mut Pull<'_>,
    ) -> io::Result<Option<Marker>> {
        let entry = self.spool.pull(pull)?;
        Ok(entry.map(|[state, since, length_ns]| {
            let start_ns = before_ns.saturating_add(since);
            Marker { kind, state, start_ns, length_ns }
        }))
    }

    fn marker_name(&self, marker: &Marker) -> String {
        let place = index_of(marker.state);
        match marker.kind {
            StateKind::Opcode => {
                let name = self.tables.frame(self.instructions[place]).opcode;
                String::from_utf8_lossy(name.map_or(b"", |name| self.tables.string(name))).into_owned()
            }
            kind => kind.states()[place].to_owned(),
        }
    }

    fn put_marker_data(&mut self, lane: &ThreadLane, marker: &Marker) {
        let name = self.marker_name(marker);
        if marker.kind == StateKind::Opcode {
            return self.put_opcode_data(&name, marker);
        }
        let output = &mut self.output;
        output.raw("{\"type\":").string(&name.replace(' ', ""));
        output.raw(",\"duration\":").milliseconds(marker.length_ns);
        output.raw(",\"tid\":");
        put_thread(output, lane);
        output.raw("}");
    }

    fn put_opcode_data(&mut self, name: &str, marker: &Marker) {
        let place = index_of(marker.state);
        let frame = self.tables.frame(self.instructions[place]);
        let function = String::from_utf8_lossy(self.tables.string(frame.function));
        let output = &mut self.output;
        output.raw("{\"type\":\"Opcode\",\"opname\":").string(name);
        output.raw(",\"line\":").optional(frame.line.and_then(|line| u64::try_from(line).ok()));
        output.raw(",\"column\":").optional(frame.column.map(u64::from));
        output.raw(",\"function\":").string(&function);
        output.raw(",\"duration\":").milliseconds(marker.length_ns).raw("}");
    }
}

/// Writes the thread of a lane: a number, or a text for ids other than the operating system's.
fn put_thread<W: Write>(output: &mut JsonStream<W>, lane: &ThreadLane) {
    match LaneId::of(lane.key.lane.thread.unwrap_or(0)) {
        LaneId::System(number) => output.number(number),
        id => output.string(&id.to_string()),
    };
}

/// Converts a 1-based place to an index. Samples without a place are not kept.
fn index_of(place: u64) -> usize {
    usize::try_from(place).unwrap_or(0).saturating_sub(1)
}

/// The number of repetitions of a value written at once.
const REPEATED_AT_ONCE: u64 = 1 << 10;

impl<W: Write> JsonStream<W> {
    /// Writes a number, or `null`.
    pub(super) fn optional(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.raw("null"),
        }
    }

    /// Writes nanoseconds as milliseconds, exactly.
    #[inline]
    pub(super) fn milliseconds(&mut self, ns: u64) -> &mut Self {
        self.number(ns / 1_000_000);
        let mut rest = ns % 1_000_000;
        if rest == 0 {
            return self;
        }
        let mut digits = *b".000000";
        let mut length = 1;
        for (index, digit) in digits.iter_mut().enumerate().skip(1).rev() {
            *digit += (rest % 10).to_le_bytes()[0];
            rest /= 10;
            if length == 1 && *digit != b'0' {
                length = index + 1;
            }
        }
        self.bytes(&digits[..length])
    }

    /// Writes the elements of a list of `count` equal values.
    pub(super) fn repeated(&mut self, value: &str, count: u64) -> io::Result<()> {
        let Some(mut left) = count.checked_sub(1) else { return Ok(()) };
        self.raw(value);
        let next = format!(",{value}");
        let many = next.repeat(usize::try_from(left.min(REPEATED_AT_ONCE)).unwrap_or_default());
        while left > 0 {
            let now = left.min(REPEATED_AT_ONCE);
            self.raw(&many[..next.len() * usize::try_from(now).unwrap_or_default()]).spill()?;
            left -= now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact_and_short() {
        let mut out = Vec::new();
        let mut output = JsonStream::new(&mut out);
        for ns in [0, 1, 10_000, 862_000, 900_000, 1_000_000, 1_002_030_000, u64::MAX] {
            output.milliseconds(ns).raw(" ");
        }
        output.finish().unwrap();
        assert_eq!(out, b"0 0.000001 0.01 0.862 0.9 1 1002.03 18446744073709.551615 ");
    }

    #[test]
    fn equal_values_are_as_many_as_asked_for() {
        for count in [0, 1, 2, 1024, 1025, 1026, 5000] {
            let mut out = Vec::new();
            let mut output = JsonStream::new(&mut out);
            output.repeated("null", count).unwrap();
            output.finish().unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.matches("null").count() as u64, count);
            assert_eq!(text, vec!["null"; text.matches("null").count()].join(","));
        }
    }
}
