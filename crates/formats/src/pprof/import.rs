//! Imports a document into the model.

use std::io::BufRead;

use borehole_model::{
    Context, ProfileSink, Recovery, Sample as ModelSample, Segment, StringId, Tables, ThreadNames, ValueType,
};

use super::NAME;
use super::columns::{Columns, stated_period_ns, text};
use super::concatenated::beginnings;
use super::layout::{PERIODS_COMMENT, metadata};
use super::prune::Pruning;
use super::read::{Document, Sample, Samples};
use super::resolve::Resolver;
use crate::document::{self, Damage};
use crate::{ReadError, ReadOptions, stated_duration, stated_period};

/// Reads a decompressed `profile.proto`, or several concatenated ones.
///
/// The sample type `samples/count` becomes the count and the others become values, except for a time that in every
/// sample is the count times a period named by the file: consumers derive that time again. If the exporter would not
/// restore the same columns, all of them become values. A record with values but without a count is uncounted.
/// Consecutive samples of one period form a segment. A file that is cut off is an error, since samples refer to other
/// parts of it; a lenient reading delivers the complete samples.
///
/// # Errors
/// If the input is not a profile or exceeds the limit, or the sink fails.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut bytes = document::read_whole(NAME, input, options.limits.document_bytes)?;
    let mut damage = Damage::new(options);
    let begin = beginnings(&bytes);
    // The last one first: bytes that were split off are not moved again.
    let cut = begin.iter().skip(1).rev().map(|&at| (at, bytes.split_off(at)));
    let mut waiting: Vec<_> = cut.collect();
    waiting.push((0, bytes));
    while let Some((at, bytes)) = waiting.pop() {
        import_document(at as u64, bytes, tables, sink, &mut damage)?;
        if damage.recovery.stopped {
            break;
        }
    }
    damage.finish(sink)
}

/// Reads a document that begins at `base` in the input.
fn import_document(
    base: u64,
    bytes: Vec<u8>,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
    damage: &mut Damage,
) -> Result<(), ReadError> {
    let (document, samples) = Document::read(base, bytes, damage)?;
    let columns = Columns::choose(&document, &samples)?;
    let mut segment = segment(&document, &columns, tables)?;
    segment.index = damage.recovery.segments;
    let (pruning, wrong) = Pruning::of(&document);
    wrong.into_iter().for_each(|wrong| damage.recovery.note(wrong));
    sink.segment(Context { tables, segment: &segment })?;
    damage.recovery.segments += 1;
    deliver(samples, &columns, &mut segment, &mut Resolver::new(&document, tables, pruning), sink, damage)
}

fn segment(document: &Document, columns: &Columns, tables: &mut Tables) -> Result<Segment, ReadError> {
    let segment = Segment {
        format: NAME,
        period_ns: columns.period_ns,
        start_unix_ns: Some(document.time_ns).filter(|&time| time != 0),
        mode: columns.mode,
        value_types: columns.value_types.clone(),
        default_measure: columns.default_measure,
        is_uncounted: columns.count.is_none(),
        ..Segment::default()
    };
    Ok(Segment { metadata: file_metadata(document, columns, tables)?, ..segment })
}

/// The comments as keys and values, and the fields that the model cannot hold.
fn file_metadata(
    document: &Document,
    columns: &Columns,
    tables: &mut Tables,
) -> Result<Vec<(StringId, StringId)>, ReadError> {
    let mut pairs = Vec::new();
    let mut put = |key: &[u8], value: &[u8]| -> Result<(), ReadError> {
        pairs.push((tables.intern_string(key)?, tables.intern_string(value)?));
        Ok(())
    };
    for &index in &document.comments {
        let comment = document.string(index, 0)?;
        match memchr::memchr(b'=', comment) {
            // The segments hold the periods.
            _ if columns.has_periods() && comment.starts_with(PERIODS_COMMENT.as_bytes()) => {}
            Some(at) if at > 0 && !is_field(&comment[..at]) => put(&comment[..at], &comment[at + 1..])?,
            _ => put(metadata::COMMENT.as_bytes(), comment)?,
        }
    }
    if document.duration_ns > 0 {
        put(stated_duration::KEY.as_bytes(), document.duration_ns.to_string().as_bytes())?;
    }
    if let Some(period) = period_metadata(document, columns)? {
        put(stated_period::KEY.as_bytes(), period.as_bytes())?;
    }
    for (key, index) in
        [(metadata::DEFAULT_SAMPLE_TYPE, document.default_sample_type), (metadata::DOC_URL, document.doc_url)]
    {
        if index != 0 {
            put(key.as_bytes(), document.string(index, 0)?)?;
        }
    }
    Ok(pairs)
}

/// Whether metadata with this key stand for something other than a comment.
fn is_field(key: &[u8]) -> bool {
    let fields = [
        metadata::COMMENT,
        metadata::DEFAULT_SAMPLE_TYPE,
        metadata::DOC_URL,
        stated_period::KEY,
        stated_duration::KEY,
    ];
    fields.iter().any(|field| field.as_bytes() == key)
}

/// The period as metadata, if the segment's period and mode do not imply it.
fn period_metadata(document: &Document, columns: &Columns) -> Result<Option<String>, ReadError> {
    let kind = text(document, document.period_type.kind)?;
    let period_type = ValueType { kind, unit: text(document, document.period_type.unit)? };
    let period = document.period;
    let is_said = period_type == stated_period::implied(columns.mode, &columns.value_types)
        && stated_period_ns(document)?.is_some()
        && (columns.period_ns.is_some() || columns.has_periods());
    let is_absent = period == 0 && period_type == ValueType::default();
    Ok((!is_said && !is_absent).then(|| stated_period::said(period, &period_type)))
}

fn deliver(
    mut samples: Samples,
    columns: &Columns,
    segment: &mut Segment,
    resolver: &mut Resolver<'_>,
    sink: &mut dyn ProfileSink,
    damage: &mut Damage,
) -> Result<(), ReadError> {
    let mut record = Sample::default();
    let mut values = Vec::new();
    let mut thread_names = ThreadNames::default();
    loop {
        let resolved = match samples.next_sample(&mut record) {
            Ok(false) => return Ok(()),
            Err(error) => Err(error.into()),
            Ok(true) => resolver.resolve(&record),
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(ReadError::Input(error)) => {
                damage.meet(error, 0)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let period_ns = columns.period_ns(&record);
        if period_ns != segment.period_ns {
            segment.period_ns = period_ns;
            segment.index = damage.recovery.segments;
            segment.metadata.clear();
            damage.recovery.segments += 1;
            sink.segment(Context { tables: &*resolver.tables, segment })?;
        }
        let at = Context { tables: &*resolver.tables, segment };
        if let Some((thread, name)) = at.thread(&resolved.sample).zip(resolved.thread_name)
            && thread_names.name(thread, name)
        {
            sink.thread(at, thread, name)?;
        }
        values.clear();
        values.extend(columns.own.iter().map(|&index| record.values[index]));
        // An uncounted record is one record.
        let count = columns.count.map_or(1, |index| record.values[index].unsigned_abs());
        let sample = ModelSample { count, values: &values, ..resolved.sample };
        damage.recovery.samples = damage.recovery.samples.saturating_add(count);
        if sink.sample(at, &sample)?.is_break() {
            damage.recovery.stopped = true;
            return Ok(());
        }
    }
}
