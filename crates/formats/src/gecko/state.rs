//! The states of a thread beside its stack: the intervals that become markers.

use std::io::{self, Read, Seek, Write};

use borehole_model::Status;

use crate::chains::{Chain, Spool};

/// The kinds of intervals. A thread is in at most one state of each kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gil,
    Cpu,
    Code,
    Wait,
    Gc,
    Exception,
    Opcode,
}

impl Kind {
    pub(super) const ALL: [Self; 7] =
        [Self::Gil, Self::Cpu, Self::Code, Self::Wait, Self::Gc, Self::Exception, Self::Opcode];

    /// The name of each state from 1 on; those of instructions are known to the caller.
    ///
    /// Source: CPython 3.15.2, `profiling/sampling/gecko_collector.py`.
    pub(super) const fn states(self) -> &'static [&'static str] {
        match self {
            Self::Gil => &["Has GIL", "No GIL"],
            Self::Cpu => &["On CPU", "Off CPU"],
            Self::Code => &["Python Code", "Native Code"],
            Self::Wait => &["Waiting for GIL"],
            Self::Gc => &["GC Collecting"],
            Self::Exception => &["Has Exception", "No Exception"],
            Self::Opcode => &[],
        }
    }

    /// The index of the marker's category in the list of categories.
    pub(super) const fn category(self) -> u64 {
        match self {
            Self::Gil | Self::Wait => 4,
            Self::Cpu => 5,
            Self::Code => 6,
            Self::Gc => 3,
            Self::Exception => 8,
            Self::Opcode => 7,
        }
    }
}

const HAS_GIL: u8 = 1;
const ON_CPU: u8 = 2;
const UNKNOWN: u8 = 4;
const GIL_REQUESTED: u8 = 8;
const HAS_EXCEPTION: u8 = 16;
const MAIN_THREAD: u8 = 32;

/// Whether a sample is of the main thread.
pub(super) const fn is_main(status: Status) -> bool {
    status.0 & MAIN_THREAD != 0
}

/// The state of one kind in a status; 0 if the status does not state it.
///
/// Whether a thread is on a CPU is unknown unless it was checked; `replay` then says that it is not.
pub(super) const fn told(kind: Kind, status: Status) -> u64 {
    let has_gil = has_flag(status, HAS_GIL);
    let cpu_known = !has_flag(status, UNKNOWN) || has_flag(status, ON_CPU);
    match kind {
        Kind::Gil => either(has_gil),
        Kind::Cpu if cpu_known => either(has_flag(status, ON_CPU)),
        Kind::Code if has_gil => 1,
        Kind::Code if has_flag(status, ON_CPU) => 2,
        Kind::Wait => has_flag(status, GIL_REQUESTED) as u64,
        Kind::Exception => either(has_flag(status, HAS_EXCEPTION)),
        Kind::Cpu | Kind::Code | Kind::Gc | Kind::Opcode => 0,
    }
}

const fn has_flag(status: Status, flag: u8) -> bool {
    status.0 & flag != 0
}

const fn either(holds: bool) -> u64 {
    if holds { 1 } else { 2 }
}

/// The intervals of one kind of one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches {
    open: Option<(u64, u64)>,
    last_start: u64,
    pub(super) count: u64,
    /// Entries: the state, the time since the start of the one before, and the length.
    pub(super) chain: Chain,
}

impl Stretches {
    /// Takes the state at a time that is not before the last one; 0 for none.
    #[inline]
    pub(super) fn observe<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        state: u64,
        time: u64,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        if self.open.map_or(0, |(state, _)| state) == state {
            return Ok(());
        }
        self.close(time, spool)?;
        self.open = (state != 0).then_some((state, time));
        Ok(())
    }

    /// Ends the open interval.
    pub(super) fn close<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        time: u64,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        let Some((state, start)) = self.open.take() else { return Ok(()) };
        spool.push(&mut self.chain, [state, start - self.last_start, time - start])?;
        self.last_start = start;
        self.count += 1;
        Ok(())
    }
}
