//! The native frames of the threads of a process, joined to those of its interpreter.

use std::sync::LazyLock;

use borehole_model::{FrameId, StackId, Tables};
use borehole_native::{
    CallPlace, EntryFunction, Joined, Joining, NativeStack, SectionPool, StackEnd, StackPrint, Unwinder, join,
};
use borehole_process::{Process, Registers};

use crate::error::Error;
use crate::native_counts::NativeCounts;
use crate::native_names::NativeNames;
use crate::subject::{Look, Patience};

/// Whether samples contain native frames. Each sample then stops its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeFrames {
    /// No.
    #[default]
    None,
    /// While an interpreter executes a script; of other programs always.
    WithScript,
    /// Also while an interpreter executes no script.
    Anytime,
}

impl NativeFrames {
    /// Whether there are any.
    #[must_use]
    pub const fn is_any(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// The unwind information of all processes that are sampled.
static SECTIONS: LazyLock<SectionPool> = LazyLock::new(SectionPool::default);

/// The number of samples until the mappings are read again for code that no mapping contains: a corrupted stack leads to such code
/// every time.
const REFRESH_PAUSE: u32 = 16;

/// A call of an interpreter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptCall {
    /// The stack below the frames that it runs.
    pub(crate) below: Option<StackId>,
    pub(crate) place: CallPlace,
}

/// Samples the native frames of one process.
pub(crate) struct NativeSampler {
    frames: NativeFrames,
    /// The maximum number of frames of a joined stack.
    depth: usize,
    entry: Option<EntryFunction>,
    unwinder: Unwinder,
    names: NativeNames,
    stack: NativeStack,
    /// Whether the stack is that of the last look.
    has_stack: bool,
    places: Vec<CallPlace>,
    joined: Vec<Joined>,
    counts: NativeCounts,
    pause: u32,
    /// Frames of one call, the leaf first.
    script: Vec<FrameId>,
    /// All frames of a stack, the leaf first.
    all: Vec<FrameId>,
}

/// The options of a sampler, besides its process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NativeSettings {
    pub(crate) frames: NativeFrames,
    pub(crate) depth: Option<u32>,
    /// The first address of the interpreter's function, and that behind it.
    pub(crate) engine: Option<(u64, u64)>,
    /// Whether code that the program makes itself runs in the frame of the interpreter's function.
    pub(crate) hosts_made_code: bool,
}

impl NativeSampler {
    /// A sampler; `None` if no native frames are wanted.
    pub(crate) fn if_wanted(settings: NativeSettings) -> Option<Self> {
        settings.frames.is_any().then(|| Self::new(settings))
    }

    /// A sampler of native frames.
    pub(crate) fn new(settings: NativeSettings) -> Self {
        let NativeSettings { frames, depth, engine, hosts_made_code } = settings;
        let entry = engine.map(|(start, end)| EntryFunction { start, end });
        let host = entry.filter(|_| hosts_made_code);
        Self {
            frames,
            depth: depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(usize::MAX)),
            entry,
            unwinder: Unwinder::new(&SECTIONS).with_host(host),
            names: NativeNames::default(),
            stack: NativeStack::default(),
            has_stack: false,
            places: Vec::new(),
            joined: Vec::new(),
            counts: NativeCounts::default(),
            pause: 0,
            script: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Follows the stack of a thread that is stopped with these registers.
    pub(crate) fn unwind(&mut self, process: &Process, registers: Option<Registers>) -> Result<(), Error> {
        self.has_stack = false;
        if let Some(registers) = registers {
            self.unwinder.unwind(process, registers, &mut self.stack)?;
            self.has_stack = true;
        }
        Ok(())
    }

    /// The stack of a sample that the system took of a thread that runs on: the frames in the kernel, and those of the program by its
    /// registers and the copy of its stack. Also whether that copy was too short.
    pub(crate) fn taken(
        &mut self,
        process: &mut Process,
        kernel: &[u64],
        registers: Option<Registers>,
        copy: &[u8],
        tables: &mut Tables,
    ) -> Result<(Look, bool), Error> {
        self.all.clear();
        for &address in kernel {
            self.all.push(self.names.raw(process, address, tables)?);
        }
        let mut is_short = false;
        if let Some(registers) = registers {
            self.unwinder.unwind_given(process, registers, copy, &mut self.stack)?;
            is_short = self.stack.end == StackEnd::Cut;
            self.count(Joining::Whole { calls: 0 }, 0);
            for frame in &self.stack.frames {
                self.all.push(self.names.raw(process, frame.address, tables)?);
            }
        }
        let look = self.intern(tables)?;
        self.refresh_mappings(process)?;
        Ok((look.unwrap_or(Look::Idle), is_short))
    }

    /// Counts samples that the system has lost.
    pub(crate) fn count_lost(&mut self, samples: u64) {
        self.counts.lost += samples;
    }

    /// Forgets the code of the process: its mappings have changed.
    pub(crate) fn forget_code(&mut self) {
        self.unwinder.forget();
        self.names.forget_modules();
    }

    /// The print of the stack unwound last, if it can be compared later.
    pub(crate) fn print(&self) -> Option<StackPrint> {
        self.unwinder.print(&self.stack)
    }

    /// Joins the native stack to what a look at the interpreter found. The thread need not be stopped any more.
    pub(crate) fn complete(
        &mut self,
        process: &mut Process,
        look: Look,
        calls: &[ScriptCall],
        tables: &mut Tables,
    ) -> Result<Look, Error> {
        if !std::mem::take(&mut self.has_stack) {
            return Ok(look);
        }
        let joined = match look {
            Look::Stack { stack, .. } => self.join(process, Some(stack), calls, tables)?,
            Look::Idle if self.frames == NativeFrames::Anytime => self.join(process, None, &[], tables)?,
            Look::Idle | Look::Torn | Look::Ended => None,
        };
        self.refresh_mappings(process)?;
        Ok(joined.unwrap_or(look))
    }

    /// The joined stack; `None` if the script's frames stay alone.
    fn join(
        &mut self,
        process: &Process,
        script: Option<StackId>,
        calls: &[ScriptCall],
        tables: &mut Tables,
    ) -> Result<Option<Look>, Error> {
        self.places.clear();
        self.places.extend(calls.iter().map(|call| call.place));
        let joining = join(&self.stack, &self.places, self.entry, &mut self.joined);
        self.count(joining, calls.len());
        if joining == Joining::Contradiction {
            return Ok(None);
        }
        self.all.clear();
        let mut rest = script;
        for index in 0..self.joined.len() {
            match self.joined[index] {
                Joined::Native(frame) => {
                    let address = self.stack.frames[frame].address;
                    self.all.push(self.names.raw(process, address, tables)?);
                }
                Joined::Call(call) => {
                    let below = calls[call].below;
                    frames_down_to(&mut rest, below, tables, &mut self.script);
                    self.all.append(&mut self.script);
                }
            }
        }
        // What no call runs: it was called from C without the interpreter.
        frames_down_to(&mut rest, None, tables, &mut self.script);
        self.all.append(&mut self.script);
        self.intern(tables)
    }

    /// The stack of all frames that are kept.
    fn intern(&self, tables: &mut Tables) -> Result<Option<Look>, Error> {
        let kept = self.all.len().min(self.depth);
        let mut stack = None;
        for &frame in self.all[..kept].iter().rev() {
            stack = Some(tables.intern_stack(stack, frame)?);
        }
        let omitted = (self.all.len() - kept) as u64;
        Ok(stack.map(|stack| Look::Stack { stack, omitted }))
    }

    fn count(&mut self, joining: Joining, calls: usize) {
        let counts = &mut self.counts;
        counts.stacks += 1;
        counts.searched += self.stack.searched;
        match self.stack.end {
            StackEnd::Root => counts.whole += 1,
            StackEnd::Cut => counts.cut += 1,
            StackEnd::NoInformation => counts.bare += 1,
            StackEnd::Corrupted => counts.corrupted += 1,
        }
        let (joined, unjoined) = match joining {
            Joining::Whole { calls } => (calls, 0),
            Joining::Cut { calls, missing } => (calls, missing),
            Joining::Contradiction => (0, calls as u64),
        };
        counts.joined += joined;
        counts.unjoined += unjoined;
    }

    /// Reads the mappings again if code was met that they do not contain, but not each time.
    fn refresh_mappings(&mut self, process: &mut Process) -> Result<(), Error> {
        self.pause = self.pause.saturating_sub(1);
        if self.unwinder.met_unknown_code() && self.pause == 0 {
            self.pause = REFRESH_PAUSE;
            process.refresh()?;
            self.forget_code();
        }
        Ok(())
    }

    /// The stack with the names of native code; `None` if some are still looked up.
    pub(crate) fn named(
        &mut self,
        stack: StackId,
        patience: Patience,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        self.names.named(stack, self.depth, patience, tables)
    }

    /// The files of code that was met, as texts of [`borehole_model::NativeModule`].
    pub(crate) fn modules(&self) -> Vec<String> {
        self.names.met().cloned().collect()
    }

    /// Drops all ids of tables.
    pub(crate) fn forget(&mut self) {
        self.names.forget();
    }

    /// The counts since they were last taken.
    pub(crate) fn take_counts(&mut self) -> NativeCounts {
        std::mem::take(&mut self.counts)
    }
}

/// Adds the frames of `rest` down to `below` to `frames`, the leaf first. `rest` becomes `below`.
fn frames_down_to(
    rest: &mut Option<StackId>,
    below: Option<StackId>,
    tables: &Tables,
    frames: &mut Vec<FrameId>,
) {
    while let Some(stack) = *rest
        && Some(stack) != below
    {
        frames.push(tables.leaf(stack));
        *rest = tables.parent(stack);
    }
}
