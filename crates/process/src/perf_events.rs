//! Samples that the kernel takes of the threads of a process while they run, without stopping them.

#![allow(unsafe_code, reason = "perf-event2 has no call that lets several events share a buffer")]

use std::io;
use std::os::fd::AsRawFd as _;

use borehole_text::cause;
use nix::errno::Errno;
use perf_event2::events::Software;
use perf_event2::{Builder, Clock, Counter, SampleFlag, Sampler};

use crate::error::{Error, ErrorKind};
use crate::perf_record::{
    LOST, LOST_SAMPLES, MMAP2, PerfRecord, REGISTERS, SAMPLE, SWITCH, SWITCH_OUT, parse_lost, parse_sample,
    parse_switch,
};

/// The most events that are opened for a process: one for each of its threads on each CPU. Other threads are sampled from the
/// moment on that a thread that is sampled starts them.
const MOST_EVENTS: usize = 4096;

/// The sizes of a buffer of a CPU, largest first. A user without privileges may lock 516 KiB for each CPU, with a page for the
/// kernel's own use.
///
/// Source: Linux 6.1, `kernel/events/core.c`, `sysctl_perf_event_mlock`.
const BUFFER_BYTES: [usize; 3] = [4 << 20, 512 << 10, 128 << 10];

/// The most bytes of a stack that the kernel copies: the size must fit 16 bits, and be a multiple of 8.
///
/// Source: Linux 6.1, `kernel/events/core.c`, `perf_copy_attr`.
const MOST_STACK_BYTES: u32 = 0xfff8;

/// When the kernel takes a sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PerfTrigger {
    /// After each period of its CPU time, in nanoseconds.
    CpuTime(u64),
    /// When it leaves a CPU. It is said when it is back, too. The kernel does that, so it must be allowed to sample the kernel.
    LeavesCpu,
}

/// The events of all threads of a process, one buffer for each CPU. Threads that start later are sampled too, other processes are
/// not.
pub struct PerfEvents {
    process: i32,
    buffers: Vec<Sampler>,
    /// The events that write into the buffers of others.
    others: Vec<Counter>,
    stack_bytes: u32,
    trigger: PerfTrigger,
    kernel: KernelCode,
}

/// Whether CPU time in the kernel is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelCode {
    /// Yes, with the frames in the kernel.
    Sampled,
    /// No: the system does not allow it.
    LeftOut,
}

impl PerfEvents {
    /// Begins to sample these threads of a process, and copies at most `stack_bytes` of their stacks.
    ///
    /// # Errors
    /// If the system does not allow it, or has not enough of something. The error says what, and what would help.
    pub fn open(
        process: i32,
        threads: &[i32],
        trigger: PerfTrigger,
        stack_bytes: u32,
    ) -> Result<Self, Error> {
        if cfg!(not(target_arch = "x86_64")) {
            let what = "unsupported perf events: expected a machine of the kind x86-64";
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let cpus = online_cpus();
        if threads.len().saturating_mul(cpus.len()) > MOST_EVENTS {
            let what = format!(
                "too many perf events: expected at most {MOST_EVENTS}, found {} threads on {} CPUs",
                threads.len(),
                cpus.len()
            );
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let opened = |kernel| {
            let stack_bytes = stack_bytes.min(MOST_STACK_BYTES);
            let mut events =
                Self { process, buffers: Vec::new(), others: Vec::new(), stack_bytes, trigger, kernel };
            cpus.iter().try_for_each(|&cpu| events.open_cpu(cpu, threads)).map(|()| events)
        };
        let opened = opened(KernelCode::Sampled).or_else(|error| match error.kind() {
            io::ErrorKind::PermissionDenied if trigger != PerfTrigger::LeavesCpu => {
                opened(KernelCode::LeftOut)
            }
            _ => Err(error),
        });
        opened.map_err(|error| refused(process, &error))
    }

    fn open_cpu(&mut self, cpu: usize, threads: &[i32]) -> io::Result<()> {
        let mut first: Option<Sampler> = None;
        for &thread in threads {
            let opened = match &first {
                None => self.open_buffered(cpu, thread).map(|sampler| first = Some(sampler)),
                Some(first) => self.open_thread(cpu, thread).and_then(|counter| {
                    redirect(&counter, first)?;
                    self.others.push(counter);
                    Ok(())
                }),
            };
            match opened {
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {}
                opened => opened?,
            }
        }
        self.buffers.push(first.ok_or(Errno::ESRCH)?);
        Ok(())
    }

    /// The event of a thread with the largest buffer that the system allows.
    fn open_buffered(&self, cpu: usize, thread: i32) -> io::Result<Sampler> {
        let mut last = io::Error::from(Errno::EPERM);
        for bytes in BUFFER_BYTES {
            match self.open_thread(cpu, thread)?.sampled(bytes) {
                Ok(sampler) => return Ok(sampler),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn open_thread(&self, cpu: usize, thread: i32) -> io::Result<Counter> {
        let event = match self.trigger {
            PerfTrigger::CpuTime(_) => Software::CPU_CLOCK,
            PerfTrigger::LeavesCpu => Software::CONTEXT_SWITCHES,
        };
        let mut builder = Builder::new(event);
        builder
            .observe_pid(thread)
            .one_cpu(cpu)
            .inherit(true)
            .inherit_thread(true)
            .enabled(true)
            .mmap2(true)
            .exclude_kernel(self.kernel == KernelCode::LeftOut)
            .exclude_callchain_user(true)
            .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN)
            .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
            .sample_regs_user(REGISTERS)
            .sample_stack_user(self.stack_bytes)
            .clockid(Clock::MONOTONIC);
        match self.trigger {
            PerfTrigger::CpuTime(period_ns) => builder.sample_period(period_ns),
            PerfTrigger::LeavesCpu => builder.sample_period(1).context_switch(true).sample_id_all(true),
        };
        builder.build()
    }

    /// Passes on what the kernel has written since the last time: the records of one CPU after those of another.
    pub fn read(&mut self, mut take: impl FnMut(PerfRecord<'_>)) {
        for buffer in &mut self.buffers {
            while let Some(record) = buffer.next_record() {
                let bytes = record.to_contiguous();
                match record.ty() {
                    SAMPLE => match parse_sample(&bytes) {
                        Some(sample) if sample.process == self.process => take(PerfRecord::Sample(sample)),
                        Some(_) => {}
                        None => take(PerfRecord::Lost(1)),
                    },
                    LOST => take(PerfRecord::Lost(parse_lost(&bytes[8.min(bytes.len())..]))),
                    LOST_SAMPLES => take(PerfRecord::Lost(parse_lost(&bytes))),
                    MMAP2 => take(PerfRecord::Mapped),
                    SWITCH if record.misc() & SWITCH_OUT == 0 => {
                        let back = parse_switch(&bytes).filter(|back| back.0 == self.process);
                        if let Some((_, thread, time_ns)) = back {
                            take(PerfRecord::Back { thread, time_ns });
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether CPU time in the kernel is sampled.
    #[must_use]
    pub fn kernel(&self) -> KernelCode {
        self.kernel
    }

    /// The most bytes that are copied of a stack.
    #[must_use]
    pub fn stack_bytes(&self) -> u32 {
        self.stack_bytes
    }

    /// Whether more bytes could be copied of a stack.
    #[must_use]
    pub fn can_grow(&self) -> bool {
        self.stack_bytes < MOST_STACK_BYTES
    }
}

impl std::fmt::Debug for PerfEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { process, stack_bytes, kernel, .. } = self;
        write!(f, "PerfEvents {{ process: {process}, stack_bytes: {stack_bytes}, kernel: {kernel:?} }}")
    }
}

/// Lets an event write into the buffer of another one.
fn redirect(event: &Counter, into: &Sampler) -> io::Result<()> {
    /// Source: Linux 6.1, `include/uapi/linux/perf_event.h`, `PERF_EVENT_IOC_SET_OUTPUT`.
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    // SAFETY: both descriptors are open, and the request takes a descriptor, no address.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, into.as_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs that run. On an unknown system, there is one.
///
/// Source: Linux, `Documentation/admin-guide/cputopology.rst`: ranges such as `0-3,8`.
fn online_cpus() -> Vec<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse_cpus(&text).unwrap_or_else(|| vec![0])
}

fn parse_cpus(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend((first..=last).take(MOST_EVENTS));
    }
    Some(cpus)
}

fn refused(process: i32, error: &io::Error) -> Error {
    let (kind, help) = match error.kind() {
        io::ErrorKind::PermissionDenied => (ErrorKind::Denied, paranoia()),
        _ if error.raw_os_error() == Some(Errno::ESRCH as i32) => (ErrorKind::Gone, String::new()),
        _ => (ErrorKind::Unsupported, String::new()),
    };
    Error::new(kind, format!("cannot open perf events for process {process}: {}{help}", cause(error)))
}

/// The system's setting for perf events, and what would help.
fn paranoia() -> String {
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let Ok(level) = setting.trim().parse::<i32>() else { return String::new() };
    let help = if level > 2 {
        "CAP_PERFMON or a level of at most 2 would allow it"
    } else {
        "a seccomp filter or a security module may forbid it, or the process belongs to another user"
    };
    format!(" (kernel.perf_event_paranoid is {level}; {help})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_cpus_are_understood() {
        assert_eq!(parse_cpus("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_cpus("0"), Some(vec![0]));
        assert_eq!(parse_cpus(""), None);
    }
}
