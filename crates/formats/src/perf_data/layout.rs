//! The numbers of the file.
//!
//! Source: Linux 6.1, `include/uapi/linux/perf_event.h`; `tools/perf/util/header.h` and `header.c`;
//! `tools/lib/perf/include/perf/event.h`; `tools/perf/Documentation/perf.data-file-format.txt`.

/// The size of the header of a file whose records can be found from it. A shorter one begins a stream of records.
pub(super) const FILE_HEADER_BYTES: u64 = 104;

/// The size of the header of a stream.
pub(super) const STREAM_HEADER_BYTES: u64 = STREAM_DATA_START as u64;

/// The offset of the records of a stream.
pub(super) const STREAM_DATA_START: usize = 16;

/// The bytes of a `perf_event_attr` up to and with its flags, as in its first version.
pub(super) const LEAST_ATTRIBUTE_BYTES: usize = 48;

/// The bytes behind an attribute of a file: where its ids are.
pub(super) const IDS_SECTION_BYTES: u64 = 16;

/// Types of records.
pub(super) mod record {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    /// The first type of records that `perf` itself writes.
    pub(crate) const FIRST_OF_PERF: u32 = 64;
    pub(crate) const ATTRIBUTE: u32 = 64;
    /// Followed by as many bytes as its first field says.
    pub(crate) const TRACING_DATA: u32 = 66;
    /// The build ID of a file, in a stream.
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    /// Followed by as many bytes as its first field says.
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    /// Compressed records with padding, of Linux 6.16 and later.
    pub(crate) const COMPRESSED_PADDED: u32 = 83;
}

/// Bits of `sample_type`, in the order of their fields in a sample, except that of `IDENTIFIER`, which comes first.
pub(super) mod sample {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDRESS: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALL_CHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
pub(super) mod counters {
    pub(crate) const TIME_ENABLED: u64 = 1;
    pub(crate) const TIME_RUNNING: u64 = 1 << 1;
    pub(crate) const ID: u64 = 1 << 2;
    pub(crate) const GROUP: u64 = 1 << 3;
    pub(crate) const LOST: u64 = 1 << 4;
}

/// The bit of an attribute's flags that puts time and ids behind records that are no samples.
pub(super) const SAMPLE_ID_ALL: u32 = 18;

/// Bits of the field `misc` of records.
pub(super) mod record_flags {
    pub(crate) const CPU_MODE: u16 = 7;
    pub(crate) const KERNEL: u16 = 1;
    pub(crate) const USER: u16 = 2;
    /// Of a mapping: it holds no code.
    pub(crate) const DATA_MAPPING: u16 = 1 << 13;
    /// Of a mapping: it states a build ID in place of device and inode.
    pub(crate) const MAPPED_BUILD_ID: u16 = 1 << 14;
    /// Of a build ID: its size is stated behind it.
    pub(crate) const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// The process number that mappings of the kernel have.
pub(super) const KERNEL_PROCESS: u32 = u32::MAX;

/// The most bytes of a build ID.
pub(super) const BUILD_ID_BYTES: usize = 20;

/// Entries of a call chain that say where the addresses behind them are.
pub(super) mod context {
    /// Addresses from here on are such entries.
    pub(crate) const FIRST: u64 = 4095_u64.wrapping_neg();
    pub(crate) const KERNEL: u64 = 128_u64.wrapping_neg();
    pub(crate) const USER: u64 = 512_u64.wrapping_neg();
}

/// Descriptions at the end of a file, by their bit in the header's flags.
pub(super) mod feature {
    pub(crate) const BUILD_IDS: u32 = 2;
    pub(crate) const HOST_NAME: u32 = 3;
    pub(crate) const OS_RELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCHITECTURE: u32 = 6;
    pub(crate) const CPU: u32 = 8;
    pub(crate) const COMMAND_LINE: u32 = 11;
    pub(crate) const EVENTS: u32 = 12;
}

/// Types of events.
pub(super) mod event {
    pub(crate) const HARDWARE: u32 = 0;
    pub(crate) const SOFTWARE: u32 = 1;
    pub(crate) const TRACEPOINT: u32 = 2;
    /// The software event that only follows mappings.
    pub(crate) const DUMMY: u64 = 9;
    /// The software events from 0 on that count nanoseconds.
    pub(crate) const CLOCKS: u64 = 2;
}

/// The names of hardware events.
pub(super) const HARDWARE_EVENTS: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// The names of software events.
pub(super) const SOFTWARE_EVENTS: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];
