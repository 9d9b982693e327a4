//! Samples as cells of call path, situation and time.

use super::dimensions::PageSituations;
use super::prune::KeptPaths;
use super::{PageCell, PageLimits};
use crate::call_paths::{CallPaths, Summable as _};
use crate::profile::slices::Pair;
use crate::profile::{Profile, Timespan};
use crate::selection::SampleSelection;

/// The slice of samples without a time. It sorts after all others.
const NO_SLICE: u32 = u32::MAX;

/// The minimum number of slices before call paths are left out instead.
const FEWEST_SLICES: usize = 32;

/// Samples of a kept call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct CellEntry {
    call: u32,
    situation: u32,
    slice: u32,
    sum: i64,
}

/// All samples by kept call, with the profile's slices joined to at most `slices`, and one entry per call, situation and
/// slice.
fn entries(
    (profile, selection): (&Profile, &SampleSelection),
    paths: &CallPaths,
    situations: &PageSituations,
    kept: &KeptPaths,
    slices: usize,
) -> Vec<CellEntry> {
    let mut entries = Vec::new();
    let weight = profile.default_weight();
    let mut put = |pair: &Pair, slice: u32, sum: i64| {
        if let Some(call) = paths.of_stack(pair.stack).and_then(|call| kept.call_of[call as usize]) {
            // There are no more calls than paths, whose ids fit.
            let call = u32::try_from(call).unwrap_or(u32::MAX);
            entries.push(CellEntry { call, situation: situations.of(pair.situation), slice, sum });
        }
    };
    // Add all samples without a time first; those with one are subtracted below.
    if selection.time.is_none() {
        profile.each(selection, weight, |pair, _, sum| put(pair, NO_SLICE, sum));
    }
    if let Some(span) = profile.timespan_of(selection) {
        let mut shown = span;
        let joined = shown.join(slices);
        let timed = SampleSelection { time: Some(span.whole()), ..selection.clone() };
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

/// Groups entries by call and otherwise keeps their order, which is mostly that of time, so that little remains to be
/// sorted.
fn by_call(entries: &[CellEntry], calls: usize) -> Vec<CellEntry> {
    let mut next = vec![0; calls + 1];
    for entry in entries {
        next[entry.call as usize + 1] += 1;
    }
    for call in 1..next.len() {
        next[call] += next[call - 1];
    }
    let mut sorted = vec![CellEntry::default(); entries.len()];
    for entry in entries {
        let place = &mut next[entry.call as usize];
        sorted[*place] = *entry;
        *place += 1;
    }
    sorted
}

/// Merges entries that differ in their sum only. Entries are grouped by call and stay so.
fn merge(entries: &mut Vec<CellEntry>) {
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

/// Subtracts timed samples from the sums without a time, which then hold the untimed ones only.
fn take_off_timed(entries: &mut Vec<CellEntry>) {
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

/// The cells of the kept calls, with as many slices of time as fit; `None` if nothing fits.
pub(super) fn cells(
    (profile, selection): (&Profile, &SampleSelection),
    paths: &CallPaths,
    situations: &PageSituations,
    kept: &KeptPaths,
    limits: PageLimits,
) -> Option<(Option<Timespan>, Vec<PageCell>)> {
    let mut entries = entries((profile, selection), paths, situations, kept, limits.slices);
    let mut time = profile.timespan_of(selection);
    if let Some(time) = &mut time {
        time.join(limits.slices);
    }
    while entries.len() > limits.cells {
        let wide = time.as_mut().filter(|time| time.slices > FEWEST_SLICES);
        // A call tree coarser than a tenth of all samples is useless, so time is reduced instead.
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
