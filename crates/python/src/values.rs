//! The values of variables as text, as `repr` would write them, without running any code of the program.
//!
//! Numbers, texts and containers of the interpreter are read; an object of any other type is shown as its type and address.

use borehole_process::{Error, ForeignMemory, MemoryPiece, mapped, moved, u64_at};

use crate::containers::{dict, list, number, set, tuple};
use crate::object_layout::ObjectLayout;
use crate::objects::{integer, name_of_type, read_text};

/// The longest text of a value, in characters. Longer ones are cut.
const LONGEST_VALUE: usize = 200;

/// The members of a container that are shown.
const MOST_MEMBERS: usize = 8;

/// The levels of containers in containers that are shown.
const MOST_LEVELS: usize = 3;

/// The objects that are read for one value.
const MOST_OBJECTS: usize = 64;

/// Writes values of one process.
pub(crate) struct ValueReader<'r, M> {
    memory: &'r M,
    layout: &'r ObjectLayout,
    objects_left: usize,
}

impl<'r, M: ForeignMemory> ValueReader<'r, M> {
    /// The text of the object at `address`.
    pub(crate) fn text(memory: &'r M, layout: &'r ObjectLayout, address: u64) -> Result<String, Error> {
        let mut reader = Self { memory, layout, objects_left: MOST_OBJECTS };
        let text = reader.write(address, 0)?;
        Ok(shortened(text))
    }

    fn write(&mut self, address: u64, level: usize) -> Result<String, Error> {
        if self.objects_left == 0 || level > MOST_LEVELS {
            return Ok("...".to_owned());
        }
        self.objects_left -= 1;
        let kind = number(self.memory, moved(address, self.layout.kind))?.unwrap_or_default();
        let name = mapped(name_of_type(self.memory, self.layout, kind))?.unwrap_or_default();
        let name = String::from_utf8_lossy(&name).into_owned();
        let known = match name.as_str() {
            "NoneType" => Some("None".to_owned()),
            "ellipsis" => Some("Ellipsis".to_owned()),
            "bool" => self.number(address)?.map(|value| if value == 0 { "False" } else { "True" }.to_owned()),
            "int" => Some(
                self.number(address)?.map_or_else(|| "<int, large>".to_owned(), |value| value.to_string()),
            ),
            "float" => self.float(address)?,
            "str" => read_text(self.memory, self.layout, address)?
                .map(|text| quoted(&String::from_utf8_lossy(&text))),
            "bytes" => self.bytes(address)?,
            "tuple" => {
                let items = tuple(self.memory, self.layout, address)?;
                self.members(items, ["(", ")"], level)?
            }
            "list" => {
                let items = list(self.memory, self.layout, address)?;
                self.members(items, ["[", "]"], level)?
            }
            "set" | "frozenset" => {
                let items = self.set(address)?;
                self.members(items, ["{", "}"], level)?
            }
            "dict" => self.dict(address, level)?,
            _ => None,
        };
        Ok(known.unwrap_or_else(|| match name.as_str() {
            "" => format!("<unreadable at {address:#x}>"),
            name => format!("<{name} at {address:#x}>"),
        }))
    }

    fn number(&self, address: u64) -> Result<Option<i128>, Error> {
        integer(self.memory, self.layout, address)
    }

    fn float(&self, address: u64) -> Result<Option<String>, Error> {
        let bits = number(self.memory, moved(address, self.layout.header))?;
        Ok(bits.map(|bits| format!("{:?}", f64::from_bits(bits))))
    }

    fn bytes(&self, address: u64) -> Result<Option<String>, Error> {
        let mut bytes = [0; LONGEST_VALUE];
        let Some(length) = number(self.memory, moved(address, self.layout.length))? else { return Ok(None) };
        let kept = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
        let into = &mut bytes[..kept];
        let filled = self
            .memory
            .read_pieces(&mut [MemoryPiece { address: moved(address, self.layout.bytes), into }])?;
        Ok((filled == kept).then(|| format!("b\"{}\"", bytes[..kept].escape_ascii())))
    }

    /// The members of a set, without the placeholder for removed ones, which is of another type than any member.
    fn set(&self, address: u64) -> Result<Option<Vec<u64>>, Error> {
        let Some(mut members) = set(self.memory, self.layout, address)? else { return Ok(None) };
        // `PySetObject.used`.
        let used = number(self.memory, moved(address, self.layout.header + 8))?.unwrap_or_default();
        if members.len() as u64 > used {
            let mut counts = std::collections::BTreeMap::new();
            members.iter().for_each(|&member| *counts.entry(member).or_insert(0) += 1);
            let repeated = counts.iter().find(|&(_, &count)| count > 1).map(|(&member, _)| member);
            members.retain(|&member| Some(member) != repeated);
        }
        Ok(Some(members))
    }

    fn members(
        &mut self,
        members: Option<Vec<u64>>,
        [open, close]: [&str; 2],
        level: usize,
    ) -> Result<Option<String>, Error> {
        let Some(members) = members else { return Ok(None) };
        let mut texts = Vec::new();
        for &member in members.iter().take(MOST_MEMBERS) {
            texts.push(self.write(member, level + 1)?);
        }
        Ok(Some(listed(&texts, members.len(), [open, close])))
    }

    fn dict(&mut self, address: u64, level: usize) -> Result<Option<String>, Error> {
        let Some(entries) = dict(self.memory, self.layout, address)? else { return Ok(None) };
        let mut texts = Vec::new();
        for &[key, value] in entries.iter().take(MOST_MEMBERS) {
            texts.push(format!("{}: {}", self.write(key, level + 1)?, self.write(value, level + 1)?));
        }
        Ok(Some(listed(&texts, entries.len(), ["{", "}"])))
    }
}

fn listed(texts: &[String], count: usize, [open, close]: [&str; 2]) -> String {
    let more = count - texts.len().min(count);
    let separator = if open == "(" && texts.len() == 1 { "," } else { "" };
    match more {
        0 => format!("{open}{}{separator}{close}", texts.join(", ")),
        more => format!("{open}{}, ... {more} more{close}", texts.join(", ")),
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for character in text.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\\' => quoted.push_str("\\\\"),
            _ if character == quote => quoted.extend(['\\', character]),
            _ => quoted.push(character),
        }
    }
    quoted.push(quote);
    quoted
}

/// The text, cut at [`LONGEST_VALUE`].
fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A value that a frame holds: from 3.14 on, the lowest bits say who counts the reference, or that it is a small integer.
pub(crate) fn held(value: u64) -> HeldValue {
    match value & 3 {
        3 => HeldValue::Integer(value.cast_signed() >> 2),
        _ => HeldValue::Object(value & !7),
    }
}

/// The value that a word of a frame stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldValue {
    /// The object at an address; 0 for none.
    Object(u64),
    /// A small integer.
    Integer(i64),
}

/// The contents of a cell, `PyCellObject.ob_ref`.
pub(crate) fn in_cell(memory: &impl ForeignMemory, layout: &ObjectLayout, cell: u64) -> Result<u64, Error> {
    let mut bytes = [0; 8];
    let filled =
        memory.read_pieces(&mut [MemoryPiece { address: moved(cell, layout.header), into: &mut bytes }])?;
    Ok(if filled == 8 { u64_at(&bytes, 0).unwrap_or_default() } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_containers_say_what_they_leave_out() {
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("a\n\\'\""), "'a\\n\\\\\\'\"'");
        assert_eq!(listed(&["1".to_owned()], 1, ["(", ")"]), "(1,)");
        assert_eq!(listed(&["1".to_owned(), "2".to_owned()], 5, ["[", "]"]), "[1, 2, ... 3 more]");
        assert_eq!(shortened("x".repeat(300)).len(), LONGEST_VALUE + 3);
    }

    #[test]
    fn words_of_frames_are_objects_or_small_integers() {
        assert_eq!(held(0x7f00_0000_1001), HeldValue::Object(0x7f00_0000_1000));
        assert_eq!(held((-5_i64 << 2 | 3).cast_unsigned()), HeldValue::Integer(-5));
    }
}
