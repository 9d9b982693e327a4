//! What the walk needs to know of a class to walk its objects: read once a class.

use borehole_heap::{HeapSink, StringId};
use hashbrown::HashMap;

use super::Walker;
use super::values::Zval;
use crate::heap::internals;
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// A class has no more properties than this, and no more ancestors than [`MOST_ANCESTORS`], or it is damaged.
const MOST_PROPERTIES: u32 = 1 << 16;
const MOST_ANCESTORS: usize = 256;

/// `zend_class_entry.type`, of a class that is part of PHP.
const INTERNAL: u8 = 1;
/// `zend_class_entry.parent`.
const PARENT: usize = 16;
/// `zend_object.properties_table`.
const FIRST_PROPERTY: u32 = 40;

/// A class as its objects see it.
#[derive(Clone, Debug)]
pub(crate) struct ClassNames {
    by_address: HashMap<u64, u32>,
    all: Vec<ClassName>,
    last: (u64, u32),
}

impl Default for ClassNames {
    fn default() -> Self {
        Self { by_address: HashMap::new(), all: Vec::new(), last: (0, 0) }
    }
}

/// One class.
#[derive(Clone, Debug)]
pub(crate) struct ClassName {
    pub(crate) name: StringId,
    /// How many properties its objects have.
    pub(crate) property_count: u32,
    /// The names of an object's properties, in the order of their places.
    pub(crate) properties: Vec<Option<StringId>>,
    /// The names of the static ones.
    pub(crate) statics: Vec<Option<StringId>>,
    /// The name of the class of PHP's own that it is or extends; empty if there is none.
    pub(crate) internal: Box<[u8]>,
    /// How large the structures of that class are, where it is known.
    pub(crate) internal_size: Option<u64>,
}

impl ClassNames {
    pub(crate) fn get(&self, number: u32) -> &ClassName {
        &self.all[number as usize]
    }
}

impl<S: HeapSink> Walker<'_, S> {
    /// The number of the class at `address`.
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
        let name = self.view.pointer(address, fixed::CLASS_NAME);
        let count = self.view.number(address, self.layout.class_property_count);
        let name = self.text_bytes(name);
        // A class without a name has its place behind a 0.
        let shown = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let mut class = ClassName {
            name: self.sink.string(shown),
            property_count: count.min(MOST_PROPERTIES),
            properties: Vec::new(),
            statics: Vec::new(),
            internal: Box::default(),
            internal_size: None,
        };
        let mut ancestor = address;
        for _ in 0..MOST_ANCESTORS {
            if ancestor == 0 {
                break;
            }
            self.name_properties(&mut class, ancestor);
            if self.view.array::<1>(ancestor) == Some([INTERNAL]) && class.internal.is_empty() {
                let name = self.view.pointer(ancestor, fixed::CLASS_NAME);
                class.internal = self.text_bytes(name).into();
            }
            ancestor = self.view.pointer(ancestor, PARENT);
        }
        class.internal_size = internals::size(&class.internal, self.php.identity.release);
        class
    }

    /// Adds the names that `ancestor` gives to places that have none yet.
    fn name_properties(&mut self, class: &mut ClassName, ancestor: u64) {
        let infos = moved(ancestor, self.layout.class_functions + fixed::TABLE_SIZE);
        let Some(header) = self.view.array::<{ fixed::TABLE_SIZE }>(infos) else { return };
        let table = self.table(&header);
        for at in 0..table.used {
            let Some((value, key)) = self.pair(&header, at) else { return };
            let info = value.word;
            let Some(start) = self.view.array::<8>(info).filter(|_| value.kind != 0) else { continue };
            let place = u32_at(&start, 0).unwrap_or_default();
            let is_static = u32_at(&start, 4).unwrap_or_default() & self.layout.property_static != 0;
            let (names, place) = match is_static {
                true => (&mut class.statics, place),
                false => (&mut class.properties, place.wrapping_sub(FIRST_PROPERTY) / 16),
            };
            if place >= MOST_PROPERTIES {
                continue;
            }
            let place = place as usize;
            if names.len() <= place {
                names.resize(place + 1, None);
            }
            if names[place].is_none() {
                let name = self.text_at(key);
                // What a class declares anew hides what its ancestor has under that name.
                let is_hidden = names.contains(&Some(name));
                let name = if is_hidden { self.qualified(ancestor, key) } else { name };
                names[place] = Some(name);
            }
        }
    }

    fn qualified(&mut self, class: u64, name: u64) -> StringId {
        let class = self.text_bytes(self.view.pointer(class, fixed::CLASS_NAME));
        let name = [&*class, b"::", &*self.text_bytes(name)].concat();
        self.sink.string(&name)
    }

    /// The value and the key of a bucket that is no packed one.
    fn pair(&self, header: &[u8; fixed::TABLE_SIZE], at: u32) -> Option<(Zval, u64)> {
        let buckets = u64_at(header, fixed::TABLE_BUCKETS)?;
        let address = buckets.wrapping_add(u64::from(at) * fixed::BUCKET_SIZE as u64);
        let bytes: [u8; fixed::BUCKET_SIZE] = self.view.array(address)?;
        Some((Zval::parse(&bytes)?, u64_at(&bytes, fixed::BUCKET_KEY)?))
    }

    /// The name of a place: its number if the class gives none.
    pub(super) fn property_name(&mut self, class: u32, is_static: bool, place: u32) -> StringId {
        let class = self.classes.get(class);
        let names = if is_static { &class.statics } else { &class.properties };
        match names.get(place as usize).copied().flatten() {
            Some(name) => name,
            None => self.number(i64::from(place)),
        }
    }
}
