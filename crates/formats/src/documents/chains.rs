//! Entries of many chains in one temporary file.
//!
//! Samples of all threads arrive mixed, but are written thread by thread and column by column. So entries of three
//! numbers wait as varints in blocks in a file that the caller supplies. Each block belongs to one chain. Memory per
//! chain is one block, which is short or at most a quarter of what the chain has stored, and sixteen bytes for each
//! full block.

use std::io::{self, SeekFrom};

use borehole_wire::{Cursor, put_varint};

use crate::registry::{MakeSpool, Spool};

/// The approximate length of the first blocks of a chain: short enough for thousands of chains.
const BLOCK_BYTES: usize = 4 << 10;

/// The number of blocks of a length, after which blocks are twice as long: a long chain is not read in small pieces.
const BLOCKS_OF_A_LENGTH: usize = 8;

/// The number of times that the length doubles: up to 64 KiB.
const MOST_DOUBLINGS: usize = 4;

/// One entry. Its chain gives the numbers their meaning.
pub(crate) type ChainEntry = [u64; 3];

/// Entries of one kind, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryChain {
    full: Vec<(u64, usize)>,
    last: Vec<u8>,
}

impl EntryChain {
    /// Whether no entry has been pushed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.full.is_empty() && self.last.is_empty()
    }

    /// The maximum length of the last block.
    #[inline]
    fn block_bytes(&self) -> usize {
        BLOCK_BYTES << (self.full.len() / BLOCKS_OF_A_LENGTH).min(MOST_DOUBLINGS)
    }
}

/// The file of full blocks, created when the first block is full.
pub(crate) struct SampleSpool {
    make: MakeSpool,
    file: Option<Box<dyn Spool>>,
    end: u64,
}

/// The reading position in a chain.
#[derive(Debug)]
pub(crate) struct Pull<'c> {
    chain: &'c EntryChain,
    next: usize,
    block: Vec<u8>,
    at: usize,
}

impl<'c> Pull<'c> {
    pub(crate) const fn of(chain: &'c EntryChain) -> Self {
        Self { chain, next: 0, block: Vec::new(), at: 0 }
    }
}

impl SampleSpool {
    pub(crate) const fn new(make: MakeSpool) -> Self {
        Self { make, file: None, end: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, chain: &mut EntryChain, entry: ChainEntry) -> io::Result<()> {
        for number in entry {
            put_varint(&mut chain.last, number);
        }
        if chain.last.len() >= chain.block_bytes() { self.store(chain) } else { Ok(()) }
    }

    #[cold]
    fn store(&mut self, chain: &mut EntryChain) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert((self.make)()?),
        };
        file.write_all(&chain.last)?;
        chain.full.push((self.end, chain.last.len()));
        self.end += chain.last.len() as u64;
        chain.last.clear();
        Ok(())
    }

    /// The next entry of a chain. Push no entry after the first pull.
    #[inline]
    pub(crate) fn pull(&mut self, pull: &mut Pull<'_>) -> io::Result<Option<ChainEntry>> {
        if pull.at == pull.block.len() && !self.load(pull)? {
            return Ok(None);
        }
        let mut cursor = Cursor::new(&pull.block[pull.at..], 0);
        let mut number = || cursor.varint().map_err(io::Error::other);
        let entry = [number()?, number()?, number()?];
        pull.at = pull.block.len() - cursor.rest().len();
        Ok(Some(entry))
    }

    #[cold]
    fn load(&mut self, pull: &mut Pull<'_>) -> io::Result<bool> {
        pull.at = 0;
        pull.block.clear();
        match (pull.chain.full.get(pull.next), &mut self.file) {
            (Some(&(offset, length)), Some(file)) => {
                pull.block.resize(length, 0);
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut pull.block)?;
            }
            _ if pull.next == pull.chain.full.len() => pull.block.extend_from_slice(&pull.chain.last),
            _ => {}
        }
        pull.next += 1;
        Ok(!pull.block.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_several_chains_come_back_in_order_and_interleaved() {
        let mut spool = SampleSpool::new(|| Ok(Box::new(io::Cursor::new(Vec::new()))));
        let mut chains = [EntryChain::default(), EntryChain::default(), EntryChain::default()];
        let entry = |chain: u64, index: u64| [index, index << chain, index * 1_000_003];
        let lengths = [20_000, 5, 3_000];
        for index in 0..20_000 {
            for number in 0..3 {
                if index < lengths[number] {
                    spool.push(&mut chains[number], entry(number as u64, index)).unwrap();
                }
            }
        }
        let mut pulls = [0, 1, 2].map(|number| Pull::of(&chains[number]));
        for index in 0..=20_000 {
            for number in 0..3 {
                let expected = (index < lengths[number]).then(|| entry(number as u64, index));
                assert_eq!(spool.pull(&mut pulls[number]).unwrap(), expected, "{number} {index}");
            }
        }
        assert!(spool.file.is_some());
    }
}
