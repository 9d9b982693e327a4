//! The files that a recording met, with their build IDs and the ranges of their code.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use borehole_model::NativeModule;
use hashbrown::HashMap;

use super::header::PerfHead;
use super::layout::{BUILD_ID_BYTES, KERNEL_PROCESS, record, record_flags};
use super::read::{FileMapping, PerfRecord, records};

/// The most files that are stated. A system has some thousands.
const MOST_MODULES: usize = 1 << 14;

/// Files by their path: the range of their code, and the build ID that its mappings state.
type MappedFiles<'a> = BTreeMap<&'a [u8], MappedFile<'a>>;

/// The part of a file that was mapped.
#[derive(Debug)]
struct MappedFile<'a> {
    start: u64,
    end: u64,
    build_id: Option<&'a [u8]>,
}

/// The files of processes that have a build ID. If the recording has no build IDs at all, all files.
///
/// `perf record` looks for the build IDs of the files in which samples are, so these are the files that matter.
pub(super) fn stated_modules(file: &[u8], head: &PerfHead) -> Vec<NativeModule> {
    let mut ids: HashMap<&[u8], &[u8]> = HashMap::new();
    if let Some(table) = head.build_ids.clone() {
        let found = records(file, table, head.order).map_while(Result::ok);
        ids.extend(found.filter_map(|found| build_id(&found)));
    }
    let mut mapped = MappedFiles::new();
    for found in records(file, head.data.clone(), head.order).map_while(Result::ok) {
        match found.kind {
            record::MMAP | record::MMAP2 if mapped.len() < MOST_MODULES => note(&found, &mut mapped),
            record::BUILD_ID => ids.extend(build_id(&found)),
            _ => {}
        }
    }
    let build_id = |path: &[u8], own: &MappedFile<'_>| ids.get(path).copied().or(own.build_id).map(hex);
    let has_ids = mapped.iter().any(|(path, own)| build_id(path, own).is_some());
    let modules = mapped.iter().filter_map(|(path, own)| {
        let build_id = build_id(path, own);
        let path = String::from_utf8(path.to_vec()).ok().filter(|_| build_id.is_some() || !has_ids)?;
        let &MappedFile { start, end, .. } = own;
        Some(NativeModule { build_id: build_id.unwrap_or_default(), start, end, path })
    });
    modules.collect()
}

/// Widens the range of the file that a record maps, if it holds code.
fn note<'a>(found: &PerfRecord<'a>, mapped: &mut MappedFiles<'a>) {
    let Ok(mapping) = FileMapping::read(found) else { return };
    let FileMapping { process, size, file_offset: start, file, .. } = mapping;
    let is_data = found.misc & record_flags::DATA_MAPPING != 0;
    let is_file = file.starts_with(b"/") && !file.starts_with(b"//") && !file.starts_with(b"/memfd:");
    if is_data || !is_file || process == KERNEL_PROCESS || size == 0 {
        return;
    }
    let end = start.saturating_add(size);
    let own = mapped.entry(file).or_insert(MappedFile { start, end, build_id: None });
    (own.start, own.end) = (own.start.min(start), own.end.max(end));
    own.build_id = own.build_id.or(mapping.build_id);
}

/// The path and the build ID of an entry of the table, or of a record.
fn build_id<'a>(found: &PerfRecord<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let mut fields = found.fields();
    let _process = fields.u32().ok()?;
    let bytes = fields.bytes(BUILD_ID_BYTES as u64 + 4).ok()?;
    let has_size = found.misc & record_flags::BUILD_ID_SIZE != 0;
    let size = if has_size { usize::from(bytes[BUILD_ID_BYTES]) } else { BUILD_ID_BYTES };
    Some((fields.text(), bytes.get(..size.min(BUILD_ID_BYTES)).filter(|id| !id.is_empty())?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings take all");
        text
    })
}
