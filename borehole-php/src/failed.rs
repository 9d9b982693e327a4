//! The call that ended with a fatal error, when PHP no longer says that it is being executed.
//!
//! When a program exceeds its memory limit, PHP leaves all calls at once and then executes the functions that were to be
//! executed at the end. The frames of the calls it left stay on the stack, below those of such a function, as they were:
//! what the error says of itself, a file and a line, tells which of them it was. PHP 8.2.35 in Debian, and what else has its
//! correction of how calls are left, begins the stack anew: then the outer ones are overwritten, and the inner ones, above
//! what is executed, have lost their instruction.

use borehole_process::Memory;

use crate::attach::Php;
use crate::error::Error;
use crate::executor::Executor;
use crate::layout::fixed;
use crate::remote::{self, mapped, moved, u64_at};

/// Where a program failed, as `error_get_last()` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'f> {
    /// The file, as PHP calls it.
    pub file: &'f [u8],
    /// The line, counted from 1.
    pub line: u32,
    /// The longest chain of calls that is taken for one.
    pub max_depth: usize,
}

/// The innermost call of a program's own code when it failed, or, where the stack was begun anew, the innermost of its
/// first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The address of its frame, from which the others are reached.
    pub frame: u64,
    /// How many frames there are, with it, before the root or one that has been overwritten.
    pub depth: usize,
    /// Whether they lead to the root.
    pub is_whole: bool,
}

/// `zend_vm_stack`: `top`, `end`, `prev`; the frames follow, each at a multiple of the size of a value.
const PAGE_PREVIOUS: usize = 16;
const PAGE_HEADER: usize = 32;
const VALUE_BYTES: u64 = 16;

/// No stack has more pages, of 256 KiB if not larger, and no page has more than a large array of arguments.
const MOST_PAGES: usize = 1 << 12;
const MOST_PAGE_BYTES: u64 = 64 << 20;

/// `zend_function.type`: a part of PHP, a function, code from a string.
const INTERNAL: u8 = 1;
const KINDS: [u8; 3] = [INTERNAL, 2, 4];

/// Longer chains are not followed to their root.
const MOST_DEPTH: usize = 1 << 16;

impl Php {
    /// The call of `executor` that failed as `failure` says. `None` if the stack does not have it any more.
    ///
    /// The memory has to stand still: a dump, or a process that does.
    ///
    /// # Errors
    /// When the process is gone or may no longer be read.
    pub fn failed_call(
        &self,
        memory: &impl Memory,
        executor: &Executor,
        failure: &Failure<'_>,
    ) -> Result<Option<FailedCall>, Error> {
        let search = Search { php: self, memory, globals: executor.globals, failure };
        let found = mapped(search.run(executor));
        let found = found.map_err(|error| Error::reading("cannot look for the failed call", error))?;
        Ok(found.flatten().filter(|found| found.depth <= failure.max_depth))
    }
}

struct Search<'s, M> {
    php: &'s Php,
    memory: &'s M,
    /// Of the executor.
    globals: u64,
    failure: &'s Failure<'s>,
}

type Found<T> = Result<T, borehole_process::Error>;

impl<M: Memory> Search<'_, M> {
    fn run(&self, executor: &Executor) -> Found<Option<FailedCall>> {
        let layout = &self.php.layout;
        let pointer = |offset| self.memory.read_u64(moved(executor.globals, offset));
        let top = pointer(layout.executor_stack_top)?;
        let mut page = pointer(layout.executor_stack_top + 16)?;
        // What is executed now began where the failed calls had come to: in this page, or in an older one.
        let began = self.root(pointer(layout.executor_current)?)?.unwrap_or(top);
        let mut has_begun = false;
        let last = page;
        for _ in 0..MOST_PAGES {
            let [used, end, previous] =
                [0, fixed::STACK_PAGE_END, PAGE_PREVIOUS].map(|offset| moved(page, offset));
            let limit = if has_begun { self.memory.read_u64(used)? } else { began };
            let is_within = page < limit && limit <= self.memory.read_u64(end)?;
            has_begun |= is_within;
            if is_within && let Some(found) = self.search_slots(moved(page, PAGE_HEADER), limit, 0)? {
                return Ok(Some(found));
            }
            page = self.memory.read_u64(previous)?;
            if page == 0 {
                break;
            }
        }
        let end = self.memory.read_u64(moved(last, fixed::STACK_PAGE_END))?;
        let is_within = last < top && top <= end;
        if is_within { self.search_slots(top, end, top) } else { Ok(None) }
    }

    /// The outermost frame with a function in the chain from `frame`: PHP puts one without, which is not on its stack, under
    /// what it calls on its own account.
    fn root(&self, mut frame: u64) -> Found<Option<u64>> {
        let mut root = None;
        for _ in 0..MOST_DEPTH {
            if frame == 0 {
                break;
            }
            if self.memory.read_u64(moved(frame, fixed::FRAME_FUNCTION))? != 0 {
                root = Some(frame);
            }
            frame = self.memory.read_u64(moved(frame, self.php.layout.frame_previous))?;
        }
        Ok(root)
    }

    /// The last frame between two addresses that is the one. Frames below `intact` have been overwritten.
    fn search_slots(&self, start: u64, end: u64, intact: u64) -> Found<Option<FailedCall>> {
        let slots = (end - start).min(MOST_PAGE_BYTES) / VALUE_BYTES;
        for slot in (0..slots).rev() {
            let frame = start + slot * VALUE_BYTES;
            if mapped(self.is_at_line(frame))? == Some(true)
                && let Some(found) = mapped(self.follow(frame, intact))?.flatten()
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether a frame of a program's own code is there, at the line of the failure.
    fn is_at_line(&self, frame: u64) -> Found<bool> {
        let layout = &self.php.layout;
        let mut header = [0; fixed::FRAME_SIZE];
        self.memory.read(frame, &mut header)?;
        let at = |offset| u64_at(&header, offset).unwrap_or_default();
        let (function, op) = (at(fixed::FRAME_FUNCTION), at(fixed::FRAME_OP));
        if function == 0 || op == 0 || !self.is_function(function, &KINDS[1..])? {
            return Ok(false);
        }
        let line = self.failure.line;
        let is_there = if self.is_in_state(op) {
            let [start, end] =
                [0, 4].map(|offset| self.u32(moved(function, layout.function_line_start + offset)));
            (start?..=end?).contains(&line)
        } else {
            self.is_op_of(op, function)? && self.u32(moved(op, fixed::OP_LINE))? == line
        };
        if !is_there {
            return Ok(false);
        }
        let file = self.memory.read_u64(moved(function, layout.function_file))?;
        Ok(remote::string(self.memory, file)? == self.failure.file)
    }

    /// Whether an instruction is one of PHP's own, which stand in for that of a call that is being left.
    fn is_in_state(&self, op: u64) -> bool {
        let end = moved(self.globals, self.php.layout.executor_size);
        self.globals <= op && op < end
    }

    fn is_op_of(&self, op: u64, function: u64) -> Found<bool> {
        let first = self.memory.read_u64(moved(function, self.php.layout.function_ops))?;
        let count = self.u32(moved(function, self.php.layout.function_op_count))?;
        let (size, offset) = (fixed::OP_SIZE as u64, op.wrapping_sub(first));
        Ok(offset.is_multiple_of(size) && offset / size < u64::from(count))
    }

    fn u32(&self, address: u64) -> Found<u32> {
        let mut bytes = [0; 4];
        self.memory.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn is_function(&self, address: u64, kinds: &[u8]) -> Found<bool> {
        let mut kind = [0];
        self.memory.read(address, &mut kind)?;
        Ok(kinds.contains(&kind[0]))
    }

    /// Follows the frames from `first` on, to one more than may be. `None` if they lead neither to the root nor below
    /// `intact`.
    fn follow(&self, first: u64, intact: u64) -> Found<Option<FailedCall>> {
        let (mut frame, mut depth) = (first, 0);
        while frame >= intact && frame != 0 && depth <= self.failure.max_depth {
            let function = self.memory.read_u64(moved(frame, fixed::FRAME_FUNCTION))?;
            if !frame.is_multiple_of(VALUE_BYTES) || (function != 0 && !self.is_function(function, &KINDS)?) {
                return Ok(None);
            }
            frame = self.memory.read_u64(moved(frame, self.php.layout.frame_previous))?;
            depth += 1;
        }
        Ok(Some(FailedCall { frame: first, depth, is_whole: frame == 0 }))
    }
}
