//! Where each release keeps its data: offsets in bytes.
//!
//! Source of the tables: the headers of CPython 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1 with `Py_BUILD_CORE` defined, on
//! x86-64, by `offsetof`. From 3.13 on, the process itself states them: see [`debug_offsets`](crate::debug_offsets).

use crate::object_layout::ObjectLayout;
use crate::release::PythonVersion;

/// The places of everything that the walker reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// `_PyRuntimeState.interpreters.head`.
    pub(crate) interpreters_head: usize,
    pub(crate) interpreter: InterpreterLayout,
    pub(crate) thread: ThreadLayout,
    pub(crate) frame: FrameLayout,
    pub(crate) code: CodeLayout,
    pub(crate) object: ObjectLayout,
    pub(crate) gil: GilPlace,
}

/// `PyInterpreterState`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterpreterLayout {
    pub(crate) next: usize,
    pub(crate) id: usize,
    pub(crate) threads_head: usize,
    /// The dict of modules.
    pub(crate) modules: usize,
    /// Whether garbage is collected, a number of four bytes, and eight bytes behind it the frame that began it; from 3.15 on.
    pub(crate) collector: Option<usize>,
}

/// `PyThreadState`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLayout {
    /// The number of bytes to copy.
    pub(crate) size: usize,
    pub(crate) next: usize,
    pub(crate) interpreter: usize,
    pub(crate) current: CurrentFrame,
    /// The outermost frame; `None` before 3.15, where the chain ends in a null pointer only.
    pub(crate) base_frame: Option<usize>,
    /// The thread as the C library names it.
    pub(crate) thread_id: usize,
    /// The thread as the kernel names it, from 3.11 on.
    pub(crate) native_id: Option<usize>,
    /// The exception that is being raised.
    pub(crate) exception: Option<usize>,
    /// `exc_info`, and the place of the exception in what it points to.
    pub(crate) handled: Option<HandledException>,
    /// Whether it holds the lock, and whether it waits for it: numbers of four bytes, from 3.15 on.
    pub(crate) gil_flags: Option<[usize; 2]>,
}

/// The exception that a thread handles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandledException {
    /// The thread's own `_PyErr_StackItem`, used unless a generator runs.
    pub(crate) own: usize,
    /// The place of the exception in it.
    pub(crate) value: usize,
}

/// Where a thread keeps the pointer to its current frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CurrentFrame {
    /// In the thread's state.
    Direct(usize),
    /// In a structure on the C stack, to which the thread's state points.
    OnCStack {
        /// `PyThreadState.cframe`.
        cframe: usize,
        /// `_PyCFrame.current_frame`.
        current_frame: usize,
    },
}

/// `_PyInterpreterFrame`, or `PyFrameObject` before 3.11.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLayout {
    /// The number of bytes to read.
    pub(crate) size: usize,
    pub(crate) previous: usize,
    pub(crate) code: usize,
    pub(crate) position: InstructionPosition,
    /// Who owns the frame; `None` before 3.11.
    pub(crate) owner: Option<usize>,
    /// The index of the thread's own copy of the code, in free-threaded builds.
    pub(crate) code_copy: Option<usize>,
    pub(crate) call: CallMark,
    /// Local variables, behind which is the stack of values.
    pub(crate) locals: usize,
    pub(crate) stack_top: StackTop,
}

/// How a chain of frames shows for which of them C called the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMark {
    /// It was called for each frame.
    EachFrame,
    /// The last frame of each call has this flag.
    Flag(usize),
    /// A frame of the interpreter's own, among its variables, ends each call.
    OwnFrame,
}

/// How a frame that does not run states the end of its stack of values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StackTop {
    /// The address of the end.
    Address(usize),
    /// A number of four bytes: the count of local variables and values.
    Count(usize),
    /// A number of four bytes: the count of values from an address on.
    Depth {
        /// `PyFrameObject.f_valuestack`.
        start: usize,
        /// `PyFrameObject.f_stackdepth`.
        count: usize,
    },
}

/// Where a code object has the names of its local variables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VariableNames {
    /// In tuples: `co_varnames`, `co_cellvars` and `co_freevars`. Up to 3.10.
    Apart([usize; 3]),
    /// In a tuple and an object of bytes that says what each is: `co_localsplusnames`, `co_localspluskinds`.
    Joined { names: usize, kinds: usize },
}

/// How a frame states its current instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InstructionPosition {
    /// A number of four bytes: the offset in bytes, or half of it; -1 before the first instruction.
    Index {
        /// `PyFrameObject.f_lasti`.
        at: usize,
        /// The number of bytes that it counts.
        unit: i32,
    },
    /// The address of the instruction.
    Address(usize),
}

/// `PyCodeObject`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeLayout {
    /// The number of bytes to read.
    pub(crate) size: usize,
    pub(crate) file_name: usize,
    pub(crate) name: usize,
    /// From 3.11 on.
    pub(crate) qualified_name: Option<usize>,
    pub(crate) first_line: usize,
    pub(crate) lines: usize,
    pub(crate) line_format: LineFormat,
    pub(crate) instructions: InstructionsPlace,
    /// The copies of the code that threads have, in free-threaded builds from 3.14 on.
    pub(crate) copies: Option<usize>,
    pub(crate) variables: VariableNames,
}

/// Where the instructions of a code object are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InstructionsPlace {
    /// In an object of bytes, `co_code`.
    Apart(usize),
    /// At the end of the code object, whose `ob_size` is their number.
    Within(usize),
}

/// How a release writes the lines of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// `co_lnotab`, up to 3.9.
    Increments,
    /// `co_linetable` of 3.10.
    Ranges,
    /// `co_linetable` from 3.11 on, with columns.
    Locations,
}

/// Where the holder of the global lock is stated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GilPlace {
    /// In the runtime: the state of the thread that holds it, or null. Up to 3.11.
    Runtime(usize),
    /// In the lock to which the interpreter points.
    Interpreter {
        /// The pointer to the lock.
        pointer: usize,
        /// The last holder in the lock; four bytes behind it, whether it is locked.
        holder: usize,
    },
    /// The thread's state says it, or there is no lock.
    Thread,
}

const OLD_THREAD: ThreadLayout = ThreadLayout {
    size: 184,
    next: 8,
    interpreter: 16,
    current: CurrentFrame::Direct(24),
    base_frame: None,
    thread_id: 176,
    native_id: None,
    exception: Some(88),
    // `exc_state` has the type first, and then the value.
    handled: Some(HandledException { own: 120, value: 8 }),
    gil_flags: None,
};

const OLD_CODE: CodeLayout = CodeLayout {
    size: 128,
    file_name: 104,
    name: 112,
    qualified_name: None,
    first_line: 40,
    lines: 120,
    line_format: LineFormat::Increments,
    instructions: InstructionsPlace::Apart(48),
    copies: None,
    variables: VariableNames::Apart([72, 88, 80]),
};

const OLD_FRAME: FrameLayout = FrameLayout {
    size: 112,
    previous: 24,
    code: 32,
    position: InstructionPosition::Index { at: 104, unit: 1 },
    owner: None,
    code_copy: None,
    call: CallMark::EachFrame,
    locals: 360,
    stack_top: StackTop::Address(72),
};

const OF_3_8: Layout = Layout {
    interpreters_head: 32,
    interpreter: InterpreterLayout { next: 0, id: 16, threads_head: 8, modules: 56, collector: None },
    thread: OLD_THREAD,
    frame: OLD_FRAME,
    code: OLD_CODE,
    object: ObjectLayout::OF_3_8,
    gil: GilPlace::Runtime(1368),
};

const OF_3_9: Layout = Layout {
    interpreter: InterpreterLayout { next: 0, id: 24, threads_head: 8, modules: 856, collector: None },
    gil: GilPlace::Runtime(568),
    ..OF_3_8
};

const OF_3_10: Layout = Layout {
    frame: FrameLayout {
        position: InstructionPosition::Index { at: 96, unit: 2 },
        locals: 352,
        stack_top: StackTop::Depth { start: 64, count: 80 },
        ..OLD_FRAME
    },
    code: CodeLayout { line_format: LineFormat::Ranges, ..OLD_CODE },
    ..OF_3_9
};

const OF_3_11: Layout = Layout {
    interpreters_head: 40,
    interpreter: InterpreterLayout { next: 0, id: 48, threads_head: 16, modules: 888, collector: None },
    thread: ThreadLayout {
        size: 336,
        next: 8,
        interpreter: 16,
        current: CurrentFrame::OnCStack { cframe: 56, current_frame: 8 },
        base_frame: None,
        thread_id: 152,
        native_id: Some(160),
        exception: Some(96),
        handled: Some(HandledException { own: 320, value: 0 }),
        gil_flags: None,
    },
    frame: FrameLayout {
        size: 80,
        previous: 48,
        code: 32,
        position: InstructionPosition::Address(56),
        owner: Some(69),
        code_copy: None,
        call: CallMark::Flag(68),
        locals: 72,
        stack_top: StackTop::Count(64),
    },
    code: CodeLayout {
        size: 184,
        file_name: 112,
        name: 120,
        qualified_name: Some(128),
        first_line: 72,
        lines: 136,
        line_format: LineFormat::Locations,
        instructions: InstructionsPlace::Within(184),
        copies: None,
        variables: VariableNames::Joined { names: 96, kinds: 104 },
    },
    object: ObjectLayout::OF_3_11,
    gil: GilPlace::Runtime(576),
};

const OF_3_12: Layout = Layout {
    interpreters_head: 40,
    interpreter: InterpreterLayout { next: 0, id: 8, threads_head: 72, modules: 944, collector: None },
    thread: ThreadLayout {
        size: 272,
        current: CurrentFrame::OnCStack { cframe: 56, current_frame: 0 },
        thread_id: 136,
        native_id: Some(144),
        handled: Some(HandledException { own: 256, value: 0 }),
        ..OF_3_11.thread
    },
    frame: FrameLayout {
        size: 80,
        previous: 8,
        code: 0,
        position: InstructionPosition::Address(56),
        owner: Some(70),
        code_copy: None,
        call: CallMark::OwnFrame,
        locals: 72,
        stack_top: StackTop::Count(64),
    },
    code: CodeLayout {
        size: 192,
        first_line: 68,
        instructions: InstructionsPlace::Within(192),
        ..OF_3_11.code
    },
    object: ObjectLayout::OF_3_12,
    gil: GilPlace::Interpreter { pointer: 384, holder: 8 },
};

impl Layout {
    /// The layout of a release that does not state it itself.
    pub(crate) fn tabled(version: PythonVersion) -> Option<Self> {
        match (version.major, version.minor) {
            (3, 8) => Some(OF_3_8),
            (3, 9) => Some(OF_3_9),
            (3, 10) => Some(OF_3_10),
            (3, 11) => Some(OF_3_11),
            (3, 12) => Some(OF_3_12),
            _ => None,
        }
    }
}
