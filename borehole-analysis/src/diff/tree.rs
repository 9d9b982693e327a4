//! The calls of both sides as one tree, in which frames that are the same are one.

use borehole_model::{FrameId, StackId, TableFull, Tables};

use super::frames::Known;

/// The tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// By stack of the profiles, its path; `None` if all of it is hidden, or it is out of focus.
    path_of: Vec<Option<StackId>>,
    /// In preorder: a call stands behind its caller, and all below it are one stretch, so that who goes through them
    /// finds in the cache what belongs together.
    pub(crate) calls: Vec<Call>,
    /// By path, which call it is.
    call_of: Vec<u32>,
}

/// A call path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Its number in order of first appearance.
    pub(crate) path: StackId,
    /// The place of its caller in the tree.
    caller: Option<u32>,
    depth: u32,
    group: FrameId,
    /// Whether its last function is not on it before: there totals of functions are counted.
    pub(crate) is_first: bool,
}

impl Call {
    /// The place of its caller in the tree.
    pub(crate) fn caller(&self) -> Option<usize> {
        self.caller.map(|caller| caller as usize)
    }

    /// How many callers it has.
    pub(crate) const fn depth(&self) -> usize {
        self.depth as usize
    }

    /// The number of its last function.
    pub(crate) const fn group(&self) -> usize {
        self.group.index()
    }
}

impl Tree {
    /// The tree of all stacks of `tables`, whose frames are `known`, over the groups of `merged`, where paths are put.
    pub(crate) fn new(tables: &Tables, merged: &mut Tables, known: &[Known]) -> Result<Self, TableFull> {
        let mut path_of: Vec<Option<StackId>> = Vec::with_capacity(tables.stack_count());
        let mut in_focus: Vec<bool> = Vec::with_capacity(tables.stack_count());
        for stack in tables.stack_ids() {
            let frame = &known[tables.leaf(stack).index()];
            let caller = tables.parent(stack);
            let above = caller.and_then(|caller| path_of[caller.index()]);
            let path = if frame.is_hidden { above } else { Some(merged.intern_stack(above, frame.group)?) };
            path_of.push(path);
            let focused = !frame.is_hidden && frame.is_focus;
            in_focus.push(focused || caller.is_some_and(|caller| in_focus[caller.index()]));
        }
        for (path, in_focus) in path_of.iter_mut().zip(in_focus) {
            *path = path.filter(|_| in_focus);
        }
        let calls = calls(merged);
        let mut call_of = vec![0; calls.len()];
        for (place, call) in (0..).zip(&calls) {
            call_of[call.path.index()] = place;
        }
        Ok(Self { path_of, calls, call_of })
    }

    /// The call that a stack of the profiles is.
    pub(crate) fn call_of(&self, stack: StackId) -> Option<usize> {
        self.path_of[stack.index()].map(|path| self.call_of[path.index()] as usize)
    }

    /// The first that a call calls.
    pub(crate) fn first_called(&self, call: usize) -> Option<usize> {
        let next = self.calls.get(call + 1)?;
        (next.caller() == Some(call)).then_some(call + 1)
    }

    /// All calls in order of first appearance.
    pub(crate) fn by_appearance(&self) -> impl Iterator<Item = usize> {
        self.call_of.iter().map(|&call| call as usize)
    }

    /// The functions of a call, from the leaf to the root.
    pub(crate) fn groups_leaf_first(&self, call: usize) -> impl Iterator<Item = usize> {
        let calls = std::iter::successors(Some(call), |&call| self.calls[call].caller());
        calls.map(|call| self.calls[call].group())
    }

    /// How many calls there are.
    pub(crate) const fn len(&self) -> usize {
        self.calls.len()
    }

    /// Adds what each call has to its caller's, from the leaves to the roots.
    pub(crate) fn add_up<T: Copy>(&self, sums: &mut [T], add: impl Fn(&mut T, T)) {
        for (place, call) in self.calls.iter().enumerate().rev() {
            if let Some(caller) = call.caller() {
                let sum = sums[place];
                add(&mut sums[caller], sum);
            }
        }
    }
}

/// A step of the walk through the tree.
#[derive(Clone, Copy)]
enum Step {
    Enter(StackId),
    Leave,
}

/// The stacks of `tables` in preorder, those that a caller calls in order of first appearance.
fn calls(tables: &Tables) -> Vec<Call> {
    let mut first_child: Vec<Option<StackId>> = vec![None; tables.stack_count()];
    let mut next: Vec<Option<StackId>> = vec![None; tables.stack_count()];
    let mut first_root = None;
    for path in tables.stack_ids().rev() {
        let head = match tables.parent(path) {
            Some(caller) => &mut first_child[caller.index()],
            None => &mut first_root,
        };
        next[path.index()] = head.replace(path);
    }
    let mut calls: Vec<Call> = Vec::with_capacity(tables.stack_count());
    let mut on_path = vec![0_u32; tables.frame_count()];
    let mut callers: Vec<u32> = Vec::new();
    let mut steps: Vec<Step> = first_root.map(Step::Enter).into_iter().collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Leave => {
                let left = callers.pop().expect("what is left was entered");
                on_path[calls[left as usize].group()] -= 1;
            }
            Step::Enter(path) => {
                let (group, caller) = (tables.leaf(path), callers.last().copied());
                let (depth, is_first) = (tables.depth(path) - 1, on_path[group.index()] == 0);
                // There are not more calls than paths, whose ids fit.
                callers.push(u32::try_from(calls.len()).unwrap_or(u32::MAX));
                calls.push(Call { path, caller, depth, group, is_first });
                on_path[group.index()] += 1;
                steps.extend(next[path.index()].map(Step::Enter));
                steps.push(Step::Leave);
                steps.extend(first_child[path.index()].map(Step::Enter));
            }
        }
    }
    calls
}
