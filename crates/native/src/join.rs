//! Puts the frames of a script between native ones.
//!
//! An interpreter runs in a function of its own. Each of its native frames stands for one *call* of the interpreter, which runs
//! one or more frames of the script. The native frames of a stack and the calls of the script are two lists in the same order. They
//! are joined where they must correspond, and not at all if they contradict each other: nothing is guessed.

use crate::unwind::{NativeAddress, NativeStack, StackEnd};

/// The code of the function that runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFunction {
    /// Its first address.
    pub start: u64,
    /// The address behind its code.
    pub end: u64,
}

/// Where the native frame of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPlace {
    /// At the next frame of the interpreter's function.
    NextEntry,
    /// Where this address on the stack is one of its variables.
    OnStack(u64),
}

/// A level of a joined stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The native frame at this index.
    Native(usize),
    /// All frames of the call at this index.
    Call(usize),
}

/// How joining went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// So many calls have found their native frame.
    Whole {
        /// The number of calls.
        calls: u64,
    },
    /// The native stack ends before so many of the calls. They follow at the root, without native frames.
    Cut {
        /// The number of calls that were joined.
        calls: u64,
        /// The number of calls that were not.
        missing: u64,
    },
    /// Both contradict each other.
    Contradiction,
}

/// Joins the calls at these places, the leaf's first, to the native frames. Puts the levels into `joined`, leaf first; nothing if
/// they contradict each other.
pub fn join(
    stack: &NativeStack,
    calls: &[CallPlace],
    entry: Option<EntryFunction>,
    joined: &mut Vec<Joined>,
) -> Joining {
    joined.clear();
    let is_exact = calls.iter().any(|call| matches!(call, CallPlace::OnStack(_)));
    let pairs = if is_exact { by_place(stack, calls) } else { by_order(stack, calls, entry) };
    let Some(pairs) = pairs else { return Joining::Contradiction };
    let mut next_call = 0;
    if pairs.is_leaf_apart {
        joined.push(Joined::Call(0));
        next_call = 1;
    }
    let mut entries = pairs.entries.iter().peekable();
    for index in 0..stack.frames.len() {
        if entries.next_if_eq(&&index).is_some() {
            joined.push(Joined::Call(next_call));
            next_call += 1;
        } else {
            joined.push(Joined::Native(index));
        }
    }
    joined.extend((next_call..calls.len()).map(Joined::Call));
    let missing = (calls.len() - next_call) as u64;
    let calls = next_call as u64;
    if missing == 0 || pairs.is_rest_of_root {
        Joining::Whole { calls }
    } else {
        Joining::Cut { calls, missing }
    }
}

/// Which native frames are calls.
struct Pairs {
    /// The native frames of the calls, from the leaf on.
    entries: Vec<usize>,
    /// Whether the first call has no native frame yet: its interpreter is about to begin.
    is_leaf_apart: bool,
    /// Whether the calls without a native frame are those of the thread's own base, below everything.
    is_rest_of_root: bool,
}

/// Pairs calls and entries by their order. Between the moment at which a call is prepared and that at which its function is
/// entered or left, one of them is without the other. Seen from the root, that can be the leaf's only.
fn by_order(stack: &NativeStack, calls: &[CallPlace], entry: Option<EntryFunction>) -> Option<Pairs> {
    let mut entries = entry.map(|entry| entries(&stack.frames, entry)).unwrap_or_default();
    let (found, expected) = (entries.len(), calls.len());
    let is_leaf_apart = stack.end == StackEnd::Root && expected == found + 1;
    if found == expected + 1 {
        entries.remove(0);
    }
    let is_known = match stack.end {
        StackEnd::Root => is_leaf_apart || entries.len() == expected,
        // The rest is further to the root.
        _ => entries.len() <= expected,
    };
    is_known.then_some(Pairs { entries, is_leaf_apart, is_rest_of_root: false })
}

/// The native frames of the interpreter's function.
fn entries(frames: &[NativeAddress], entry: EntryFunction) -> Vec<usize> {
    let is_within = |frame: &NativeAddress| (entry.start..entry.end).contains(&frame.address);
    // Compilers move rare code of a function elsewhere, where no symbol may name it. The call still does.
    let is_called =
        |index: usize| frames.get(index + 1).is_some_and(|caller| caller.calls == Some(entry.start));
    let is_entry =
        |&(index, frame): &(usize, &NativeAddress)| frame.is_hosted || is_within(frame) || is_called(index);
    frames.iter().enumerate().filter(is_entry).map(|(index, _)| index).collect()
}

/// Pairs each call with the native frame that holds its variable.
fn by_place(stack: &NativeStack, calls: &[CallPlace]) -> Option<Pairs> {
    let mut entries = Vec::new();
    let mut index = 0;
    let mut missing = 0;
    for call in calls {
        let CallPlace::OnStack(place) = *call else { return None };
        let found = (index..stack.frames.len()).find(|&index| holds(&stack.frames, index, place));
        match found {
            // None further to the root may follow one that is missing.
            Some(_) if missing > 0 => return None,
            Some(found) => {
                entries.push(found);
                index = found + 1;
            }
            // A frame that holds it belongs to another call, or to none.
            None if is_within(stack, place) => return None,
            None => missing += 1,
        }
    }
    let is_whole = stack.end == StackEnd::Root;
    // The outermost frame may lie in the state of the thread, and not on its stack.
    (missing <= 1 || !is_whole).then_some(Pairs {
        entries,
        is_leaf_apart: false,
        is_rest_of_root: is_whole && missing == 1,
    })
}

/// Whether a place is on the part of the stack whose frames are known.
fn is_within(stack: &NativeStack, place: u64) -> bool {
    let ends = stack.frames.first().zip(stack.frames.last());
    ends.is_some_and(|(leaf, root)| (leaf.sp..root.sp).contains(&place))
}

/// Whether the variables of a frame are at `place`. Those of the outermost one are not known.
fn holds(frames: &[NativeAddress], index: usize, place: u64) -> bool {
    let caller = frames.get(index + 1);
    caller.is_some_and(|caller| (frames[index].sp..caller.sp).contains(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: EntryFunction = EntryFunction { start: 0x1000, end: 0x2000 };

    /// A stack with these addresses, each 0x100 bytes above the one before.
    fn stack(addresses: &[u64], end: StackEnd) -> NativeStack {
        let frame = |(index, &address): (usize, &u64)| NativeAddress {
            address,
            sp: 0x10_0000 + 0x100 * index as u64,
            calls: None,
            is_hosted: false,
        };
        NativeStack { frames: addresses.iter().enumerate().map(frame).collect(), end, searched: 0 }
    }

    /// `n` and `c` with their indexes, leaf first.
    fn joined(stack: &NativeStack, calls: &[CallPlace]) -> (String, Joining) {
        let mut levels = Vec::new();
        let joining = join(stack, calls, Some(ENTRY), &mut levels);
        let text = levels.iter().map(|level| match level {
            Joined::Native(index) => format!("n{index} "),
            Joined::Call(index) => format!("c{index} "),
        });
        (text.collect::<String>().trim_end().to_owned(), joining)
    }

    #[test]
    fn each_entry_is_replaced_by_its_call() {
        let found = joined(&stack(&[9, 0x1500, 8, 0x1800, 7], StackEnd::Root), &[CallPlace::NextEntry; 2]);
        assert_eq!(found, ("n0 c0 n2 c1 n4".to_owned(), Joining::Whole { calls: 2 }));
    }

    #[test]
    fn code_that_was_moved_elsewhere_and_compiled_code_are_entries() {
        let mut stack = stack(&[9, 0x9500, 8, 0x7_0000, 7], StackEnd::Root);
        stack.frames[2].calls = Some(ENTRY.start);
        stack.frames[3].is_hosted = true;
        let found = joined(&stack, &[CallPlace::NextEntry; 2]);
        assert_eq!(found, ("n0 c0 n2 c1 n4".to_owned(), Joining::Whole { calls: 2 }));
    }

    #[test]
    fn a_call_about_to_begin_is_the_leaf_and_one_that_has_ended_is_native() {
        let found = joined(&stack(&[9, 0x1800, 7], StackEnd::Root), &[CallPlace::NextEntry; 2]);
        assert_eq!(found, ("c0 n0 c1 n2".to_owned(), Joining::Whole { calls: 2 }));
        let found = joined(&stack(&[0x1500, 8, 0x1800, 7], StackEnd::Root), &[CallPlace::NextEntry]);
        assert_eq!(found, ("n0 n1 c0 n3".to_owned(), Joining::Whole { calls: 1 }));
    }

    #[test]
    fn more_than_the_leaf_without_its_other_half_is_a_contradiction() {
        for (addresses, calls) in [(&[0x1500, 8, 7][..], 3), (&[0x1500, 0x1600, 0x1700, 7], 1), (&[9, 8], 2)]
        {
            let found = joined(&stack(addresses, StackEnd::Root), &vec![CallPlace::NextEntry; calls]);
            assert_eq!(found, (String::new(), Joining::Contradiction), "{addresses:x?}");
        }
    }

    #[test]
    fn calls_beyond_the_end_of_the_native_stack_follow_at_the_root() {
        let found = joined(&stack(&[9, 0x1500, 8], StackEnd::NoInformation), &[CallPlace::NextEntry; 3]);
        assert_eq!(found, ("n0 c0 n2 c1 c2".to_owned(), Joining::Cut { calls: 1, missing: 2 }));
    }

    #[test]
    fn variables_on_the_stack_name_their_frames_whatever_the_code() {
        let places = [0x10_0110, 0x10_0308].map(CallPlace::OnStack);
        let found = joined(&stack(&[9, 5, 8, 6, 7], StackEnd::Root), &places);
        assert_eq!(found, ("n0 c0 n2 c1 n4".to_owned(), Joining::Whole { calls: 2 }));
        let base = [0x10_0110, 0x55_0000].map(CallPlace::OnStack);
        let found = joined(&stack(&[9, 5, 8], StackEnd::Root), &base);
        assert_eq!(found, ("n0 c0 n2 c1".to_owned(), Joining::Whole { calls: 1 }));
        let unordered = [0x10_0308, 0x10_0110].map(CallPlace::OnStack);
        let (_, joining) = joined(&stack(&[9, 5, 8, 6, 7], StackEnd::Root), &unordered);
        assert_eq!(joining, Joining::Contradiction);
        let (_, joining) = joined(&stack(&[9, 5], StackEnd::Root), &[1, 2].map(CallPlace::OnStack));
        assert_eq!(joining, Joining::Contradiction);
    }

    #[test]
    fn a_script_without_calls_leaves_the_native_stack_alone() {
        let found = joined(&stack(&[9, 8], StackEnd::Root), &[]);
        assert_eq!(found, ("n0 n1".to_owned(), Joining::Whole { calls: 0 }));
        let mut levels = Vec::new();
        assert_eq!(
            join(&stack(&[9, 8], StackEnd::Root), &[], None, &mut levels),
            Joining::Whole { calls: 0 }
        );
        assert_eq!(levels.len(), 2);
    }
}
