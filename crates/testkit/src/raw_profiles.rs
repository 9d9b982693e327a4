//! Profiles that hold addresses only, as programs that do not look up symbols write them.

use borehole_wire::put_varint;

/// A file in memory, as profiles state it.
#[derive(Clone, Debug)]
pub struct MappedFile<'a> {
    /// The path of the file.
    pub path: &'a str,
    /// The build ID in hexadecimal digits, or an empty text.
    pub build_id: &'a str,
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// The position in the file of the byte at the first address.
    pub file_offset: u64,
}

/// The number of a field that no reader knows. Each location of [`raw_pprof`] has one.
pub const UNKNOWN_FIELD: u64 = 99;

/// A document of pprof, not compressed, with a sample of each address. Samples are its first messages after the sample type.
#[must_use]
pub fn raw_pprof(file: &MappedFile<'_>, addresses: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    put(1, &message(&[(1, 1), (2, 2)]), &mut out);
    for (id, _) in (1..).zip(addresses) {
        put(2, &message(&[(1, id), (2, id)]), &mut out);
    }
    let range = [(2, file.start), (3, file.end), (4, file.file_offset)];
    put(3, &message(&[&[(1, 1)][..], &range, &[(5, 3), (6, 4)]].concat()), &mut out);
    for (id, &address) in (1..).zip(addresses) {
        put(4, &message(&[(1, id), (2, 1), (3, address), (UNKNOWN_FIELD, id)]), &mut out);
    }
    for string in ["", "samples", "count", file.path, file.build_id] {
        put(6, string.as_bytes(), &mut out);
    }
    out
}

/// A document of OTLP with a sample of each address.
#[must_use]
pub fn raw_otlp(file: &MappedFile<'_>, addresses: &[u64]) -> Vec<u8> {
    let [mut scope, mut resource, mut out] = [Vec::new(), Vec::new(), Vec::new()];
    let mut profile = Vec::new();
    put(1, &message(&[(1, 1), (2, 2)]), &mut profile);
    for (index, _) in (1..).zip(addresses) {
        put(2, &message(&[(1, index), (4, 1)]), &mut profile);
    }
    put(2, &profile, &mut scope);
    put(2, &scope, &mut resource);
    put(1, &resource, &mut out);
    put(2, &dictionary(file, addresses), &mut out);
    out
}

fn dictionary(file: &MappedFile<'_>, addresses: &[u64]) -> Vec<u8> {
    let mut tables = Vec::new();
    // The first entry of each table stands for an absent one.
    for table in [1, 2, 6, 7] {
        put(table, &[], &mut tables);
    }
    let range = [(1, file.start), (2, file.end), (3, file.file_offset)];
    put(1, &message(&[&range[..], &[(4, 3), (5, 1)]].concat()), &mut tables);
    for (index, &address) in (1..).zip(addresses) {
        put(2, &message(&[(1, 1), (2, address)]), &mut tables);
        put(7, &message(&[(1, index)]), &mut tables);
    }
    for string in ["", "samples", "count", file.path, "process.executable.build_id.gnu"] {
        put(5, string.as_bytes(), &mut tables);
    }
    let (mut attribute, mut value) = (message(&[(1, 4)]), Vec::new());
    put(1, file.build_id.as_bytes(), &mut value);
    put(2, &value, &mut attribute);
    put(6, &attribute, &mut tables);
    tables
}

/// A message of numbers, by field.
fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(field, number) in fields {
        put_varint(&mut bytes, field << 3);
        put_varint(&mut bytes, number);
    }
    bytes
}

fn put(field: u64, content: &[u8], out: &mut Vec<u8>) {
    put_varint(out, field << 3 | 2);
    put_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}
