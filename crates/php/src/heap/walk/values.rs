//! Values: numbers, strings, references, resources, and what they lead to.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use borehole_heap::{AttributeValue, HeapSink, LocationType, NodeId, NodeType, StringId};

use super::seen::BlockSpot;
use super::task::Pointers;
use super::{Damage, Extent, HeapReader, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::heap::view::DumpView;
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// The maximum length of a chain of indirect values. Normally an indirect value leads directly to a value; damaged ones may
/// form a loop.
const MOST_INDIRECT: usize = 4;

const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INTEGER: u8 = 4;
const FLOAT: u8 = 5;

/// A value: a number, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zval {
    pub(crate) word: u64,
    pub(crate) kind: u8,
}

impl Zval {
    #[inline]
    pub(super) fn at(view: DumpView<'_>, address: u64) -> Option<Self> {
        Self::parse(&view.array::<16>(address)?)
    }

    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self { word: u64_at(bytes, 0)?, kind: *bytes.get(8)? })
    }

    /// Whether a visit of the value may add further work.
    #[inline]
    pub(super) fn leads_on(self) -> bool {
        self.kind > fixed::KIND_STRING
    }
}

/// The contents and header of a string.
pub(super) struct StringContent<'d> {
    content: Cow<'d, [u8]>,
    counted: (u32, u32),
    pub(super) damage: Option<Damage>,
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn value_at(&mut self, link: NodeLink, address: u64) {
        match Zval::at(self.heap.view, address).map(|value| self.heap.direct(value)) {
            Some(Some(value)) => self.value(link, value),
            Some(None) => {}
            None => {
                if let Some(parent) = link.parent {
                    self.missing(parent, address);
                }
            }
        }
    }

    /// Visits a value that is not indirect. Everything beyond its own node is scheduled.
    #[inline]
    pub(super) fn value(&mut self, link: NodeLink, value: Zval) {
        let Zval { word, kind } = value;
        match kind {
            NULL | FALSE | TRUE | INTEGER | FLOAT => self.scalar(link, value),
            fixed::KIND_STRING => self.string(link, word),
            fixed::KIND_ARRAY => self.array(link, word),
            fixed::KIND_OBJECT => self.object(link, word),
            fixed::KIND_RESOURCE => self.resource(link, word),
            fixed::KIND_REFERENCE => self.reference(link, word),
            _ if kind == self.heap.layout.kind_constant => self.string(link, word),
            _ if kind == self.heap.layout.kind_expression => self.expression(link, word),
            // Only the owner of the table knows the meaning of this address.
            _ if kind == self.heap.layout.kind_pointer => self.unknown_pointer(link, word),
            _ => {
                if let Some(parent) = link.parent {
                    self.damage(parent, Damage::Torn);
                }
            }
        }
    }

    fn scalar(&mut self, link: NodeLink, value: Zval) {
        let node = self.graph.node(NodeType::SCALAR_VALUE, link);
        let Zval { word, kind } = value;
        let value = match kind {
            INTEGER => AttributeValue::Integer(word.cast_signed()),
            FLOAT => AttributeValue::Float(f64::from_bits(word)),
            TRUE => AttributeValue::Bool(true),
            FALSE => AttributeValue::Bool(false),
            _ => AttributeValue::Null,
        };
        self.graph.sink.attribute(node, self.words.value, value);
    }

    /// The content of the string at `address` in the sink; empty if there is none.
    pub(crate) fn text_at(&mut self, address: u64) -> StringId {
        let text = self.heap.text(&self.heap.spot(address));
        self.content(text.as_ref())
    }

    /// The content of a string, redacted if needed; empty once the walk is given up, because damaged strings may share their bytes.
    fn content(&mut self, text: Option<&StringContent<'_>>) -> StringId {
        let content: &[u8] = text.map_or(&[], |text| &text.content);
        self.graph.limits.meet_text(content.len());
        if self.is_given_up() {
            return self.graph.sink.string(b"");
        }
        match (&self.redaction, text) {
            (Some(key), Some(text)) if text.counted.1 & self.heap.layout.header_interned == 0 => {
                let redacted = format!("[{} bytes, {:016x}]", content.len(), key.hash_one(content));
                self.graph.sink.string(redacted.as_bytes())
            }
            _ => self.graph.sink.string(content),
        }
    }

    pub(super) fn text_bytes(&mut self, address: u64) -> Vec<u8> {
        let text = self
            .heap
            .text(&self.heap.spot(address))
            .map(|text| text.content.into_owned())
            .unwrap_or_default();
        self.graph.limits.meet_bytes(text.len());
        text
    }

    pub(super) fn string(&mut self, link: NodeLink, address: u64) {
        let Some((node, spot)) = self.graph.enter(NodeType::STRING, link, address) else { return };
        let Some(text) = self.heap.text(&spot) else { return self.missing(node, address) };
        let string = self.content(Some(&text));
        self.located_string(node, &spot, &text, string);
    }

    /// Visits the string at `address`, which is a name: `named` first adds the node of the named thing.
    #[inline]
    pub(super) fn named_by(
        &mut self,
        address: u64,
        named: impl FnOnce(&mut Self, StringId) -> NodeLink,
    ) -> NodeId {
        let spot = self.heap.spot(address);
        let text = self.heap.text(&spot);
        let string = self.content(text.as_ref());
        let link = named(self, string);
        if !self.graph.again(&spot, link) {
            let node = self.graph.node_at(NodeType::STRING, link, &spot);
            match &text {
                Some(text) => self.located_string(node, &spot, text, string),
                None => self.missing(node, address),
            }
        }
        link.parent.expect("a name is a part of what it names")
    }

    #[inline]
    fn located_string(&mut self, node: NodeId, spot: &BlockSpot, text: &StringContent<'_>, string: StringId) {
        let StringContent { content, counted, damage } = text;
        // Without the final byte 0, which PHP programs do not see.
        let size = fixed::STRING_BYTES as u64 + content.len() as u64;
        let extent = Extent::new(LocationType::STRING, size);
        self.graph.locate(node, spot, Extent { string: Some(string), counted: Some(*counted), ..extent });
        if let Some(damage) = *damage {
            self.damage(node, damage);
        }
    }

    pub(super) fn reference(&mut self, link: NodeLink, address: u64) {
        let Some((node, spot)) = self.graph.enter(NodeType::PHP_REFERENCE, link, address) else { return };
        let Some(header) = self.counted(node, &spot, fixed::KIND_REFERENCE) else { return };
        let size = self.heap.layout.reference_size as u64;
        let extent = Extent::new(LocationType::REFERENCE, size);
        self.graph.locate(node, &spot, Extent { counted: Some(header), ..extent });
        self.later(NodeLink::strong(node, self.words.referenced), VisitKind::Value, address.wrapping_add(8));
    }

    /// The reference count and the flags of what is at `spot`, which should have the type `kind`.
    pub(super) fn counted(&mut self, node: NodeId, spot: &BlockSpot, kind: u8) -> Option<(u32, u32)> {
        let Some(header) = self.heap.view.array::<8>(spot.address) else {
            self.missing(node, spot.address);
            return None;
        };
        let header = (u32_at(&header, 0)?, u32_at(&header, 4)?);
        if header.1 & self.heap.layout.header_kind != u32::from(kind) {
            self.damage(node, Damage::Torn);
        }
        Some(header)
    }

    pub(super) fn values(&mut self, mut row: Pointers) {
        while row.at < row.count {
            let address = row.start.wrapping_add(u64::from(row.at) * fixed::VALUE_SIZE);
            let Some(value) = Zval::at(self.heap.view, address) else {
                return self.missing(row.node, address);
            };
            row.at += 1;
            let Some(value) = self.heap.direct(value) else { continue };
            let name = self.graph.number(i64::from(row.at - 1));
            if value.leads_on() {
                self.pending.tasks.push(WalkTask::Values(row));
                return self.value(NodeLink::strong(row.node, name), value);
            }
            self.value(NodeLink::strong(row.node, name), value);
        }
    }
}

impl<'d> HeapReader<'d> {
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
            value = Zval::at(self.view, value.word)?;
        }
        (value.kind != UNDEFINED && value.kind != self.layout.kind_indirect).then_some(value)
    }

    /// The `zend_string` at `spot`, with its content as far as its block has it.
    #[inline]
    pub(super) fn text(&self, spot: &BlockSpot) -> Option<StringContent<'d>> {
        let header: [u8; fixed::STRING_BYTES] = self.view.array(spot.address)?;
        let counted = (u32_at(&header, 0)?, u32_at(&header, 4)?);
        let length = u64_at(&header, fixed::STRING_LENGTH)?;
        let start = moved(spot.address, fixed::STRING_BYTES);
        let most = spot.block.map_or(u64::MAX, |block| block.end().saturating_sub(start));
        let content = self.view.bytes(start, length.min(most));
        let is_string = counted.1 & self.layout.header_kind == u32::from(fixed::KIND_STRING);
        let damage = if length > most || !is_string {
            Some(Damage::Torn)
        } else {
            (content.len() as u64 != length).then(|| self.absence(moved(start, content.len())))
        };
        Some(StringContent { content, counted, damage })
    }
}
