//! Copies the heap of a running PHP process, which is stopped for a moment.
//!
//! Everything that can be done before is done before: attaching to PHP, and allocating memory for as much as there is
//! to copy. Then the process is stopped, its mappings and resident pages are read once more, all private ones are copied in
//! large pieces, and the process runs on. Shared memory that values refer to follows (`segments`). Everything else is done
//! with the copy.

mod copy;
mod crashed;
mod limit;
mod plan;
mod segments;
mod windows;

use std::time::{Duration, Instant};

use borehole_php::{AttachOptions, Identity, Php, PhpRelease};
use borehole_process::{
    Dump, ErrorKind, ForeignProcess, Image, ImageRecorder, Mappings, MemorySpan, Process, Resident, Stopper,
    page_start, prefaulted, resident_bytes,
};

use crate::error::Error;
use crate::php::IsPhpFile;
use crate::ready::when_ready;
use copy::CopiedSpans;
pub use crashed::of_core;
pub use limit::MemoryLimitError;
use plan::CopyPlan;
use segments::SharedSegment;
use windows::{Changed, KeptWindows, PackedCopy, ReadWindows};

/// The options of copying a heap.
pub struct HeapOptions {
    /// Whether to stop the process. If it is not stopped, the copied parts are from different moments.
    pub stop: bool,
    /// Whether to copy mapped files too, so that the dump can be read where these files are absent.
    pub include_binary: bool,
    /// Whether to leave out memory that PHP's allocator did not allocate: the heap and the stacks of the C library. The
    /// data that PHP keeps from one request to the next is in that memory.
    pub exclude_heap: bool,
    /// Whether to leave out all shared memory, and not only that which no value refers to. What opcache keeps, which includes
    /// the program's functions and classes and most names, is then missing.
    pub exclude_shared: bool,
    /// The release; `None`: it is read from the process.
    pub release: Option<PhpRelease>,
    /// Decides which mapped file is PHP; `None`: it is searched for.
    pub is_php: Option<IsPhpFile>,
    /// The current time, as the dump will state it; empty: the dump states none.
    pub created_at: String,
    /// The place where the program has exceeded its memory limit, if that is why its heap is copied.
    pub memory_limit_error: Option<MemoryLimitError>,
    /// The memory, in bytes, that the copy and its analysis may take, if it was chosen: memory is then copied as it is, which takes
    /// less time, up to half of it. `None`: only little memory is copied as it is.
    pub memory_goal: Option<usize>,
}

impl Default for HeapOptions {
    fn default() -> Self {
        Self {
            stop: true,
            include_binary: false,
            exclude_heap: false,
            exclude_shared: false,
            release: None,
            is_php: None,
            created_at: String::new(),
            memory_limit_error: None,
            memory_goal: None,
        }
    }
}

/// A copied heap.
#[derive(Debug)]
#[non_exhaustive]
pub struct CapturedHeap {
    /// The dump, to be walked or written.
    pub dump: Dump,
    /// The identity of the PHP in the process.
    pub identity: Identity,
    /// The cost of the copy.
    pub statistics: HeapStatistics,
}

/// The cost of copying a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// The time from the request to stop until the process ran on; `None` if it was not stopped.
    pub stopped: Option<Duration>,
    /// The part of it until all threads had stopped.
    pub stopping: Duration,
    /// The next part, until it was known what to copy.
    pub planning: Duration,
    /// The next part, until the memory was copied.
    pub copying: Duration,
    /// The time for all the work before.
    pub preparing: Duration,
    /// The number of bytes copied while the process was stopped.
    pub copied_bytes: u64,
    /// The number of bytes of shared memory copied afterwards.
    pub shared_bytes: u64,
    /// The number of bytes of shared memory that were left out.
    pub left_out_bytes: u64,
    /// The number of bytes that could not be read.
    pub unreadable_bytes: u64,
    /// The number of attempts: a new one is made if the process had grown in between, or was in the middle of a change.
    pub attempts: u32,
}

/// The maximum number of attempts.
const MAX_ATTEMPTS: u32 = 4;

/// Copies the heap of the PHP process of this number.
///
/// # Errors
/// If the process does not exist, may not be read or stopped, does not run a supported PHP, or ends meanwhile. It is
/// never left stopped.
pub fn take(process_id: i32, options: &HeapOptions) -> Result<CapturedHeap, Error> {
    let begun = Instant::now();
    let attach = attach_options(options);
    let (process, image) = when_ready(|| {
        let process = Process::open(process_id)?;
        let image = record(&process, &attach).map_err(|error| in_process(&process, error))?;
        Ok((process, image))
    })?;
    let mut taking =
        HeapCapture { options, resident: Resident::open(&process)?, stopper: process.stopper(), process };
    taking.run(begun, &attach, &image).map_err(|error| in_process(&taking.process, error))
}

/// Replaces an error by that of an ended process, because data read from an ending process may be arbitrary.
fn in_process(process: &Process, error: Error) -> Error {
    if process.is_running() { error } else { ended(process.id()) }
}

fn ended(process: i32) -> Error {
    let what = format!("process {process} ended or replaced its program before it was copied");
    borehole_process::Error::new(ErrorKind::Gone, what).into()
}

/// Copied memory, and the place of each span in the buffer.
#[derive(Clone)]
struct Copy {
    buffer: Vec<u8>,
    placed: Vec<(usize, MemorySpan)>,
}

/// The room that is ready before the process is stopped.
enum Ready {
    /// A buffer for all memory.
    Buffer(Vec<u8>),
    /// Packed memory, which nearly all will be the same, and buffers for what will have changed.
    Packed(Box<PackedCopy>, [KeptWindows; 2]),
}

/// The memory of the stopped process.
enum Moment {
    Plain(Copy),
    Packed(Box<PackedCopy>),
}

struct CopiedMemory {
    memory: Moment,
    mappings: Mappings,
    statistics: HeapStatistics,
}

struct HeapCapture<'o> {
    options: &'o HeapOptions,
    process: Process,
    resident: Resident,
    stopper: Stopper,
}

impl HeapCapture<'_> {
    fn run(
        &mut self,
        begun: Instant,
        attach: &AttachOptions<'_>,
        image: &Image,
    ) -> Result<CapturedHeap, Error> {
        let files = self.copy_files()?;
        let mut attempts = 1;
        loop {
            let ready = self.make_ready()?;
            let preparing = begun.elapsed();
            let is_last = attempts == MAX_ATTEMPTS;
            if let Some(moment) = self.copy_all(ready, is_last)? {
                let mut statistics = HeapStatistics { attempts, preparing, ..moment.statistics };
                let mut dump = Dump::new(image.clone());
                dump.set_mappings(moment.mappings);
                match moment.memory {
                    Moment::Plain(memory) => dump.insert_spans(memory.buffer, memory.placed),
                    Moment::Packed(copy) => copy.into_dump(&mut dump),
                }
                dump.insert_spans(files.buffer.clone(), files.placed.iter().copied());
                self.copy_shared(&mut dump, &mut statistics)?;
                match Php::attach(&dump, attach) {
                    Ok(php) => return Ok(self.finish(dump, php.identity(), statistics)),
                    Err(error) if is_last => return Err(error.into()),
                    // The process was in the middle of a change.
                    Err(_) => {}
                }
            }
            attempts += 1;
        }
    }

    /// Makes ready for everything that there is to copy now, and some more: allocates memory for it, or packs it.
    fn make_ready(&mut self) -> Result<Ready, Error> {
        self.process.refresh()?;
        let plan = CopyPlan::of_memory(self.process.mappings(), &mut self.resident, self.options)?;
        if self.fits_plain(plan.bytes) {
            return Ok(Ready::Buffer(prefaulted(plan.bytes + (plan.bytes / 16).max(SLACK_BYTES))));
        }
        let mut copy = PackedCopy::default();
        let read = copy.read(&self.process, &plan, Changed::Packed, Default::default())?;
        copy.replace(read);
        if self.options.stop && copy.is_changing(&self.process, &plan)? {
            let read = copy.read(&self.process, &plan, Changed::Packed, Default::default())?;
            copy.replace(read);
        }
        let spare = (plan.bytes / 64).max(SLACK_BYTES) / 2;
        Ok(Ready::Packed(Box::new(copy), [KeptWindows::ready(spare), KeptWindows::ready(spare)]))
    }

    /// Whether so many bytes are copied as they are.
    fn fits_plain(&self, bytes: usize) -> bool {
        // The graph takes about as much as the memory.
        bytes <= self.options.memory_goal.map_or(PLAIN_BYTES, |goal| goal / 2)
    }

    /// Copies files while the process runs, because files do not change.
    fn copy_files(&mut self) -> Result<Copy, Error> {
        let plan = CopyPlan::of_files(self.process.mappings(), &mut self.resident, self.options)?;
        let mut buffer = prefaulted(plan.bytes);
        let CopiedSpans { placed, .. } = copy::all(&self.process, &plan, &mut buffer)?;
        Ok(Copy { buffer, placed })
    }

    /// Stops the process, copies its memory, and lets it run on. `None` if the buffer is too small and another attempt is left.
    fn copy_all(&mut self, ready: Ready, is_last: bool) -> Result<Option<CopiedMemory>, Error> {
        let mut statistics = HeapStatistics::default();
        let begun = Instant::now();
        let stopped = if self.options.stop { Some(self.stopper.stop()?) } else { None };
        statistics.stopping = begun.elapsed();
        self.process.refresh()?;
        let plan = CopyPlan::of_memory(self.process.mappings(), &mut self.resident, self.options)?;
        statistics.planning = begun.elapsed() - statistics.stopping;
        let Some(read) = read(&self.process, &plan, ready, is_last)? else { return Ok(None) };
        statistics.copying = begun.elapsed() - statistics.planning - statistics.stopping;
        if !self.process.runs_same_program() {
            return Err(ended(self.process.id()));
        }
        let was_stopped = stopped.is_some();
        drop(stopped);
        statistics.stopped = was_stopped.then(|| begun.elapsed());
        let (memory, unreadable_bytes) = read.finish();
        statistics.unreadable_bytes = unreadable_bytes;
        statistics.copied_bytes = plan.bytes as u64 - unreadable_bytes;
        let mappings = self.process.mappings().clone();
        Ok(Some(CopiedMemory { memory, mappings, statistics }))
    }

    /// Adds the shared memory that values in `dump` refer to, and counts the rest.
    fn copy_shared(&mut self, dump: &mut Dump, statistics: &mut HeapStatistics) -> Result<(), Error> {
        let segments = SharedSegment::all(dump.mappings());
        let (needed, others) = if self.options.exclude_shared {
            (Vec::new(), segments)
        } else {
            segments::partition(&self.process, dump, segments)
        };
        for SharedSegment { mappings } in others {
            statistics.left_out_bytes += CopyPlan::of_shared(&mappings, &mut self.resident)?.bytes as u64;
        }
        let needed: Vec<_> = needed.into_iter().flat_map(|segment| segment.mappings).collect();
        let plan = CopyPlan::of_shared(&needed, &mut self.resident)?;
        let mut buffer = prefaulted(plan.bytes);
        let CopiedSpans { placed, unreadable_bytes } = copy::all(&self.process, &plan, &mut buffer)?;
        if !self.process.runs_same_program() {
            return Err(ended(self.process.id()));
        }
        dump.insert_spans(buffer, placed);
        statistics.shared_bytes = plan.bytes as u64 - unreadable_bytes;
        statistics.unreadable_bytes += unreadable_bytes;
        Ok(())
    }

    fn finish(&self, mut dump: Dump, identity: &Identity, statistics: HeapStatistics) -> CapturedHeap {
        let yes_or_no = |is_so: bool| if is_so { "yes" } else { "no" };
        dump.set_fact("pid", self.process.id().to_string());
        dump.set_fact("stopped", yes_or_no(statistics.stopped.is_some()));
        dump.set_fact("exclude_heap", yes_or_no(self.options.exclude_heap));
        dump.set_fact("exclude_shared", yes_or_no(self.options.exclude_shared));
        dump.set_fact("left_out_bytes", statistics.left_out_bytes.to_string());
        if let Some(stopped) = statistics.stopped {
            dump.set_fact("stop_us", stopped.as_micros().to_string());
        }
        // The process may have ended meanwhile, after everything needed was copied.
        if let Ok(bytes) = resident_bytes(&self.process) {
            dump.set_fact("rss_bytes", bytes.to_string());
        }
        state(dump, identity, statistics, self.options)
    }
}

/// The memory that was read while the process was stopped.
enum ReadMemory {
    Plain { buffer: Vec<u8>, copied: CopiedSpans, bytes: usize },
    Packed(Box<PackedCopy>, ReadWindows),
}

/// Reads the memory of the plan. `None` if the buffer is too small and another attempt is left.
fn read(
    process: &Process,
    plan: &CopyPlan,
    ready: Ready,
    is_last: bool,
) -> Result<Option<ReadMemory>, Error> {
    let mut buffer = match ready {
        Ready::Buffer(buffer) => buffer,
        Ready::Packed(copy, spare) => {
            let read = copy.read(process, plan, Changed::Kept, spare)?;
            return Ok(Some(ReadMemory::Packed(copy, read)));
        }
    };
    if page_start(&buffer) + plan.bytes > buffer.len() {
        if !is_last {
            return Ok(None);
        }
        buffer = prefaulted(plan.bytes);
    }
    let copied = copy::all(process, plan, &mut buffer)?;
    Ok(Some(ReadMemory::Plain { buffer, copied, bytes: plan.bytes }))
}

impl ReadMemory {
    /// Does what could wait until the process ran on. Returns the number of bytes that could not be read too.
    fn finish(self) -> (Moment, u64) {
        match self {
            Self::Packed(mut copy, read) => {
                let unreadable_bytes = copy.replace(read);
                (Moment::Packed(copy), unreadable_bytes)
            }
            Self::Plain { mut buffer, copied: CopiedSpans { placed, unreadable_bytes }, bytes } => {
                // The memory was for as much as the process might have grown.
                buffer.truncate(page_start(&buffer) + bytes);
                buffer.shrink_to_fit();
                (Moment::Plain(Copy { buffer, placed }), unreadable_bytes)
            }
        }
    }
}

/// Adds the facts of every dump.
fn state(
    mut dump: Dump,
    identity: &Identity,
    statistics: HeapStatistics,
    options: &HeapOptions,
) -> CapturedHeap {
    dump.set_fact("php", identity.to_string());
    dump.set_fact("include_binary", if options.include_binary { "yes" } else { "no" });
    dump.set_fact("unreadable_bytes", statistics.unreadable_bytes.to_string());
    if !options.created_at.is_empty() {
        dump.set_fact("created_at", options.created_at.as_str());
    }
    if let Some(error) = &options.memory_limit_error {
        error.state(&mut dump);
    }
    CapturedHeap { dump, identity: identity.clone(), statistics }
}

/// Up to so many bytes are copied as they are: packing would save little beside the memory of the command itself.
const PLAIN_BYTES: usize = 48 << 20;

/// The number of bytes allocated beyond the current size, because a running process grows.
const SLACK_BYTES: usize = 8 << 20;

fn attach_options(options: &HeapOptions) -> AttachOptions<'_> {
    let is_php = options.is_php.as_ref().map(|is_php| is_php.as_ref() as &dyn Fn(&[u8]) -> bool);
    AttachOptions { release: options.release, is_php }
}

/// Records all data that attaching reads from the process, its files and threads, because it may be gone later.
fn record(process: &impl ForeignProcess, options: &AttachOptions<'_>) -> Result<Image, Error> {
    let recorder = ImageRecorder::new(process)?;
    Php::attach(&recorder, options)?;
    Ok(recorder.finish())
}
