//! The heap of a running PHP process, copied while it stands still for a moment.
//!
//! What is needed to walk it is found out before: PHP is attached to, and memory of ours is made ready for as much as there
//! was to copy. Then the process is stopped, what is mapped and touched is looked at once more, all of it is copied in
//! large pieces, and the process runs on. Whatever else is to be done is done with the copy.

mod copy;
mod crashed;
mod limit;
mod plan;

use std::time::{Duration, Instant};

use borehole_php::{AttachOptions, Identity, Php, Release};
use borehole_process::{
    Dump, ErrorKind, Image, Mappings, Process, Recorder, Resident, Span, Stopper, Target, page_start,
    prefaulted, resident_bytes,
};

use crate::error::Error;
use crate::php::IsPhpFile;
use crate::ready::when_ready;
use copy::Copied;
pub use crashed::of_core;
pub use limit::MemoryLimitError;
use plan::Plan;

/// How a heap is copied.
pub struct HeapOptions {
    /// Whether the process is stopped meanwhile. If it is not, what is copied is of different moments.
    pub stop: bool,
    /// Whether what is mapped of files is copied as well, so that nothing of them is missed elsewhere.
    pub include_binary: bool,
    /// Whether memory is left out that PHP's allocator has not made: the heap and the stacks of the C library. What PHP
    /// keeps from one request to the next is there.
    pub exclude_heap: bool,
    /// The release, where the process must not be asked for it.
    pub release: Option<Release>,
    /// Which mapped file is PHP; `None`: it is looked for.
    pub is_php: Option<IsPhpFile>,
    /// When this is, as the dump is to say it; nothing is said if it is empty.
    pub created_at: String,
    /// Where the program has exceeded its memory limit, if that is why its heap is copied.
    pub memory_limit_error: Option<MemoryLimitError>,
}

impl Default for HeapOptions {
    fn default() -> Self {
        Self {
            stop: true,
            include_binary: false,
            exclude_heap: false,
            release: None,
            is_php: None,
            created_at: String::new(),
            memory_limit_error: None,
        }
    }
}

/// A heap that was copied, and what that took.
#[derive(Debug)]
pub struct Taken {
    /// All of it, to be walked or written.
    pub dump: Dump,
    /// Which PHP it is.
    pub identity: Identity,
    /// What it took.
    pub statistics: HeapStatistics,
}

/// What it took to copy a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStatistics {
    /// How long the process stood still, from the moment when it was asked to until it ran on; `None` if it did not.
    pub stopped: Option<Duration>,
    /// Of that, until all its threads stood still.
    pub stopping: Duration,
    /// Then, until it was known what to copy.
    pub planning: Duration,
    /// Then, until it was copied.
    pub copying: Duration,
    /// All that was done before.
    pub preparing: Duration,
    /// Bytes that were copied meanwhile.
    pub copied_bytes: u64,
    /// Bytes that should have been and could not be read.
    pub unreadable_bytes: u64,
    /// How often it was stopped: again when it had grown in between, or was in the middle of a change.
    pub attempts: u32,
}

/// How often it is tried.
const MAX_ATTEMPTS: u32 = 4;

/// Copies the heap of the PHP process of this number.
///
/// # Errors
/// When there is no such process, it may not be read or stopped, runs no PHP that is understood, or ends meanwhile. It is
/// never left stopped.
pub fn take(process_id: i32, options: &HeapOptions) -> Result<Taken, Error> {
    let begun = Instant::now();
    let attach = attach_options(options);
    let (process, image) = when_ready(|| {
        let process = Process::open(process_id)?;
        let image = record(&process, &attach).map_err(|error| in_process(&process, error))?;
        Ok((process, image))
    })?;
    let mut taking =
        Taking { options, process, resident: Resident::open(process_id)?, stopper: Stopper::new(process_id) };
    taking.run(begun, &attach, &image).map_err(|error| in_process(&taking.process, error))
}

/// What is read of a process that is just ending may look like anything.
fn in_process(process: &Process, error: Error) -> Error {
    if process.is_running() { error } else { ended(process.id()) }
}

fn ended(process: i32) -> Error {
    let what = format!("process {process} has ended, or runs another program, before it was copied");
    borehole_process::Error::new(ErrorKind::Gone, what).into()
}

/// Memory that was copied, and where in the buffer each span begins.
#[derive(Clone)]
struct Copy {
    buffer: Vec<u8>,
    placed: Vec<(usize, Span)>,
}

/// Memory that was copied at one moment.
struct Moment {
    memory: Copy,
    mappings: Mappings,
    statistics: HeapStatistics,
}

/// A process whose heap is being copied.
struct Taking<'o> {
    options: &'o HeapOptions,
    process: Process,
    resident: Resident,
    stopper: Stopper,
}

impl Taking<'_> {
    fn run(&mut self, begun: Instant, attach: &AttachOptions<'_>, image: &Image) -> Result<Taken, Error> {
        let files = self.copy_files()?;
        let mut attempts = 1;
        loop {
            let buffer = self.make_ready()?;
            let preparing = begun.elapsed();
            let is_last = attempts == MAX_ATTEMPTS;
            if let Some(moment) = self.copy_all(buffer, is_last)? {
                let statistics = HeapStatistics { attempts, preparing, ..moment.statistics };
                let dump = assemble(image.clone(), moment, &files);
                match Php::attach(&dump, attach) {
                    Ok(php) => return Ok(self.finish(dump, php.identity(), statistics)),
                    Err(error) if is_last => return Err(error.into()),
                    // It was in the middle of a change.
                    Err(_) => {}
                }
            }
            attempts += 1;
        }
    }

    /// Memory for all that there is to copy now, and for some more.
    fn make_ready(&mut self) -> Result<Vec<u8>, Error> {
        self.process.refresh()?;
        let plan = Plan::of_memory(self.process.mappings(), &mut self.resident, self.options)?;
        Ok(prefaulted(plan.bytes + (plan.bytes / 16).max(SLACK_BYTES)))
    }

    /// Copies files, which do not change: the process runs meanwhile.
    fn copy_files(&mut self) -> Result<Copy, Error> {
        let plan = Plan::of_files(self.process.mappings(), &mut self.resident, self.options)?;
        let mut buffer = prefaulted(plan.bytes);
        let Copied { placed, .. } = copy::all(&self.process, &plan, &mut buffer)?;
        Ok(Copy { buffer, placed })
    }

    /// Stops the process, copies its memory, and lets it run on. `None` if there is more than has room in `buffer`, and
    /// another attempt is left.
    fn copy_all(&mut self, mut buffer: Vec<u8>, is_last: bool) -> Result<Option<Moment>, Error> {
        let mut statistics = HeapStatistics::default();
        let begun = Instant::now();
        let stopped = if self.options.stop { Some(self.stopper.stop()?) } else { None };
        statistics.stopping = begun.elapsed();
        self.process.refresh()?;
        let plan = Plan::of_memory(self.process.mappings(), &mut self.resident, self.options)?;
        statistics.planning = begun.elapsed() - statistics.stopping;
        if page_start(&buffer) + plan.bytes > buffer.len() {
            if !is_last {
                return Ok(None);
            }
            buffer = prefaulted(plan.bytes);
        }
        let copied = copy::all(&self.process, &plan, &mut buffer)?;
        statistics.copying = begun.elapsed() - statistics.planning - statistics.stopping;
        if !self.process.runs_same_program() {
            return Err(ended(self.process.id()));
        }
        let was_stopped = stopped.is_some();
        drop(stopped);
        statistics.stopped = was_stopped.then(|| begun.elapsed());
        statistics.unreadable_bytes = copied.unreadable_bytes;
        statistics.copied_bytes = plan.bytes as u64 - copied.unreadable_bytes;
        let mappings = self.process.mappings().clone();
        let memory = Copy { buffer, placed: copied.placed };
        Ok(Some(Moment { memory, mappings, statistics }))
    }

    fn finish(&self, mut dump: Dump, identity: &Identity, statistics: HeapStatistics) -> Taken {
        let yes_or_no = |is_so: bool| if is_so { "yes" } else { "no" };
        dump.set_fact("pid", self.process.id().to_string());
        dump.set_fact("stopped", yes_or_no(statistics.stopped.is_some()));
        dump.set_fact("exclude_heap", yes_or_no(self.options.exclude_heap));
        if let Some(stopped) = statistics.stopped {
            dump.set_fact("stop_us", stopped.as_micros().to_string());
        }
        // It may have ended meanwhile, with all that is needed of it copied.
        if let Ok(bytes) = resident_bytes(self.process.id()) {
            dump.set_fact("rss_bytes", bytes.to_string());
        }
        state(dump, identity, statistics, self.options)
    }
}

/// States what is known of every dump.
fn state(mut dump: Dump, identity: &Identity, statistics: HeapStatistics, options: &HeapOptions) -> Taken {
    dump.set_fact("php", identity.to_string());
    dump.set_fact("include_binary", if options.include_binary { "yes" } else { "no" });
    dump.set_fact("unreadable_bytes", statistics.unreadable_bytes.to_string());
    if !options.created_at.is_empty() {
        dump.set_fact("created_at", options.created_at.as_str());
    }
    if let Some(error) = &options.memory_limit_error {
        error.state(&mut dump);
    }
    Taken { dump, identity: identity.clone(), statistics }
}

/// Puts together what was learnt before, what was copied, and the files.
fn assemble(image: Image, moment: Moment, files: &Copy) -> Dump {
    let mut dump = Dump::new(image);
    dump.set_mappings(moment.mappings);
    dump.insert_spans(moment.memory.buffer, moment.memory.placed);
    dump.insert_spans(files.buffer.clone(), files.placed.iter().copied());
    dump
}

/// So much is made ready beyond what there is: a process that runs grows.
const SLACK_BYTES: usize = 8 << 20;

fn attach_options(options: &HeapOptions) -> AttachOptions<'_> {
    let is_php = options.is_php.as_ref().map(|is_php| is_php.as_ref() as &dyn Fn(&[u8]) -> bool);
    AttachOptions { release: options.release, is_php }
}

/// What attaching to the process reads, and what it asks of files and threads: later it may be gone.
fn record(process: &impl Target, options: &AttachOptions<'_>) -> Result<Image, Error> {
    let recorder = Recorder::new(process)?;
    Php::attach(&recorder, options)?;
    Ok(recorder.finish())
}
