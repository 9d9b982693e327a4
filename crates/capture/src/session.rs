//! A session: one thread that samples processes into one output.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use borehole_model::{Context, Frame, NativeModule, Sample, Segment, StackId, Status, Tables, Thread};
use borehole_process::Stopper;

use crate::control::{SessionControl, SessionProgress};
use crate::error::Error;
use crate::native_counts::NativeCounts;
use crate::options::{Grouping, Idle, SampleOptions, StopMode, nanoseconds};
use crate::oracle::Oracle;
use crate::output::LiveSink;
use crate::pending::{PendingSample, PendingSamples};
use crate::schedule::{self, Schedule, now_ns};
use crate::segment::SegmentMetadata;
use crate::statistics::{COUNTS, SampleStatistics};
use crate::subject::{Look, Patience, Subject, TakenSample};

/// The interval of flushing the file and of updating what is known about processes.
const CARE_NS: u64 = 500_000_000;

/// The maximum time of one wait for new processes when there is nothing to sample.
const PATIENCE: Duration = Duration::from_millis(50);

/// The number of table rows beyond which a new segment begins with empty tables: about 100 MB.
const MAX_ROWS: usize = 1 << 20;

/// The corresponding limit for the bytes of strings, such as the URLs of requests. Readers hold a whole segment in memory too.
const MAX_STRING_BYTES: usize = 64 << 20;

/// The maximum number of further stops of a process that was stopped at an unsuitable moment.
const MAX_STOPS: u32 = 3;

/// The name of the frame of a process that executes nothing.
const IDLE_FRAME: &[u8] = b"<idle>";

/// Samples processes into one output, on the calling thread.
pub struct SamplingSession<'a> {
    options: SampleOptions,
    header: SegmentMetadata,
    output: &'a mut dyn LiveSink,
    shared: SessionControl,
    tables: Tables,
    current: Option<OpenSegment>,
    targets: Vec<SampledProcess>,
    pending: PendingSamples,
    /// The files of native code of the current segment.
    modules: BTreeSet<String>,
    idle: Option<StackId>,
    statistics: SampleStatistics,
    oracle: Oracle,
    start_ns: u64,
    /// The time at which the periodic work is due.
    care_ns: u64,
}

struct OpenSegment {
    segment: Segment,
    start_ns: u64,
    /// The counts at its beginning, as [`SampleStatistics::facts`].
    counted_before: [(&'static str, u64); COUNTS],
    native_before: NativeCounts,
}

struct SampledProcess {
    subject: Box<dyn Subject>,
    stopper: Stopper,
    /// Whether the process could not be stopped. Finding that out may take long, so stopping is not tried again before
    /// the next periodic work.
    cannot_stop: bool,
    is_gone: bool,
    /// When it was looked at last. A process that goes on after a stop may keep this thread from its CPU.
    looked_ns: u64,
}

impl SampledProcess {
    fn new(subject: Box<dyn Subject>) -> Self {
        let stopper = subject.stopper();
        Self { subject, stopper, cannot_stop: false, is_gone: false, looked_ns: 0 }
    }

    /// Looks while the process runs.
    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        let look = self.subject.look(lane, tables)?;
        self.looked_ns = now_ns();
        Ok(look)
    }

    /// Looks while the process is stopped; `None` if it cannot be stopped now.
    fn look_stopped(
        &mut self,
        lane: usize,
        tables: &mut Tables,
        statistics: &mut SampleStatistics,
    ) -> Result<Option<Look>, Error> {
        if !self.cannot_stop {
            let thread = self.subject.thread_to_stop(lane);
            let stopped = match thread {
                Some(thread) => self.stopper.stop_thread(thread),
                None => self.stopper.stop(),
            };
            match stopped {
                Ok(stopped) => {
                    statistics.stopped += 1;
                    let look = self.subject.look_stopped(lane, stopped.registers(), tables)?;
                    self.looked_ns = now_ns();
                    drop(stopped);
                    let look = self.subject.look_released(lane, look, tables)?;
                    statistics.native += self.subject.take_native_counts();
                    return Ok(Some(look));
                }
                // The thread has ended; the process may run on.
                Err(error) if error.kind() == borehole_process::ErrorKind::Gone && thread.is_some() => {
                    return Ok(Some(Look::Ended));
                }
                Err(error) if error.kind() == borehole_process::ErrorKind::Gone => return Err(error.into()),
                Err(_) => self.cannot_stop = true,
            }
        }
        statistics.unstopped += 1;
        Ok(None)
    }

    /// Like [`Self::look_stopped`], repeated until the process was stopped with a complete stack.
    fn look_stopped_again(
        &mut self,
        lane: usize,
        max_retries: u32,
        tables: &mut Tables,
        statistics: &mut SampleStatistics,
    ) -> Result<Option<Look>, Error> {
        let mut look = self.look_stopped(lane, tables, statistics)?;
        for _ in 0..max_retries.min(MAX_STOPS) {
            if look != Some(Look::Torn) {
                break;
            }
            statistics.retried += 1;
            look = self.look_stopped(lane, tables, statistics)?;
        }
        Ok(look)
    }
}

impl<'a> SamplingSession<'a> {
    /// Creates a session that samples into `output` the processes given to [`SamplingSession::run`]. `header` is the metadata
    /// of each segment.
    pub fn new(
        options: SampleOptions,
        header: SegmentMetadata,
        output: &'a mut dyn LiveSink,
        shared: SessionControl,
    ) -> Self {
        let start_ns = now_ns();
        Self {
            options,
            header,
            output,
            shared,
            tables: Tables::default(),
            current: None,
            targets: Vec::new(),
            pending: PendingSamples::default(),
            modules: BTreeSet::new(),
            idle: None,
            statistics: SampleStatistics::default(),
            oracle: Oracle::one_in(options.oracle),
            start_ns,
            care_ns: start_ns + CARE_NS,
        }
    }

    /// Samples until it is asked to end, the time or number of samples is reached, or there is nothing to sample and no
    /// more processes will `arrive`. Completes the output in every case.
    ///
    /// # Errors
    /// If the output cannot be written, or a profile cannot hold more.
    pub fn run(mut self, arrivals: &Receiver<Box<dyn Subject>>) -> Result<SampleStatistics, Error> {
        // Threads that wait for the end must see it even after a panic.
        let mut end = self.shared.end_on_drop();
        schedule::be_punctual();
        let sampled = self.sample_all(arrivals);
        self.note_time();
        let completed = self.complete();
        self.publish();
        let ended = sampled.and(completed);
        end.is_well = ended.is_ok();
        ended.map(|()| self.statistics)
    }

    fn sample_all(&mut self, arrivals: &Receiver<Box<dyn Subject>>) -> Result<(), Error> {
        let mut schedule = Schedule::start(self.options.period_ns());
        loop {
            let had_none = self.targets.is_empty();
            if !self.welcome(arrivals)? && self.targets.is_empty() {
                return Ok(());
            }
            if had_none {
                schedule.restart();
            }
            self.sample_each()?;
            if self.note_time() >= self.care_ns || self.targets.iter().any(|target| target.is_gone) {
                self.take_care()?;
            }
            if self.is_over() {
                let missed = if self.is_out_of_time() { schedule.overdue() } else { 0 };
                self.miss(missed);
                return Ok(());
            }
            if !self.targets.is_empty() {
                self.wait(&mut schedule, arrivals)?;
            }
            if self.is_over() {
                return Ok(());
            }
        }
    }

    /// Waits for the next point in time, and does the periodic work that is due before it. Returns early if sampling is
    /// over or nothing is left to sample.
    fn wait(&mut self, schedule: &mut Schedule, arrivals: &Receiver<Box<dyn Subject>>) -> Result<(), Error> {
        let missed = schedule.advance();
        self.miss(missed);
        let end_ns = self
            .options
            .duration
            .map_or(u64::MAX, |duration| self.start_ns.saturating_add(nanoseconds(duration)));
        while !schedule.wait_until(self.care_ns.min(end_ns), || self.is_enough()) {
            self.note_time();
            if self.is_over() {
                break;
            }
            self.take_care()?;
            if self.targets.is_empty() {
                break;
            }
            self.welcome(arrivals)?;
        }
        Ok(())
    }

    fn note_time(&mut self) -> u64 {
        let now_ns = now_ns();
        self.statistics.elapsed_ns = now_ns - self.start_ns;
        now_ns
    }

    fn is_over(&self) -> bool {
        self.is_enough() || self.is_out_of_time()
    }

    fn is_enough(&self) -> bool {
        self.shared.is_stopping()
            || self.options.samples.is_some_and(|samples| self.shared.written() >= samples)
    }

    fn is_out_of_time(&self) -> bool {
        self.options.duration.is_some_and(|duration| self.statistics.elapsed_ns >= nanoseconds(duration))
    }

    /// Adds the processes that have arrived; waits for one if there is nothing else to do. Returns whether more may come.
    fn welcome(&mut self, arrivals: &Receiver<Box<dyn Subject>>) -> Result<bool, Error> {
        let mut arrived = Vec::new();
        let mut may_come = true;
        if self.targets.is_empty() {
            match arrivals.recv_timeout(PATIENCE) {
                Ok(subject) => arrived.push(subject),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => may_come = false,
            }
        }
        loop {
            match arrivals.try_recv() {
                Ok(subject) => arrived.push(subject),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    may_come = false;
                    break;
                }
            }
        }
        if !arrived.is_empty() {
            self.statistics.attached += arrived.len() as u64;
            self.targets.extend(arrived.into_iter().map(SampledProcess::new));
            if self.options.grouping == Grouping::Segments || self.current.is_none() {
                self.begin_segment()?;
            }
            self.publish();
        }
        Ok(may_come)
    }

    fn begin_segment(&mut self) -> Result<(), Error> {
        self.end_segment()?;
        if self.is_to_forget() {
            self.forget();
        }
        let index = self.current.as_ref().map_or(0, |before| before.segment.index + 1);
        let named = if self.options.grouping == Grouping::Segments { self.targets.as_slice() } else { &[] };
        let subjects: Vec<&dyn Subject> = named.iter().map(|target| target.subject.as_ref()).collect();
        let segment = self.header.segment(
            index,
            self.options.period_ns(),
            self.start_ns,
            &subjects,
            &mut self.tables,
        )?;
        let current = OpenSegment {
            segment,
            start_ns: now_ns(),
            counted_before: self.statistics.facts(),
            native_before: self.statistics.native,
        };
        let OpenSegment { segment, .. } = self.current.insert(current);
        self.output.segment(Context { tables: &self.tables, segment })?;
        Ok(())
    }

    /// Whether the tables must be emptied. Names that come and go, such as URLs of requests, must not fill the memory
    /// of an endless run.
    fn is_to_forget(&self) -> bool {
        let Self { tables, output, .. } = self;
        let rows = tables.string_count() + tables.stack_count() + tables.labels_count();
        output.takes_new_tables() && (rows > MAX_ROWS || tables.string_bytes() > MAX_STRING_BYTES)
    }

    fn forget(&mut self) {
        self.tables = Tables::default();
        self.oracle.forget();
        self.idle = None;
        for target in &mut self.targets {
            target.subject.forget();
        }
    }

    /// Writes the counts of the segment's samples into the segment, and ends it.
    fn end_segment(&mut self) -> Result<(), Error> {
        self.write_pending(Patience::Wait)?;
        self.note_modules(|_| true);
        self.statistics.truth = self.oracle.measured();
        let Some(OpenSegment { segment, counted_before, native_before, .. }) = &self.current else {
            return Ok(());
        };
        let counts = self.statistics.facts().into_iter().zip(counted_before);
        let counts = counts.map(|((key, now), (_, before))| (key, (now - before).to_string()));
        let modules = std::mem::take(&mut self.modules).into_iter();
        let modules = modules.map(|module| (NativeModule::KEY, module));
        let native = self.statistics.native - *native_before;
        let native = native.facts().into_iter().filter(|_| native.stacks > 0);
        let native = native.map(|(key, count)| (key, count.to_string()));
        for (key, value) in counts.chain(native).chain(modules).chain(self.statistics.truth.facts()) {
            let key = self.tables.intern_string(key.as_bytes()).map_err(io::Error::from)?;
            let value = self.tables.intern_string(value.as_bytes()).map_err(io::Error::from)?;
            self.output.metadata(Context { tables: &self.tables, segment }, key, value)?;
        }
        Ok(())
    }

    fn sample_each(&mut self) -> Result<(), Error> {
        for row in 0..self.targets.len() {
            if let Err(error) = self.targets[row].subject.prepare() {
                self.targets[row].is_gone |= error.is_gone();
            }
            self.write_taken(row)?;
            for lane in 0..self.targets[row].subject.lanes() {
                self.statistics.asked += 1;
                match self.sample(row, lane) {
                    Ok(look) => {
                        self.write(row, lane, look)?;
                        self.write_tasks(row, lane)?;
                    }
                    Err(error) if error.is_full() => return Err(error),
                    Err(error) => {
                        self.statistics.failed += 1;
                        self.targets[row].is_gone |= error.is_gone();
                    }
                }
            }
        }
        self.write_pending(Patience::None)
    }

    /// Looks until the stack does not change during the look; if it always changes, stops the process as the options allow.
    fn sample(&mut self, row: usize, lane: usize) -> Result<Look, Error> {
        let Self { options, targets, tables, statistics, oracle, .. } = self;
        let target = &mut targets[row];
        let has_oracle =
            target.subject.has_oracle() && options.stop != StopMode::Always && !target.subject.needs_stop();
        if has_oracle
            && oracle.is_due()
            && target.subject.will_stop(lane)
            && let Some(look) = target.look_stopped(lane, tables, statistics)?
        {
            statistics.reference += 1;
            oracle.note_reference(look.stack(), tables);
            return Ok(look);
        }
        let look = Self::sample_running(options, target, lane, tables, statistics)?;
        if has_oracle && target.subject.is_comparable(lane) {
            oracle.note_running(look.stack(), tables);
        }
        Ok(look)
    }

    fn sample_running(
        options: &SampleOptions,
        target: &mut SampledProcess,
        lane: usize,
        tables: &mut Tables,
        statistics: &mut SampleStatistics,
    ) -> Result<Look, Error> {
        if (options.stop == StopMode::Always || target.subject.needs_stop())
            && target.subject.will_stop(lane)
            && let Some(look) = target.look_stopped_again(lane, options.max_retries, tables, statistics)?
        {
            return Ok(look);
        }
        let mut look = target.look(lane, tables)?;
        for _ in 0..options.max_retries.min(target.subject.max_retries()) {
            if look != Look::Torn {
                return Ok(look);
            }
            statistics.retried += 1;
            look = target.look(lane, tables)?;
        }
        if look == Look::Torn
            && options.stop == StopMode::WhenTorn
            && target.subject.will_stop(lane)
            && let Some(stopped) = target.look_stopped(lane, tables, statistics)?
        {
            look = stopped;
        }
        Ok(look)
    }

    fn write(&mut self, row: usize, lane: usize, look: Look) -> Result<(), Error> {
        let stack = match look {
            Look::Torn => {
                self.statistics.torn += 1;
                return Ok(());
            }
            Look::Ended => {
                self.statistics.gone += 1;
                return Ok(());
            }
            Look::Idle => {
                self.statistics.idle += 1;
                if self.options.idle == Idle::Skip {
                    return Ok(());
                }
                self.idle_stack()?
            }
            Look::Stack { stack, omitted } => {
                self.statistics.taken += 1;
                self.statistics.truncated += u64::from(omitted > 0);
                stack
            }
        };
        let status = self.targets[row].subject.status(lane);
        self.write_stack(row, lane, stack, status)
    }

    /// Writes the tasks of a lane that wait.
    fn write_tasks(&mut self, row: usize, lane: usize) -> Result<(), Error> {
        let subject = &mut self.targets[row].subject;
        self.statistics.cut_tasks += subject.take_cut_tasks();
        let stacks = match subject.waiting_tasks(lane, &mut self.tables) {
            Err(error) if !error.is_full() => return Ok(()),
            stacks => stacks?,
        };
        for stack in stacks {
            self.statistics.tasks += 1;
            self.write_stack(row, lane, stack, Some(Status::default()))?;
        }
        Ok(())
    }

    fn write_stack(
        &mut self,
        row: usize,
        lane: usize,
        stack: StackId,
        status: Option<Status>,
    ) -> Result<(), Error> {
        let Some(OpenSegment { segment, .. }) = &self.current else { return Ok(()) };
        let SampledProcess { subject, looked_ns, .. } = &mut self.targets[row];
        // Labels that cannot be read now are unknown.
        let labels = subject.labels(lane, &mut self.tables).unwrap_or(None);
        let time_ns = i64::try_from(*looked_ns - self.start_ns).unwrap_or(i64::MAX);
        let sample = Sample {
            count: 1,
            time_ns: Some(time_ns),
            process: segment.process.is_none().then(|| i64::from(subject.process())),
            thread: subject.thread(lane),
            interpreter: subject.interpreter(lane),
            status,
            labels,
            ..Sample::default()
        };
        self.pending.push(PendingSample { row, stack, sample });
        self.shared.count_written();
        Ok(())
    }

    /// Writes the samples that the system has taken of a process.
    fn write_taken(&mut self, row: usize) -> Result<(), Error> {
        let subject = &mut self.targets[row].subject;
        let taken = match subject.taken(&mut self.tables) {
            Err(error) if error.is_full() => return Err(error),
            Err(error) => {
                self.targets[row].is_gone |= error.is_gone();
                return Ok(());
            }
            Ok(taken) => taken,
        };
        let Some(OpenSegment { segment, .. }) = &self.current else { return Ok(()) };
        let process = segment.process.is_none().then(|| i64::from(subject.process()));
        let native = subject.take_native_counts();
        self.statistics.native += native;
        self.statistics.missed += native.lost;
        self.statistics.asked += native.lost + taken.len() as u64;
        for TakenSample { thread, time_ns, stack, omitted, status, count } in taken {
            self.statistics.taken += 1;
            self.statistics.truncated += u64::from(omitted > 0);
            let time_ns = i64::try_from(time_ns.saturating_sub(self.start_ns)).ok();
            let (thread, status) = (Some(thread), Some(status));
            let sample = Sample { count, time_ns, process, thread, status, ..Sample::default() };
            self.pending.push(PendingSample { row, stack, sample });
            self.shared.count_written();
        }
        Ok(())
    }

    /// Writes the samples whose stacks are named, up to the first that is not. With patience, waits for all names.
    fn write_pending(&mut self, patience: Patience) -> Result<(), Error> {
        let Some(OpenSegment { segment, .. }) = &self.current else { return Ok(()) };
        let patience = if self.pending.is_full() { Patience::Wait } else { patience };
        while let Some(PendingSample { row, stack, sample }) = self.pending.first() {
            let stack = self.targets[row].subject.named(stack, patience, &mut self.tables)?;
            if stack.is_none() {
                break;
            }
            let sample = Sample { stack, ..sample };
            let _ = self.output.sample(Context { tables: &self.tables, segment }, &sample)?;
            self.pending.drop_first();
        }
        Ok(())
    }

    fn idle_stack(&mut self) -> Result<StackId, Error> {
        if let Some(stack) = self.idle {
            return Ok(stack);
        }
        let mut intern = || {
            let name = self.tables.intern_string(IDLE_FRAME)?;
            let frame = self.tables.intern_frame(&Frame::named(name))?;
            self.tables.intern_stack(None, frame)
        };
        let stack = intern().map_err(io::Error::from)?;
        self.idle = Some(stack);
        Ok(stack)
    }

    fn miss(&mut self, deadlines: u64) {
        let lanes: usize = self.targets.iter().map(|target| target.subject.lanes()).sum();
        let missed = deadlines.saturating_mul(lanes as u64);
        self.statistics.missed += missed;
        self.statistics.asked += missed;
    }

    fn take_care(&mut self) -> Result<(), Error> {
        self.care_ns = now_ns() + CARE_NS;
        self.name_threads()?;
        for target in &mut self.targets {
            target.is_gone |= target.subject.refresh().is_err_and(|error| error.is_gone());
            target.cannot_stop = false;
        }
        if self.targets.iter().any(|target| target.is_gone) {
            self.write_pending(Patience::Wait)?;
            self.note_modules(|target| target.is_gone);
        }
        let gone = self.targets.extract_if(.., |target| target.is_gone);
        let departed: Vec<i32> = gone.map(|target| target.subject.process()).collect();
        self.shared.depart(&departed);
        let lasts_ns = self.current.as_ref().map_or(0, |current| now_ns() - current.start_ns);
        let is_due = self.options.rotate.is_some_and(|rotate| lasts_ns >= nanoseconds(rotate));
        if (is_due || self.is_to_forget()) && !self.targets.is_empty() {
            self.begin_segment()?;
        }
        self.output.flush()?;
        self.publish();
        Ok(())
    }

    /// Notes the files of native code of some processes, for the metadata.
    fn note_modules(&mut self, is_meant: impl Fn(&SampledProcess) -> bool) {
        let meant = self.targets.iter().filter(|target| is_meant(target));
        self.modules.extend(meant.flat_map(|target| target.subject.native_modules()));
    }

    /// Tells the output the names of threads that have been found since the last time.
    fn name_threads(&mut self) -> Result<(), Error> {
        let Self { targets, output, tables, current: Some(OpenSegment { segment, .. }), .. } = self else {
            return Ok(());
        };
        for target in targets {
            let process = Some(i64::from(target.subject.process()));
            for (number, name) in target.subject.new_thread_names() {
                let name = tables.intern_string(&name).map_err(io::Error::from)?;
                output.thread(Context { tables, segment }, Thread { process, number }, name)?;
            }
        }
        Ok(())
    }

    fn publish(&self) {
        let processes = self.targets.iter().map(|target| target.subject.process()).collect();
        self.shared.publish(SessionProgress { statistics: self.statistics, processes });
    }

    fn complete(&mut self) -> Result<(), Error> {
        self.name_threads()?;
        self.end_segment()?;
        self.output.finish(&self.tables)?;
        Ok(())
    }
}
