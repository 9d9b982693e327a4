//! The costs of functions, lines and calls, added up in one walk over the tree of stacks.
//!
//! A sample counts once for each function on its stack: at the innermost occurrence, whose line and callee are those that it is
//! added to. So a call is added up with all samples below it, less those below which the function occurs again.

use std::collections::BTreeMap;
use std::io::{self, Write};

use borehole_model::{Column, Frame, FrameId, InternedRows, StackId, StringId, TableFull, Tables};
use borehole_text::make_line;

use super::write::{Cost, Name, UNKNOWN, Writer};
use crate::frames::profiler;
use crate::sums::rows::row_number;
use crate::sums::stacks::{EMPTY_STACK, StackCounts};

/// The number of a function, in order of first appearance.
type FunctionNumber = usize;

/// A sum of costs that is exact while others are taken off.
#[derive(Clone, Copy, Default)]
struct WideCost {
    count: u128,
    time_ns: u128,
}

impl WideCost {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.time_ns += other.time_ns;
    }

    fn take_off(&mut self, other: Self) {
        self.count -= other.count;
        self.time_ns -= other.time_ns;
    }

    /// The cost as it is written: sums saturate.
    fn written(self) -> Cost {
        let clamped = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        Cost { count: clamped(self.count), time_ns: clamped(self.time_ns) }
    }
}

/// All costs of a profile.
pub(super) struct Costs {
    functions: Functions,
    lines: BTreeMap<(FunctionNumber, u64), WideCost>,
    /// The costs by caller, its line, and callee.
    calls: BTreeMap<(FunctionNumber, u64, FunctionNumber), WideCost>,
    total: WideCost,
}

impl Costs {
    /// Adds up the samples and the times of all stacks.
    ///
    /// # Errors
    /// If a table is full.
    pub(super) fn of(
        tables: &Tables,
        counts: &StackCounts,
        times_ns: &StackCounts,
    ) -> Result<Self, TableFull> {
        let mut costs = Self {
            functions: Functions::default(),
            lines: BTreeMap::new(),
            calls: BTreeMap::new(),
            total: WideCost::default(),
        };
        let own =
            |stack| WideCost { count: counts.count(stack).into(), time_ns: times_ns.count(stack).into() };
        let mut known = vec![false; tables.stack_count()];
        for (stack, _) in counts.iter() {
            costs.total.add(own(stack));
            if stack.is_none() {
                let function = costs.functions.empty_stack()?;
                costs.lines.entry((function, 0)).or_default().add(own(stack));
            }
            let mut next = stack;
            while let Some(stack) = next.filter(|stack| !std::mem::replace(&mut known[stack.index()], true)) {
                costs.functions.of_frame(tables, tables.leaf(stack))?;
                next = tables.parent(stack);
            }
        }
        let mut walk = Walk {
            tables,
            costs: &mut costs,
            totals: totals(tables, own),
            path: Vec::new(),
            innermost: Vec::new(),
        };
        walk.all(own);
        costs.calls.retain(|_, cost| cost.count > 0);
        Ok(costs)
    }

    /// The number of characters replaced in names.
    pub(super) const fn replaced(&self) -> u64 {
        self.functions.replaced
    }

    /// Writes everything.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(super) fn write(&self, mut writer: Writer<impl Write>) -> io::Result<()> {
        let total = self.total.written();
        writer.header(total)?;
        for function in 0..self.functions.keys.rows().len() {
            let (file, name) = self.functions.names(function);
            writer.function(file, name)?;
            for (&(_, line), cost) in self.lines.range((function, 0)..=(function, u64::MAX)) {
                writer.line(line, cost.written())?;
            }
            for (&(_, line, callee), cost) in self.calls.range((function, 0, 0)..(function + 1, 0, 0)) {
                let (file, name) = self.functions.names(callee);
                writer.call(file, name, line, cost.written())?;
            }
        }
        writer.end(total)
    }
}

/// By stack: its costs with those of its callees.
fn totals(tables: &Tables, own: impl Fn(Option<StackId>) -> WideCost) -> Vec<WideCost> {
    let mut totals = vec![WideCost::default(); tables.stack_count()];
    for stack in tables.stack_ids().rev() {
        totals[stack.index()].add(own(Some(stack)));
        if let Some(caller) = tables.parent(stack) {
            let total = totals[stack.index()];
            totals[caller.index()].add(total);
        }
    }
    totals
}

/// A walk over all stacks, callers first.
struct Walk<'a> {
    tables: &'a Tables,
    costs: &'a mut Costs,
    totals: Vec<WideCost>,
    /// The current stack, from its root on. Each with the one of its callers that has the same function.
    path: Vec<(StackId, Option<StackId>)>,
    /// By function: the innermost stack on the path that has it as its leaf.
    innermost: Vec<Option<StackId>>,
}

impl Walk<'_> {
    fn all(&mut self, own: impl Fn(Option<StackId>) -> WideCost) {
        self.innermost.resize(self.costs.functions.keys.rows().len(), None);
        let mut next = self.tables.first_child(None);
        loop {
            match next {
                Some(stack) if self.totals[stack.index()].count == 0 => {
                    next = self.tables.next_sibling(stack);
                }
                Some(stack) => {
                    self.enter(stack, own(Some(stack)));
                    next = self.tables.first_child(Some(stack));
                }
                None => {
                    let Some((stack, outer)) = self.path.pop() else { return };
                    let (function, _) = self.place(stack);
                    self.innermost[function] = outer;
                    next = self.tables.next_sibling(stack);
                }
            }
        }
    }

    fn enter(&mut self, stack: StackId, own: WideCost) {
        let (function, line) = self.place(stack);
        let total = self.totals[stack.index()];
        if own.count > 0 {
            self.costs.lines.entry((function, line)).or_default().add(own);
        }
        if let Some(&(caller, _)) = self.path.last() {
            self.call(caller, function).add(total);
        }
        let outer = self.innermost[function].replace(stack);
        self.path.push((stack, outer));
        if let Some(outer) = outer {
            let (callee, _) = self.path[self.tables.depth(outer) as usize];
            let (callee, _) = self.place(callee);
            self.call(outer, callee).take_off(total);
        }
    }

    fn call(&mut self, caller: StackId, callee: FunctionNumber) -> &mut WideCost {
        let (function, line) = self.place(caller);
        self.costs.calls.entry((function, line, callee)).or_default()
    }

    /// The function and the line of a stack's leaf. Stacks with samples have known functions.
    fn place(&self, stack: StackId) -> (FunctionNumber, u64) {
        let frame = self.tables.leaf(stack);
        let function = self.costs.functions.of_frames.get(frame.index()).unwrap_or(0);
        (function, line_of(&self.tables.frame(frame)))
    }
}

/// The line as the format has it: 0 for an unknown or negative one.
fn line_of(frame: &Frame) -> u64 {
    frame.line.and_then(|line| u64::try_from(line).ok()).unwrap_or(0)
}

/// Functions, identified by name and file.
#[derive(Default)]
struct Functions {
    /// Names and files as they are written.
    strings: Tables,
    /// The file and the name of each.
    keys: InternedRows<(StringId, StringId)>,
    /// The function of each frame of the profile.
    of_frames: Column<FunctionNumber>,
    text: Vec<u8>,
    replaced: u64,
}

impl Functions {
    fn of_frame(&mut self, tables: &Tables, id: FrameId) -> Result<FunctionNumber, TableFull> {
        if let Some(function) = self.of_frames.get(id.index()) {
            return Ok(function);
        }
        let frame = tables.frame(id);
        let function = self.intern(profiler::file(&frame, tables), tables.string(frame.function))?;
        Ok(self.of_frames.set(id.index(), function))
    }

    fn empty_stack(&mut self) -> Result<FunctionNumber, TableFull> {
        self.intern(b"", EMPTY_STACK.as_bytes())
    }

    fn intern(&mut self, file: &[u8], name: &[u8]) -> Result<FunctionNumber, TableFull> {
        let key = (self.string(file)?, self.string(name)?);
        Ok(row_number(self.keys.intern(&key)) as FunctionNumber)
    }

    fn string(&mut self, text: &[u8]) -> Result<StringId, TableFull> {
        self.text.clear();
        self.text.extend_from_slice(if text.trim_ascii().is_empty() { UNKNOWN } else { text });
        self.replaced += make_line(&mut self.text, 0);
        self.strings.intern_string(&self.text)
    }

    /// The file and the name of a function.
    fn names(&self, function: FunctionNumber) -> (Name<'_>, Name<'_>) {
        let (file, name) = self.keys.rows()[function];
        (self.name(file), self.name(name))
    }

    fn name(&self, string: StringId) -> Name<'_> {
        Name { number: string.get(), text: self.strings.string(string) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The costs of calls, by following each stack from its leaf.
    fn followed(
        tables: &Tables,
        counts: &StackCounts,
        costs: &Costs,
    ) -> BTreeMap<(FunctionNumber, u64, FunctionNumber), u128> {
        let mut calls = BTreeMap::new();
        for (stack, count) in counts.iter() {
            let (mut seen, mut callee) = (BTreeSet::new(), None);
            for frame in tables.frames_leaf_first(stack) {
                let function = costs.functions.of_frames.get(frame.index()).unwrap();
                let line = line_of(&tables.frame(frame));
                if let Some(callee) = callee.filter(|_| !seen.contains(&function)) {
                    *calls.entry((function, line, callee)).or_default() += u128::from(count);
                }
                seen.insert(function);
                callee = Some(function);
            }
        }
        calls
    }

    proptest! {
        #[test]
        fn a_sample_counts_at_the_innermost_occurrence_of_each_function(
            stacks in prop::collection::vec((prop::collection::vec((0_u8..3, 1_i64..3), 0..9), 1_u64..5), 1..20),
        ) {
            let (mut tables, mut counts) = (Tables::default(), StackCounts::default());
            for (frames, count) in &stacks {
                let mut stack = None;
                for &(function, line) in frames {
                    let function = tables.intern_string(&[b'f', function]).unwrap();
                    let frame = Frame { line: Some(line), ..Frame::named(function) };
                    let frame = tables.intern_frame(&frame).unwrap();
                    stack = Some(tables.intern_stack(stack, frame).unwrap());
                }
                counts.add(stack, *count);
            }
            let costs = Costs::of(&tables, &counts, &StackCounts::default()).unwrap();
            let calls: BTreeMap<_, _> = costs.calls.iter().map(|(&key, cost)| (key, cost.count)).collect();
            prop_assert_eq!(calls, followed(&tables, &counts, &costs));
            let all: u64 = stacks.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(costs.total.count, u128::from(all));
            prop_assert_eq!(costs.lines.values().map(|cost| cost.count).sum::<u128>(), u128::from(all));
        }
    }
}
