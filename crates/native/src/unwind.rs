//! Follows the stack of a stopped thread.

use borehole_process::{Error, ForeignProcess, Registers};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64};
use framehop::{FrameAddress, Unwinder as _};

use crate::code::{Call, Code, CodeFacts, Cover};
use crate::frame_table::CallerRule;
use crate::join::EntryFunction;
use crate::module::SectionPool;
use crate::saved::{Place, SavedCaller};
use crate::stack_copy::StackCopy;
use crate::stack_print::StackPrint;

/// The most frames of a stack, from the leaf. Others are cut off.
const MOST_FRAMES: usize = 1 << 14;

/// How far above the stack pointer the caller of code without unwind information is looked for, in words. Compiled regular
/// expressions need a hundred bytes, and their local variables.
const MOST_SCANNED_WORDS: u64 = 96;

/// Like [`MOST_SCANNED_WORDS`], for code of an interpreter's compiler, which runs in the frame of the interpreter.
const MOST_HOSTED_WORDS: u64 = 32;

/// Where the registers of interrupted code are, from the stack pointer at the end of the handler on.
///
/// Source: Linux 6.1, `arch/x86/include/uapi/asm/sigcontext.h`, `sigcontext_64`, 40 bytes into `struct ucontext` of
/// `include/uapi/asm-generic/ucontext.h`.
const SAVED_BP: u64 = 120;
const SAVED_SP: u64 = 160;
const SAVED_IP: u64 = 168;

/// A frame of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeAddress {
    /// The address of its current instruction; of a caller, one within the call.
    pub address: u64,
    /// Its stack pointer: its variables are between this and that of its caller.
    pub sp: u64,
    /// The function that its current call names; `None` for the leaf, and if the call is through a pointer.
    pub calls: Option<u64>,
    /// Whether this is code of an interpreter's compiler, in the place of the interpreter's function.
    pub is_hosted: bool,
}

/// Where unwinding ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackEnd {
    /// At the root.
    Root,
    /// At a frame that is further from the leaf than frames are followed, or than a stack was copied that runs on.
    Cut,
    /// At code without unwind information.
    NoInformation,
    /// At memory that is no stack.
    #[default]
    Corrupted,
}

/// The native stack of a thread.
#[derive(Clone, Debug, Default)]
pub struct NativeStack {
    /// The frames, leaf first.
    pub frames: Vec<NativeAddress>,
    /// Where they end.
    pub end: StackEnd,
    /// The number of callers that were found by a search of the stack, which the frames up to the root confirmed: of made code, and of
    /// functions that the tables of their file leave out.
    pub searched: u64,
}

/// Unwinds the stacks of one process. Remembers its code, and how much of a stack is needed.
pub struct Unwinder {
    code: Code,
    cache: CacheX86_64,
    copy: StackCopy,
    host: Option<EntryFunction>,
    pool: SectionPool,
}

/// The state between two frames.
#[derive(Clone, Copy)]
struct Step {
    address: FrameAddress,
    registers: UnwindRegsX86_64,
}

/// The result of a step.
enum Stepped {
    To(Step),
    Ended(StackEnd),
}

impl Unwinder {
    /// An unwinder without any knowledge of its process. It shares what it reads through `pool`.
    #[must_use]
    pub fn new(pool: &SectionPool) -> Self {
        Self {
            code: Code::new(pool),
            cache: CacheX86_64::new(),
            copy: StackCopy::default(),
            host: None,
            pool: pool.clone(),
        }
    }

    /// Code that is in no file runs in the frame of `host`, an interpreter with a compiler of its own.
    #[must_use]
    pub fn with_host(mut self, host: Option<EntryFunction>) -> Self {
        self.host = host;
        self
    }

    /// Whether code was met that no known mapping contains. The process may have loaded a library: read its mappings again, and
    /// [forget](Self::forget) the old ones.
    pub fn met_unknown_code(&mut self) -> bool {
        std::mem::take(&mut self.code.met_unknown)
    }

    /// Forgets the code of the process, because its mappings may be others.
    pub fn forget(&mut self) {
        self.code = Code::new(&self.pool);
    }

    /// The print of `stack`, the one unwound last. `None` if it has no root, is too large, or lies in several places.
    #[must_use]
    pub fn print(&self, stack: &NativeStack) -> Option<StackPrint> {
        let (leaf, root) = stack.frames.first().zip(stack.frames.last())?;
        let bytes = self.copy.between(leaf.sp, root.sp).filter(|_| stack.end == StackEnd::Root)?;
        StackPrint::of(leaf.sp, bytes)
    }

    /// Puts the stack of the thread with these registers into `stack`.
    ///
    /// # Errors
    /// If the process is gone or may no longer be read. A stack that cannot be followed is no error: see [`StackEnd`].
    pub fn unwind(
        &mut self,
        process: &impl ForeignProcess,
        registers: Registers,
        stack: &mut NativeStack,
    ) -> Result<(), Error> {
        self.copy.take(process, registers.sp);
        self.unwind_copied(process, registers, stack)?;
        if let (StackEnd::Root, Some(root)) = (stack.end, stack.frames.last()) {
            self.copy.learn(root.sp);
        }
        Ok(())
    }

    /// Like [`Self::unwind`], for a thread that runs on: `copy` is the stack from the stack pointer on, as far as it was copied when
    /// the thread had these registers. A stack that goes on behind it is [cut](StackEnd::Cut).
    ///
    /// # Errors
    /// As [`Self::unwind`].
    pub fn unwind_given(
        &mut self,
        process: &impl ForeignProcess,
        registers: Registers,
        copy: &[u8],
        stack: &mut NativeStack,
    ) -> Result<(), Error> {
        self.copy.give(registers.sp, copy);
        self.unwind_copied(process, registers, stack)?;
        if self.copy.is_short && stack.end != StackEnd::Root {
            stack.end = StackEnd::Cut;
        }
        Ok(())
    }

    fn unwind_copied(
        &mut self,
        process: &impl ForeignProcess,
        registers: Registers,
        stack: &mut NativeStack,
    ) -> Result<(), Error> {
        stack.frames.clear();
        stack.searched = 0;
        let address = FrameAddress::from_instruction_pointer(registers.ip);
        let start =
            Step { address, registers: UnwindRegsX86_64::new(registers.ip, registers.sp, registers.bp) };
        stack.end = self.follow(process, start, stack)?;
        self.copy.failure.take().map_or(Ok(()), Err)
    }

    /// Adds the frames from `step` to the root.
    fn follow(
        &mut self,
        process: &impl ForeignProcess,
        mut step: Step,
        stack: &mut NativeStack,
    ) -> Result<StackEnd, Error> {
        while stack.frames.len() < MOST_FRAMES {
            let facts = self.code.at(process, exact(step.address))?;
            if facts.cover == Cover::Nothing && !stack.frames.is_empty() {
                return Ok(StackEnd::Corrupted);
            }
            stack.frames.push(frame(step, facts));
            let next = match facts.cover {
                _ if facts.is_signal_return => self.leave_handler(process, step)?,
                Cover::Made => self.leave_made(process, step, stack)?,
                // A call of a wrong address: that of the caller is on the top.
                Cover::Nothing => {
                    self.returning(process, step, 0)?.map_or(Stepped::Ended(StackEnd::Corrupted), Stepped::To)
                }
                Cover::Module if facts.rule == CallerRule::Unstated && !step.address.is_return_address() => {
                    self.leave_unstated(process, step, facts, stack)?
                }
                Cover::Module | Cover::Bare => self.step(process, step, facts)?,
            };
            match next {
                Stepped::To(next) => step = next,
                Stepped::Ended(end) => return Ok(end),
            }
        }
        Ok(StackEnd::Cut)
    }

    /// The caller of `step`, by unwind information, or by frame pointers if there is none.
    fn step(
        &mut self,
        process: &impl ForeignProcess,
        step: Step,
        facts: CodeFacts,
    ) -> Result<Stepped, Error> {
        if let CallerRule::Saved(saved) = facts.rule {
            return self.leave_aligned(process, step, saved);
        }
        let Self { code, cache, copy, .. } = self;
        let mut registers = step.registers;
        let mut read = |address| copy.u64_at(process, address).ok_or(());
        let unwound = code.unwinder.unwind_frame(step.address, &mut registers, cache, &mut read);
        let ended = |end| Ok(Stepped::Ended(end));
        let lost = if facts.cover == Cover::Module { StackEnd::Corrupted } else { StackEnd::NoInformation };
        match unwound {
            // Without unwind information, it is the root if the frame pointer says so, as runtimes set it for their first code.
            Ok(None | Some(0)) => ended(StackEnd::Root),
            Ok(Some(_)) if registers.sp() <= step.registers.sp() => ended(lost),
            Ok(Some(caller)) => {
                let address = FrameAddress::from_return_address(caller);
                let is_code = self.code.at(process, caller)?.cover != Cover::Nothing;
                match address.filter(|_| is_code) {
                    Some(address) => Ok(Stepped::To(Step { address, registers })),
                    None => ended(lost),
                }
            }
            Err(_) => ended(lost),
        }
    }

    /// The caller of a function that has aligned its own stack.
    fn leave_aligned(
        &mut self,
        process: &impl ForeignProcess,
        step: Step,
        saved: SavedCaller,
    ) -> Result<Stepped, Error> {
        let Step { registers, .. } = step;
        let mut read = |place| {
            let address = match place {
                Place::Stack(offset) => registers.sp().wrapping_add_signed(offset),
                Place::Frame(offset) => registers.bp().wrapping_add_signed(offset),
            };
            self.copy.u64_at(process, address)
        };
        let sp = read(saved.stack_pointer).filter(|&sp| sp > registers.sp());
        let bp = saved.frame_pointer.map_or(Some(registers.bp()), &mut read);
        let (Some(sp), Some(bp)) = (sp, bp) else { return Ok(Stepped::Ended(StackEnd::Corrupted)) };
        let caller = self.copy.u64_at(process, sp.wrapping_sub(8)).unwrap_or(0);
        let is_code = self.code.at(process, caller)?.cover != Cover::Nothing;
        let address = FrameAddress::from_return_address(caller).filter(|_| is_code);
        let registers = UnwindRegsX86_64::new(caller, sp, bp);
        Ok(address
            .map_or(Stepped::Ended(StackEnd::Corrupted), |address| Stepped::To(Step { address, registers })))
    }

    /// The code that a signal interrupted, from the end of its handler. The kernel has put its registers on the stack, and the handler
    /// may have a stack of its own.
    fn leave_handler(&mut self, process: &impl ForeignProcess, step: Step) -> Result<Stepped, Error> {
        let mut register = |offset| self.copy.u64_at(process, step.registers.sp().wrapping_add(offset));
        let [Some(ip), Some(sp), Some(bp)] = [SAVED_IP, SAVED_SP, SAVED_BP].map(&mut register) else {
            return Ok(Stepped::Ended(StackEnd::Corrupted));
        };
        // It was interrupted there, and called nothing.
        let address = FrameAddress::from_instruction_pointer(ip);
        Ok(Stepped::To(Step { address, registers: UnwindRegsX86_64::new(ip, sp, bp) }))
    }

    /// The caller of code that the program made: of the interpreter's function whose frame it runs in, or of the first place on the
    /// stack from which the root is reached.
    fn leave_made(
        &mut self,
        process: &impl ForeignProcess,
        step: Step,
        stack: &mut NativeStack,
    ) -> Result<Stepped, Error> {
        if let Some(next) = self.leave_hosted(process, step)? {
            if let Some(leaf) = stack.frames.last_mut() {
                leaf.is_hosted = true;
            }
            return Ok(Stepped::To(next));
        }
        let found = self.search(process, step, stack)?;
        Ok(found.map_or(Stepped::Ended(StackEnd::NoInformation), Stepped::To))
    }

    /// The caller of a leaf function that the tables of its file leave out, as assembly written by hand may be: it need not keep a
    /// frame pointer, and what is in that register need not be one. A frame pointer is believed only where nothing else is found.
    fn leave_unstated(
        &mut self,
        process: &impl ForeignProcess,
        step: Step,
        facts: CodeFacts,
        stack: &mut NativeStack,
    ) -> Result<Stepped, Error> {
        if let Some(next) = self.search(process, step, stack)? {
            return Ok(Stepped::To(next));
        }
        Ok(match self.step(process, step, facts)? {
            Stepped::Ended(_) => Stepped::Ended(StackEnd::Corrupted),
            next @ Stepped::To(_) => next,
        })
    }

    /// The first place on the stack from which the root is reached.
    fn search(
        &mut self,
        process: &impl ForeignProcess,
        step: Step,
        stack: &mut NativeStack,
    ) -> Result<Option<Step>, Error> {
        for word in 0..MOST_SCANNED_WORDS {
            let Some(next) = self.returning(process, step, word)? else { continue };
            if self.reaches_root(process, next)? {
                stack.searched += 1;
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// The state of the caller if its address is this many words above the stack pointer; `None` if no code with unwind
    /// information calls there.
    fn returning(
        &mut self,
        process: &impl ForeignProcess,
        step: Step,
        word: u64,
    ) -> Result<Option<Step>, Error> {
        let place = step.registers.sp().wrapping_add(8 * word);
        let Some(caller) = self.copy.u64_at(process, place) else { return Ok(None) };
        if process.mappings().at(caller).is_none_or(|mapping| !mapping.executable) {
            return Ok(None);
        }
        let facts = self.code.at(process, caller)?;
        if facts.cover != Cover::Module || facts.call == Call::None {
            return Ok(None);
        }
        let mut registers = step.registers;
        registers.set_ip(caller);
        registers.set_sp(place.wrapping_add(8));
        Ok(FrameAddress::from_return_address(caller).map(|address| Step { address, registers }))
    }

    /// The caller of the interpreter's function, if the code at `step` runs in its frame, with some words of its own below it.
    fn leave_hosted(&mut self, process: &impl ForeignProcess, step: Step) -> Result<Option<Step>, Error> {
        let Some(host) = self.host else { return Ok(None) };
        // Behind its beginning, its frame has one size.
        let within = host.start + (host.end - host.start) / 2;
        let Some(address) = FrameAddress::from_return_address(within) else { return Ok(None) };
        let facts = self.code.at(process, within)?;
        for word in 0..MOST_HOSTED_WORDS {
            let mut registers = step.registers;
            registers.set_sp(step.registers.sp().wrapping_add(8 * word));
            let Stepped::To(next) = self.step(process, Step { address, registers }, facts)? else { continue };
            let caller = self.code.at(process, exact(next.address))?;
            if caller.cover == Cover::Module
                && caller.call != Call::None
                && self.reaches_root(process, next)?
            {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// Whether all callers from `step` on have unwind information, up to the root. Made code among them is passed by frames only.
    fn reaches_root(&mut self, process: &impl ForeignProcess, mut step: Step) -> Result<bool, Error> {
        for _ in 0..MOST_FRAMES {
            let facts = self.code.at(process, exact(step.address))?;
            if facts.cover == Cover::Made {
                // The frames up to it are those of calls; it is left as this one is.
                return Ok(true);
            }
            if facts.cover != Cover::Module {
                return Ok(false);
            }
            match self.step(process, step, facts)? {
                Stepped::To(next) => step = next,
                Stepped::Ended(end) => return Ok(end == StackEnd::Root),
            }
        }
        Ok(false)
    }
}

fn frame(step: Step, facts: CodeFacts) -> NativeAddress {
    let calls = match facts.call {
        Call::Of(function) if step.address.is_return_address() => Some(function),
        Call::Of(_) | Call::Indirect | Call::None => None,
    };
    let address = step.address.address_for_lookup();
    NativeAddress { address, sp: step.registers.sp(), calls, is_hosted: false }
}

/// The address behind the call, or of the instruction.
fn exact(address: FrameAddress) -> u64 {
    // The code at an interrupted instruction is looked for before its address as well: a function has no call at its beginning.
    address.address()
}
