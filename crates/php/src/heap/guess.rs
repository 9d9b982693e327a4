//! The probable contents of an unknown block, judged by its header and checked against its contents.

use crate::heap::blocks::HeapBlock;
use crate::heap::layout::HeapLayout;
use crate::heap::view::DumpView;
use crate::layout::fixed;
use crate::remote::moved;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guess {
    String,
    Array,
    Object,
    Resource,
    Reference,
    /// No reference-counted value.
    Plain,
}

impl Guess {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
            Self::Resource => "resource",
            Self::Reference => "reference",
            Self::Plain => "plain",
        }
    }
}

/// The maximum plausible number of references.
const MOST_REFERENCES: u32 = 1 << 30;

/// `zend_refcounted_h.refcount`; `None` for a value without a plausible one.
pub(crate) fn refcount(view: DumpView<'_>, address: u64) -> Option<u32> {
    view.u32(address).filter(|count| (1..MOST_REFERENCES).contains(count))
}

/// The probable contents of `block`. Does not detect an object that follows data of its class.
pub(crate) fn guess(view: DumpView<'_>, layout: &HeapLayout, block: &HeapBlock) -> Guess {
    let info = refcount(view, block.address).and_then(|_| view.u32(moved(block.address, 4)));
    let kind = info.map_or(0, |info| info & layout.header_kind);
    let (guess, bears_out): (_, fn(DumpView<'_>, &HeapLayout, &HeapBlock) -> bool) = match u8::try_from(kind)
    {
        Ok(fixed::KIND_STRING) => (Guess::String, is_string),
        Ok(fixed::KIND_ARRAY) => (Guess::Array, is_array),
        Ok(fixed::KIND_OBJECT) => (Guess::Object, is_object),
        Ok(fixed::KIND_RESOURCE) => (Guess::Resource, is_resource),
        Ok(fixed::KIND_REFERENCE) => (Guess::Reference, is_reference),
        _ => return Guess::Plain,
    };
    // Only types that can be part of a cycle have bits for the collector's list after the flags. Half of an address is not a
    // header.
    let flags = if layout.header_kind == 15 { 0x3ff } else { 0xffff };
    let may_be_listed = matches!(guess, Guess::Array | Guess::Object);
    let is_header = may_be_listed || info.is_some_and(|info| info <= flags);
    if is_header && bears_out(view, layout, block) { guess } else { Guess::Plain }
}

/// Whether it ends with a NUL within its block.
fn is_string(view: DumpView<'_>, _: &HeapLayout, block: &HeapBlock) -> bool {
    let Some(length) = view.u64(moved(block.address, fixed::STRING_LENGTH)) else { return false };
    let end = (fixed::STRING_BYTES as u64).checked_add(length).filter(|&end| end < block.bytes);
    end.and_then(|end| view.array::<1>(block.address.wrapping_add(end))) == Some([0])
}

/// Whether it has the size of an array, and consistent numbers.
fn is_array(view: DumpView<'_>, _: &HeapLayout, block: &HeapBlock) -> bool {
    let number = |offset| view.u32(moved(block.address, offset)).unwrap_or_default();
    let (used, elements, size) = (number(24), number(28), number(32));
    block.bytes == fixed::TABLE_SIZE as u64 && elements <= used && used <= size && size.is_power_of_two()
}

fn is_object(view: DumpView<'_>, _: &HeapLayout, block: &HeapBlock) -> bool {
    let is_there =
        |offset| view.u64(moved(block.address, offset)).is_some_and(|address| view.u64(address).is_some());
    block.bytes >= 40 && is_there(16) && is_there(24)
}

fn is_resource(_: DumpView<'_>, layout: &HeapLayout, block: &HeapBlock) -> bool {
    block.bytes == layout.resource_size as u64
}

/// Whether it has the size of a reference, and a value of a known type.
fn is_reference(view: DumpView<'_>, layout: &HeapLayout, block: &HeapBlock) -> bool {
    let kind = view.array::<1>(moved(block.address, 16)).unwrap_or([u8::MAX])[0];
    block.bytes == layout.reference_size as u64 && kind <= 12
}

#[cfg(test)]
mod tests {
    use borehole_heap::Region;
    use borehole_process::Dump;

    use super::*;
    use crate::release::PhpRelease;

    const AT: u64 = 0x7f00_0000_1000;

    /// The guess for a block of `size` bytes with these words in 8.3.
    fn guess_of(words: &[u64], size: usize) -> Guess {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(size, 0);
        let mut dump = Dump::default();
        dump.insert(AT, bytes);
        let layout = HeapLayout::of(PhpRelease::of_version(8, 3).unwrap());
        let block = HeapBlock { index: 0, address: AT, bytes: size as u64, region: Region::HEAP };
        guess(DumpView::new(&dump), &layout, &block)
    }

    fn header(count: u64, info: u64) -> u64 {
        count | info << 32
    }

    #[test]
    fn headers_are_believed_if_the_content_bears_them_out() {
        let string = [header(1, 0x16), 0, 3, u64::from_le_bytes(*b"abc\0\0\0\0\0")];
        assert_eq!(guess_of(&string, 32), Guess::String);
        let array = [header(2, 7), 0, AT + 64, 3 | 2 << 32, 8, 3, 0];
        assert_eq!(guess_of(&array, 56), Guess::Array);
        assert_eq!(guess_of(&[header(1, 7 | 5 << 10), 0, AT, 0, 8, 0, 0], 56), Guess::Array, "listed");
        assert_eq!(guess_of(&[header(1, 0x19), 5, 2, AT], 32), Guess::Resource);
        assert_eq!(guess_of(&[header(2, 0x1a), 7, 4, 0], 32), Guess::Reference);
        assert_eq!(guess_of(&[header(1, 8), 1, AT, AT, 0], 40), Guess::Object);
    }

    #[test]
    fn what_contradicts_its_header_is_plain() {
        let too_long = [header(1, 0x16), 0, 300, 0];
        assert_eq!(guess_of(&too_long, 32), Guess::Plain);
        let without_end = [header(1, 0x16), 0, 8, u64::MAX, u64::MAX];
        assert_eq!(guess_of(&without_end, 40), Guess::Plain);
        let more_than_fit = [header(1, 7), 0, AT, 9 | 9 << 32, 8, 0, 0];
        assert_eq!(guess_of(&more_than_fit, 56), Guess::Plain);
        assert_eq!(guess_of(&[header(0, 0x16), 0, 0, 0], 32), Guess::Plain, "no references");
        assert_eq!(guess_of(&[header(1, 9), 0, 0], 24), Guess::Plain, "too small for a resource");
        assert_eq!(guess_of(&[header(1, 8), 1, 0, 0, 0], 40), Guess::Plain, "without a class");
        // Half of an address whose last digit happens to be a type.
        assert_eq!(guess_of(&[0x7f49_0123_4560, 0, 0, 0], 32), Guess::Plain);
        assert_eq!(guess_of(&[], 8), Guess::Plain);
    }
}
