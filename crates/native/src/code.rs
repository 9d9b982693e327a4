//! Facts about the addresses of code, found once for each.

use borehole_process::{Error, ForeignProcess, MemoryPiece};
use framehop::Unwinder as _;
use framehop::x86_64::UnwinderX86_64;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::frame_table::{CallerRule, FrameTable};
use crate::module::{self, Loaded, SectionBytes, SectionPool};

/// The number of addresses that are remembered.
const MOST_ADDRESSES: usize = 1 << 18;

/// The kind of memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// Code with unwind information.
    Module,
    /// Code of a file without unwind information.
    Bare,
    /// Code that the program made itself.
    Made,
    /// No code.
    Nothing,
}

/// The instruction before a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A call of this function.
    Of(u64),
    /// A call through a register or memory.
    Indirect,
    /// None: nothing returns here.
    None,
}

/// The facts about an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeFacts {
    pub(crate) cover: Cover,
    pub(crate) call: Call,
    /// Whether handlers of signals return here.
    pub(crate) is_signal_return: bool,
    /// How the tables state the caller.
    pub(crate) rule: CallerRule,
}

/// The code of a process.
pub(crate) struct Code {
    pub(crate) unwinder: UnwinderX86_64<SectionBytes>,
    pool: SectionPool,
    facts: HashMap<u64, CodeFacts>,
    /// The content of executable mappings, by their first address.
    loaded: HashMap<u64, (Cover, Option<FrameTable>)>,
    /// Whether an address without a mapping was met since this was last asked.
    pub(crate) met_unknown: bool,
}

impl Code {
    pub(crate) fn new(pool: &SectionPool) -> Self {
        Self {
            unwinder: UnwinderX86_64::new(),
            pool: pool.clone(),
            facts: HashMap::new(),
            loaded: HashMap::new(),
            met_unknown: false,
        }
    }

    /// The facts about the code to which a call returns, or at which a thread is.
    pub(crate) fn at(&mut self, process: &impl ForeignProcess, address: u64) -> Result<CodeFacts, Error> {
        if let Some(&known) = self.facts.get(&address) {
            return Ok(known);
        }
        let (cover, table) = self.cover(process, address)?;
        let mut bytes = [0; BEFORE + BEHIND];
        let start = address.wrapping_sub(BEFORE as u64);
        process.read_pieces(&mut [MemoryPiece { address: start, into: &mut bytes }])?;
        let (before, behind) = bytes.split_at(BEFORE);
        let call = call_before(before, address);
        // The instruction that is executed, or was: a call may be the last one of its function.
        let executed = if call == Call::None { address } else { address.wrapping_sub(1) };
        let rule = table.map_or(CallerRule::Unstated, |table| table.caller_rule(executed));
        let facts = CodeFacts { cover, call, is_signal_return: behind == SIGNAL_RETURN, rule };
        if cover == Cover::Nothing {
            self.met_unknown = true;
        } else {
            if self.facts.len() >= MOST_ADDRESSES {
                self.facts.clear();
            }
            self.facts.insert(address, facts);
        }
        Ok(facts)
    }

    /// The kind of memory before `address`, and its unwind information: a call may be the last instruction of its function.
    fn cover(
        &mut self,
        process: &impl ForeignProcess,
        address: u64,
    ) -> Result<(Cover, Option<&FrameTable>), Error> {
        let mappings = process.mappings();
        let mapping = mappings.at(address.wrapping_sub(1)).filter(|mapping| mapping.executable);
        let Some(mapping) = mapping else { return Ok((Cover::Nothing, None)) };
        let loaded = match self.loaded.entry(mapping.start) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(match module::load(process, mapping, &self.pool)? {
                Loaded::Module(module, table) => {
                    self.unwinder.add_module(module);
                    (Cover::Module, Some(table))
                }
                Loaded::Bare => (Cover::Bare, None),
                Loaded::Made => (Cover::Made, None),
            }),
        };
        Ok((loaded.0, loaded.1.as_ref()))
    }
}

/// The longest call instruction that is looked for.
const BEFORE: usize = 7;

const BEHIND: usize = 9;

/// `mov $15, %rax; syscall`: the end of a signal handler.
///
/// Source: glibc 2.36, `sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c`, `RESTORE_RT`; musl has the same.
const SIGNAL_RETURN: [u8; BEHIND] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];

/// The call that the bytes before a return address end with.
///
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `CALL`: `E8 rel32`, and `FF /2` with an address
/// of one to six bytes.
fn call_before(before: &[u8], address: u64) -> Call {
    if let [.., 0xe8, a, b, c, d] = *before {
        let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
        return Call::Of(address.wrapping_add_signed(distance));
    }
    // The second byte of `FF /2`, and the length of the instruction that it announces.
    let is_call = |length: usize| {
        let [0xff, mode, ..] = before[before.len() - length..] else { return false };
        mode >> 3 & 7 == 2 && indirect_length(mode) == length
    };
    if [2, 3, 4, 6, 7].into_iter().any(is_call) { Call::Indirect } else { Call::None }
}

/// The length of an indirect call with this ModRM byte.
const fn indirect_length(mode: u8) -> usize {
    let (kind, register) = (mode >> 6, mode & 7);
    let index = if register == 4 && kind != 3 { 1 } else { 0 };
    match kind {
        0 if register == 5 => 6,
        0 | 3 => 2 + index,
        1 => 3 + index,
        _ => 6 + index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_instructions() {
        let direct = [0x90, 0x90, 0xe8, 0xfb, 0xff, 0xff, 0xff];
        assert_eq!(call_before(&direct, 0x1005), Call::Of(0x1000));
        // As the GNU assembler writes them.
        let indirect: [&[u8]; 7] = [
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x53, 0x18],
            &[0xff, 0x54, 0x24, 0x08],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x93, 1, 2, 3, 4],
            &[0xff, 0x94, 0x24, 1, 2, 3, 4],
        ];
        for call in indirect {
            let mut before = vec![0x90; BEFORE - call.len()];
            before.extend(call);
            assert_eq!(call_before(&before, 0x1000), Call::Indirect, "{call:x?}");
        }
        for other in [[0x90; BEFORE], [0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0], [0, 0, 0, 0, 0xff, 0x15, 0]]
        {
            assert_eq!(call_before(&other, 0x1000), Call::None, "{other:x?}");
        }
    }
}
