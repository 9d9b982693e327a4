//! Garbage that PHP has not collected yet: values that hold each other and that nothing else holds.
//!
//! Unreached values are either garbage, or held by something that the walk does not know. Reference counts tell these apart, as
//! in PHP's collector: a value with more references than the unreached blocks have to it is held from elsewhere, and so is
//! everything it leads to. The rest is garbage.

use std::ops::Range;

use hashbrown::HashMap;

use crate::heap::accounting::Accounting;
use crate::heap::blocks::{HeapBlock, HeapBlocks};
use crate::heap::guess::{self, Guess};
use crate::heap::layout::HeapLayout;
use crate::heap::object_size::ObjectShape;
use crate::heap::view::DumpView;
use crate::heap::walk::PendingScan;
use crate::layout::{Layout, fixed};
use crate::remote::{self, u32_at, u64_at};

/// Values that only hold each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Garbage {
    /// Objects: handle and address.
    pub(crate) objects: Vec<(u32, u64)>,
    /// Arrays and references: type and address.
    pub(crate) values: Vec<(Guess, u64)>,
    /// Objects that something else than the unreached blocks holds: handle and address.
    pub(crate) held: Vec<(u32, u64)>,
}

#[derive(Clone, Copy)]
struct Unreached {
    block: HeapBlock,
    guess: Guess,
    /// The address of the counted value: in an object, after the data of its class.
    value: u64,
    handle: u32,
    /// The end of the used part, for the table of an unreached array.
    table_end: Option<u64>,
    /// Whether a counted value leads to it.
    is_led_to: bool,
    /// The number of references from unreached blocks.
    inner: u32,
    /// The number of them that are values of objects, arrays and references, which certainly count.
    certain: u32,
    is_held: bool,
}

impl Unreached {
    /// Whether all its references are known values of unreached blocks, so that a word with its address is not a reference.
    fn is_explained(&self, view: DumpView<'_>) -> bool {
        self.guess != Guess::Plain
            && guess::refcount(view, self.value).is_some_and(|count| count <= self.certain)
    }

    /// Whether something else than unreached blocks holds it. A block without a reference count is held if no counted value
    /// leads to it.
    fn is_held_from_elsewhere(&self, view: DumpView<'_>) -> bool {
        match self.guess {
            Guess::Plain => !self.is_led_to,
            _ => guess::refcount(view, self.value).is_none_or(|count| count > self.inner),
        }
    }
}

/// Finds the garbage among the unreached blocks. `objects` are all existing objects, with their handles; `known` is the memory of
/// reached objects with contents that the walk does not know.
pub(crate) fn find(
    view: DumpView<'_>,
    layout: &HeapLayout,
    stacks: &Layout,
    accounting: &Accounting<'_>,
    objects: Vec<(u32, u64)>,
    known: &[PendingScan],
) -> Garbage {
    let mut search = GarbageSearch::new(view, layout, stacks, accounting);
    search.name_objects(objects);
    search.name_tables();
    search.count();
    search.lead();
    search.spread(known);
    search.garbage()
}

struct GarbageSearch<'a> {
    view: DumpView<'a>,
    layout: &'a HeapLayout,
    stacks: &'a Layout,
    blocks: &'a HeapBlocks,
    unreached: Vec<Unreached>,
    /// The position in `unreached`, by the number of the block.
    positions: HashMap<u32, usize>,
}

impl<'a> GarbageSearch<'a> {
    fn new(
        view: DumpView<'a>,
        layout: &'a HeapLayout,
        stacks: &'a Layout,
        accounting: &Accounting<'a>,
    ) -> Self {
        let look = |block: HeapBlock| Unreached {
            guess: match guess::guess(view, layout, &block) {
                // All objects are known, so this only looks like one.
                Guess::Object => Guess::Plain,
                guess => guess,
            },
            value: block.address,
            block,
            handle: 0,
            table_end: None,
            is_led_to: false,
            inner: 0,
            certain: 0,
            is_held: false,
        };
        // Missing memory leads nowhere and is not garbage. One page may claim that a whole chunk is full of blocks.
        let is_there = |block: &HeapBlock| view.u64(block.address).is_some();
        let unreached: Vec<_> = accounting.unreached().filter(is_there).map(look).collect();
        let positions =
            unreached.iter().zip(0..).map(|(one, position)| (one.block.index, position)).collect();
        Self { view, layout, stacks, blocks: accounting.blocks, unreached, positions }
    }

    fn name_objects(&mut self, objects: Vec<(u32, u64)>) {
        for (handle, address) in objects {
            let block = self.blocks.find(address);
            let Some(&position) = block.and_then(|block| self.positions.get(&block.index)) else { continue };
            let one = &mut self.unreached[position];
            (one.guess, one.value, one.handle) = (Guess::Object, address, handle);
        }
    }

    fn name_tables(&mut self) {
        for position in 0..self.unreached.len() {
            let one = &self.unreached[position];
            if one.guess == Guess::Array {
                let number = |offset| u64::from(self.view.number(one.value, offset));
                let is_packed = number(fixed::TABLE_FLAGS) & u64::from(fixed::TABLE_PACKED) != 0;
                let stride = if is_packed { self.layout.packed_element } else { fixed::BUCKET_SIZE };
                let used = number(fixed::TABLE_USED).saturating_mul(stride as u64);
                let end = self.view.pointer(one.value, fixed::TABLE_BUCKETS).saturating_add(used);
                self.targets(position, |table, _| table.table_end = Some(end));
            }
        }
    }

    /// Marks everything that counted values lead to.
    fn lead(&mut self) {
        let counts = |one: &Unreached| one.guess != Guess::Plain;
        let open = self.positions_of(counts);
        self.mark(open, |one, _| Some(&mut one.is_led_to));
    }

    fn positions_of(&self, is_wanted: impl Fn(&Unreached) -> bool) -> Vec<usize> {
        let all = self.unreached.iter().enumerate();
        all.filter(|(_, one)| is_wanted(one)).map(|(position, _)| position).collect()
    }

    /// Sets the mark of everything that `open` leads to, if the target has one for this kind of reference: certain, or not.
    fn mark(&mut self, mut open: Vec<usize>, mark: impl Fn(&mut Unreached, bool) -> Option<&mut bool>) {
        while let Some(position) = open.pop() {
            let mut new = Vec::new();
            self.targets(position, |one, is_certain| {
                if mark(one, is_certain).is_some_and(|mark| !std::mem::replace(mark, true)) {
                    new.push(one.block.index);
                }
            });
            open.extend(new.iter().filter_map(|index| self.positions.get(index)));
        }
    }

    /// Counts the references of unreached blocks to each other.
    fn count(&mut self) {
        for position in 0..self.unreached.len() {
            self.targets(position, |one, is_certain| {
                one.inner = one.inner.saturating_add(1);
                one.certain = one.certain.saturating_add(u32::from(is_certain));
            });
        }
    }

    /// Marks what is held from elsewhere, and everything it leads to.
    fn spread(&mut self, known: &[PendingScan]) {
        let view = self.view;
        let mut held = self.positions_of(|one| one.is_held_from_elsewhere(view));
        held.extend(known.iter().flat_map(|scan| self.plain_of(scan)));
        for &position in &held {
            self.unreached[position].is_held = true;
        }
        self.mark(held, |one, is_certain| {
            let is_reference = is_certain || !one.is_explained(view);
            is_reference.then_some(&mut one.is_held)
        });
    }

    /// The positions of the blocks without a reference count that a reached object refers to.
    fn plain_of(&self, scan: &PendingScan) -> Vec<usize> {
        if self.positions.is_empty() {
            return Vec::new();
        }
        let words = self.view.words(scan.start, scan.bytes);
        let blocks = words.filter(|address| address % 8 == 0).filter_map(|address| self.blocks.find(address));
        let positions = blocks.filter_map(|block| self.positions.get(&block.index).copied());
        positions.filter(|&position| self.unreached[position].guess == Guess::Plain).collect()
    }

    fn garbage(self) -> Garbage {
        let mut garbage = Garbage::default();
        let is_first = |one: &&Unreached| one.guess == Guess::Object && one.is_held_from_elsewhere(self.view);
        garbage.held.extend(self.unreached.iter().filter(is_first).map(|one| (one.handle, one.value)));
        garbage.held.sort_unstable();
        for one in self.unreached.iter().filter(|one| !one.is_held) {
            match one.guess {
                Guess::Object => garbage.objects.push((one.handle, one.value)),
                Guess::Array | Guess::Reference => garbage.values.push((one.guess, one.value)),
                Guess::String | Guess::Resource | Guess::Plain => {}
            }
        }
        garbage.objects.sort_unstable();
        garbage
    }

    /// Passes the target of each reference from an unreached block to another one, and whether it is certain: a value, or the
    /// table of an array.
    fn targets(&mut self, position: usize, mut take: impl FnMut(&mut Unreached, bool)) {
        let one = &self.unreached[position];
        let (view, blocks, own) = (self.view, self.blocks, *one);
        let bytes = view.bytes(own.block.address, own.block.bytes);
        let parts = self.parts(&own, bytes.len());
        let words = parts.into_iter().flat_map(|(range, is_values)| {
            // An unset value still contains the previous one.
            let is_set = |offset: &usize| u32_at(&bytes, offset + 8).is_some_and(|info| info & 0xff != 0);
            let words = range.step_by(8).filter(move |offset| !is_values || is_set(offset));
            words.map(move |offset| (offset, is_values))
        });
        for (offset, is_value) in words {
            let address = u64_at(&bytes, offset).filter(|address| address % 8 == 0 && *address != 0);
            let Some(target) = address.and_then(|address| blocks.find(address)) else { continue };
            let Some(&position) = self.positions.get(&target.index) else { continue };
            let target = &mut self.unreached[position];
            let is_counted = target.guess != Guess::Plain;
            if is_counted && (Some(target.value) != address || self.is_own_frame(offset, &own, position)) {
                continue;
            }
            take(&mut self.unreached[position], is_value);
        }
    }

    /// Whether the word at `offset` of a generator's frame is the generator, which the frame refers to but does not hold.
    fn is_own_frame(&self, offset: usize, frame: &Unreached, target: usize) -> bool {
        let generator = self.unreached[target].value;
        offset == fixed::FRAME_RESULT
            && frame.guess == Guess::Plain
            && self.view.pointer(generator, self.stacks.generator_frame) == frame.block.address
    }

    /// The parts of a block of `length` bytes that may have references, and whether they consist of values.
    fn parts(&self, one: &Unreached, length: usize) -> Vec<(Range<usize>, bool)> {
        match one.guess {
            Guess::String | Guess::Resource => Vec::new(),
            Guess::Reference => vec![(8..16, true)],
            Guess::Array => vec![(fixed::TABLE_BUCKETS..fixed::TABLE_BUCKETS + 8, false)],
            Guess::Object => self.parts_of_object(one, length),
            Guess::Plain => {
                let used = one.table_end.map(|end| usize::try_from(end.saturating_sub(one.block.address)));
                let end = used.map_or(length, |used| used.map_or(length, |used| used.min(length)));
                vec![(0..end, one.table_end.is_some())]
            }
        }
    }

    /// The memory before an object, the table of its dynamic properties, its properties, and the rest of its structure.
    fn parts_of_object(&self, one: &Unreached, length: usize) -> Vec<(Range<usize>, bool)> {
        let object = usize::try_from(one.value - one.block.address).unwrap_or(length);
        let class = self.view.pointer(one.value, 16);
        let size = ObjectShape::of(self.view, self.layout, class).bytes(object as u64, one.block.bytes);
        let length = usize::try_from(size).map_or(length, |size| size.min(length));
        let count =
            usize::try_from(self.view.number(class, self.layout.class_property_count)).unwrap_or_default();
        let values = object.saturating_add(PROPERTIES + 8).min(length);
        // One more for the guard of a class with magic methods.
        let end = values.saturating_add(count.saturating_add(1).saturating_mul(16)).min(length);
        let before = (0..object.min(length), false);
        let dynamic = (values.saturating_sub(8)..values, false);
        if self.view.pointer(class, self.layout.class_create) == 0 || object > 0 {
            return vec![before, dynamic, (values..end, true)];
        }
        // A generator refers to others that it does not hold, from its delegate on.
        let is_generator = remote::string(self.view.dump, self.view.pointer(class, fixed::CLASS_NAME))
            .is_ok_and(|name| name == b"Generator");
        let end = if is_generator { self.stacks.generator_delegate + 8 } else { length };
        vec![dynamic, (values..end.min(length), false)]
    }
}

/// `zend_object.properties`; the declared ones follow.
const PROPERTIES: usize = 32;
