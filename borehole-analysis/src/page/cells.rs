//! Samples as cells of call path, situation and time.

use super::dimensions::Situations;
use super::prune::Kept;
use super::{PageCell, PageLimits};
use crate::call_paths::{CallPaths, Summable as _};
use crate::profile::slices::Pair;
use crate::profile::{Profile, Timespan};
use crate::selection::Selection;

/// What stands for a time that is not known. Behind all others.
const NO_SLICE: u32 = u32::MAX;

/// The fewest slices that time is cut into before call paths are left out instead.
const FEWEST_SLICES: usize = 32;

/// Samples of a call that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    call: u32,
    situation: u32,
    slice: u32,
    sum: i64,
}

/// All samples by the calls that are kept, with slices of the profile joined so that there are at most `slices`, and the
/// same call, situation and slice once.
fn entries(
    profile: &Profile,
    paths: &CallPaths,
    situations: &Situations,
    kept: &Kept,
    slices: usize,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let weight = profile.default_weight();
    let mut put = |pair: &Pair, slice: u32, sum: i64| {
        if let Some(call) = paths.of_stack(pair.stack).and_then(|call| kept.call_of[call as usize]) {
            // There are not more calls than paths, whose ids fit.
            let call = u32::try_from(call).unwrap_or(u32::MAX);
            entries.push(Entry { call, situation: situations.of(pair.situation), slice, sum });
        }
    };
    // All samples as if without time first; those with one are taken off again below.
    profile.each(&Selection::default(), weight, |pair, _, sum| put(pair, NO_SLICE, sum));
    if let Some(span) = profile.timespan() {
        let mut shown = span;
        let joined = shown.join(slices);
        let timed = Selection { time: Some(span.whole()), ..Selection::default() };
        profile.each(&timed, weight, |pair, slice, sum| {
            let place = slice.and_then(|slice| span.place(slice));
            let place = place.and_then(|place| u32::try_from(place / joined).ok());
            put(pair, place.unwrap_or(NO_SLICE - 1), sum);
        });
    }
    let mut entries = by_call(&entries, kept.calls.len());
    merge(&mut entries);
    take_off_timed(&mut entries);
    entries
}

/// The same, call by call, and otherwise in the order in which they were: that of time, mostly, so that little is left to
/// sort.
fn by_call(entries: &[Entry], calls: usize) -> Vec<Entry> {
    let mut next = vec![0; calls + 1];
    for entry in entries {
        next[entry.call as usize + 1] += 1;
    }
    for call in 1..next.len() {
        next[call] += next[call - 1];
    }
    let mut sorted = vec![Entry::default(); entries.len()];
    for entry in entries {
        let place = &mut next[entry.call as usize];
        sorted[*place] = *entry;
        *place += 1;
    }
    sorted
}

/// Makes one of entries that differ in their sum only. They come call by call, and stay so.
fn merge(entries: &mut Vec<Entry>) {
    for of_call in entries.chunk_by_mut(|one, other| one.call == other.call) {
        of_call.sort();
    }
    entries.dedup_by(|next, kept| {
        let same = (next.call, next.situation, next.slice) == (kept.call, kept.situation, kept.slice);
        if same {
            kept.sum.add(next.sum);
        }
        same
    });
}

/// What is without time is all that is not with one.
fn take_off_timed(entries: &mut Vec<Entry>) {
    let mut timed = 0_i64;
    let mut of = None;
    for entry in &mut *entries {
        if of != Some((entry.call, entry.situation)) {
            of = Some((entry.call, entry.situation));
            timed = 0;
        }
        if entry.slice == NO_SLICE {
            entry.sum = entry.sum.saturating_sub(timed);
        } else {
            timed.add(entry.sum);
        }
    }
    entries.retain(|entry| entry.sum != 0);
}

/// The cells of the calls that are kept, with as many slices of time as there is room for; `None` if there is no room.
pub(super) fn cells(
    profile: &Profile,
    paths: &CallPaths,
    situations: &Situations,
    kept: &Kept,
    limits: PageLimits,
) -> Option<(Option<Timespan>, Vec<PageCell>)> {
    let mut entries = entries(profile, paths, situations, kept, limits.slices);
    let mut time = profile.timespan();
    if let Some(time) = &mut time {
        time.join(limits.slices);
    }
    while entries.len() > limits.cells {
        let wide = time.as_mut().filter(|time| time.slices > FEWEST_SLICES);
        // Coarser than a tenth of all samples a tree says nothing: then time goes.
        let wide = match wide {
            Some(time) => time,
            None if kept.pruned.share < 0.1 => return None,
            None => time.as_mut().filter(|time| time.slices > 1)?,
        };
        wide.join(wide.slices.div_ceil(2));
        entries.iter_mut().filter(|entry| entry.slice < NO_SLICE - 1).for_each(|entry| entry.slice /= 2);
        merge(&mut entries);
    }
    let cells = entries.into_iter().map(|entry| PageCell {
        call: entry.call as usize,
        situation: entry.situation as usize,
        slice: (entry.slice < NO_SLICE - 1).then_some(entry.slice as usize),
        value: entry.sum,
    });
    Some((time, cells.collect()))
}
