//! Entries of many profiles in one temporary file.
//!
//! A profile's entries are written as two arrays, stacks and weights, and profiles come one after the other,
//! while samples come mixed. So entries are kept as varints in blocks, each of one profile, in a file that
//! the caller supplies; a profile remembers where its blocks are. Memory is one block a profile and twelve
//! bytes for each block that is full.

use std::io::{self, Read, Seek, SeekFrom, Write};

use borehole_wire::{Cursor, put_varint};

/// How long blocks are, about. Long enough that seeking is rare, short enough for thousands of profiles.
const BLOCK_BYTES: usize = 4 << 10;

/// One entry: a stack (0 is the empty one, otherwise its id), how many samples it is, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) stack: u32,
    pub(super) count: u64,
    pub(super) weight: u64,
}

/// The entries of one profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    full: Vec<(u64, usize)>,
    last: Vec<u8>,
}

/// The file that full blocks go to. It is made when the first block is full.
#[derive(Debug)]
pub(super) struct Spool<S, F> {
    make: F,
    file: Option<S>,
    end: u64,
}

impl<S: Read + Write + Seek, F: FnMut() -> io::Result<S>> Spool<S, F> {
    pub(super) const fn new(make: F) -> Self {
        Self { make, file: None, end: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, entry: &Entry) -> io::Result<()> {
        put_varint(&mut chain.last, u64::from(entry.stack));
        put_varint(&mut chain.last, entry.count);
        put_varint(&mut chain.last, entry.weight);
        if chain.last.len() >= BLOCK_BYTES { self.store(chain) } else { Ok(()) }
    }

    #[cold]
    fn store(&mut self, chain: &mut Chain) -> io::Result<()> {
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

    /// Calls `take` with each entry of a chain, in order. Nothing is pushed afterwards.
    pub(super) fn each(
        &mut self,
        chain: &Chain,
        mut take: impl FnMut(Entry) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut block = Vec::new();
        if let Some(file) = &mut self.file {
            for &(offset, length) in &chain.full {
                block.resize(length, 0);
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut block)?;
                entries(&block, &mut take)?;
            }
        }
        entries(&chain.last, &mut take)
    }
}

fn entries(block: &[u8], take: &mut impl FnMut(Entry) -> io::Result<()>) -> io::Result<()> {
    let mut cursor = Cursor::new(block, 0);
    while !cursor.is_empty() {
        take(entry(&mut cursor).map_err(io::Error::other)?)?;
    }
    Ok(())
}

fn entry(cursor: &mut Cursor<'_>) -> Result<Entry, borehole_wire::Error> {
    let stack = u32::try_from(cursor.varint()?).unwrap_or(0);
    Ok(Entry { stack, count: cursor.varint()?, weight: cursor.varint()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_many_chains_come_back_in_order() {
        let mut made = 0;
        let mut spool = Spool::new(|| {
            made += 1;
            Ok(io::Cursor::new(Vec::new()))
        });
        let mut chains = [Chain::default(), Chain::default(), Chain::default()];
        let entry = |chain: usize, index: u32| Entry {
            stack: index,
            count: u64::from(index) << chain,
            weight: u64::from(index) * 1_000_003,
        };
        let lengths = [20_000, 5, 3_000];
        for index in 0..20_000 {
            for (number, chain) in chains.iter_mut().enumerate() {
                if index < lengths[number] {
                    spool.push(chain, &entry(number, index)).unwrap();
                }
            }
        }
        for (number, chain) in chains.iter().enumerate() {
            let mut next = 0;
            spool
                .each(chain, |found| {
                    assert_eq!(found, entry(number, next));
                    next += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(next, lengths[number]);
        }
        assert_eq!(made, 1);
    }
}
