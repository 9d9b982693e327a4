//! Gives functions to the addresses of documents.

use std::io::BufRead;

use borehole_wire::put_varint;

use super::NAME;
use super::documents::{Documents, Packing};
use super::layout::{KEYS, any, attribute, data, dictionary, key, mapping};
use crate::documents::protobuf::put_bytes;
use crate::documents::protobuf_fields::{MessageFields, WireField};
use crate::documents::whole::DocumentDamage;
use crate::symbols::fill::{
    AddressSymbols, FillMapping, FilledAddresses, SymbolFilling, SymbolTableFields, each_raw_field,
};
use crate::{Error, ErrorKind, Limits, Position, ReadOptions};

const TABLES: SymbolTableFields = SymbolTableFields {
    format: NAME,
    keys: KEYS,
    mapping: dictionary::MAPPING,
    location: dictionary::LOCATION,
    function: dictionary::FUNCTION,
    string: dictionary::STRING,
    build: mapping::ATTRIBUTE_INDICES,
};

/// Copies binary documents, and gives functions and lines from `symbols` to locations that have none.
///
/// # Errors
/// If the documents are damaged, are JSON, or take more memory than allowed.
pub fn fill_symbols(
    input: impl BufRead,
    limits: &Limits,
    symbols: &mut dyn AddressSymbols,
) -> Result<(Vec<u8>, FilledAddresses), Error> {
    let options = ReadOptions { limits: *limits, ..ReadOptions::default() };
    let mut damage = DocumentDamage::new(&options);
    let mut pieces = Documents::new(input, *limits)?;
    let packing = pieces.packing();
    if packing == Packing::Json {
        let message = "unsupported: expected a binary document, found JSON";
        return Err(Error::new(ErrorKind::Unsupported, NAME, Position::Whole, message));
    }
    let (mut out, mut filled) = (Vec::new(), FilledAddresses::default());
    while let Some(piece) = pieces.next_piece(&mut damage)? {
        let (document, outcome) = fill_document(&piece.bytes, limits, symbols)?;
        filled.add(outcome);
        put_length(packing, document.len(), &mut out)?;
        out.extend_from_slice(&document);
    }
    Ok((out, filled))
}

/// Writes the length before a document, if documents of this packing have one.
fn put_length(packing: Packing, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    match packing {
        Packing::Whole | Packing::Json => {}
        Packing::Varints => put_varint(out, length as u64),
        Packing::Lengths => {
            let length = u32::try_from(length).map_err(|_| {
                let message = "document too large: expected at most 4 GiB";
                Error::new(ErrorKind::Unsupported, NAME, Position::Whole, message)
            })?;
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

fn fill_document(
    document: &[u8],
    limits: &Limits,
    symbols: &mut dyn AddressSymbols,
) -> Result<(Vec<u8>, FilledAddresses), Error> {
    let fields = MessageFields::within_document(NAME, document, 0);
    let mut filling = SymbolFilling::new(TABLES, *limits);
    let (mut attributes, mut dictionaries) = (Vec::new(), 0);
    each_dictionary(fields, |message| {
        dictionaries += 1;
        message.each(|field| {
            if field.number == dictionary::ATTRIBUTE {
                field.push(&mut attributes, limits, 0, BuildAttribute::read(field)?)?;
            }
            filling.take(field)
        })
    })?;
    if dictionaries == 0 {
        return Ok((document.to_vec(), filling.outcome()));
    }
    filling.fill(symbols, |filling, mapping| build_id(filling, mapping, &attributes))?;
    let mut out = Vec::new();
    each_raw_field(document, fields, |field, raw| {
        if field.number != data::DICTIONARY {
            out.extend_from_slice(raw);
            return Ok(());
        }
        let mut tables = Vec::new();
        each_raw_field(document, field.message()?, |field, raw| {
            filling.write(field, raw, |_| {}, &mut tables)
        })?;
        dictionaries -= 1;
        if dictionaries == 0 {
            tables.extend_from_slice(filling.added());
        }
        put_bytes(&mut out, data::DICTIONARY, &tables);
        Ok(())
    })?;
    Ok((out, filling.outcome()))
}

fn each_dictionary<'a>(
    fields: MessageFields<'a>,
    mut take: impl FnMut(MessageFields<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    fields.each(|field| if field.number == data::DICTIONARY { take(field.message()?) } else { Ok(()) })
}

/// An attribute that may be a build ID.
#[derive(Clone, Copy, Debug, Default)]
struct BuildAttribute<'a> {
    key: u64,
    text: Option<&'a [u8]>,
    index: u64,
}

impl<'a> BuildAttribute<'a> {
    fn read(field: &WireField<'a>) -> Result<Self, Error> {
        field.message()?.collect(Self::default(), |row, field| match field.number {
            attribute::KEY => field.number_to(&mut row.key),
            attribute::VALUE => field.message()?.each(|field| match field.number {
                any::STRING => field.bytes("a string").map(|text| row.text = Some(text)),
                any::STRING_INDEX => field.number_to(&mut row.index),
                _ => Ok(()),
            }),
            _ => Ok(()),
        })
    }
}

fn build_id<'a>(
    filling: &SymbolFilling<'a>,
    mapping: &FillMapping,
    attributes: &[BuildAttribute<'a>],
) -> Option<&'a [u8]> {
    let rows = mapping.build.iter().filter_map(|&index| attributes.get(usize::try_from(index).ok()?));
    let mut builds = rows.filter(|row| filling.string(row.key) == key::BUILD_ID.as_bytes());
    builds.next().map(|row| row.text.unwrap_or_else(|| filling.string(row.index)))
}
