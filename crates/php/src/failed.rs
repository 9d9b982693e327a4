//! Finds the call that ended with a fatal error, after PHP has stopped executing it.
//!
//! When a program exceeds its memory limit, PHP abandons all calls at once and then runs the shutdown functions. The frames of
//! the abandoned calls stay unchanged on the stack, below those of the shutdown function. The file and line of the error
//! identify the frame that failed. PHP 8.2.35 in Debian, and other versions with its fix for abandoned calls, restarts the
//! stack instead: the outer frames are then overwritten, and the inner ones, above the running frames, have lost their
//! instruction.

use borehole_process::ForeignMemory;
use hashbrown::HashSet;

use crate::attach::Php;
use crate::error::Error;
use crate::executor::Executor;
use crate::layout::fixed;
use crate::remote::{self, mapped, moved, u64_at};

/// The location of a fatal error, as `error_get_last()` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatalError<'f> {
    /// The path of the file, as PHP writes it.
    pub file: &'f [u8],
    /// The line, counted from 1.
    pub line: u32,
    /// The maximum number of frames in an accepted chain.
    pub max_depth: usize,
}

/// The innermost call of user code at the time of the failure. If the stack was restarted: the innermost one on its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCall {
    /// The address of its frame, which leads to its callers.
    pub frame: u64,
    /// The number of frames, including this one, up to the root or the first overwritten frame.
    pub depth: usize,
    /// Whether the frames lead to the root.
    pub is_whole: bool,
}

/// The maximum number of pages of a stack. A page has 256 KiB or more, up to the size of a large array of arguments.
const MOST_PAGES: usize = 1 << 12;
const MOST_PAGE_BYTES: u64 = 64 << 20;

/// `zend_function.type`: internal function, user function, code from a string.
const KINDS: [u8; 3] = [fixed::FUNCTION_INTERNAL, 2, 4];

/// The maximum number of frames followed towards the root.
const MOST_DEPTH: usize = 1 << 16;

impl Php {
    /// The call of `executor` that failed at `failure`; `None` if it is no longer on the stack.
    ///
    /// The memory must not change: use a dump or a stopped process.
    ///
    /// # Errors
    /// If the process is gone or may no longer be read.
    pub fn failed_call(
        &self,
        memory: &impl ForeignMemory,
        executor: &Executor,
        failure: &FatalError<'_>,
    ) -> Result<Option<FailedCall>, Error> {
        let search = FailedCallSearch { php: self, memory, globals: executor.globals, failure };
        let found = mapped(search.run(executor));
        found.map(Option::flatten).map_err(|error| Error::reading("cannot search for the failed call", error))
    }
}

struct FailedCallSearch<'s, M> {
    php: &'s Php,
    memory: &'s M,
    /// The address of the executor's state.
    globals: u64,
    failure: &'s FatalError<'s>,
}

type MemoryResult<T> = Result<T, borehole_process::Error>;

impl<M: ForeignMemory> FailedCallSearch<'_, M> {
    fn run(&self, executor: &Executor) -> MemoryResult<Option<FailedCall>> {
        let layout = &self.php.layout;
        let pointer = |offset| self.memory.read_u64(moved(executor.globals, offset));
        let top = pointer(layout.executor_stack_top)?;
        let mut page = pointer(layout.executor_stack_top + 16)?;
        // The running frames began where the failed calls had ended: on this page or an older one.
        let began = self.root(pointer(layout.executor_current)?)?.unwrap_or(top);
        let mut has_begun = false;
        let last = page;
        for _ in 0..MOST_PAGES {
            let [used, end, previous] =
                [0, fixed::STACK_PAGE_END, fixed::STACK_PAGE_PREVIOUS].map(|offset| moved(page, offset));
            let limit = if has_begun { self.memory.read_u64(used)? } else { began };
            let is_within = page < limit && limit <= self.memory.read_u64(end)?;
            has_begun |= is_within;
            if is_within
                && let Some(found) = self.search_slots(moved(page, fixed::STACK_PAGE_HEADER), limit, 0)?
            {
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

    /// The outermost frame with a function in the chain from `frame`. For calls that PHP makes itself, it puts a frame without
    /// a function, which is not part of its stack, below the called function.
    fn root(&self, mut frame: u64) -> MemoryResult<Option<u64>> {
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

    /// The last matching frame between two addresses that leads to the root. If none does, the matching frame with the longest
    /// chain, because later calls have overwritten frames between it and the root. Frames below `intact` are overwritten. No
    /// chain is longer than the failure allows.
    fn search_slots(&self, start: u64, end: u64, intact: u64) -> MemoryResult<Option<FailedCall>> {
        let slots = (end - start).min(MOST_PAGE_BYTES) / fixed::VALUE_SIZE;
        let mut furthest: Option<FailedCall> = None;
        let mut followed = HashSet::new();
        for slot in (0..slots).rev() {
            let frame = start + slot * fixed::VALUE_SIZE;
            if followed.contains(&frame) || mapped(self.is_at_line(frame))? != Some(true) {
                continue;
            }
            let (call, is_broken) = self.follow(frame, intact, &mut followed)?;
            if call.depth > self.failure.max_depth {
                continue;
            }
            if !is_broken {
                return Ok(Some(call));
            }
            // If nothing has been overwritten, a chain without a root is not one of the calls.
            if intact > 0 && furthest.is_none_or(|other| other.depth < call.depth) {
                furthest = Some(call);
            }
        }
        Ok(furthest)
    }

    /// Whether a frame of user code is there, at the line of the failure.
    fn is_at_line(&self, frame: u64) -> MemoryResult<bool> {
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
            let [start, end] = [8, 12].map(|offset| self.u32(moved(function, layout.function_file + offset)));
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

    /// Whether an instruction is one of the executor's, which replace the instruction of an abandoned call.
    fn is_in_state(&self, op: u64) -> bool {
        let end = moved(self.globals, self.php.layout.executor_size);
        self.globals <= op && op < end
    }

    fn is_op_of(&self, op: u64, function: u64) -> MemoryResult<bool> {
        let first = self.memory.read_u64(moved(function, self.php.layout.function_ops))?;
        let count = self.u32(moved(function, self.php.layout.function_op_count))?;
        let (size, offset) = (fixed::OP_SIZE as u64, op.wrapping_sub(first));
        Ok(offset.is_multiple_of(size) && offset / size < u64::from(count))
    }

    fn u32(&self, address: u64) -> MemoryResult<u32> {
        let mut bytes = [0; 4];
        self.memory.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn is_function(&self, address: u64, kinds: &[u8]) -> MemoryResult<bool> {
        let mut kind = [0];
        self.memory.read(address, &mut kind)?;
        Ok(kinds.contains(&kind[0]))
    }

    /// Follows the frames from `first` until the root, an address below `intact`, an invalid frame, or one frame more than
    /// allowed. Returns the call, and whether its chain ends at an invalid frame.
    fn follow(
        &self,
        first: u64,
        intact: u64,
        followed: &mut HashSet<u64>,
    ) -> MemoryResult<(FailedCall, bool)> {
        let (mut frame, mut depth, mut is_broken) = (first, 0, false);
        while frame >= intact && frame != 0 && depth <= self.failure.max_depth {
            let Some(previous) = mapped(self.before(frame))?.flatten() else {
                is_broken = true;
                break;
            };
            followed.insert(frame);
            frame = previous;
            depth += 1;
        }
        Ok((FailedCall { frame: first, depth, is_whole: frame == 0 }, is_broken))
    }

    /// The caller's frame of `frame`; `None` if there is none.
    fn before(&self, frame: u64) -> MemoryResult<Option<u64>> {
        let function = self.memory.read_u64(moved(frame, fixed::FRAME_FUNCTION))?;
        if !frame.is_multiple_of(fixed::VALUE_SIZE)
            || (function != 0 && !self.is_function(function, &KINDS)?)
        {
            return Ok(None);
        }
        self.memory.read_u64(moved(frame, self.php.layout.frame_previous)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::BufReader;

    use borehole_process::Dump;

    use super::*;
    use crate::attach::AttachOptions;

    const FILE: &[u8] = b"/program.php";
    const FAILED_LINE: u32 = 7;
    const OTHER_LINE: u32 = 1;
    /// The addresses of the file's name, a function, its two instructions, and its frames.
    const NAME: u64 = 0x1000;
    const FUNCTION: u64 = 0x2000;
    const OPS: u64 = 0x3000;
    const STACK: u64 = 0x4000;
    const FRAME_BYTES: u64 = 96;
    const FRAMES: u64 = 20;

    /// The address of a frame by its number.
    const fn frame(number: u64) -> u64 {
        STACK + number * FRAME_BYTES
    }

    /// A stack where each frame was called by the one with the number before it.
    struct SampledStack {
        php: Php,
        bytes: Vec<u8>,
    }

    impl SampledStack {
        fn new() -> Self {
            let recorded = File::open(borehole_testkit::corpus("php/heap/8.2.36.rdump")).unwrap();
            let recorded = Dump::read(BufReader::new(recorded)).unwrap();
            let php = Php::attach(&recorded, &AttachOptions::default()).unwrap();
            let mut stack = Self { php, bytes: vec![0; usize::try_from(frame(FRAMES) - NAME).unwrap()] };
            stack.put(moved(NAME, fixed::STRING_LENGTH), &(FILE.len() as u64).to_le_bytes());
            stack.put(moved(NAME, fixed::STRING_BYTES), FILE);
            let layout = stack.php.layout;
            stack.put(FUNCTION, &[2]);
            stack.put(moved(FUNCTION, layout.function_file), &NAME.to_le_bytes());
            stack.put(moved(FUNCTION, layout.function_ops), &OPS.to_le_bytes());
            stack.put(moved(FUNCTION, layout.function_op_count), &2_u32.to_le_bytes());
            stack.put(moved(OPS, fixed::OP_LINE), &OTHER_LINE.to_le_bytes());
            stack.put(moved(OPS, fixed::OP_SIZE + fixed::OP_LINE), &FAILED_LINE.to_le_bytes());
            for number in 0..FRAMES {
                stack.put(moved(frame(number), fixed::FRAME_OP), &OPS.to_le_bytes());
                stack.put(moved(frame(number), fixed::FRAME_FUNCTION), &FUNCTION.to_le_bytes());
                stack.calls(number.saturating_sub(1), number);
            }
            stack.put(moved(STACK, layout.frame_previous), &0_u64.to_le_bytes());
            stack
        }

        fn put(&mut self, address: u64, bytes: &[u8]) {
            let at = usize::try_from(address - NAME).unwrap();
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        }

        /// Changes the caller of a frame.
        fn calls(&mut self, caller: u64, number: u64) {
            let place = moved(frame(number), self.php.layout.frame_previous);
            self.put(place, &frame(caller).to_le_bytes());
        }

        /// Puts a frame at the line of the failure.
        fn fails(&mut self, number: u64) {
            let op = moved(OPS, fixed::OP_SIZE);
            self.put(moved(frame(number), fixed::FRAME_OP), &op.to_le_bytes());
        }

        fn overwrite(&mut self, number: u64) {
            let ones = u64::MAX.to_le_bytes();
            (frame(number)..frame(number + 1)).step_by(ones.len()).for_each(|place| self.put(place, &ones));
        }

        /// The number of the frame found, its depth, and whether it leads to the root.
        fn found(&self, intact: u64) -> Option<(u64, usize, bool)> {
            let mut memory = Dump::default();
            memory.insert(NAME, self.bytes.clone());
            let failure = FatalError { file: FILE, line: FAILED_LINE, max_depth: 15 };
            let search =
                FailedCallSearch { php: &self.php, memory: &memory, globals: 1 << 40, failure: &failure };
            let found = search.search_slots(STACK, frame(FRAMES), intact).unwrap();
            found.map(|found| ((found.frame - STACK) / FRAME_BYTES, found.depth, found.is_whole))
        }
    }

    #[test]
    fn the_last_call_that_leads_to_the_root_goes_before_what_is_broken_or_has_no_end() {
        let mut stack = SampledStack::new();
        stack.fails(3);
        assert_eq!(stack.found(STACK), Some((3, 4, true)));
        // A call that has returned is above it: the longer chain leads into overwritten frames.
        stack.fails(15);
        stack.overwrite(5);
        assert_eq!(stack.found(STACK), Some((3, 4, true)));
        // Another frame leads to itself, and a third has a chain longer than allowed.
        stack.fails(18);
        stack.calls(18, 18);
        assert_eq!(stack.found(STACK), Some((3, 4, true)));
        let mut deep = SampledStack::new();
        deep.fails(19);
        assert_eq!(deep.found(STACK), None);
    }

    #[test]
    fn where_all_are_broken_the_one_that_leads_on_the_furthest_is_found() {
        let mut stack = SampledStack::new();
        stack.fails(10);
        stack.fails(19);
        stack.overwrite(2);
        stack.overwrite(15);
        assert_eq!(stack.found(STACK), Some((10, 8, false)));
        assert_eq!(stack.found(0), None, "where nothing is overwritten, it is none of the calls");
        // The frames below are overwritten and not followed.
        assert_eq!(stack.found(frame(5)), Some((10, 6, false)));
    }
}
