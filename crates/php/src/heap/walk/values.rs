//! Values: numbers, strings, references, resources, and what they lead to.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, StringId, Value};

use super::seen::Spot;
use super::task::Pointers;
use super::{Damage, Kind, Link, Shape, Task, View, Walker};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zval`.
pub(super) const VALUE_SIZE: u64 = 16;

/// The maximum length of a chain of indirect values. Normally an indirect value leads directly to a value; damaged ones may
/// form a loop.
const MOST_INDIRECT: usize = 4;

const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INTEGER: u8 = 4;
const FLOAT: u8 = 5;
const OBJECT: u8 = 8;
const RESOURCE: u8 = 9;
const REFERENCE: u8 = 10;

/// A value: a number, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zval {
    pub(crate) word: u64,
    pub(crate) kind: u8,
}

impl Zval {
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self { word: u64_at(bytes, 0)?, kind: *bytes.get(8)? })
    }
}

/// The contents and header of a string.
pub(super) struct Text<'d> {
    content: Cow<'d, [u8]>,
    counted: (u32, u32),
    damage: Option<Damage>,
}

impl<'d> Text<'d> {
    /// Whether it is a valid string.
    pub(super) fn is_whole(&self) -> bool {
        self.damage.is_none()
    }

    /// The `zend_string` at `spot`, with its content as far as its block has it.
    #[inline]
    fn read(view: View<'d>, header_kind: u32, spot: &Spot) -> Option<Self> {
        let header: [u8; fixed::STRING_BYTES] = view.array(spot.address)?;
        let counted = (u32_at(&header, 0)?, u32_at(&header, 4)?);
        let length = u64_at(&header, fixed::STRING_LENGTH)?;
        let start = moved(spot.address, fixed::STRING_BYTES);
        let most = spot.block.map_or(u64::MAX, |block| block.end().saturating_sub(start));
        let content = view.bytes(start, length.min(most));
        let is_string = counted.1 & header_kind == u32::from(fixed::KIND_STRING);
        let damage = if length > most || !is_string {
            Some(Damage::Torn)
        } else {
            (content.len() as u64 != length).then_some(Damage::Missing)
        };
        Some(Self { content, counted, damage })
    }
}

impl<'d, S: HeapSink> Walker<'d, S> {
    /// Visits the value at `address`.
    pub(super) fn value_at(&mut self, link: Link, address: u64) {
        let value = self.view.array::<16>(address).and_then(|bytes| Zval::parse(&bytes));
        match value.map(|value| self.direct(value)) {
            Some(Some(value)) => self.value(link, value),
            Some(None) => {}
            None => {
                if let Some(parent) = link.parent {
                    self.damage(parent, Damage::Missing);
                }
            }
        }
    }

    /// The value that `value` leads to, or itself if it is not indirect; `None` if there is none.
    #[inline]
    pub(super) fn direct(&self, value: Zval) -> Option<Zval> {
        if value.kind == self.layout.kind_indirect {
            return self.indirect(value);
        }
        (value.kind != UNDEFINED).then_some(value)
    }

    fn indirect(&self, mut value: Zval) -> Option<Zval> {
        for _ in 0..MOST_INDIRECT {
            if value.kind != self.layout.kind_indirect {
                break;
            }
            value = Zval::parse(&self.view.array::<16>(value.word)?)?;
        }
        (value.kind != UNDEFINED && value.kind != self.layout.kind_indirect).then_some(value)
    }

    /// Whether a visit of `value` may add further work.
    #[inline]
    pub(super) fn leads_on(&self, value: Zval) -> bool {
        value.kind > fixed::KIND_STRING
    }

    /// Visits a value that is not indirect. Everything beyond its own node is scheduled.
    #[inline]
    pub(super) fn value(&mut self, link: Link, value: Zval) {
        let Zval { word, kind } = value;
        match kind {
            NULL | FALSE | TRUE | INTEGER | FLOAT => self.scalar(link, value),
            fixed::KIND_STRING => self.string(link, word),
            fixed::KIND_ARRAY => self.array(link, word),
            OBJECT => self.object(link, word),
            RESOURCE => self.resource(link, word),
            REFERENCE => self.reference(link, word),
            _ if kind == self.layout.kind_constant => self.string(link, word),
            _ if kind == self.layout.kind_expression => self.expression(link, word),
            // Only the owner of the table knows the meaning of this address.
            _ if kind == self.layout.kind_pointer => self.unknown_pointer(link, word),
            _ => self.unknown(link),
        }
    }

    #[cold]
    fn unknown(&mut self, link: Link) {
        if let Some(parent) = link.parent {
            self.damage(parent, Damage::Torn);
        }
    }

    fn scalar(&mut self, link: Link, value: Zval) {
        let node = self.node(NodeType::SCALAR_VALUE, link);
        let Zval { word, kind } = value;
        let value = match kind {
            INTEGER => Value::Integer(word.cast_signed()),
            FLOAT => Value::Float(f64::from_bits(word)),
            TRUE => Value::Bool(true),
            FALSE => Value::Bool(false),
            _ => Value::Null,
        };
        self.sink.attribute(node, self.words.value, value);
    }

    #[inline]
    pub(super) fn text(&self, spot: &Spot) -> Option<Text<'d>> {
        Text::read(self.view, self.layout.header_kind, spot)
    }

    /// The content of the string at `address` in the sink; empty if there is none.
    pub(crate) fn text_at(&mut self, address: u64) -> StringId {
        let text = self.text(&self.spot(address));
        self.limits.meet_bytes(text.as_ref().map_or(0, |text| text.content.len()));
        self.content(text.as_ref())
    }

    /// The content of a string, redacted if needed.
    fn content(&mut self, text: Option<&Text<'_>>) -> StringId {
        let content: &[u8] = text.map_or(&[], |text| &text.content);
        match (&self.redaction, text) {
            (Some(key), Some(text)) if text.counted.1 & self.layout.header_interned == 0 => {
                let redacted = format!("[{} bytes, {:016x}]", content.len(), key.hash_one(content));
                self.sink.string(redacted.as_bytes())
            }
            _ => self.sink.string(content),
        }
    }

    /// The content of the string at `address`; empty if there is none.
    pub(super) fn text_bytes(&mut self, address: u64) -> Vec<u8> {
        let text = self.text(&self.spot(address)).map(|text| text.content.into_owned()).unwrap_or_default();
        self.limits.meet_bytes(text.len());
        text
    }

    /// Visits the string at `address`.
    pub(super) fn string(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        let node = self.node_at(NodeType::STRING, link, &spot);
        let Some(text) = self.text(&spot) else { return self.damage(node, Damage::Missing) };
        let string = self.content(Some(&text));
        self.located_string(node, &spot, &text, string);
    }

    /// Visits the string at `address`, which is a name: `named` first adds the node of the named thing.
    #[inline]
    pub(super) fn named_by(
        &mut self,
        address: u64,
        named: impl FnOnce(&mut Self, StringId) -> Link,
    ) -> NodeId {
        let spot = self.spot(address);
        let text = self.text(&spot);
        let string = self.content(text.as_ref());
        let link = named(self, string);
        if !self.again(&spot, link) {
            let node = self.node_at(NodeType::STRING, link, &spot);
            match &text {
                Some(text) => self.located_string(node, &spot, text, string),
                None => self.damage(node, Damage::Missing),
            }
        }
        link.parent.expect("a name is a part of what it names")
    }

    #[inline]
    fn located_string(&mut self, node: NodeId, spot: &Spot, text: &Text<'_>, string: StringId) {
        let Text { content, counted, damage } = text;
        // Without the final byte 0, which PHP programs do not see.
        let size = fixed::STRING_BYTES as u64 + content.len() as u64;
        self.limits.meet_bytes(content.len());
        let shape =
            Shape { string: Some(string), counted: Some(*counted), ..Shape::new(LocationType::STRING, size) };
        self.locate(node, spot, shape);
        if let Some(damage) = *damage {
            self.damage(node, damage);
        }
    }

    pub(super) fn reference(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        let node = self.node_at(NodeType::PHP_REFERENCE, link, &spot);
        let Some(header) = self.counted(node, &spot, REFERENCE) else { return };
        let size = self.layout.reference_size as u64;
        self.locate(
            node,
            &spot,
            Shape { counted: Some(header), ..Shape::new(LocationType::REFERENCE, size) },
        );
        self.later(Link::strong(node, self.words.referenced), Kind::Value, address.wrapping_add(8));
    }

    pub(super) fn resource(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        let node = self.node_at(NodeType::RESOURCE, link, &spot);
        let Some(header) = self.counted(node, &spot, RESOURCE) else { return };
        let size = self.layout.resource_size as u64;
        self.locate(node, &spot, Shape { counted: Some(header), ..Shape::new(LocationType::RESOURCE, size) });
        let pointer = (self.layout.resource_type + 4).next_multiple_of(8);
        let name = self.sink.string(format!("internal+{pointer}").as_bytes());
        self.unknown_pointer(Link::structural(node, name), self.view.pointer(address, pointer));
    }

    /// The reference count and the flags of what is at `spot`, which should have the type `kind`.
    pub(super) fn counted(&mut self, node: NodeId, spot: &Spot, kind: u8) -> Option<(u32, u32)> {
        let Some(header) = self.view.array::<8>(spot.address) else {
            self.damage(node, Damage::Missing);
            return None;
        };
        let header = (u32_at(&header, 0)?, u32_at(&header, 4)?);
        if header.1 & self.layout.header_kind != u32::from(kind) {
            self.damage(node, Damage::Torn);
        }
        Some(header)
    }

    /// Visits consecutive values.
    pub(super) fn values(&mut self, mut row: Pointers) {
        while row.at < row.count {
            let address = row.start.wrapping_add(u64::from(row.at) * VALUE_SIZE);
            let Some(value) = self.view.array::<16>(address).and_then(|bytes| Zval::parse(&bytes)) else {
                return self.damage(row.node, Damage::Missing);
            };
            row.at += 1;
            let Some(value) = self.direct(value) else { continue };
            let name = self.number(i64::from(row.at - 1));
            if self.leads_on(value) {
                self.work.push(Task::Values(row));
                return self.value(Link::strong(row.node, name), value);
            }
            self.value(Link::strong(row.node, name), value);
        }
    }
}
