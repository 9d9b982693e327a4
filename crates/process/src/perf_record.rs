//! The records of perf events that sampling needs.
//!
//! Source: Linux 6.1, `include/uapi/linux/perf_event.h`, `enum perf_event_type`.

use crate::registers::Registers;

pub(crate) const LOST: u32 = 2;
pub(crate) const SAMPLE: u32 = 9;
pub(crate) const MMAP2: u32 = 10;
pub(crate) const LOST_SAMPLES: u32 = 13;
pub(crate) const SWITCH: u32 = 14;

/// The bit of `misc` that says that a thread leaves a CPU; without it, it is back.
///
/// Source: Linux 6.1, `PERF_RECORD_MISC_SWITCH_OUT`.
pub(crate) const SWITCH_OUT: u16 = 1 << 13;

/// The registers that are sampled: `rbp`, `rsp` and `rip`, in this order.
///
/// Source: Linux 6.1, `arch/x86/include/uapi/asm/perf_regs.h`.
pub(crate) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// Marks in a call chain that say what follows are beyond this.
///
/// Source: Linux 6.1, `enum perf_callchain_context`, `PERF_CONTEXT_MAX`.
const CHAIN_MARKS: u64 = (-4095_i64).cast_unsigned();

/// The registers of a program of 64 bits follow.
///
/// Source: Linux 6.1, `enum perf_sample_regs_abi`, `PERF_SAMPLE_REGS_ABI_64`; with 0, none follow.
const REGISTERS_64: u64 = 2;

/// A message of the kernel about a process.
#[derive(Debug)]
pub enum PerfRecord<'a> {
    /// A thread was sampled.
    Sample(PerfSample<'a>),
    /// This many records were lost.
    Lost(u64),
    /// Code was mapped.
    Mapped,
    /// A thread runs on a CPU again.
    Back {
        /// The thread.
        thread: i32,
        /// The time, on the clock `CLOCK_MONOTONIC`.
        time_ns: u64,
    },
}

/// A sample of a thread.
#[derive(Debug)]
pub struct PerfSample<'a> {
    /// The process.
    pub process: i32,
    /// The thread.
    pub thread: i32,
    /// The time, on the clock `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The addresses in the kernel, the leaf first. Empty if the thread was not in the kernel, or it is not sampled.
    pub kernel: Vec<u64>,
    /// The registers of the program; `None` if it has none any more, or is not one of 64 bits.
    pub registers: Option<Registers>,
    /// The stack from the stack pointer on.
    pub stack: &'a [u8],
}

/// A cursor over the fields of a record.
struct RecordFields<'a>(&'a [u8]);

impl<'a> RecordFields<'a> {
    fn u64(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*field))
    }

    /// A number of 32 bits that is no larger than the kernel's largest process number.
    fn number(&mut self) -> Option<i32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_ne_bytes(*field))
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Parses a sample with the fields that are asked for: numbers, time, call chain, registers and stack.
pub(crate) fn parse_sample(bytes: &[u8]) -> Option<PerfSample<'_>> {
    let mut fields = RecordFields(bytes);
    let (process, thread, time_ns) = (fields.number()?, fields.number()?, fields.u64()?);
    let chain = fields.u64()?;
    let mut chain = RecordFields(fields.bytes(chain.checked_mul(8)?)?);
    let kernel = std::iter::from_fn(|| chain.u64()).filter(|&address| address < CHAIN_MARKS).collect();
    let registers = match fields.u64()? {
        0 => None,
        abi => {
            let [bp, sp, ip] = [fields.u64()?, fields.u64()?, fields.u64()?];
            (abi == REGISTERS_64).then_some(Registers { ip, sp, bp })
        }
    };
    let stack = match fields.u64()? {
        0 => &[],
        size => {
            let stack = fields.bytes(size)?;
            stack.get(..usize::try_from(fields.u64()?).ok()?)?
        }
    };
    Some(PerfSample { process, thread, time_ns, kernel, registers, stack })
}

/// Parses a switch, which has the process, the thread and the time only.
pub(crate) fn parse_switch(bytes: &[u8]) -> Option<(i32, i32, u64)> {
    let mut fields = RecordFields(bytes);
    Some((fields.number()?, fields.number()?, fields.u64()?))
}

/// The number of lost records, which the rest of the record begins with.
pub(crate) fn parse_lost(bytes: &[u8]) -> u64 {
    RecordFields(bytes).u64().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(numbers: [i32; 2], words: &[u64]) -> Vec<u8> {
        let numbers = numbers.iter().flat_map(|number| number.to_ne_bytes());
        numbers.chain(words.iter().flat_map(|word| word.to_ne_bytes())).collect()
    }

    #[test]
    fn a_sample_has_the_frames_of_the_kernel_the_registers_and_the_stack_that_was_copied() {
        let mark = (-128_i64).cast_unsigned();
        let kernel = 0xffff_ffff_8100_0000;
        let bytes = record([7, 8], &[99, 2, mark, kernel, 2, 30, 20, 10, 16, 1, 2, 8]);
        let sample = parse_sample(&bytes).unwrap();
        assert_eq!((sample.process, sample.thread, sample.time_ns), (7, 8, 99));
        assert_eq!(sample.kernel, [kernel]);
        assert_eq!(sample.registers, Some(Registers { ip: 10, sp: 20, bp: 30 }));
        assert_eq!(sample.stack, 1_u64.to_ne_bytes());
    }

    #[test]
    fn a_thread_without_a_program_has_no_registers() {
        let bytes = record([7, 8], &[99, 0, 0, 0]);
        let sample = parse_sample(&bytes).unwrap();
        assert!(sample.registers.is_none() && sample.stack.is_empty());
    }

    #[test]
    fn a_record_that_ends_early_or_lies_about_its_sizes_is_no_sample() {
        let whole = record([7, 8], &[99, 1, 5, 2, 30, 20, 10, 8, 1, 8]);
        assert!(parse_sample(&whole).is_some());
        for end in 0..whole.len() {
            assert!(parse_sample(&whole[..end]).is_none(), "{end}");
        }
        assert!(parse_sample(&record([7, 8], &[99, u64::MAX, 5])).is_none());
        assert!(parse_sample(&record([7, 8], &[99, 0, 0, 8, 1, 9])).is_none());
    }
}
