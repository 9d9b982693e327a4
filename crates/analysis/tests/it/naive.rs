//! Answers the queries sample by sample, from lists of names, without tables.

use std::collections::HashMap;
use std::hash::Hash;

use borehole_analysis::{By, LineRows, OpcodeRows, Pattern, Query, Recursion};

use crate::profile::{F, S};

/// Counts and nanoseconds by key. The largest count comes first, or the longest time if all samples have one; ties are in
/// order of first appearance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counts<K>(pub(crate) Vec<(K, u64, u128)>);

struct Counter<K> {
    met: Vec<K>,
    sums: HashMap<K, (u64, u128)>,
}

impl<K: Clone + Eq + Hash> Counter<K> {
    fn new() -> Self {
        Self { met: Vec::new(), sums: HashMap::new() }
    }

    fn add(&mut self, key: K, sample: &S) {
        let wall = u128::from(sample.count) * u128::from(sample.period_ns.unwrap_or(0));
        let sum = self.sums.entry(key.clone()).or_insert_with(|| {
            self.met.push(key);
            (0, 0)
        });
        *sum = (sum.0 + sample.count, sum.1 + wall);
    }

    fn counts(self, by_time: bool) -> Counts<K> {
        let row = |key: K| {
            let (count, wall) = self.sums[&key];
            (key, count, wall)
        };
        let mut rows: Vec<_> = self.met.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(if by_time { row.2 } else { row.1.into() }));
        Counts(rows)
    }
}

type Text = Vec<u8>;

/// The results of the naive reading.
pub(crate) struct Answers {
    pub(crate) samples: u64,
    pub(crate) matched: u64,
    pub(crate) self_counts: Counts<Text>,
    pub(crate) total: Counts<Text>,
    pub(crate) callers: Counts<Text>,
    pub(crate) callees: Counts<Text>,
    pub(crate) part_self: Counts<Option<Text>>,
    pub(crate) part_total: Counts<Option<Text>>,
    pub(crate) groups: Counts<Option<(Option<i64>, Text)>>,
    /// The frames of the last samples, one entry per sample, oldest first.
    pub(crate) last: Vec<Vec<Text>>,
}

fn key(frame: &F, query: &Query) -> Text {
    let mut key = frame.function.clone();
    let path = frame.file.as_ref().or(frame.module.as_ref());
    if query.lines == LineRows::Apart && (path.is_some() || frame.line.is_some()) {
        let unknown = if frame.module.is_some() { 0 } else { -1 };
        key.push(b' ');
        key.extend(path.into_iter().flatten());
        key.extend(format!(":{}", frame.line.unwrap_or(unknown)).bytes());
    }
    if let (OpcodeRows::Apart, Some(opcode)) = (query.opcodes, &frame.opcode) {
        key.extend([b" [", opcode.as_slice(), b"]"].concat());
    }
    key
}

fn part(frame: &F, by: &By) -> Option<Text> {
    match by {
        By::File => frame.file.clone().or(frame.module.clone()).filter(|file| !file.is_empty()),
        _ => {
            let name = String::from_utf8_lossy(&frame.function).into_owned();
            name.rsplit_once("::").map(|(class, _)| class.as_bytes().to_vec()).filter(|name| !name.is_empty())
        }
    }
}

fn group(sample: &S, by: &By) -> Option<(Option<i64>, Text)> {
    match by {
        By::Process => sample.process.map(|process| (Some(process), Vec::new())),
        By::Thread => sample.thread.map(|thread| (sample.process, thread.to_string().into_bytes())),
        By::Label(key) => {
            let labels = sample.labels.as_ref()?;
            let found = labels.iter().rev().find(|label| label.0 == *key)?;
            Some((None, found.1.clone()))
        }
        By::Interpreter | By::File | By::Class => None,
    }
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

/// The remaining names and frames of a sample, leaf first; `None` if it does not count.
fn shaped<'s>(sample: &'s S, query: &Query) -> Option<(Vec<Text>, Vec<&'s F>)> {
    let found = |pattern: &Option<Pattern>, key: &Text| pattern.as_ref().is_some_and(|p| p.is_match(key));
    let keyed = sample.frames.iter().map(|frame| (key(frame, query), frame));
    let mut shown: Vec<_> = keyed.filter(|(key, _)| !found(&query.hide, key)).collect();
    if query.focus.is_some() {
        let from = shown.iter().rposition(|(key, _)| found(&query.focus, key))?;
        shown.truncate(from + 1);
    }
    let kept = query.keep.is_none() || shown.iter().any(|(key, _)| found(&query.keep, key));
    if shown.is_empty() || !kept || shown.iter().any(|(key, _)| found(&query.exclude, key)) {
        return None;
    }
    let (mut keys, mut frames): (Vec<Text>, Vec<&F>) = (Vec::new(), Vec::new());
    for (key, frame) in shown.into_iter().rev() {
        let collapse = query.collapse.iter().find(|collapse| collapse.pattern.is_match(&key));
        let name = collapse.map_or(key, |collapse| collapse.name.clone());
        let is_folded = collapse.is_some() || query.recursion == Recursion::Folded;
        if !(is_folded && keys.last() == Some(&name)) {
            keys.push(name);
            frames.push(frame);
        }
    }
    keys.reverse();
    frames.reverse();
    Some((keys, frames))
}

/// The stacks that count, leaf first, with their counts.
pub(crate) fn stacks(samples: &[S], query: &Query) -> Vec<(Vec<Text>, i64)> {
    let counted = samples.iter().filter(|sample| sample.count > 0);
    counted
        .filter_map(|sample| Some((shaped(sample, query)?.0, i64::try_from(sample.count).unwrap())))
        .collect()
}

pub(crate) fn answers(samples: &[S], query: &Query) -> Answers {
    let found = |pattern: &Option<Pattern>, key: &Text| pattern.as_ref().is_some_and(|p| p.is_match(key));
    let by = query.by.clone().unwrap_or(By::File);
    let [mut self_counts, mut total, mut callers, mut callees] = std::array::from_fn(|_| Counter::new());
    let [mut part_self, mut part_total] = std::array::from_fn(|_| Counter::new());
    let (mut groups, mut last, mut all, mut matched) = (Counter::new(), Vec::new(), 0, 0);
    for sample in samples.iter().filter(|sample| sample.count > 0) {
        all += sample.count;
        let Some((keys, frames)) = shaped(sample, query) else { continue };
        matched += sample.count;
        self_counts.add(keys[0].clone(), sample);
        distinct(keys.iter()).into_iter().for_each(|key| total.add(key.clone(), sample));
        if let Some(at) = keys.iter().position(|key| found(&query.callers, key)) {
            callers.add(keys.get(at + 1).cloned().unwrap_or(b"<root>".to_vec()), sample);
        }
        if let Some(at) = keys.iter().rposition(|key| found(&query.callees, key)) {
            let callee = at.checked_sub(1).map_or(b"<leaf>".to_vec(), |at| keys[at].clone());
            callees.add(callee, sample);
        }
        part_self.add(part(frames[0], &by), sample);
        distinct(frames.iter().map(|frame| part(frame, &by)))
            .into_iter()
            .for_each(|part| part_total.add(part, sample));
        groups.add(group(sample, &by), sample);
        last.extend(std::iter::repeat_n(keys, usize::try_from(sample.count).unwrap()));
    }
    let by_time = samples.iter().all(|sample| sample.count == 0 || sample.period_ns.is_some());
    last.drain(..last.len().saturating_sub(usize::try_from(query.last).unwrap()));
    Answers {
        samples: all,
        matched,
        self_counts: self_counts.counts(by_time),
        total: total.counts(by_time),
        callers: callers.counts(by_time),
        callees: callees.counts(by_time),
        part_self: part_self.counts(by_time),
        part_total: part_total.counts(by_time),
        groups: groups.counts(by_time),
        last,
    }
}
