//! Gives functions to the addresses of a document.

use std::io::BufRead;

use super::NAME;
use super::concatenated::beginnings;
use super::layout::{KEYS, mapping, profile};
use crate::documents::protobuf::Message;
use crate::documents::protobuf_fields::MessageFields;
use crate::documents::whole::read_whole;
use crate::symbols::fill::{
    AddressSymbols, FillMapping, FilledAddresses, SymbolFilling, SymbolTableFields, each_raw_field,
};
use crate::{Error, Limits};

const TABLES: SymbolTableFields = SymbolTableFields {
    format: NAME,
    keys: KEYS,
    mapping: profile::MAPPING,
    location: profile::LOCATION,
    function: profile::FUNCTION,
    string: profile::STRING_TABLE,
    build: mapping::BUILD_ID,
};

/// Copies a decompressed document, or several concatenated ones, and gives functions and lines from `symbols` to locations that have none.
///
/// # Errors
/// If the documents are damaged, or take more memory than allowed.
pub fn fill_symbols(
    input: impl BufRead,
    limits: &Limits,
    symbols: &mut dyn AddressSymbols,
) -> Result<(Vec<u8>, FilledAddresses), Error> {
    let documents = read_whole(NAME, input, limits)?;
    let (mut out, mut filled) = (Vec::new(), FilledAddresses::default());
    let begin = beginnings(&documents);
    let ends = begin.iter().skip(1).copied().chain([documents.len()]);
    for (&start, end) in begin.iter().zip(ends) {
        let fields = MessageFields::within_document(NAME, &documents[start..end], start as u64);
        filled.add(fill_document(&documents, fields, limits, symbols, &mut out)?);
    }
    Ok((out, filled))
}

fn fill_document(
    documents: &[u8],
    fields: MessageFields<'_>,
    limits: &Limits,
    symbols: &mut dyn AddressSymbols,
    out: &mut Vec<u8>,
) -> Result<FilledAddresses, Error> {
    let mut filling = SymbolFilling::new(TABLES, *limits);
    fields.each(|field| filling.take(field))?;
    filling.fill(symbols, build_id)?;
    each_raw_field(documents, fields, |field, raw| filling.write(field, raw, state_symbols, out))?;
    out.extend_from_slice(filling.added());
    Ok(filling.outcome())
}

fn build_id<'a>(filling: &SymbolFilling<'a>, mapping: &FillMapping) -> Option<&'a [u8]> {
    mapping.build.last().map(|&index| filling.string(index))
}

/// Says that a mapping has symbols, or pprof would look for them again.
fn state_symbols(message: &mut Message) {
    for field in [
        mapping::HAS_FUNCTIONS,
        mapping::HAS_FILENAMES,
        mapping::HAS_LINE_NUMBERS,
        mapping::HAS_INLINE_FRAMES,
    ] {
        message.number(field, 1);
    }
}
