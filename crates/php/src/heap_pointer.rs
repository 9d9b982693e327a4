//! Where a program keeps the pointer to the allocator's heap, read from the code that loads it.

use borehole_process::{ElfSymbols, ForeignMemory};

use crate::release::ThreadModel;
use crate::remote::{self, moved, u32_at};

/// Where a program keeps the pointer to its heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeapPointer {
    /// The address of the variable that points to the heap.
    Variable(u64),
    /// The offset of the pointer to the thread's heap, in the block of each thread.
    InThreadBlock(u64),
}

/// The variables that the first instructions of `zend_mm_get_heap` load: `mov reg, [rip+rel32]`.
///
/// The function returns the pointer to the heap, so it must load the pointer, or its offset in the block of a thread.
pub(crate) fn heap_pointers(
    memory: &impl ForeignMemory,
    symbols: &ElfSymbols,
    threads: ThreadModel,
) -> Vec<HeapPointer> {
    let Some(function) = symbols.find("zend_mm_get_heap") else { return Vec::new() };
    let mut code = [0; 64];
    let filled = remote::read_some(memory, function.address, &mut code).unwrap_or_default();
    let end = usize::try_from(function.size).ok().filter(|&size| size > 0).unwrap_or(filled);
    let code = &code[..filled.min(end)];
    let load = |at: usize| {
        let [prefix, 0x8b, register] = *code.get(at..at + 3)? else { return None };
        // Any register, relative to the next instruction.
        let is_load = matches!(prefix, 0x48 | 0x4c) && register & 0xc7 == 0x05;
        let distance = u32_at(code, at + 3)?.cast_signed();
        is_load.then(|| moved(function.address, at + 7).wrapping_add_signed(i64::from(distance)))
    };
    let variables = (0..code.len()).filter_map(load);
    match threads {
        ThreadModel::One => variables.map(HeapPointer::Variable).collect(),
        ThreadModel::Many => {
            let offsets = variables.filter_map(|address| memory.read_u64(address).ok());
            offsets.map(HeapPointer::InThreadBlock).collect()
        }
    }
}
