//! Sums of functions and of the calls between them, of formats that have no stacks.
//!
//! A sum of a function is a stack of that function alone. A part of it that is known by caller is a stack of two: the caller, and
//! the function. So the numbers of leaves are those of the functions, and longer paths are not made up.

use borehole_model::{
    Column, Context, FrameId, ProfileSink, Recovery, Sample, Segment, StackId, TableFull, Tables,
};

use crate::ReadError;

/// The stacks of one frame, by frame: files of sums name their functions again and again.
#[derive(Debug, Default)]
pub(crate) struct RootStacks(Column<StackId>);

impl RootStacks {
    /// The stack of a frame alone.
    ///
    /// # Errors
    /// If the table of stacks is full.
    #[inline]
    pub(crate) fn intern(&mut self, frame: FrameId, tables: &mut Tables) -> Result<StackId, TableFull> {
        match self.0.get(frame.index()) {
            Some(known) => Ok(known),
            None => Ok(self.0.set(frame.index(), tables.intern_stack(None, frame)?)),
        }
    }

    /// The stack of a frame and its caller, if it has one.
    ///
    /// # Errors
    /// If the table of stacks is full.
    #[inline]
    pub(crate) fn called(
        &mut self,
        caller: Option<FrameId>,
        frame: FrameId,
        tables: &mut Tables,
    ) -> Result<StackId, TableFull> {
        let Some(caller) = caller else { return self.intern(frame, tables) };
        let caller = self.intern(caller, tables)?;
        tables.intern_stack(Some(caller), frame)
    }
}

/// Passes sums to a sink as samples.
pub(crate) struct CallSums<'a> {
    pub(crate) tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    segment: Segment,
    roots: RootStacks,
}

impl<'a> CallSums<'a> {
    /// Begins `segment`.
    ///
    /// # Errors
    /// If the sink fails.
    pub(crate) fn begin(
        segment: Segment,
        tables: &'a mut Tables,
        sink: &'a mut dyn ProfileSink,
        recovery: &mut Recovery,
    ) -> Result<Self, ReadError> {
        sink.segment(Context { tables, segment: &segment })?;
        recovery.segments += 1;
        Ok(Self { tables, sink, segment, roots: RootStacks::default() })
    }

    /// Passes the sums of `function`, or the part of them when `caller` called it. Sums of nothing are left out.
    ///
    /// # Errors
    /// If the tables are full, or the sink fails.
    pub(crate) fn add(
        &mut self,
        caller: Option<FrameId>,
        function: FrameId,
        (count, values): (u64, &[i64]),
        recovery: &mut Recovery,
    ) -> Result<(), ReadError> {
        let is_nothing = values.iter().all(|&value| value == 0) && (count == 0 || self.segment.is_uncounted);
        if recovery.stopped || is_nothing {
            return Ok(());
        }
        let stack = Some(self.roots.called(caller, function, self.tables)?);
        let at = Context { tables: self.tables, segment: &self.segment };
        recovery.samples = recovery.samples.saturating_add(count);
        recovery.stopped =
            self.sink.sample(at, &Sample { stack, count, values, ..Sample::default() })?.is_break();
        Ok(())
    }
}

/// The rest of a sum beside its parts by caller. Parts that are more than the sum, beyond `tolerance`, become 0: a function
/// that is called again by what it called is counted in several of them.
pub(crate) fn rest(sum: i64, parts: &mut [i64], tolerance: i64) -> i64 {
    let parts_sum = parts.iter().fold(0_i64, |sum, &part| sum.saturating_add(part));
    let rest = sum.saturating_sub(parts_sum);
    if rest >= 0 || sum < 0 {
        return rest;
    }
    match parts.iter_mut().max() {
        // Rounded numbers.
        Some(largest) if rest >= -tolerance && *largest >= -rest => *largest += rest,
        _ => {
            parts.fill(0);
            return sum;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_their_rest_are_the_sum() {
        for (sum, parts, expected, left) in [
            (10, [3, 4], [3, 4], 3),
            (10, [6, 4], [6, 4], 0),
            (10, [7, 4], [6, 4], 0),
            (10, [10, 9], [0, 0], 10),
            (-5, [1, 1], [1, 1], -7),
        ] {
            let mut found = parts;
            assert_eq!(rest(sum, &mut found, 2), left);
            assert_eq!(found, expected);
            assert_eq!(found.iter().sum::<i64>() + left, sum);
        }
    }
}
