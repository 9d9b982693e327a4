//! Recorded memory that fails or is damaged, for tests of what walks it.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use borehole_process::{
    ElfSymbols, Error, ErrorKind, ForeignMemory, ForeignProcess, Image, Mappings, MemoryMapping, MemoryPiece,
};

/// Reads recorded memory.
///
/// # Panics
/// If the file is none.
#[must_use]
pub fn read_image(path: &Path) -> Image {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Image::read(BufReader::new(file)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of the text beside recorded memory, which say what is in it.
///
/// # Panics
/// If there is no such file.
#[must_use]
pub fn lines_of_image(path: &Path) -> Vec<String> {
    let text = path.with_extension("txt");
    let text = fs::read_to_string(&text).unwrap_or_else(|error| panic!("{}: {error}", text.display()));
    text.lines().map(ToOwned::to_owned).collect()
}

/// A process that fails after a number of reads.
pub struct FailingProcess<'i> {
    image: &'i Image,
    reads_left: Cell<u64>,
    how: ReadFailure,
}

/// How the reads of a [`FailingProcess`] fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFailure {
    /// The memory is unmapped.
    Unmapped,
    /// The process has ended.
    Gone,
    /// All memory is noise from then on.
    Noise,
}

impl ReadFailure {
    /// Every way to fail.
    pub const ALL: [Self; 3] = [Self::Unmapped, Self::Gone, Self::Noise];
}

impl<'i> FailingProcess<'i> {
    /// The process in `image`, which fails after this many reads.
    #[must_use]
    pub const fn after(reads: u64, image: &'i Image, how: ReadFailure) -> Self {
        Self { image, reads_left: Cell::new(reads), how }
    }

    /// Whether no read is left that succeeds.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.reads_left.get() == 0
    }
}

impl ForeignMemory for FailingProcess<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        if self.reads_left.get() > 0 {
            self.reads_left.set(self.reads_left.get() - 1);
            return self.image.read_pieces(pieces);
        }
        match self.how {
            ReadFailure::Unmapped => Ok(pieces.first().map_or(0, |piece| piece.into.len() / 2)),
            ReadFailure::Gone => Err(Error::new(ErrorKind::Gone, "no such process")),
            ReadFailure::Noise => {
                let mut noise = Noise::new(pieces.first().map_or(1, |piece| piece.address | 1));
                let bytes = pieces.iter_mut().flat_map(|piece| piece.into.iter_mut());
                Ok(bytes.map(|byte| *byte = noise.number().to_le_bytes()[3]).count())
            }
        }
    }
}

impl ForeignProcess for FailingProcess<'_> {
    fn mappings(&self) -> &Mappings {
        self.image.mappings()
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        self.image.symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        self.image.threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        self.image.thread_pointer(thread)
    }
}

/// Random numbers, equal in each run.
pub struct Noise(u64);

impl Noise {
    /// The numbers that belong to a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A member of a list.
    fn one_of(&mut self, list: &[u64]) -> u64 {
        let at = usize::try_from(self.number() % list.len() as u64);
        list[at.expect("less than the length of a list")]
    }
}

/// Copies of an image, each with some numbers replaced: by noise, by the largest number, or by addresses of recorded memory,
/// which mislead more than wild ones.
pub fn damaged_copies(image: &Image, seed: u64, count: usize) -> impl Iterator<Item = Image> {
    let pages = pages(image);
    let mut noise = Noise::new(seed);
    (0..count).map(move |_| {
        let mut damaged = image.clone();
        for _ in 0..=noise.number() % 8 {
            let address = noise.one_of(&pages) + noise.number() % 512 * 8;
            let value = match noise.number() % 3 {
                0 => noise.number(),
                1 => noise.one_of(&pages) + noise.number() % 512 * 8,
                _ => u64::MAX,
            };
            damaged.overwrite(address, &value.to_le_bytes());
        }
        damaged
    })
}

/// The addresses of the recorded pages.
fn pages(image: &Image) -> Vec<u64> {
    let readable = |address: &u64| image.read_u64(*address).is_ok();
    let all = image.mappings().iter().flat_map(|mapping| (mapping.start..mapping.end).step_by(4096));
    all.filter(readable).collect()
}
