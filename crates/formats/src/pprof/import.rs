//! Imports a document into the model.

use std::io::BufRead;

use borehole_model::{
    CodePlaces, Context, NativeModule, ProfileSink, Recovery, Sample, Segment, StringId, Tables, ThreadNames,
};

use super::NAME;
use super::columns::SampleRoles;
use super::concatenated::beginnings;
use super::layout::{PERIODS_COMMENT, metadata};
use super::prune::Pruning;
use super::read::{PprofDocument, PprofSample, PprofSamples};
use super::resolve::SampleResolver;
use crate::documents::whole::{self, DocumentDamage};
use crate::symbols::resolve::{StatedFiles, SymbolDocument as _};
use crate::times::{stated_duration, stated_period};
use crate::{ReadError, ReadOptions};

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
    let mut bytes = whole::read_whole(NAME, input, &options.limits)?;
    let mut damage = DocumentDamage::new(options);
    let begin = beginnings(&bytes);
    // The last one first: bytes that were split off are not moved again.
    let cut = begin.iter().skip(1).rev().map(|&at| (at, bytes.split_off(at)));
    let mut waiting: Vec<_> = cut.collect();
    waiting.push((0, bytes));
    while let Some((at, bytes)) = waiting.pop() {
        import_document(at as u64, bytes, options.code_places, tables, sink, &mut damage)?;
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
    places: CodePlaces,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
    damage: &mut DocumentDamage,
) -> Result<(), ReadError> {
    let (document, samples) = PprofDocument::read(base, bytes, damage)?;
    let columns = SampleRoles::choose(&document, &samples)?;
    let files = document.files(places);
    let mut segment = segment(&document, &files, &columns, tables)?;
    segment.index = damage.recovery.segments;
    let (pruning, wrong) = Pruning::of(&document);
    wrong.into_iter().for_each(|wrong| damage.recovery.note(wrong));
    sink.segment(Context { tables, segment: &segment })?;
    damage.recovery.segments += 1;
    deliver(
        samples,
        &columns,
        &mut segment,
        &mut SampleResolver::new(&document, files, tables, pruning),
        sink,
        damage,
    )
}

fn segment(
    document: &PprofDocument,
    files: &StatedFiles,
    columns: &SampleRoles,
    tables: &mut Tables,
) -> Result<Segment, ReadError> {
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
    Ok(Segment { metadata: file_metadata(document, files, columns, tables)?, ..segment })
}

/// The comments as keys and values, and the fields that the model cannot hold.
fn file_metadata(
    document: &PprofDocument,
    files: &StatedFiles,
    columns: &SampleRoles,
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
    for module in &files.texts {
        put(NativeModule::KEY.as_bytes(), module.as_bytes())?;
    }
    if document.duration_ns > 0 {
        put(stated_duration::KEY.as_bytes(), document.duration_ns.to_string().as_bytes())?;
    }
    if let Some(period) = columns.period_metadata() {
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

fn deliver(
    mut samples: PprofSamples,
    columns: &SampleRoles,
    segment: &mut Segment,
    resolver: &mut SampleResolver<'_>,
    sink: &mut dyn ProfileSink,
    damage: &mut DocumentDamage,
) -> Result<(), ReadError> {
    let mut record = PprofSample::default();
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
            sink.segment(Context { tables: &*resolver.symbols.tables, segment })?;
        }
        let at = Context { tables: &*resolver.symbols.tables, segment };
        resolved.name_thread(at, &mut thread_names, sink)?;
        values.clear();
        values.extend(columns.own.iter().map(|&index| record.values[index]));
        // An uncounted record is one record.
        let count = columns.count.map_or(1, |index| record.values[index].unsigned_abs());
        let sample = Sample { count, values: &values, ..resolved.sample };
        damage.recovery.samples = damage.recovery.samples.saturating_add(count);
        if sink.sample(at, &sample)?.is_break() {
            damage.recovery.stopped = true;
            return Ok(());
        }
    }
}
