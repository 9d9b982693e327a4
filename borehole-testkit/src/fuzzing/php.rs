//! The target that walks stacks of PHP.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;
use std::sync::LazyLock;

use borehole_model::Tables;
use borehole_php::{AttachOptions, Executor, Outcome, Php, WalkOptions, Walker};
use borehole_process::{Error, Image, Memory, Piece};

use crate::corpus;

/// The bytes of a change: which place that the walker reads, how far behind its begin, and what is written there.
const CHANGE_BYTES: usize = 12;

/// What is written is the address of such a place if its last byte is this.
const POINTER: u8 = 0xff;

/// Stacks are kept so far, so that one that never ends shows itself by its depth.
const DEPTH: u32 = 500;

/// More than all names of a stack that deep: whoever believed a length would exceed it.
const MOST_NAMES_BYTES: usize = 64 << 20;

/// Takes the bytes for changes of a recorded process's memory, where its stack is read, and walks that stack: by a walker that
/// knew it before, and by one that attaches to what is there now. Both come to an end, and keep what a stack may hold.
pub(super) fn stack(bytes: &[u8]) {
    let recorded = &*RECORDED;
    let mut image = recorded.image.clone();
    for change in bytes.chunks_exact(CHANGE_BYTES) {
        let number = |at: usize| usize::from(u16::from_le_bytes([change[at], change[at + 1]]));
        let place = |number: usize| recorded.places[number % recorded.places.len()];
        let mut value = [0; 8];
        value.copy_from_slice(&change[4..]);
        if value[7] == POINTER {
            value = place(number(4)).wrapping_add(number(6) as u64).to_le_bytes();
        }
        image.overwrite(place(number(0)).wrapping_add(number(2) as u64), &value);
    }
    let mut knowing = Knowing::nothing_of(&recorded.php);
    knowing.walk(&recorded.image, &recorded.executor);
    knowing.walk(&image, &recorded.executor);
    knowing.walk(&recorded.image, &recorded.executor);
    let Ok(php) = Php::attach(&image, &AttachOptions::default()) else { return };
    let executors = php.executors(&image).unwrap_or_default();
    let mut ignorant = Knowing::nothing_of(&php);
    executors.iter().take(2).for_each(|executor| ignorant.walk(&image, executor));
}

/// A walker and what it has found.
struct Knowing {
    walker: Walker,
    tables: Tables,
}

impl Knowing {
    fn nothing_of(php: &Php) -> Self {
        let options = WalkOptions { depth: Some(DEPTH), ..WalkOptions::default() };
        Self { walker: Walker::new(php, options), tables: Tables::default() }
    }

    fn walk(&mut self, memory: &impl Memory, executor: &Executor) {
        if let Ok(Outcome::Stack(stack)) = self.walker.sample(memory, executor, &mut self.tables) {
            let depth = self.tables.depth(stack.id);
            assert!(depth <= DEPTH, "{depth} frames");
        }
        let names: usize = self.tables.string_ids().map(|id| self.tables.string(id).len()).sum();
        assert!(names <= MOST_NAMES_BYTES, "{names} bytes of names");
    }
}

/// A process of PHP 8.2 as it was recorded.
struct Recorded {
    image: Image,
    php: Php,
    executor: Executor,
    /// Where its stack is read.
    places: Vec<u64>,
}

static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
    let file = File::open(corpus("php/images/8.2.36.image")).expect("the recording can be read");
    let image = Image::read(BufReader::new(file)).expect("a recording");
    let php = Php::attach(&image, &AttachOptions::default()).expect("a process of PHP");
    let executor = php.executors(&image).expect("one that executes")[0];
    let watched = Watched { image: &image, places: RefCell::default() };
    let outcome = Walker::new(&php, WalkOptions::default())
        .sample(&watched, &executor, &mut Tables::default())
        .expect("a process that is there");
    assert!(matches!(outcome, Outcome::Stack(_)), "{outcome:?}");
    let mut places = watched.places.into_inner();
    places.sort_unstable();
    places.dedup();
    Recorded { image, php, executor, places }
});

/// Memory that tells where it was read.
struct Watched<'i> {
    image: &'i Image,
    places: RefCell<Vec<u64>>,
}

impl Memory for Watched<'_> {
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error> {
        self.places.borrow_mut().extend(pieces.iter().map(|piece| piece.address));
        self.image.read_pieces(pieces)
    }
}
