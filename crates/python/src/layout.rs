//! Where each release keeps its data: offsets in bytes.
//!
//! Source of the tables: the headers of CPython 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1 with `Py_BUILD_CORE` defined, on
//! x86-64, by `offsetof`. From 3.13 on, the process itself states them: see [`debug_offsets`](crate::debug_offsets).

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

/// Objects of all types, and those with texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectLayout {
    pub(crate) kind: usize,
    /// `PyVarObject.ob_size`.
    pub(crate) length: usize,
    pub(crate) type_name: usize,
    /// `PyBytesObject.ob_sval`.
    pub(crate) bytes: usize,
    pub(crate) text_length: usize,
    pub(crate) text_state: usize,
    /// The first bit of the width of characters in the state of a text.
    pub(crate) text_kind_bit: u32,
    /// The size of `PyASCIIObject`, behind which the characters are.
    pub(crate) ascii: usize,
    /// The size of `PyCompactUnicodeObject`.
    pub(crate) compact: usize,
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

/// The text of objects in all releases with a global lock; `wide` is the size of `wstr`, which 3.12 removed.
const fn objects(wide: usize) -> ObjectLayout {
    ObjectLayout {
        kind: 8,
        length: 16,
        type_name: 24,
        bytes: 32,
        text_length: 16,
        text_state: 32,
        text_kind_bit: 2,
        ascii: 40 + wide,
        compact: 56 + 2 * wide,
    }
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
};

const OLD_FRAME: FrameLayout = FrameLayout {
    size: 112,
    previous: 24,
    code: 32,
    position: InstructionPosition::Index { at: 104, unit: 1 },
    owner: None,
    code_copy: None,
    call: CallMark::EachFrame,
};

const OF_3_8: Layout = Layout {
    interpreters_head: 32,
    interpreter: InterpreterLayout { next: 0, id: 16, threads_head: 8 },
    thread: OLD_THREAD,
    frame: OLD_FRAME,
    code: OLD_CODE,
    object: objects(8),
    gil: GilPlace::Runtime(1368),
};

const OF_3_9: Layout = Layout {
    interpreter: InterpreterLayout { next: 0, id: 24, threads_head: 8 },
    gil: GilPlace::Runtime(568),
    ..OF_3_8
};

const OF_3_10: Layout = Layout {
    frame: FrameLayout { position: InstructionPosition::Index { at: 96, unit: 2 }, ..OLD_FRAME },
    code: CodeLayout { line_format: LineFormat::Ranges, ..OLD_CODE },
    ..OF_3_9
};

const OF_3_11: Layout = Layout {
    interpreters_head: 40,
    interpreter: InterpreterLayout { next: 0, id: 48, threads_head: 16 },
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
    },
    object: objects(8),
    gil: GilPlace::Runtime(576),
};

const OF_3_12: Layout = Layout {
    interpreters_head: 40,
    interpreter: InterpreterLayout { next: 0, id: 8, threads_head: 72 },
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
    },
    code: CodeLayout {
        size: 192,
        first_line: 68,
        instructions: InstructionsPlace::Within(192),
        ..OF_3_11.code
    },
    object: objects(0),
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
