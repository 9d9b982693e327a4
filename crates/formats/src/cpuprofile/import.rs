//! Imports a document into the model.

use std::io::BufRead;
use std::marker::PhantomData;

use borehole_model::{
    Context, Frame, FrameId, ProfileSink, Recovery, Sample, Segment, StackId, TableFull, Tables, ValueType,
    Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::read::{CallNode, CpuProfile, VALUE_BYTES, nanoseconds};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{Error, Position, ReadError, ReadOptions};

/// The name of the node above all others, which is no function.
pub(super) const ROOT: &str = "(root)";

/// The name of functions without one, as DevTools shows them.
pub(super) const ANONYMOUS: &[u8] = b"(anonymous)";

/// Reads a CPU profile of V8. Each sample lasts until the next one, which is its value `wall/nanoseconds`; the last one lasts
/// until the end of the profile. A profile without samples has the counts of its nodes.
///
/// The line of a frame is the one at which its function begins. `(program)`, `(idle)` and `(garbage collector)` are functions
/// below nothing, as V8 has them.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, cpuprofile};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"nodes":[{"id":1,"callFrame":{"functionName":"f","url":"/f.js","lineNumber":0}}],
///     "startTime":0,"endTime":30,"samples":[1,1],"timeDeltas":[10,10]}"#;
/// let mut count = Count::default();
/// let recovery = cpuprofile::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 2);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let memory = JsonMemory::of_values(options.limits, VALUE_BYTES);
    let read = json::parse(NAME, input, &memory, PhantomData::<CpuProfile>);
    let found = read.and_then(|profile| {
        let missing = || Error::malformed(NAME, Position::Whole, "missing field `nodes`");
        if profile.nodes.is_some() { Ok(profile) } else { Err(missing()) }
    });
    match found {
        Ok(profile) => deliver(&profile, &mut damage, tables, sink)?,
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}

fn deliver(
    profile: &CpuProfile,
    damage: &mut DocumentDamage,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<(), ReadError> {
    let nodes = profile.nodes.as_deref().unwrap_or_default();
    let tree = CallTree::of(nodes, damage)?;
    let stacks = tree.stacks(nodes, tables, damage)?;
    let times = profile.times_ns().filter(|_| profile.samples.is_some());
    let segment = Segment {
        format: NAME,
        has_times: times.is_some(),
        is_ordered: profile.samples.is_some(),
        began_ns: profile.start_time.map(nanoseconds),
        value_types: if times.is_some() { vec![ValueType::new("wall", "nanoseconds")] } else { Vec::new() },
        ..Segment::default()
    };
    let at = Context { tables, segment: &segment };
    sink.segment(at)?;
    damage.recovery.segments += 1;
    let mut give = |sample: &Sample<'_>, damage: &mut DocumentDamage| {
        damage.recovery.samples = damage.recovery.samples.saturating_add(sample.count);
        damage.recovery.stopped = sink.sample(at, sample)?.is_break();
        Ok::<_, ReadError>(damage.recovery.stopped)
    };
    let Some(samples) = &profile.samples else {
        for (node, &stack) in nodes.iter().zip(&stacks).filter(|(node, _)| node.hit_count > 0) {
            let sample = Sample { stack, count: node.hit_count, ..Sample::default() };
            if give(&sample, damage)? {
                break;
            }
        }
        return Ok(());
    };
    for taken in taken_samples(profile, samples, times.as_deref(), damage)? {
        let Some(&row) = tree.rows.get(&taken.node) else {
            let message = format!("unknown node {} of sample {}", taken.node, taken.index);
            damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
            continue;
        };
        let values = taken.lasts_ns.map(|lasts_ns| [lasts_ns]);
        let values = values.as_ref().map_or(&[][..], |values| values);
        let sample =
            Sample { stack: stacks[row], count: 1, time_ns: taken.time_ns, values, ..Sample::default() };
        if give(&sample, damage)? {
            break;
        }
    }
    Ok(())
}

/// A sample of the document.
#[derive(Clone, Copy, Debug)]
struct TakenSample {
    index: usize,
    node: u64,
    time_ns: Option<i64>,
    lasts_ns: Option<i64>,
}

/// The samples in the order of time. V8 writes some late, with a negative difference after them.
fn taken_samples(
    profile: &CpuProfile,
    samples: &[u64],
    times: Option<&[i64]>,
    damage: &mut DocumentDamage,
) -> Result<Vec<TakenSample>, ReadError> {
    let time_of = |index: usize| times.and_then(|times| times.get(index).copied());
    let taken =
        |(index, &node): (usize, &u64)| TakenSample { index, node, time_ns: time_of(index), lasts_ns: None };
    let mut taken: Vec<_> = samples.iter().enumerate().map(taken).collect();
    let Some(times) = times else { return Ok(taken) };
    if times.len() != samples.len() {
        let message = format!("expected {} times of samples, found {}", samples.len(), times.len());
        damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
    }
    let late = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    if late > 0 {
        damage.recovery.note(Warning::new(format!("{late} samples out of order are sorted by time")));
        taken.sort_by_key(|sample| sample.time_ns);
    }
    let end_ns = profile.end_time.map(nanoseconds);
    for index in 0..taken.len() {
        let next_ns = taken.get(index + 1).map_or(end_ns, |next| next.time_ns);
        let lasts_ns = next_ns.zip(taken[index].time_ns).map(|(next, time)| next.saturating_sub(time).max(0));
        taken[index].lasts_ns = Some(lasts_ns.unwrap_or(0));
    }
    Ok(taken)
}

/// The nodes by their ids, and the row of each one's caller.
struct CallTree {
    rows: HashMap<u64, usize>,
    callers: Vec<Option<usize>>,
}

impl CallTree {
    fn of(nodes: &[CallNode], damage: &mut DocumentDamage) -> Result<Self, Error> {
        let mut rows = HashMap::with_capacity(nodes.len());
        for (row, node) in nodes.iter().enumerate() {
            if rows.insert(node.id, row).is_some() {
                let message = format!("two nodes have the id {}", node.id);
                damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
            }
        }
        let mut callers = vec![None; nodes.len()];
        for (row, node) in nodes.iter().enumerate() {
            if let Some(&caller) = node.parent.and_then(|parent| rows.get(&parent)) {
                callers[row] = Some(caller);
            }
            for child in &node.children {
                match rows.get(child) {
                    Some(&child) => callers[child] = Some(row),
                    None => {
                        let message = format!("unknown child {child} of node {}", node.id);
                        damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
                    }
                }
            }
        }
        Ok(Self { rows, callers })
    }

    /// The stack of each node. Nodes that call themselves in a circle have none.
    fn stacks(
        &self,
        nodes: &[CallNode],
        tables: &mut Tables,
        damage: &mut DocumentDamage,
    ) -> Result<Vec<Option<StackId>>, ReadError> {
        let mut stacks = vec![None; nodes.len()];
        let mut states = vec![NodeState::New; nodes.len()];
        let mut path = Vec::new();
        for row in 0..nodes.len() {
            let mut next = Some(row);
            while let Some(row) = next.filter(|&row| states[row] == NodeState::New) {
                states[row] = NodeState::OnPath;
                path.push(row);
                next = self.callers[row];
            }
            if next.is_some_and(|row| states[row] == NodeState::OnPath) {
                let message = format!("node {} calls itself in a circle", nodes[row].id);
                damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
                path.drain(..).for_each(|row| states[row] = NodeState::Known);
                continue;
            }
            while let Some(row) = path.pop() {
                states[row] = NodeState::Known;
                let caller = self.callers[row].and_then(|caller| stacks[caller]);
                let is_root = self.callers[row].is_none() && nodes[row].call_frame.function_name == ROOT;
                if !is_root {
                    let frame = intern(&nodes[row], tables)?;
                    stacks[row] = Some(tables.intern_stack(caller, frame)?);
                }
            }
        }
        Ok(stacks)
    }
}

/// How far a node's stack is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeState {
    New,
    OnPath,
    Known,
}

fn intern(node: &CallNode, tables: &mut Tables) -> Result<FrameId, TableFull> {
    let frame = &node.call_frame;
    let name = if frame.function_name.is_empty() { ANONYMOUS } else { frame.function_name.as_bytes() };
    let function = tables.intern_string(name)?;
    let file = match &*frame.url {
        "" => None,
        url => Some(tables.intern_string(url.as_bytes())?),
    };
    let line = frame.line_number.filter(|&line| line >= 0).map(|line| line.saturating_add(1));
    let column = frame.column_number.and_then(|column| u32::try_from(column).ok());
    tables.intern_frame(&Frame { file, line, column, ..Frame::named(function) })
}
