//! The facts about a class that are needed to walk its objects, read once for each class.

use std::ops::RangeInclusive;

use borehole_heap::{HeapSink, StringId};
use hashbrown::{HashMap, HashSet};

use super::values::Zval;
use super::{HeapReader, HeapWalker};
use crate::heap::object_size::{MOST_PROPERTIES, ObjectShape};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// The maximum number of ancestors of a class; with more, it is damaged.
const MOST_ANCESTORS: usize = 256;

/// `zend_class_entry.type` of a user class. A few of the engine's classes have no type.
const USER: u8 = 2;
/// `zend_object.properties_table`.
const FIRST_PROPERTY: u32 = 40;

#[derive(Clone, Debug, Default)]
pub(crate) struct ClassNames {
    by_address: HashMap<u64, u32>,
    all: Vec<ClassName>,
    last: (u64, u32),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClassName {
    /// Whether it is plausibly a class.
    pub(crate) is_class: bool,
    pub(crate) name: StringId,
    /// The number of properties of its objects.
    pub(crate) property_count: u32,
    /// The names of an object's properties, in order of their places.
    pub(crate) properties: Vec<Option<StringId>>,
    /// The names of the static properties.
    pub(crate) statics: Vec<Option<StringId>>,
    /// The name of the nearest internal class that it is or extends; empty if there is none.
    pub(crate) internal: Box<[u8]>,
    /// The facts that the size of its objects depends on.
    pub(crate) shape: ObjectShape,
}

impl ClassNames {
    pub(crate) fn get(&self, number: u32) -> &ClassName {
        &self.all[number as usize]
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    #[inline]
    pub(super) fn class_number(&mut self, address: u64) -> u32 {
        if self.classes.last.0 == address && !self.classes.all.is_empty() {
            return self.classes.last.1;
        }
        let number = match self.classes.by_address.get(&address) {
            Some(&number) => number,
            None => self.new_class_name(address),
        };
        self.classes.last = (address, number);
        number
    }

    fn new_class_name(&mut self, address: u64) -> u32 {
        let class = self.read_class_name(address);
        let number = u32::try_from(self.classes.all.len()).expect("memory ends before classes do");
        self.classes.all.push(class);
        self.classes.by_address.insert(address, number);
        number
    }

    fn read_class_name(&mut self, address: u64) -> ClassName {
        let mut class = ClassName::default();
        if !self.heap.is_class(address) {
            class.name = self.graph.sink.string(b"");
            return class;
        }
        let name = self.class_text(address);
        class.name = self.graph.sink.string(&readable(&name));
        class.is_class = true;
        class.property_count =
            self.heap.view.number(address, self.heap.layout.class_property_count).min(MOST_PROPERTIES);
        let mut taken = HashSet::new();
        let mut ancestor = address;
        for _ in 0..MOST_ANCESTORS {
            if !self.heap.is_class(ancestor) {
                break;
            }
            self.name_properties(&mut class, ancestor, &mut taken);
            if self.heap.view.array(ancestor) == Some([fixed::CLASS_INTERNAL]) && class.internal.is_empty() {
                class.internal = self.class_text(ancestor).into();
            }
            ancestor = self.heap.view.pointer(ancestor, fixed::CLASS_PARENT);
        }
        class.shape = ObjectShape::of(self.heap.view, self.heap.layout, address);
        class
    }

    fn class_text(&mut self, address: u64) -> Vec<u8> {
        self.text_bytes(self.heap.view.pointer(address, fixed::CLASS_NAME))
    }

    /// Adds the names that `ancestor` gives to places that have none yet.
    fn name_properties(
        &mut self,
        class: &mut ClassName,
        ancestor: u64,
        taken: &mut HashSet<(bool, StringId)>,
    ) {
        let infos = moved(ancestor, self.heap.layout.class_property_defaults + 24 + fixed::TABLE_SIZE);
        let Some(header) = self.heap.view.array::<{ fixed::TABLE_SIZE }>(infos) else { return };
        let used = self.heap.table(&header).used.min(MOST_PROPERTIES);
        for at in 0..used {
            let Some((value, key)) = self.heap.pair(&header, at) else { return };
            let Some(info) = self.heap.view.array::<8>(value.word).filter(|_| value.kind != 0) else {
                continue;
            };
            let place = u32_at(&info, 0).unwrap_or_default();
            let is_static = u32_at(&info, 4).unwrap_or_default() & self.heap.layout.property_static != 0;
            let place = if is_static { place } else { place.wrapping_sub(FIRST_PROPERTY) / 16 };
            let names = if is_static { &mut class.statics } else { &mut class.properties };
            if self.is_given_up() {
                return;
            }
            // Each place is that of a value somewhere.
            let more = (place as usize + 1).saturating_sub(names.len());
            self.graph.limits.meet(if place < MOST_PROPERTIES { more as u64 } else { 0 });
            let Some(slot) = slot(names, place).filter(|slot| slot.is_none()) else { continue };
            let name = self.text_at(key);
            // A redeclared property hides that of the ancestor with an equal name.
            let is_hidden = !taken.insert((is_static, name));
            *slot = Some(if is_hidden { self.qualified(ancestor, key) } else { name });
        }
    }

    fn qualified(&mut self, class: u64, name: u64) -> StringId {
        let class = self.class_text(class);
        let name = [&*class, b"::", &*self.text_bytes(name)].concat();
        self.graph.sink.string(&name)
    }

    /// The name of a place: its number if the class has none.
    pub(super) fn property_name(&mut self, class: u32, is_static: bool, place: u32) -> StringId {
        let class = self.classes.get(class);
        let names = if is_static { &class.statics } else { &class.properties };
        match names.get(place as usize).copied().flatten() {
            Some(name) => name,
            None => self.graph.number(i64::from(place)),
        }
    }
}

impl HeapReader<'_> {
    fn is_class(&self, address: u64) -> bool {
        self.is_named(address, 0..=USER)
    }

    /// Whether something with one of these types and a valid name is at `address`: functions and classes begin alike.
    pub(super) fn is_named(&self, address: u64, types: RangeInclusive<u8>) -> bool {
        let is_type = self.view.array(address).is_some_and(|[kind]| types.contains(&kind));
        let name = self.view.pointer(address, fixed::CLASS_NAME);
        is_type && self.text(&self.spot(name)).is_some_and(|text| text.damage.is_none())
    }

    /// The value and the key of a bucket in a table that is not packed.
    fn pair(&self, header: &[u8; fixed::TABLE_SIZE], at: u32) -> Option<(Zval, u64)> {
        let buckets = u64_at(header, fixed::TABLE_BUCKETS)?;
        let address = buckets.wrapping_add(u64::from(at) * fixed::BUCKET_SIZE as u64);
        let bytes: [u8; fixed::BUCKET_SIZE] = self.view.array(address)?;
        Some((Zval::parse(&bytes)?, u64_at(&bytes, fixed::BUCKET_KEY)?))
    }
}

/// The name of a class; of an anonymous one `Base@anonymous(/app/a.php:12)`, so that two of one base are two.
///
/// Source: PHP, Zend/zend_compile.c, `zend_generate_anon_class_name`: a 0 byte, the file, and `:12$0`; in older
/// releases an address such as `0x7f0012` instead of the line.
pub(super) fn readable(name: &[u8]) -> Vec<u8> {
    let Some(end) = name.iter().position(|&byte| byte == 0) else { return name.to_vec() };
    let (base, place) = (&name[..end], &name[end + 1..]);
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
    let cut = |mark: &[u8]| {
        let start = place.windows(mark.len()).rposition(|window| window == mark)?;
        is_number(&place[start + mark.len()..]).then_some(&place[..start])
    };
    let place = cut(b"$").or_else(|| cut(b"0x")).unwrap_or(place);
    [base, b"(", place, b")"].concat()
}

/// The slot of a name, growing the list if needed; `None` if no class has that many.
fn slot(names: &mut Vec<Option<StringId>>, place: u32) -> Option<&mut Option<StringId>> {
    let place = usize::try_from(place).ok().filter(|_| place < MOST_PROPERTIES)?;
    if names.len() <= place {
        names.resize(place + 1, None);
    }
    names.get_mut(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_classes_are_named_by_their_place() {
        let names: [(&[u8], &str); 5] = [
            (b"App\\Plain", "App\\Plain"),
            (b"class@anonymous\0/app/a.php:12$0", "class@anonymous(/app/a.php:12)"),
            (b"Base@anonymous\0/app/$x/a.php:12$1f", "Base@anonymous(/app/$x/a.php:12)"),
            (b"class@anonymous\0/app/a.php0x7f001c60b2", "class@anonymous(/app/a.php)"),
            (b"class@anonymous\0", "class@anonymous()"),
        ];
        for (name, expected) in names {
            assert_eq!(String::from_utf8_lossy(&readable(name)), expected);
        }
    }
}
