//! Adds profiles to a lake.
//!
//! An [`Addition`] is a sink for one input. It writes rows to files that are invisible until [`Addition::commit`] names all
//! of them at once.

mod events;
pub(crate) mod files;
mod heap;
mod labels;
mod modules;
pub(crate) mod numbers;
mod origin;
mod rows;
mod source;
mod stacks;
mod together;
mod upload;
mod words;

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;

use borehole_analysis::tokio::TokioSink;
use borehole_model::{
    Context, Event, NativeModule, ProfileSink, Recovery, Sample, Segment, StatedModules, Status, StringId,
    Tables, Thread, ThreadNames,
};
use borehole_text::lossless::escape;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use self::events::EventNumbers;
use self::files::{FileWriter, GROUP_ROWS, Partition};
use self::labels::{LabelWords, Set};
use self::modules::InputModules;
use self::numbers::{FileNumbers, MeasureWords, NumberWords, SampleNumbers};
use self::origin::Origin;
use self::rows::{RowCell, TableRows};
pub use self::source::{AddedInput, CommittedInputs, InputDetails, Precursor};
use self::stacks::InputStacks;
pub use self::together::FinishedInput;
use self::together::{FileFacts, FileRows, ROWS_TOGETHER, WrittenStacks, are_enough};
use self::words::{ColumnWords, NO_WORD, Word};
use crate::checksum::{ContentPrefixes, hex, input_id, input_sum};
use crate::error::Error;
use crate::ids::StackIds;
use crate::journal::{DataFile, now_us};
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
    hosts: BTreeSet<Word>,
    /// The host of the previous row.
    last_host: Word,
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
            hosts: BTreeSet::new(),
            last_host: NO_WORD,
            used: 0,
        }
    }

    /// The facts about its rows.
    fn facts(&self, table: LakeTable, words: &ColumnWords) -> FileFacts {
        let texts = |listed: &BTreeSet<Word>| {
            listed.iter().filter_map(|&word| words.text(word)).map(str::to_owned).collect()
        };
        let is_numbered = matches!(table, LakeTable::Samples | LakeTable::Measures);
        FileFacts {
            span_us: self.span_us,
            labels: self.labels.as_ref().map(texts),
            hosts: Some(&self.hosts).filter(|hosts| hosts.len() <= LISTED_LABELS).map(texts),
            numbers: self.numbers.list(words).filter(|_| is_numbered),
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

/// Adds inputs, many in one commit, and remembers the stacks that they share.
///
/// ```no_run
/// # fn main() -> Result<(), borehole_query::Error> {
/// # use borehole_model::Recovery;
/// # use borehole_query::{InputDetails, Lake};
/// let lake = Lake::open_or_create("lake")?;
/// let mut adding = lake.adding();
/// for details in [InputDetails::default()] {
///     let (tables, addition) = adding.input(details);
///     // Read the input into the tables and the addition, then:
///     let input = addition.finish(&Recovery::default())?;
///     adding.add(input)?;
///     if adding.is_full() {
///         adding.commit()?;
///     }
/// }
/// adding.commit()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Adding<'l> {
    lake: &'l Lake,
    tables: Tables,
    ids: StackIds,
    waiting: Vec<FinishedInput>,
    written: WrittenStacks,
}

/// The number of stacks, with their callers, remembered for later inputs.
const REMEMBERED_STACKS: usize = 2_000_000;

impl<'l> Adding<'l> {
    pub(crate) fn new(lake: &'l Lake) -> Self {
        Self {
            lake,
            tables: Tables::default(),
            ids: StackIds::default(),
            waiting: Vec::new(),
            written: WrittenStacks::default(),
        }
    }

    /// Begins an input: returns the tables that it is read into and the sink that takes it.
    pub fn input(&mut self, source: InputDetails) -> (&mut Tables, Addition<'_>) {
        if self.tables.stack_count() > REMEMBERED_STACKS && self.waiting.is_empty() {
            *self = Self::new(self.lake);
        }
        (&mut self.tables, Addition::new(self.lake, source, &mut self.ids))
    }

    /// Adds an input to the next commit.
    ///
    /// # Errors
    /// If the next commit has it already ([`Error::is_already_added`]).
    pub fn add(&mut self, input: FinishedInput) -> Result<(), Error> {
        if self.waiting.iter().any(|waiting| waiting.sum == input.sum) {
            self.lake.block_on(self.lake.discard(&input.done));
            return Err(Error::added(format!("{}: already added", input.name)));
        }
        self.waiting.push(input);
        Ok(())
    }

    /// Whether an input of the next commit may be one that an input with these beginnings continues.
    #[must_use]
    pub fn may_be_continued(&self, prefixes: &ContentPrefixes) -> bool {
        let mut waiting = self.waiting.iter().filter_map(|waiting| waiting.beginning);
        waiting.any(|beginning| prefixes.sums.contains(&beginning))
    }

    /// Whether an input with this checksum is in the lake, as far as is known, or will be with the next commit.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn holds(&self, sha256: &[u8; 32]) -> Result<bool, Error> {
        let sum = input_sum(sha256);
        Ok(self.waiting.iter().any(|waiting| waiting.sum == sum) || self.lake.holds(sha256)?)
    }

    /// Whether enough inputs wait, so that they should be committed before more are read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let rows = self.waiting.iter().map(FinishedInput::row_count).fold(0, usize::saturating_add);
        are_enough(self.waiting.len(), rows) || self.tables.stack_count() > REMEMBERED_STACKS
    }

    /// Adds the waiting inputs to the lake in one commit, and does a share of its maintenance.
    ///
    /// # Errors
    /// If another writer has added one of the inputs meanwhile ([`Error::is_already_added`]), or the storage fails. After a
    /// failure nothing was added, unless the storage's reply was lost; in both cases, add the inputs again.
    pub fn commit(&mut self) -> Result<CommittedInputs, Error> {
        let inputs = std::mem::take(&mut self.waiting);
        if inputs.is_empty() {
            return Ok(CommittedInputs::default());
        }
        let lake = self.lake;
        let replaces: Vec<_> = inputs.iter().flat_map(|input| input.replaces.iter().cloned()).collect();
        let committed = lake.replacing(&replaces, |changes| {
            lake.block_on(lake.commit_inputs(&inputs, &self.tables, &mut self.written, changes))
        })?;
        let maintenance = lake.compact_share(committed.files).err();
        let inputs = inputs.into_iter().map(|input| input.added).collect();
        Ok(CommittedInputs { inputs, bytes: committed.bytes, maintenance })
    }
}

/// Takes one input, and adds it to a lake on [`Addition::commit`].
pub struct Addition<'l> {
    lake: &'l Lake,
    source: InputDetails,
    words: ColumnWords,
    labels: LabelWords,
    origin: Origin,
    /// The name of the input in commits and rows.
    id: Word,
    thread_names: ThreadNames<Word>,
    stacks: InputStacks<'l>,
    modules: InputModules,
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
        let id = words.word(&input_id(&source.sha256));
        let (stacks, modules) = (InputStacks::new(ids, &source.modules), InputModules::new(&source.modules));
        Self {
            origin: Origin::new(&source.labels),
            id,
            thread_names: ThreadNames::default(),
            lake,
            source,
            words,
            weighed,
            default_value: None,
            labels: LabelWords::default(),
            stacks,
            modules,
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

    /// Adds a row without labels of its own, whose `cells` follow its service, time and host.
    #[inline]
    fn row(&mut self, table: LakeTable, time_us: i64, cells: &[RowCell]) -> Result<(), Error> {
        let set = self.origin_set();
        self.labelled_row(table, time_us, &set, cells)
    }

    /// Adds a row whose labels follow its `cells`.
    fn labelled_row(
        &mut self,
        table: LakeTable,
        time_us: i64,
        set: &Set,
        cells: &[RowCell],
    ) -> Result<(), Error> {
        let last = [RowCell::word(set.text), RowCell::Word(self.id)];
        self.lasting_row(table, (time_us, time_us), set, (cells, &last), None)
    }

    /// The labels of where the following rows come from.
    #[inline]
    fn origin_set(&mut self) -> Set {
        self.settle_origin();
        self.labels.of_origin(&mut self.words)
    }

    #[inline]
    fn settle_origin(&mut self) {
        if let Some(origin) = self.origin.changed() {
            self.labels.set_origin(origin);
        }
    }

    /// Adds a row that covers a span of time and is kept until its end expires. Its cells follow its service, time and host.
    #[inline]
    fn lasting_row(
        &mut self,
        table: LakeTable,
        (first_us, last_us): (i64, i64),
        labels: &Set,
        (cells, last): (&[RowCell], &[RowCell]),
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
        open.rows.push(&origin, cells, last);
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
        let host = self.here.host;
        if host != NO_WORD && host != open.last_host && open.hosts.len() <= LISTED_LABELS {
            open.hosts.insert(host);
        }
        open.last_host = host;
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
        let Some(mut open) = self.open.remove(&key) else { return Ok(()) };
        let Some(writer) = open.writer.take() else { return Ok(()) };
        let facts = open.facts(key.0, &self.words);
        let file = self.lake.block_on(writer.finish(&self.lake.place))?;
        self.done.push(facts.describe(self.words.text(key.1).map(str::to_owned), file));
        Ok(())
    }

    /// Takes out the buffered rows of a file for a file that other inputs share, or finishes it if it is long or was begun.
    fn share(&mut self, key: (LakeTable, Word, i64)) -> Result<Option<FileRows>, Error> {
        let is_short =
            |open: &OpenFile| open.writer.is_none() && (1..=ROWS_TOGETHER).contains(&open.rows.count);
        if !self.open.get(&key).is_some_and(is_short) {
            return self.close(key).map(|()| None);
        }
        let Some(mut open) = self.open.remove(&key) else { return Ok(None) };
        self.waiting -= open.rows.count;
        self.added.rows += open.rows.count as u64;
        let (table, service, day) = key;
        // Sources are few.
        let service = self.words.text(service).filter(|_| table != LakeTable::Sources).map(str::to_owned);
        let facts = open.facts(table, &self.words);
        let batch = open.rows.take(&mut self.words);
        Ok(Some(FileRows { table, partition: Partition { service, day: Some(day) }, batch, facts }))
    }

    fn enter(&mut self, segment: &Segment, tables: &Tables) {
        self.weighed = SampleNumbers::of(segment, &mut self.words);
        self.forget_origin();
        self.origin.begin();
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
            self.origin.begin();
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

    /// Takes a fact of the input. The user's service and host take precedence over its own.
    fn name_origin(&mut self, key: &str, value: &[u8]) {
        if key == NativeModule::KEY {
            self.modules.take(value, self.stacks.has_native);
        }
        self.origin.take(key, value, SERVICE_KEYS.contains(&key) || HOST_KEYS.contains(&key));
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

    /// The name of the sample's thread, if the input has told it by now.
    #[inline]
    fn thread_name(&self, at: Context<'_>, sample: &Sample<'_>) -> RowCell {
        let thread = sample.thread.map(|number| Thread { process: at.process(sample), number });
        let name = thread.and_then(|thread| self.thread_names.of(thread));
        name.map_or(RowCell::Absent, |&name| RowCell::Word(name))
    }

    fn take_sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Result<(), Error> {
        self.added.samples = self.added.samples.saturating_add(sample.count);
        let time_us = self.seen(self.here.origin_ns + i128::from(sample.time_ns.unwrap_or(0)), sample.count);
        if let Some(modules) = self.modules.changed() {
            self.stacks.state(modules);
        }
        let id =
            sample.stack.map(|stack| self.stacks.id(stack, at.tables)).map_or(RowCell::Absent, RowCell::Id);
        self.settle_origin();
        let set = self.labels.of(sample.labels, at.tables, &mut self.words);
        let default = *self.default_value.get_or_insert(self.weighed.default);
        let (process, thread) = (RowCell::int(at.process(sample)), RowCell::unsigned(sample.thread));
        let (labels, mode) = (RowCell::word(set.text), self.weighed.mode);
        let [trace, span] = set.trace.map(RowCell::word);
        let last = [self.thread_name(at, sample), RowCell::Word(self.id), trace, span];
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
            self.lasting_row(LakeTable::Measures, span_us, &set, (&cells, &last), number(of, false))?;
        } else if let Some((value, time_ns)) = self.weighed.observed(at.segment, sample) {
            let period = RowCell::int(at.segment.period_ns.and_then(|period| i64::try_from(period).ok()));
            let (interpreter, status) = (RowCell::unsigned(sample.interpreter), self.status(sample.status));
            let mode = RowCell::Word(mode);
            let cells = [process, thread, interpreter, id, value, period, status, labels, time_ns, mode];
            let number = number(self.weighed.samples, self.weighed.has_time);
            self.lasting_row(LakeTable::Samples, span_us, &set, (&cells, &last), number)?;
        }
        for index in 0..self.weighed.measures.len() {
            let (of, place) = self.weighed.measures[index];
            let value = sample.values.get(place).copied().unwrap_or(0);
            if value != 0 {
                let cells = measure(of, value);
                self.lasting_row(LakeTable::Measures, span_us, &set, (&cells, &last), number(of, false))?;
            }
        }
        Ok(())
    }

    /// Adds everything that was read to the lake in a commit of its own, with the losses in `recovery`.
    ///
    /// # Errors
    /// If the input is already in the lake ([`Error::is_already_added`]), or the storage fails. After a failure nothing was
    /// added, unless the storage's reply was lost; in that case, add the input again.
    pub fn commit(self, tables: &Tables, recovery: &Recovery) -> Result<AddedInput, Error> {
        let lake = self.lake;
        let inputs = [self.finish(recovery)?];
        let committed = lake.replacing(&inputs[0].replaces, |changes| {
            lake.block_on(lake.commit_inputs(&inputs, tables, &mut WrittenStacks::default(), changes))
        })?;
        let [FinishedInput { added, .. }] = inputs;
        Ok(AddedInput { bytes: committed.bytes, ..added })
    }

    /// Completes the input, with the losses in `recovery`, so that it can be added together with others.
    ///
    /// # Errors
    /// If the storage fails. Then nothing of the input remains.
    pub fn finish(mut self, recovery: &Recovery) -> Result<FinishedInput, Error> {
        let rows = match self.complete(recovery) {
            Ok(rows) => rows,
            Err(error) => {
                self.abandon();
                return Err(error);
            }
        };
        self.added.services =
            self.services.iter().filter_map(|&word| self.words.text(word)).map(str::to_owned).collect();
        let sum = input_sum(&self.source.sha256);
        let beginning = self.source.prefixes.longest();
        let Self { done, stacks, mut added, source, .. } = self;
        let InputDetails { name, replaces, .. } = source;
        let stacks = stacks.distinct();
        added.stacks = stacks.len() as u64;
        Ok(FinishedInput { name, sum, beginning, replaces, added, rows, done, stacks })
    }

    /// Takes out all short files and finishes the others.
    fn complete(&mut self, recovery: &Recovery) -> Result<Vec<FileRows>, Error> {
        self.take_tokio()?;
        self.added.is_dated_by_file = self.here.clock == ClockSource::File;
        self.source_row(recovery)?;
        let keys: Vec<_> = self.open.keys().copied().collect();
        let shared = keys.into_iter().map(|key| self.share(key)).collect::<Result<Vec<_>, _>>()?;
        Ok(shared.into_iter().flatten().collect())
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
        let warnings = texts.chain(self.origin.warning()).collect::<Vec<_>>().join("\n");
        let labels = self.origin.text().map_or(RowCell::Absent, |text| RowCell::Word(self.words.word(&text)));
        let beginning = self.source.prefixes.longest();
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
            RowCell::Int(last.saturating_sub(first).saturating_mul(1000)),
            RowCell::Unsigned(self.source.prefixes.bytes),
            beginning.map_or(RowCell::Absent, |sum| text(&hex(&sum))),
            labels,
        ];
        self.lasting_row(LakeTable::Sources, (first, last), &Set::NONE, (&cells, &[]), None)
    }

    /// The files of native code that the input states behind samples of it, with all others: if it is read again with these
    /// [`InputDetails::modules`], its stacks have the builds of their code.
    #[must_use]
    pub fn late_modules(&self) -> Option<&StatedModules> {
        self.modules.late()
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

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        let word = self.words.word(&escape(at.tables.string(name)));
        self.thread_names.name(thread, word);
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
