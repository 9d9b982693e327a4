//! Adds profiles to a lake.
//!
//! An [`Addition`] is a sink for one input. It writes rows to files that are invisible until [`Addition::commit`] names all
//! of them at once.

mod events;
pub(crate) mod files;
mod heap;
mod labels;
pub(crate) mod numbers;
mod rows;
mod source;
mod stacks;
mod upload;
mod words;

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;

use borehole_analysis::tokio::TokioSink;
use borehole_model::{Context, Event, ProfileSink, Recovery, Sample, Segment, Status, StringId, Tables};
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use self::events::EventNumbers;
use self::files::{FileWriter, GROUP_ROWS, Partition};
use self::labels::{LabelWords, Set};
use self::numbers::{FileNumbers, MeasureWords, NumberWords, SampleNumbers};
use self::rows::{RowCell, TableRows};
pub use self::source::{AddedInput, InputDetails};
use self::stacks::InputStacks;
use self::words::{ColumnWords, NO_WORD, Word};
use crate::checksum::input_id;
use crate::error::Error;
use crate::ids::StackIds;
use crate::journal::{Commit, DataFile, Intent, LakeState, Operation, now_us};
use crate::lake::Lake;
use crate::tables::{DAY_US, LakeTable};
use crate::time::joined;

/// The number of rows buffered for all files together.
const WAITING_ROWS: usize = 2 * GROUP_ROWS;
/// The maximum number of open files.
const OPEN_FILES: usize = 12;
/// The maximum number of labels listed for a file.
pub(crate) const LISTED_LABELS: usize = 64;
/// Times that are further ahead of this machine's clock count as future.
const FUTURE_US: i64 = DAY_US;
/// The service of inputs that do not name one.
const UNNAMED: &str = "unnamed";

/// The origin of an input's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockSource {
    Recorded,
    Given,
    File,
}

/// The properties shared by the rows of a segment.
#[derive(Clone, Debug)]
struct Here {
    service: Word,
    host: Word,
    origin_ns: i128,
    clock: ClockSource,
}

impl Here {
    /// The properties before the input has named any.
    fn at_first(source: &InputDetails, words: &mut ColumnWords) -> Self {
        let service = words.word(source.service.as_deref().unwrap_or(UNNAMED));
        Self { service, host: words.optional(source.host.as_deref()), origin_ns: 0, clock: ClockSource::File }
    }
}

/// A file being written: its buffered rows, and the facts that let queries skip it.
struct OpenFile {
    rows: TableRows,
    writer: Option<FileWriter>,
    span_us: Option<(i64, i64)>,
    labels: Option<BTreeSet<Word>>,
    /// The label sets that `labels` comes from.
    sets: HashSet<Word>,
    /// The label set of the previous row, which most rows share.
    last_set: Word,
    numbers: FileNumbers,
    used: u64,
}

impl OpenFile {
    fn new(table: LakeTable) -> Self {
        Self {
            rows: TableRows::new(table),
            writer: None,
            span_us: None,
            labels: Some(BTreeSet::new()),
            sets: HashSet::new(),
            last_set: NO_WORD,
            numbers: FileNumbers::default(),
            used: 0,
        }
    }
}

impl Lake {
    /// Begins to add inputs.
    #[must_use]
    pub fn adding(&self) -> Adding<'_> {
        Adding::new(self)
    }
}

/// Adds inputs one after another, and remembers the stacks that they share.
#[derive(Debug)]
pub struct Adding<'l> {
    lake: &'l Lake,
    tables: Tables,
    ids: StackIds,
}

/// The number of stacks, with their callers, remembered for later inputs.
const REMEMBERED_STACKS: usize = 2_000_000;

impl<'l> Adding<'l> {
    pub(crate) fn new(lake: &'l Lake) -> Self {
        Self { lake, tables: Tables::default(), ids: StackIds::default() }
    }

    /// Begins an input: returns the tables that it is read into and the sink that takes it.
    pub fn input(&mut self, source: InputDetails) -> (&mut Tables, Addition<'_>) {
        if self.tables.stack_count() > REMEMBERED_STACKS {
            *self = Self::new(self.lake);
        }
        (&mut self.tables, Addition::new(self.lake, source, &mut self.ids))
    }
}

/// Takes one input, and adds it to a lake on [`Addition::commit`].
pub struct Addition<'l> {
    lake: &'l Lake,
    source: InputDetails,
    words: ColumnWords,
    labels: LabelWords,
    stacks: InputStacks<'l>,
    statuses: HashMap<Status, Word>,
    here: Here,
    /// The numbers of the segment's samples.
    weighed: SampleNumbers,
    /// The default value type of the input: that of its first sample.
    default_value: Option<MeasureWords>,
    /// Whether the next segment may belong to another program than the previous one.
    is_apart: bool,
    open: HashMap<(LakeTable, Word, i64), OpenFile>,
    done: Vec<DataFile>,
    waiting: usize,
    turn: u64,
    tokio: Option<Box<TokioSink>>,
    numbers: EventNumbers,
    span_us: Option<(i64, i64)>,
    services: BTreeSet<Word>,
    added: AddedInput,
    latest_us: i64,
}

impl<'l> Addition<'l> {
    fn new(lake: &'l Lake, source: InputDetails, ids: &'l mut StackIds) -> Self {
        let mut words = ColumnWords::default();
        let here = Here::at_first(&source, &mut words);
        let weighed = SampleNumbers::of(&Segment::default(), &mut words);
        Self {
            lake,
            source,
            words,
            weighed,
            default_value: None,
            labels: LabelWords::default(),
            stacks: InputStacks::new(ids),
            statuses: HashMap::new(),
            here,
            is_apart: false,
            open: HashMap::new(),
            done: Vec::new(),
            waiting: 0,
            turn: 0,
            tokio: None,
            numbers: EventNumbers::default(),
            span_us: None,
            services: BTreeSet::new(),
            added: AddedInput::default(),
            latest_us: now_us().saturating_add(FUTURE_US),
        }
    }

    /// Adds a row without labels, whose `cells` follow its service, time and host.
    #[inline]
    fn row(&mut self, table: LakeTable, time_us: i64, cells: &[RowCell]) -> Result<(), Error> {
        self.lasting_row(table, (time_us, time_us), &Set::NONE, cells, None)
    }

    /// Adds a row that covers a span of time and is kept until its end expires. Its `cells` follow its service, time and host.
    #[inline]
    fn lasting_row(
        &mut self,
        table: LakeTable,
        (first_us, last_us): (i64, i64),
        labels: &Set,
        cells: &[RowCell],
        number: Option<NumberWords>,
    ) -> Result<(), Error> {
        let key = (table, self.here.service, last_us.div_euclid(DAY_US));
        let open = match self.open.entry(key) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                if table != LakeTable::Sources {
                    self.services.insert(self.here.service);
                }
                place.insert(OpenFile::new(table))
            }
        };
        let origin =
            [RowCell::Word(self.here.service), RowCell::Time(first_us), RowCell::word(self.here.host)];
        open.rows.push(&origin, cells);
        if let Some(number) = number {
            open.numbers.see(number, first_us);
        }
        let span_us = (first_us, last_us);
        open.span_us = Some(open.span_us.map_or(span_us, |known| joined(known, span_us)));
        if let Some(listed) = &mut open.labels
            && open.last_set != labels.text
            && open.sets.insert(labels.text)
        {
            listed.extend(self.labels.pairs(labels));
            if listed.len() > LISTED_LABELS {
                open.labels = None;
            }
        }
        open.last_set = labels.text;
        let count = open.rows.count;
        self.waiting += 1;
        if count >= GROUP_ROWS {
            self.write(key)?;
        } else if self.waiting >= WAITING_ROWS {
            let fullest = self.open.iter().max_by_key(|(_, open)| open.rows.count).map(|(&key, _)| key);
            fullest.map_or(Ok(()), |key| self.write(key))?;
        }
        Ok(())
    }

    /// Records the time of an observation and returns it in microseconds.
    #[inline]
    fn seen(&mut self, unix_ns: i128, count: u64) -> i64 {
        let extreme = if unix_ns < 0 { i64::MIN } else { i64::MAX };
        // Nearly all times fit in 64 bits, which divide far faster.
        let time_us = match i64::try_from(unix_ns) {
            Ok(unix_ns) => unix_ns.div_euclid(1000),
            Err(_) => i64::try_from(unix_ns.div_euclid(1000)).unwrap_or(extreme),
        };
        // Parquet and the engine support these years.
        let time_us = time_us.clamp(EARLIEST_US, LATEST_US);
        let moment = (time_us, time_us);
        self.span_us = Some(self.span_us.map_or(moment, |known| joined(known, moment)));
        if time_us > self.latest_us {
            self.added.future = self.added.future.saturating_add(count);
        }
        time_us
    }

    /// Writes the buffered rows of a file.
    fn write(&mut self, key: (LakeTable, Word, i64)) -> Result<(), Error> {
        self.turn += 1;
        let Some(open) = self.open.get_mut(&key) else { return Ok(()) };
        if open.rows.count == 0 {
            return Ok(());
        }
        self.waiting -= open.rows.count;
        let batch = open.rows.take(&mut self.words);
        let partition = Partition { service: self.words.text(key.1).map(str::to_owned), day: Some(key.2) };
        let (lake, turn) = (self.lake, self.turn);
        open.used = turn;
        self.added.rows += batch.num_rows() as u64;
        let writer = match &mut open.writer {
            Some(writer) => writer,
            none => none.insert(FileWriter::new(&lake.place, key.0, &partition, &batch)?),
        };
        lake.block_on(writer.write(&batch, &lake.place))?;
        let written = self.open.iter().filter(|(_, open)| open.writer.is_some());
        if written.clone().count() > OPEN_FILES {
            let oldest = written.min_by_key(|(_, open)| open.used).map(|(&key, _)| key);
            oldest.map_or(Ok(()), |key| self.close(key))?;
        }
        Ok(())
    }

    /// Writes the buffered rows of a file and finishes it.
    fn close(&mut self, key: (LakeTable, Word, i64)) -> Result<(), Error> {
        self.write(key)?;
        let Some(open) = self.open.remove(&key) else { return Ok(()) };
        let Some(writer) = open.writer else { return Ok(()) };
        let file = self.lake.block_on(writer.finish(&self.lake.place))?;
        let labels = open.labels.map(|labels| {
            let mut texts: Vec<_> =
                labels.into_iter().filter_map(|label| self.words.text(label)).map(str::to_owned).collect();
            texts.sort_unstable();
            texts
        });
        let service = self.words.text(key.1).map(str::to_owned);
        let is_numbered = matches!(key.0, LakeTable::Samples | LakeTable::Measures);
        let numbers = open.numbers.list(&self.words).filter(|_| is_numbered);
        self.done.push(DataFile { service, span_us: open.span_us, labels, numbers, ..file });
        Ok(())
    }

    fn enter(&mut self, segment: &Segment, tables: &Tables) {
        self.weighed = SampleNumbers::of(segment, &mut self.words);
        self.forget_origin();
        for &(key, value) in &segment.metadata {
            self.name_origin(&String::from_utf8_lossy(tables.string(key)), tables.string(value));
        }
        self.date(segment.start_unix_ns.map(i128::from));
    }

    /// Resets the service and the host to their initial values if another program begins.
    #[inline]
    fn forget_origin(&mut self) {
        if std::mem::take(&mut self.is_apart) {
            self.here = Here::at_first(&self.source, &mut self.words);
        }
    }

    /// Starts counting times from `recorded`, or from the next best known start if the input does not record one.
    fn date(&mut self, recorded: Option<i128>) {
        (self.here.origin_ns, self.here.clock) = match (recorded, self.source.began_unix_ns) {
            (Some(start), _) => (start, ClockSource::Recorded),
            (None, Some(began)) => (began.into(), ClockSource::Given),
            (None, None) => (self.source.modified_unix_ns.unwrap_or(0).into(), ClockSource::File),
        };
    }

    /// Takes the service or the host from a fact of the input, unless the user has named it.
    fn name_origin(&mut self, key: &str, value: &[u8]) {
        if self.source.service.is_none() && SERVICE_KEYS.contains(&key) {
            self.here.service = self.words.of_bytes(value);
        }
        if self.source.host.is_none() && HOST_KEYS.contains(&key) {
            self.here.host = self.words.of_bytes(value);
        }
    }

    fn status(&mut self, status: Option<Status>) -> RowCell {
        let Some(status) = status else { return RowCell::Absent };
        let words = &mut self.words;
        let word = self
            .statuses
            .entry(status)
            .or_insert_with(|| words.word(&status.names().collect::<Vec<_>>().join(",")));
        RowCell::Word(*word)
    }

    fn take_sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Result<(), Error> {
        self.added.samples = self.added.samples.saturating_add(sample.count);
        let time_us = self.seen(self.here.origin_ns + i128::from(sample.time_ns.unwrap_or(0)), sample.count);
        let id =
            sample.stack.map(|stack| self.stacks.id(stack, at.tables)).map_or(RowCell::Absent, RowCell::Id);
        let set = self.labels.of(sample.labels, at.tables, &mut self.words);
        let default = *self.default_value.get_or_insert(self.weighed.default);
        let (process, thread) = (RowCell::int(at.process(sample)), RowCell::unsigned(sample.thread));
        let (labels, mode) = (RowCell::word(set.text), self.weighed.mode);
        let number = |measure: MeasureWords, has_time: bool| {
            let is_default = measure == default;
            Some(NumberWords { measure, mode, is_default, has_time })
        };
        let measure = |(kind, unit): MeasureWords, value: i64| {
            let [kind, unit] = [kind, unit].map(RowCell::Word);
            [process, thread, id, kind, unit, RowCell::Int(value), labels]
        };
        let span_us = (time_us, time_us);
        if let Some(kind) = set.other_kind.filter(|_| at.segment.format == "trc") {
            let of = (self.words.word(kind), self.weighed.samples.1);
            let cells = measure(of, i64::try_from(sample.count).unwrap_or(i64::MAX));
            self.lasting_row(LakeTable::Measures, span_us, &set, &cells, number(of, false))?;
        } else if let Some((value, time_ns)) = self.weighed.observed(at.segment, sample) {
            let period = RowCell::int(at.segment.period_ns.and_then(|period| i64::try_from(period).ok()));
            let (interpreter, status) = (RowCell::unsigned(sample.interpreter), self.status(sample.status));
            let mode = RowCell::Word(mode);
            let cells = [process, thread, interpreter, id, value, period, status, labels, time_ns, mode];
            let number = number(self.weighed.samples, self.weighed.has_time);
            self.lasting_row(LakeTable::Samples, span_us, &set, &cells, number)?;
        }
        for index in 0..self.weighed.measures.len() {
            let (of, place) = self.weighed.measures[index];
            let value = sample.values.get(place).copied().unwrap_or(0);
            if value != 0 {
                self.lasting_row(LakeTable::Measures, span_us, &set, &measure(of, value), number(of, false))?;
            }
        }
        Ok(())
    }

    /// Adds everything that was read to the lake, with the losses in `recovery`.
    ///
    /// # Errors
    /// If the input is already in the lake ([`Error::is_already_added`]), or the storage fails. After a failure nothing was
    /// added, unless the storage's reply was lost; in that case, add the input again.
    pub fn commit(mut self, tables: &Tables, recovery: &Recovery) -> Result<AddedInput, Error> {
        if let Err(error) = self.complete(recovery) {
            self.abandon();
            return Err(error);
        }
        self.added.services =
            self.services.iter().filter_map(|&word| self.words.text(word)).map(str::to_owned).collect();
        let sum = input_id(&self.source.sha256);
        let mut commit = Commit::new(Operation::Add, now_us());
        commit.sources.push(sum.clone());
        let Self { lake, done, mut stacks, mut added, source, .. } = self;
        let intend = async |state: &LakeState| {
            if state.sources.contains(&sum) {
                return Err(Error::added(format!("{}: already added", source.name)));
            }
            commit.add.clone_from(&done);
            commit.add.extend(stacks.file_beside(state, lake, tables).await?);
            Ok(Intent::Commit(commit.clone()))
        };
        if let Err(error) = lake.block_on(lake.journal.transact(intend)) {
            if error.is_uncertain() {
                // The commit may exist and name these files. If it does not, they are deleted later.
                return Err(error.with_hint(
                    "add the file again: the storage did not confirm the commit, and no file counts twice",
                ));
            }
            lake.block_on(lake.discard(done.iter().chain(&commit.add)));
            return Err(error);
        }
        let of_stacks = commit.add.iter().filter(|file| file.table == LakeTable::Stacks.name());
        added.stacks = of_stacks.map(|file| file.rows).sum();
        added.bytes = commit.add.iter().map(|file| file.bytes).sum();
        Ok(added)
    }

    /// Writes all buffered rows and finishes their files.
    fn complete(&mut self, recovery: &Recovery) -> Result<(), Error> {
        self.take_tokio()?;
        self.added.is_dated_by_file = self.here.clock == ClockSource::File;
        self.source_row(recovery)?;
        for key in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(key)?;
        }
        Ok(())
    }

    fn source_row(&mut self, recovery: &Recovery) -> Result<(), Error> {
        let now = now_us();
        let (first, last) = self.span_us.unwrap_or((now, now));
        if let [Some(&service), None] = {
            let mut all = self.services.iter();
            [all.next(), all.next()]
        } {
            self.here.service = service;
        }
        let clock = match self.here.clock {
            ClockSource::Recorded => "recorded",
            ClockSource::Given => "given",
            ClockSource::File => "file",
        };
        let sum = input_id(&self.source.sha256);
        let texts = recovery.warnings.iter().map(|warning| match warning.offset {
            Some(offset) => format!("at byte {offset:#x}: {}", warning.message),
            None => warning.message.clone(),
        });
        let warnings = texts.collect::<Vec<_>>().join("\n");
        let mut text = |text: &str| RowCell::Word(self.words.word(text));
        let cells = [
            RowCell::Time(last),
            RowCell::Time(now),
            text(&sum),
            text(&self.source.name),
            text(&self.source.format),
            text(clock),
            RowCell::Unsigned(self.added.samples),
            RowCell::Unsigned(recovery.events),
            RowCell::Unsigned(recovery.lost_bytes),
            RowCell::Unsigned(self.added.future),
            if warnings.is_empty() { RowCell::Absent } else { text(&warnings) },
        ];
        self.lasting_row(LakeTable::Sources, (first, last), &Set::NONE, &cells, None)
    }

    /// Discards everything that was read.
    pub fn abandon(self) {
        let lake = self.lake;
        let writers = self.open.into_values().filter_map(|open| open.writer);
        writers.for_each(|writer| lake.block_on(writer.abandon()));
        lake.block_on(lake.discard(&self.done));
    }
}

impl ProfileSink for Addition<'_> {
    fn source(&mut self, _name: &str) -> io::Result<()> {
        self.take_tokio()?;
        self.is_apart = true;
        Ok(())
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.enter(at.segment, at.tables);
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.name_origin(&String::from_utf8_lossy(at.tables.string(key)), at.tables.string(value));
        Ok(())
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.take_sample(at, sample)?;
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.take_event(at, event)?;
        Ok(ControlFlow::Continue(()))
    }

    fn watches_events(&mut self) -> bool {
        true
    }
}

/// The start of year 1, the earliest time that all Parquet readers show; the latest is the end of year 9999.
const EARLIEST_US: i64 = -62_135_596_800_000_000;
const LATEST_US: i64 = 253_402_300_799_999_999;
/// The metadata keys by which inputs name their service and their host.
const SERVICE_KEYS: &[&str] = &["service", "service.name", "service_name"];
const HOST_KEYS: &[&str] = &["cpu.profile.machine_hostname", "host", "host.name", "hostname"];
