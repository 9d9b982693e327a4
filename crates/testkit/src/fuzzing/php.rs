//! The target that walks stacks of PHP.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::iter;
use std::sync::LazyLock;

use borehole_model::Tables;
use borehole_php::{AttachOptions, Executor, Php, SampleOutcome, StackWalker, WalkOptions};
use borehole_process::{Error, ForeignMemory, ForeignProcess as _, Image, MemoryPiece};

use crate::corpus;

/// The bytes of a change: which place that the walker reads, how far behind its begin, and what is written there.
const CHANGE_BYTES: usize = 12;

/// The last byte of a written value that stands for the address of such a place. No address of a program ends in it, and
/// neither do those at the end of all memory, where sums overflow.
const POINTER: u8 = 0x5a;

/// Stacks are kept so far if they are cut, so that one that never ends shows itself by its depth.
const DEPTH: u32 = 500;

/// So many frames a stack may have that is not cut, and as many generators may wait in the last of them.
const MOST_FRAMES: u32 = 2 << 16;

/// More than all names of a stack that deep: whoever believed a length would exceed it.
const MOST_NAMES_BYTES: usize = 64 << 20;

/// The meaning of the first byte of an input.
#[derive(Clone, Copy)]
struct Choices(u8);

impl Choices {
    /// A walker that keeps all frames joins what was there before, one that cuts stacks does not.
    fn depth(self) -> Option<u32> {
        (self.0 & 1 != 0).then_some(DEPTH)
    }

    /// A server has request after request, a program of the command line only one.
    fn is_server(self) -> bool {
        self.0 & 2 != 0
    }

    /// How often the walker has seen the process before: after some samples it looks up everything anew, and copies less.
    fn known(self) -> usize {
        [1, 2, 64, 257][usize::from(self.0 >> 2 & 3)]
    }

    /// How often it sees what has changed.
    fn seen(self) -> usize {
        [1, 2, 3, 66][usize::from(self.0 >> 4 & 3)]
    }
}

/// Takes the bytes for changes of a recorded process's memory, where its stack is read, and walks that stack: by a walker that
/// knew it before, while it changes and afterwards, and by one that attaches to what is there now. All come to an end, and keep
/// what a stack may hold.
pub(super) fn stack(bytes: &[u8]) {
    let Some((&choices, changes)) = bytes.split_first() else { return };
    let choices = Choices(choices);
    let recorded = &RECORDED[usize::from(choices.is_server())];
    let mut image = recorded.image.clone();
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let number = |at: usize| usize::from(u16::from_le_bytes([change[at], change[at + 1]]));
        let place = |number: usize| recorded.places[number % recorded.places.len()];
        let mut value = [0; 8];
        value.copy_from_slice(&change[4..]);
        if value[7] == POINTER {
            value = place(number(4)).wrapping_add(number(6) as u64).to_le_bytes();
        }
        image.overwrite(place(number(0)).wrapping_add(number(2) as u64), &value);
    }
    let mut knowing = Knowing::nothing_of(&recorded.php, choices);
    (0..choices.known()).for_each(|_| knowing.walk(&recorded.image, &recorded.executor));
    knowing.walk(&Changing { before: &recorded.image, after: &image }, &recorded.executor);
    (0..choices.seen()).for_each(|_| knowing.walk(&image, &recorded.executor));
    knowing.walk(&Changing { before: &image, after: &recorded.image }, &recorded.executor);
    knowing.walk(&recorded.image, &recorded.executor);
    let Ok(php) = Php::attach(&image, &AttachOptions::default()) else { return };
    let executors = php.executors(&image).unwrap_or_default();
    let mut ignorant = Knowing::nothing_of(&php, choices);
    executors.iter().take(2).for_each(|executor| ignorant.walk(&image, executor));
}

/// A walker and what it has found.
struct Knowing {
    walker: StackWalker,
    tables: Tables,
    most_frames: u32,
}

impl Knowing {
    fn nothing_of(php: &Php, choices: Choices) -> Self {
        let options = WalkOptions { depth: choices.depth(), ..WalkOptions::default() };
        let most_frames = options.depth.unwrap_or(MOST_FRAMES);
        Self { walker: StackWalker::new(php, options), tables: Tables::default(), most_frames }
    }

    fn walk(&mut self, memory: &impl ForeignMemory, executor: &Executor) {
        if let Ok(SampleOutcome::Stack(stack)) = self.walker.sample(memory, executor, &mut self.tables) {
            let depth = self.tables.depth(stack.id);
            assert!(depth <= self.most_frames, "{depth} frames");
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
    /// Where its frames stand, the leaf first, and then where else its stack is read.
    places: Vec<u64>,
}

/// The recording, and the same as if its PHP served requests.
static RECORDED: LazyLock<[Recorded; 2]> = LazyLock::new(|| {
    let file = File::open(corpus("php/images/8.2.36.image")).expect("the recording can be read");
    let image = Image::read(BufReader::new(file)).expect("a recording");
    let server = as_server(&image);
    [image, server].map(Recorded::of)
});

/// `image` with another name of the interface that PHP runs through.
fn as_server(image: &Image) -> Image {
    let symbols = image.mappings().iter().filter_map(|mapping| image.symbols(mapping).ok());
    let module = symbols.into_iter().find_map(|symbols| symbols.find("sapi_module"));
    let name = image.read_u64(module.expect("a symbol that was recorded").address);
    let mut server = image.clone();
    server.overwrite(name.expect("memory that was recorded"), b"fpm");
    server
}

impl Recorded {
    fn of(image: Image) -> Self {
        let php = Php::attach(&image, &AttachOptions::default()).expect("a process of PHP");
        let executor = php.executors(&image).expect("one that executes")[0];
        let watched = Watched { image: &image, places: RefCell::default() };
        let outcome = StackWalker::new(&php, WalkOptions::default())
            .sample(&watched, &executor, &mut Tables::default())
            .expect("a process that is there");
        assert!(matches!(outcome, SampleOutcome::Stack(_)), "{outcome:?}");
        let mut read = watched.places.into_inner();
        read.sort_unstable();
        read.dedup();
        let places = frames(&image, &executor).into_iter().chain(read).collect();
        Self { image, php, executor, places }
    }
}

/// Where the frames stand that are called from one another, the leaf first.
fn frames(image: &Image, executor: &Executor) -> Vec<u64> {
    /// `zend_executor_globals.current_execute_data` and `zend_execute_data.prev_execute_data` of PHP 8.2.
    const CURRENT: u64 = 488;
    const PREVIOUS: u64 = 48;
    let next = |place: u64| image.read_u64(place).ok().filter(|&frame| frame != 0);
    iter::successors(next(executor.globals + CURRENT), |frame| next(frame + PREVIOUS)).collect()
}

/// Memory that changes between the first and the second time that a place is read in one call.
struct Changing<'i> {
    before: &'i Image,
    after: &'i Image,
}

impl ForeignMemory for Changing<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        let mut seen = BTreeSet::new();
        let mut filled = 0;
        for piece in pieces {
            let image = if seen.insert(piece.address) { self.before } else { self.after };
            let wanted = piece.into.len();
            let copied =
                image.read_pieces(&mut [MemoryPiece { address: piece.address, into: &mut *piece.into }])?;
            filled += copied;
            if copied < wanted {
                break;
            }
        }
        Ok(filled)
    }
}

/// Memory that tells where it was read.
struct Watched<'i> {
    image: &'i Image,
    places: RefCell<Vec<u64>>,
}

impl ForeignMemory for Watched<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        self.places.borrow_mut().extend(pieces.iter().map(|piece| piece.address));
        self.image.read_pieces(pieces)
    }
}
