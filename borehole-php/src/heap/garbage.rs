//! Garbage that PHP has not collected yet: values that hold each other, and that nothing else holds.
//!
//! What the walk did not come to is either that, or held by something that the walk does not know. The reference counts tell
//! these apart, as they do for PHP's own collector: what counts more references than the unreached blocks have to it is held
//! from elsewhere, and so is whatever it leads to. The rest is garbage.

use hashbrown::HashMap;

use crate::heap::accounting::Accounting;
use crate::heap::blocks::{Block, Blocks};
use crate::heap::guess::{self, Guess};
use crate::heap::layout::HeapLayout;
use crate::heap::walk::View;
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// Values that hold each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Garbage {
    /// Objects by their handle, with their address.
    pub(crate) objects: Vec<(u32, u64)>,
    /// Arrays and references, with their address.
    pub(crate) values: Vec<(Guess, u64)>,
}

/// A block that was not reached.
struct Unreached {
    block: Block,
    guess: Guess,
    /// Where what counts references begins: in an object behind the data of its class.
    value: u64,
    handle: u32,
    /// Of the table of an unreached array: where what is used of it ends.
    table_end: Option<u64>,
    /// Whether something that counts references leads to it.
    is_led_to: bool,
    /// References from unreached blocks.
    inner: u32,
    is_held: bool,
}

impl Unreached {
    /// Whether it is held by something else than unreached blocks: what counts no references, when nothing leads to it that
    /// does.
    fn is_held_from_elsewhere(&self, view: View<'_>) -> bool {
        match self.guess {
            Guess::Plain => !self.is_led_to,
            _ => guess::refcount(view, self.value).is_none_or(|count| count > self.inner),
        }
    }
}

/// Finds the garbage among what was not reached. `objects` are all there are, by handle.
pub(crate) fn find(
    view: View<'_>,
    layout: &HeapLayout,
    accounting: &Accounting<'_>,
    objects: impl Iterator<Item = (u32, u64)>,
) -> Garbage {
    let mut search = Search::new(view, layout, accounting);
    search.name_objects(objects);
    search.name_tables();
    search.count();
    search.lead();
    search.spread();
    search.garbage()
}

struct Search<'a> {
    view: View<'a>,
    layout: &'a HeapLayout,
    blocks: &'a Blocks,
    unreached: Vec<Unreached>,
    /// The position in `unreached` by the number of the block.
    positions: HashMap<u32, usize>,
}

impl<'a> Search<'a> {
    fn new(view: View<'a>, layout: &'a HeapLayout, accounting: &'a Accounting) -> Self {
        let look = |block: Block| Unreached {
            guess: match guess::guess(view, layout, &block) {
                // The objects are known: what only looks like one is none.
                Guess::Object => Guess::Plain,
                guess => guess,
            },
            value: block.address,
            block,
            handle: 0,
            table_end: None,
            is_led_to: false,
            inner: 0,
            is_held: false,
        };
        let unreached: Vec<_> = accounting.unreached().map(look).collect();
        let positions =
            unreached.iter().zip(0..).map(|(one, position)| (one.block.index, position)).collect();
        Self { view, layout, blocks: accounting.blocks(), unreached, positions }
    }

    fn name_objects(&mut self, objects: impl Iterator<Item = (u32, u64)>) {
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
                let is_packed = number(TABLE_FLAGS) & PACKED != 0;
                let stride = if is_packed { self.layout.packed_element } else { fixed::BUCKET_SIZE };
                let used = number(fixed::TABLE_USED).saturating_mul(stride as u64);
                let end = self.view.pointer(one.value, fixed::TABLE_BUCKETS).saturating_add(used);
                self.targets(position, |table| table.table_end = Some(end));
            }
        }
    }

    /// Marks what something leads to that counts references.
    fn lead(&mut self) {
        let counts = |one: &Unreached| one.guess != Guess::Plain;
        let open = self.positions_of(counts);
        self.mark(open, |one| &mut one.is_led_to);
    }

    fn positions_of(&self, is_wanted: impl Fn(&Unreached) -> bool) -> Vec<usize> {
        let all = self.unreached.iter().enumerate();
        all.filter(|(_, one)| is_wanted(one)).map(|(position, _)| position).collect()
    }

    /// Marks what the `open` ones lead to.
    fn mark(&mut self, mut open: Vec<usize>, mark: impl Fn(&mut Unreached) -> &mut bool) {
        while let Some(position) = open.pop() {
            let mut new = Vec::new();
            self.targets(position, |one| {
                if !std::mem::replace(mark(one), true) {
                    new.push(one.block.index);
                }
            });
            open.extend(new.iter().filter_map(|index| self.positions.get(index)));
        }
    }

    /// Counts the references that unreached blocks have to each other.
    fn count(&mut self) {
        for position in 0..self.unreached.len() {
            self.targets(position, |one| one.inner = one.inner.saturating_add(1));
        }
    }

    /// Marks what is held from elsewhere, and all that it leads to.
    fn spread(&mut self) {
        let view = self.view;
        let held = self.positions_of(|one| one.is_held_from_elsewhere(view));
        for &position in &held {
            self.unreached[position].is_held = true;
        }
        self.mark(held, |one| &mut one.is_held);
    }

    fn garbage(self) -> Garbage {
        let mut garbage = Garbage::default();
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

    /// Hands out, for each reference of an unreached block to another one, that other.
    fn targets(&mut self, position: usize, mut take: impl FnMut(&mut Unreached)) {
        let (view, layout) = (self.view, self.layout);
        let one = &self.unreached[position];
        let (guess, value, block, table_end) = (one.guess, one.value, one.block, one.table_end);
        let bytes = view.bytes(block.address, block.bytes);
        let mut word = |offset: usize| {
            let Some(address) = u64_at(&bytes, offset).filter(|address| address % 8 == 0 && *address != 0)
            else {
                return;
            };
            let Some(target) = self.blocks.find(address) else { return };
            let Some(&position) = self.positions.get(&target.index) else { return };
            let target = &mut self.unreached[position];
            if target.guess == Guess::Plain || target.value == address {
                take(target);
            }
        };
        // What a value held before it was unset still stands in it.
        let is_set = |offset: &usize| u32_at(&bytes, offset + 8).is_some_and(|info| info & 0xff != 0);
        match guess {
            Guess::String | Guess::Resource => {}
            Guess::Reference => word(8),
            Guess::Array => word(fixed::TABLE_BUCKETS),
            Guess::Object => {
                let object = usize::try_from(value - block.address).unwrap_or_default();
                (0..object).step_by(8).for_each(&mut word);
                word(object + PROPERTIES);
                let rest = object + PROPERTIES + 8..bytes.len();
                match plain_object_bytes(view, layout, value) {
                    None => rest.step_by(8).for_each(&mut word),
                    Some(length) => {
                        let end = bytes.len().min(object.saturating_add(length));
                        (rest.start..end).step_by(8).filter(is_set).for_each(&mut word);
                    }
                }
            }
            Guess::Plain => match table_end.map(|end| usize::try_from(end.saturating_sub(block.address))) {
                None => (0..bytes.len()).step_by(8).for_each(&mut word),
                Some(end) => {
                    let end = end.map_or(bytes.len(), |end| end.min(bytes.len()));
                    (0..end).step_by(8).filter(is_set).for_each(&mut word);
                }
            },
        }
    }
}

/// `HashTable.u.flags`, and the flag that its keys are 0, 1, 2, ….
const TABLE_FLAGS: usize = 8;
const PACKED: u64 = 4;

/// `zend_object.properties`; the declared ones follow.
const PROPERTIES: usize = 32;

/// How long an object is that has nothing but its properties; `None` for one that may have more.
fn plain_object_bytes(view: View<'_>, layout: &HeapLayout, object: u64) -> Option<usize> {
    let class = view.u64(moved(object, 16))?;
    if view.u64(moved(class, layout.class_create))? != 0 {
        return None;
    }
    // One more for the guard of a class with magic methods.
    let count = usize::try_from(view.u32(moved(class, layout.class_property_count))?).ok()?;
    count.checked_add(1)?.checked_mul(16)?.checked_add(PROPERTIES + 8)
}
