//! The calls of both sides as one tree, in which frames that are the same are one.

use borehole_model::{StackId, TableFull, Tables};

use super::frames::Known;

/// The tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Frames are groups, stacks are call paths.
    pub(crate) tables: Tables,
    /// By stack of the profiles, its path; `None` if all of it is hidden, or it is out of focus.
    path_of: Vec<Option<StackId>>,
    /// By path, whether its last function is not on it before: where totals of functions are counted.
    pub(crate) is_first: Vec<bool>,
}

/// A step of the walk through the tree.
#[derive(Clone, Copy)]
enum Step {
    Enter(StackId),
    Leave(usize),
}

impl Tree {
    /// The tree of all stacks of `tables`, whose frames are `known`, over the groups of `merged`.
    pub(crate) fn new(tables: &Tables, mut merged: Tables, known: &[Known]) -> Result<Self, TableFull> {
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
        let is_first = first_on_path(&merged);
        Ok(Self { tables: merged, path_of, is_first })
    }

    /// The path of a stack of the profiles.
    pub(crate) fn path(&self, stack: StackId) -> Option<StackId> {
        self.path_of[stack.index()]
    }

    /// The number of a path's last function.
    pub(crate) fn group(&self, path: StackId) -> usize {
        self.tables.leaf(path).index()
    }

    /// How many paths there are.
    pub(crate) const fn len(&self) -> usize {
        self.tables.stack_count()
    }

    /// Adds what each path has to its caller's, from the leaves to the roots.
    pub(crate) fn add_up<T: Copy>(&self, sums: &mut [T], add: impl Fn(&mut T, T)) {
        for path in self.tables.stack_ids().rev() {
            if let Some(caller) = self.tables.parent(path) {
                let sum = sums[path.index()];
                add(&mut sums[caller.index()], sum);
            }
        }
    }
}

fn first_on_path(tables: &Tables) -> Vec<bool> {
    let mut first_child: Vec<Option<StackId>> = vec![None; tables.stack_count()];
    let mut next: Vec<Option<StackId>> = vec![None; tables.stack_count()];
    let mut first_root = None;
    for path in tables.stack_ids() {
        let head = match tables.parent(path) {
            Some(caller) => &mut first_child[caller.index()],
            None => &mut first_root,
        };
        next[path.index()] = head.replace(path);
    }
    let mut is_first = vec![false; tables.stack_count()];
    let mut on_path = vec![0_u32; tables.frame_count()];
    let mut steps: Vec<Step> = first_root.map(Step::Enter).into_iter().collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Leave(group) => on_path[group] -= 1,
            Step::Enter(path) => {
                let group = tables.leaf(path).index();
                is_first[path.index()] = on_path[group] == 0;
                on_path[group] += 1;
                steps.extend(next[path.index()].map(Step::Enter));
                steps.push(Step::Leave(group));
                steps.extend(first_child[path.index()].map(Step::Enter));
            }
        }
    }
    is_first
}
