//! The samples of a profile, passed to a sink.

use borehole_model::{Context, ProfileSink, Sample, Segment, StackId, Tables, ValueType, Warning};
use hashbrown::HashMap;

use super::profile::{CallNode, CpuProfile, nanoseconds};
use crate::documents::whole::DocumentDamage;
use crate::{Error, Position, ReadError};

/// Passes a profile to `sink` as a segment like `base`, whose samples are of `thread`.
///
/// # Errors
/// If the profile contradicts itself and damage is not skipped, the tables are full, or the sink fails.
pub(crate) fn deliver(
    profile: &CpuProfile,
    (base, thread): (Segment, Option<u64>),
    damage: &mut DocumentDamage,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<(), ReadError> {
    let format = base.format;
    let nodes = profile.nodes.as_deref().unwrap_or_default();
    let tree = CallTree::of(format, nodes, damage)?;
    let stacks = tree.stacks(format, nodes, tables, damage)?;
    let times = profile.times_ns().filter(|_| profile.samples.is_some());
    let segment = Segment {
        has_times: times.is_some(),
        is_ordered: profile.samples.is_some(),
        began_ns: profile.start_time.map(nanoseconds),
        value_types: if times.is_some() { vec![ValueType::new("wall", "nanoseconds")] } else { Vec::new() },
        ..base
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
            let sample = Sample { stack, count: node.hit_count, thread, ..Sample::default() };
            if give(&sample, damage)? {
                break;
            }
        }
        return Ok(());
    };
    let taken = TakenSamples::of(profile, samples, times.as_deref(), format, damage)?;
    let mut last = None;
    for sample in taken.iter() {
        let known = match last {
            Some((node, row)) if node == sample.node => Some(row),
            _ => tree.rows.get(&sample.node).copied(),
        };
        let Some(row) = known else {
            let message = format!("unknown node {} of sample {}", sample.node, sample.index);
            damage.meet(Error::malformed(format, Position::Whole, message), 0)?;
            continue;
        };
        last = Some((sample.node, row));
        let values = sample.lasts_ns.map(|lasts_ns| [lasts_ns]);
        let values = values.as_ref().map_or(&[][..], |values| values);
        let (stack, time_ns) = (stacks[row], sample.time_ns);
        let sample = Sample { stack, count: 1, time_ns, thread, values, ..Sample::default() };
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

/// The samples in the order of time.
struct TakenSamples<'a> {
    nodes: &'a [u64],
    times: Option<&'a [i64]>,
    /// The indexes in the order of time, if the document has another one.
    order: Option<Vec<usize>>,
    end_ns: Option<i64>,
}

impl<'a> TakenSamples<'a> {
    /// Puts samples in the order of time. V8 writes some late, with a negative difference after them.
    fn of(
        profile: &CpuProfile,
        nodes: &'a [u64],
        times: Option<&'a [i64]>,
        format: &'static str,
        damage: &mut DocumentDamage,
    ) -> Result<Self, ReadError> {
        let mut taken = Self { nodes, times, order: None, end_ns: profile.end_time.map(nanoseconds) };
        let Some(times) = times else { return Ok(taken) };
        if times.len() != nodes.len() {
            let message = format!("expected {} times of samples, found {}", nodes.len(), times.len());
            damage.meet(Error::malformed(format, Position::Whole, message), 0)?;
        }
        let late = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
        if late > 0 {
            damage.recovery.note(Warning::new(format!("{late} samples out of order are sorted by time")));
            let mut order: Vec<_> = (0..nodes.len()).collect();
            order.sort_by_key(|&index| times.get(index));
            taken.order = Some(order);
        }
        Ok(taken)
    }

    /// The index of the sample at a place in the order of time.
    fn index(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order[place])
    }

    fn time_ns(&self, index: usize) -> Option<i64> {
        self.times.and_then(|times| times.get(index).copied())
    }

    fn iter(&self) -> impl Iterator<Item = TakenSample> {
        let last = self.nodes.len().saturating_sub(1);
        (0..self.nodes.len()).map(move |place| {
            let index = self.index(place);
            let time_ns = self.time_ns(index);
            let next_ns = if place < last { self.time_ns(self.index(place + 1)) } else { self.end_ns };
            let lasts_ns = self.times.map(|_| {
                let lasts_ns = next_ns.zip(time_ns).map(|(next, time)| next.saturating_sub(time).max(0));
                lasts_ns.unwrap_or(0)
            });
            TakenSample { index, node: self.nodes[index], time_ns, lasts_ns }
        })
    }
}

/// The nodes by their ids, and the row of each one's caller.
struct CallTree {
    rows: HashMap<u64, usize>,
    callers: Vec<Option<usize>>,
}

impl CallTree {
    fn of(format: &'static str, nodes: &[CallNode], damage: &mut DocumentDamage) -> Result<Self, Error> {
        let mut rows = HashMap::with_capacity(nodes.len());
        for (row, node) in nodes.iter().enumerate() {
            if rows.insert(node.id, row).is_some() {
                let message = format!("two nodes have the id {}", node.id);
                damage.meet(Error::malformed(format, Position::Whole, message), 0)?;
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
                        damage.meet(Error::malformed(format, Position::Whole, message), 0)?;
                    }
                }
            }
        }
        Ok(Self { rows, callers })
    }

    /// The stack of each node. Nodes that call themselves in a circle have none.
    fn stacks(
        &self,
        format: &'static str,
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
                damage.meet(Error::malformed(format, Position::Whole, message), 0)?;
                path.drain(..).for_each(|row| states[row] = NodeState::Known);
                continue;
            }
            while let Some(row) = path.pop() {
                states[row] = NodeState::Known;
                let caller = self.callers[row].and_then(|caller| stacks[caller]);
                let is_root = self.callers[row].is_none() && nodes[row].call_frame.is_root();
                if !is_root {
                    let frame = nodes[row].call_frame.intern(tables)?;
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
