//! The layout that CPython states about itself, from 3.13 on.
//!
//! Source: CPython 3.13 to 3.15, `Include/internal/pycore_debug_offsets.h` (3.13: `pycore_runtime.h`), `_Py_DebugOffsets`: a
//! cookie, the version, whether the build is free-threaded, and then structures of offsets, all numbers of eight bytes.

use borehole_process::{ForeignMemory, moved, u64_at};

use crate::error::{Error, ErrorKind};
use crate::layout::{
    CallMark, CodeLayout, CurrentFrame, FrameLayout, GilPlace, HandledException, InstructionPosition,
    InstructionsPlace, InterpreterLayout, Layout, LineFormat, StackTop, ThreadLayout, VariableNames,
};
use crate::object_layout::{
    AttributesPlace, CoroutineFrame, CoroutineStates, DictFormat, IntegerFormat, ObjectLayout, TypeLayout,
};
use crate::release::{PythonBuild, PythonIdentity, PythonVersion};

/// The first bytes of the runtime's state.
pub(crate) const COOKIE: &[u8; 8] = b"xdebugpy";

/// The structures of the newest release take less.
const MOST_BYTES: usize = 1024;

/// An offset must be below the size of the largest structure, the runtime's state, with room to spare.
const LARGEST_OFFSET: u64 = 1 << 20;

/// The number of fields of each group in one release.
struct Groups {
    runtime: usize,
    interpreter: usize,
    thread: usize,
    /// Fields between the thread and the frame.
    between: usize,
    frame: usize,
    code: usize,
    /// The fields of `type_object`.
    types: usize,
    /// `heap_type_object`.
    heap_types: usize,
    tuple_and_list: usize,
    set: usize,
    texts: usize,
}

const OF_3_13: Groups = Groups {
    runtime: 3,
    interpreter: 13,
    thread: 9,
    between: 0,
    frame: 6,
    code: 10,
    types: 4,
    heap_types: 0,
    tuple_and_list: 6,
    set: 0,
    texts: 4,
};

const OF_3_14: Groups = Groups { interpreter: 16, frame: 8, code: 11, set: 4, ..OF_3_13 };

const OF_3_15: Groups = Groups { thread: 16, between: 1, types: 6, heap_types: 2, texts: 5, ..OF_3_14 };

/// Reads the numbers in order.
struct OffsetReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl OffsetReader<'_> {
    /// The next group of `COUNT` numbers, of which there are `there`.
    fn group<const COUNT: usize>(&mut self, there: usize) -> Result<[usize; COUNT], Error> {
        let start = self.at;
        self.at += 8 * there;
        let mut group = [0; COUNT];
        for (index, offset) in group.iter_mut().enumerate() {
            let value = u64_at(self.bytes, start + 8 * index).filter(|&value| value < LARGEST_OFFSET);
            let value = value.and_then(|value| usize::try_from(value).ok());
            *offset = value.ok_or_else(|| {
                Error::new(ErrorKind::Implausible, "invalid offsets of structures in the process")
            })?;
        }
        Ok(group)
    }

    fn skip(&mut self, count: usize) {
        self.at += 8 * count;
    }
}

/// The release and layout that the runtime's state at `address` states; `None` if it states none.
pub(crate) fn read(
    memory: &impl ForeignMemory,
    address: u64,
) -> Result<Option<(PythonIdentity, Layout)>, Error> {
    let Some(stated) = stated(memory, address)? else { return Ok(None) };
    let (bytes, identity) = stated;
    let groups = match identity.version {
        PythonVersion { major: 3, minor: 13, .. } => OF_3_13,
        PythonVersion { major: 3, minor: 14, .. } => OF_3_14,
        PythonVersion { major: 3, minor: 15, .. } => OF_3_15,
        version => {
            let what = format!("unsupported CPython {version}: expected 3.8 to 3.15");
            return Err(Error::new(ErrorKind::UnsupportedVersion, what));
        }
    };
    let reader = OffsetReader { bytes: &bytes, at: 24 };
    layout(reader, &groups, identity).map(|layout| Some((identity, layout)))
}

/// The bytes of the structure, and the release in its first numbers; `None` without the cookie.
fn stated(
    memory: &impl ForeignMemory,
    address: u64,
) -> Result<Option<([u8; MOST_BYTES], PythonIdentity)>, Error> {
    let mut bytes = [0; MOST_BYTES];
    memory.read(address, &mut bytes)?;
    if !bytes.starts_with(COOKIE) {
        return Ok(None);
    }
    let hex = u64_at(&bytes, 8).and_then(|hex| u32::try_from(hex).ok()).unwrap_or_default();
    let is_free_threaded = u64_at(&bytes, 16).is_some_and(|flag| flag != 0);
    let build = if is_free_threaded { PythonBuild::FreeThreaded } else { PythonBuild::Gil };
    Ok(Some((bytes, PythonIdentity { version: PythonVersion::of_hex(hex), build })))
}

fn layout(mut reader: OffsetReader<'_>, groups: &Groups, identity: PythonIdentity) -> Result<Layout, Error> {
    let [_, _, interpreters_head] = reader.group(groups.runtime)?;
    let interpreter: [usize; 14] = reader.group(groups.interpreter)?;
    let [_, id, next, threads_head, ..] = interpreter;
    // 3.14 has the main thread behind the head of the list.
    let shift = usize::from(groups.interpreter > OF_3_13.interpreter);
    let [lock_pointer, lock, holder] = [8, 9, 12].map(|at| interpreter[at + shift]);
    let thread = thread(&mut reader, groups, identity)?;
    reader.skip(groups.between);
    let frame = frame(&mut reader, groups, identity)?;
    let code = code(&mut reader, groups, identity)?;
    let object = object(&mut reader, groups, identity)?;
    let collector = collector(&mut reader, groups, interpreter[4 + shift])?;
    let gil = match (identity.build, thread.gil_flags) {
        (PythonBuild::Gil, None) => {
            GilPlace::Interpreter { pointer: lock_pointer, holder: holder.saturating_sub(lock) }
        }
        _ => GilPlace::Thread,
    };
    let interpreter =
        InterpreterLayout { next, id, threads_head, modules: interpreter[5 + shift], collector };
    Ok(Layout { interpreters_head, interpreter, thread, frame, code, object, gil })
}

fn thread(
    reader: &mut OffsetReader<'_>,
    groups: &Groups,
    identity: PythonIdentity,
) -> Result<ThreadLayout, Error> {
    let is_newest = groups.thread == OF_3_15.thread;
    let (next, interpreter, current, base_frame, thread_id, native_id, rest);
    if is_newest {
        let group: [usize; 16] = reader.group(groups.thread)?;
        [_, _, next, interpreter, current, base_frame, _, _, thread_id, native_id, ..] = group;
        rest = Some([group[12], group[13], group[14], group[15]]);
    } else {
        let group: [usize; 9] = reader.group(groups.thread)?;
        [_, _, next, interpreter, current, thread_id, native_id, ..] = group;
        (base_frame, rest) = (0, None);
    }
    // 3.13 does not state these two, and all its builds have them here.
    // Source: CPython 3.13.0, `Include/cpython/pystate.h`, `current_exception` and `exc_state`.
    let is_3_13 = identity.version.minor == 13;
    let raised = rest.map(|[.., raised, handled]| (raised, handled)).or(is_3_13.then_some((112, 256)));
    let gil_flags = rest.map(|[holds, requests, ..]| [holds, requests]);
    let places = [next, interpreter, current, base_frame, thread_id, native_id];
    let exceptions = raised.map_or(0, |(raised, handled)| raised.max(handled));
    let end = places.into_iter().chain(gil_flags.into_iter().flatten()).chain([exceptions]).max();
    Ok(ThreadLayout {
        size: end.unwrap_or_default() + 8,
        next,
        interpreter,
        current: CurrentFrame::Direct(current),
        base_frame: is_newest.then_some(base_frame),
        thread_id,
        native_id: Some(native_id),
        exception: raised.map(|(raised, _)| raised),
        handled: raised.map(|(_, own)| HandledException { own, value: 0 }),
        gil_flags: gil_flags.filter(|_| identity.build == PythonBuild::Gil),
    })
}

fn frame(
    reader: &mut OffsetReader<'_>,
    groups: &Groups,
    identity: PythonIdentity,
) -> Result<FrameLayout, Error> {
    let start = reader.at;
    let [_, previous, code, instruction, locals, owner] = reader.group(groups.frame)?;
    let stack_pointer = u64_at(reader.bytes, start + 8 * 6).and_then(|at| usize::try_from(at).ok());
    let copy = u64_at(reader.bytes, start + 8 * 7).and_then(|at| usize::try_from(at).ok());
    let has_copies = identity.build == PythonBuild::FreeThreaded && groups.frame > OF_3_13.frame;
    let code_copy = copy.filter(|_| has_copies);
    let end = [previous, code, instruction, owner, code_copy.unwrap_or_default()].into_iter().max();
    let stack_top = match stack_pointer.filter(|_| groups.frame > OF_3_13.frame) {
        Some(at) => StackTop::Address(at),
        // Source: CPython 3.13, `pycore_frame.h`: `stacktop` stands before the owner and two bytes of its own.
        None => StackTop::Count(owner.saturating_sub(6)),
    };
    Ok(FrameLayout {
        size: end.unwrap_or_default() + 8,
        previous,
        code,
        position: InstructionPosition::Address(instruction),
        owner: Some(owner),
        code_copy,
        call: CallMark::OwnFrame,
        locals,
        stack_top,
    })
}

fn code(
    reader: &mut OffsetReader<'_>,
    groups: &Groups,
    identity: PythonIdentity,
) -> Result<CodeLayout, Error> {
    let start = reader.at;
    let [size, file_name, name, qualified_name, lines, first_line, _, names, kinds, instructions] =
        reader.group(groups.code)?;
    let copies = u64_at(reader.bytes, start + 8 * 10).and_then(|at| usize::try_from(at).ok());
    let has_copies = identity.build == PythonBuild::FreeThreaded && groups.code > OF_3_13.code;
    Ok(CodeLayout {
        size: size.max(instructions).min(MOST_BYTES),
        file_name,
        name,
        qualified_name: Some(qualified_name),
        first_line,
        lines,
        line_format: LineFormat::Locations,
        instructions: InstructionsPlace::Within(instructions),
        copies: copies.filter(|_| has_copies),
        variables: VariableNames::Joined { names, kinds },
    })
}

fn object(
    reader: &mut OffsetReader<'_>,
    groups: &Groups,
    identity: PythonIdentity,
) -> Result<ObjectLayout, Error> {
    let [header, kind] = reader.group(2)?;
    let [type_size, type_name, _, flags] = reader.group(groups.types)?;
    reader.skip(groups.heap_types);
    let [_, tuple_items, _] = reader.group(3)?;
    reader.skip(groups.tuple_and_list - 3 + groups.set);
    // `dict_object`, `float_object`, `long_object`.
    reader.skip(3 + 2 + 3);
    let [_, length, bytes] = reader.group(3)?;
    let [_, text_state, text_length, ascii] = reader.group(groups.texts)?;
    let is_free_threaded = identity.build == PythonBuild::FreeThreaded;
    // `interned` takes two bits, and a byte of its own in free-threaded builds from 3.14 on.
    let text_kind_bit = if is_free_threaded && identity.version.minor > 13 { 8 } else { 2 };
    // Objects of free-threaded builds have no words of the garbage collector before them.
    let garbage_words = if is_free_threaded { 0 } else { 2 };
    Ok(ObjectLayout {
        kind,
        header,
        length,
        // Source: CPython 3.13 to 3.15, `PyHeapTypeObject`: the distance of `ht_cached_keys` from the end of its type.
        types: TypeLayout { name: type_name, flags, cached_keys: type_size + 464 },
        bytes,
        text_length,
        text_state,
        text_kind_bit,
        ascii,
        // `PyCompactUnicodeObject` adds a length and a pointer.
        compact: ascii + 16,
        integers: IntegerFormat::Tagged,
        tuple_items,
        dicts: DictFormat::LogarithmicWithHeader,
        attributes: AttributesPlace::Inline(8 + 8 * garbage_words),
        // Source: CPython 3.13 to 3.15, `PyGenObject.gi_iframe`.
        coroutine_frame: CoroutineFrame::Within(header + 56),
        coroutine_states: match groups.heap_types {
            0 => CoroutineStates::Signed,
            _ => CoroutineStates::Numbered,
        },
    })
}

/// The place of what tells of a collection of garbage, in the collector's state at `gc`.
fn collector(reader: &mut OffsetReader<'_>, groups: &Groups, gc: usize) -> Result<Option<usize>, Error> {
    if groups.texts < OF_3_15.texts {
        return Ok(None);
    }
    let [_, collecting, frame] = reader.group(3)?;
    Ok((frame == collecting + 8).then_some(gc + collecting))
}

/// The addresses of the cookie in memory that begins at `start`, a multiple of eight.
pub(crate) fn places_of_cookie(bytes: &[u8], start: u64) -> impl Iterator<Item = u64> + '_ {
    let aligned = bytes.chunks_exact(COOKIE.len()).enumerate();
    aligned.filter(|(_, part)| *part == COOKIE).map(move |(index, _)| moved(start, index * COOKIE.len()))
}
