//! The calls of a lane, which may overlap by mistake, as stretches of time with one stack each.

use borehole_model::{FrameId, StackId, TableFull, Tables};

/// A call, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) frame: FrameId,
}

/// A stretch of time with one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) stack: StackId,
    pub(super) start_ns: i64,
    pub(super) lasts_ns: i64,
}

/// A call in progress.
struct OpenCall {
    end_ns: i64,
    stack: StackId,
    /// Whether a stretch has shown it, itself or below another call.
    is_shown: bool,
}

/// Rounding of microseconds with fractions, which is no overlap.
const TOLERANCE_NS: i64 = 1000;

/// Turns the calls of a lane, in the order of the file, into stretches, and returns how many calls ended after their caller and were
/// cut there.
///
/// A call without any time of its own or below it is a stretch of 0 ns, so that it is seen.
///
/// # Errors
/// If a table is full, or `give` fails.
pub(super) fn stretches<E: From<TableFull>>(
    calls: &mut [Call],
    tables: &mut Tables,
    mut give: impl FnMut(&Tables, Stretch) -> Result<(), E>,
) -> Result<u64, E> {
    // Of calls that begin together, the longer one calls the other; the order of the file decides between equal ones.
    calls.sort_by_key(|call| (call.start_ns, std::cmp::Reverse(call.end_ns)));
    let (mut open, mut at_ns, mut cut) = (Vec::<OpenCall>::new(), i64::MIN, 0);
    for call in calls.iter() {
        close(&mut open, &mut at_ns, call.start_ns, tables, &mut give)?;
        let mut end_ns = call.end_ns;
        if let Some(caller) = open.last_mut() {
            show(caller, &mut at_ns, call.start_ns, tables, &mut give)?;
            cut += u64::from(end_ns.saturating_sub(caller.end_ns) > TOLERANCE_NS);
            end_ns = end_ns.min(caller.end_ns);
        }
        at_ns = call.start_ns;
        let stack = tables.intern_stack(open.last().map(|caller| caller.stack), call.frame)?;
        open.push(OpenCall { end_ns, stack, is_shown: false });
    }
    close(&mut open, &mut at_ns, i64::MAX, tables, &mut give)?;
    Ok(cut)
}

/// Ends the calls that end by `until_ns`.
fn close<E>(
    open: &mut Vec<OpenCall>,
    at_ns: &mut i64,
    until_ns: i64,
    tables: &Tables,
    give: &mut impl FnMut(&Tables, Stretch) -> Result<(), E>,
) -> Result<(), E> {
    while let Some(mut call) = open.pop_if(|call| call.end_ns <= until_ns) {
        let end_ns = call.end_ns;
        show(&mut call, at_ns, end_ns, tables, give)?;
        if !call.is_shown {
            give(tables, Stretch { stack: call.stack, start_ns: end_ns, lasts_ns: 0 })?;
        }
        if let Some(caller) = open.last_mut() {
            caller.is_shown = true;
        }
    }
    Ok(())
}

/// Gives the time of the innermost call until `until_ns`.
fn show<E>(
    call: &mut OpenCall,
    at_ns: &mut i64,
    until_ns: i64,
    tables: &Tables,
    give: &mut impl FnMut(&Tables, Stretch) -> Result<(), E>,
) -> Result<(), E> {
    let lasts_ns = until_ns.saturating_sub(*at_ns);
    if lasts_ns > 0 {
        give(tables, Stretch { stack: call.stack, start_ns: *at_ns, lasts_ns })?;
        call.is_shown = true;
        *at_ns = until_ns;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use borehole_model::Frame;

    use super::*;

    /// The stretches of calls `(name, start, end)` as `(stack, start, duration)`, and the number of calls that were cut.
    fn shown(calls: &[(&str, i64, i64)]) -> (Vec<(String, i64, i64)>, u64) {
        let mut tables = Tables::default();
        let mut call = |&(name, start_ns, end_ns): &(&str, i64, i64)| {
            let function = tables.intern_string(name.as_bytes()).unwrap();
            Call { start_ns, end_ns, frame: tables.intern_frame(&Frame::named(function)).unwrap() }
        };
        let mut calls: Vec<_> = calls.iter().map(&mut call).collect();
        let mut found = Vec::new();
        let cut = stretches(&mut calls, &mut tables, |tables, stretch| {
            let names = tables.frames_leaf_first(Some(stretch.stack));
            let names = names.map(|frame| String::from_utf8_lossy(tables.string(tables.function(frame))));
            let mut names: Vec<_> = names.collect();
            names.reverse();
            found.push((names.join(";"), stretch.start_ns, stretch.lasts_ns));
            Ok::<_, TableFull>(())
        });
        (found, cut.unwrap())
    }

    fn row(stack: &str, start_ns: i64, lasts_ns: i64) -> (String, i64, i64) {
        (stack.to_owned(), start_ns, lasts_ns)
    }

    #[test]
    fn nested_calls_in_any_order_are_stretches() {
        let (found, cut) = shown(&[("b", 20, 30), ("a", 0, 100), ("c", 30, 30), ("d", 200, 210)]);
        let expected =
            [row("a", 0, 20), row("a;b", 20, 10), row("a;c", 30, 0), row("a", 30, 70), row("d", 200, 10)];
        assert_eq!((found, cut), (expected.to_vec(), 0));
    }

    #[test]
    fn a_call_that_ends_after_its_caller_is_cut() {
        let (found, cut) = shown(&[("a", 0, 10_000), ("b", 5_000, 20_000), ("c", 12_000, 13_000)]);
        let expected = [row("a", 0, 5_000), row("a;b", 5_000, 5_000), row("c", 12_000, 1_000)];
        assert_eq!((found, cut), (expected.to_vec(), 1));
        assert_eq!(shown(&[("a", 0, 10_000), ("b", 5_000, 10_500)]).1, 0);
    }
}
