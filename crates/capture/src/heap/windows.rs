//! Copies memory of which there is too much to hold it twice: packed, before the process is stopped.
//!
//! Packing takes longer than a process should be stopped, so nearly everything is packed while it runs on. When it is stopped,
//! all memory is read once more, which takes no longer than to copy it: it is read into a buffer that stays in the processor's
//! cache. What has changed is kept as it is, and packed when the process runs on. So the copy is of one moment.
//!
//! The unit is a window: an aligned part of the address space, in which pages that are not copied count as zeros.

use std::hash::BuildHasher as _;
use std::thread::{self, ScopedJoinHandle};

use borehole_process::{
    AdoptedChunks, Dump, ErrorKind, ForeignMemory, MemorySpan, PIECE_BYTES, PackedChunks, PackedMemory,
    Packer, PieceBytes, StoredPiece, page_start, prefaulted,
};
use hashbrown::DefaultHashBuilder;

use crate::error::Error;
use crate::heap::copy::{self, CopiedSpans};
use crate::heap::plan::CopyPlan;

/// A packed copy, as far as it has been made.
#[derive(Default)]
pub(super) struct PackedCopy {
    /// In order of their addresses, one for each piece.
    windows: Vec<Window>,
    memory: PackedMemory,
    hasher: DefaultHashBuilder,
}

/// A part of the address space that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    address: u64,
    /// A bit for each page that was copied.
    pages: u8,
    /// The hash of the content.
    hash: u64,
}

/// The treatment of windows that have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Packed,
    /// Kept as they are, which takes least time.
    Kept,
}

/// The content of a window.
enum Content {
    /// That of a window of the previous copy.
    Same(usize),
    Packed(StoredPiece),
    /// The number of a window that was kept as it is.
    Kept(usize),
}

/// The windows that one thread has read.
struct Part {
    windows: Vec<(Window, Content)>,
    chunks: PackedChunks,
    kept: KeptWindows,
    unreadable_bytes: u64,
}

/// The windows of a process, as read at one time.
pub(super) struct ReadWindows(Vec<Part>);

/// Windows as they are, in buffers of many.
#[derive(Default)]
pub(super) struct KeptWindows {
    buffers: Vec<Vec<u8>>,
    count: usize,
}

const PAGE_BYTES: usize = 4096;

/// The number of windows that are read at once: so few that they stay in the processor's cache.
const BATCH: usize = 64;

const BUFFER_BYTES: usize = BATCH * PIECE_BYTES;

/// One of so many windows shows whether the process is changing its memory.
const SAMPLE: u64 = 16;

impl PackedCopy {
    /// Reads the memory of the plan. `spare` are buffers for windows that are kept.
    pub(super) fn read(
        &self,
        memory: &(impl ForeignMemory + Sync),
        plan: &CopyPlan,
        changed: Changed,
        spare: [KeptWindows; 2],
    ) -> Result<ReadWindows, Error> {
        let spans = within_windows(&plan.spans);
        let middle = spans.get(spans.len() / 2).map_or(0, window_of);
        let (low, high) = spans.split_at(spans.partition_point(|span| window_of(span) < middle));
        let (known, hasher) = (self.windows.as_slice(), &self.hasher);
        let read = |spans, kept| Reader { known, hasher, memory, changed, kept }.read(spans);
        let [spare_low, spare_high] = spare;
        let (low, high) = thread::scope(|scope| {
            let helping = thread::Builder::new().spawn_scoped(scope, || read(high, spare_high));
            let low = read(low, spare_low);
            // The system may have no more threads.
            (low, helping.map_or_else(|_| Ok(read(high, KeptWindows::default())), ScopedJoinHandle::join))
        });
        let high = high.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(ReadWindows(vec![low?, high?]))
    }

    /// Whether the process changes so much that it should be read once more before it is stopped.
    pub(super) fn is_changing(
        &self,
        memory: &(impl ForeignMemory + Sync),
        plan: &CopyPlan,
    ) -> Result<bool, Error> {
        let spans = within_windows(&plan.spans).into_iter();
        let sample = spans.filter(|span| (window_of(span) / PIECE_BYTES as u64).is_multiple_of(SAMPLE));
        let plan = CopyPlan::new(sample.collect());
        let read = self.read(memory, &plan, Changed::Kept, Default::default())?;
        let windows: usize = read.0.iter().map(|part| part.windows.len()).sum();
        let changed: usize = read.0.iter().map(|part| part.kept.count).sum();
        Ok(changed * 100 > windows)
    }

    /// Replaces the copy by what was read. Returns the number of bytes that could not be read.
    pub(super) fn replace(&mut self, read: ReadWindows) -> u64 {
        let known = self.memory.take_pieces();
        self.windows.clear();
        let mut unreadable_bytes = 0;
        for Part { windows, chunks, kept, unreadable_bytes: unreadable } in read.0 {
            let adopted = self.memory.adopt(chunks);
            let mut packer = Packer::default();
            let kept: Vec<_> = (0..kept.count).map(|number| packer.pack(kept.get(number))).collect();
            let adopted_kept = self.memory.adopt(packer.take());
            for (window, content) in windows {
                self.windows.push(window);
                match content {
                    Content::Same(index) => self.memory.push(AdoptedChunks::default(), known[index]),
                    Content::Packed(piece) => self.memory.push(adopted, piece),
                    Content::Kept(number) => self.memory.push(adopted_kept, kept[number]),
                }
            }
            unreadable_bytes += unreadable;
        }
        unreadable_bytes
    }

    /// Adds the copied memory to `dump`.
    pub(super) fn into_dump(self, dump: &mut Dump) {
        let spans = self.windows.iter().enumerate().flat_map(|(index, window)| {
            let pages = (0..PIECE_BYTES / PAGE_BYTES).filter(|page| window.pages >> page & 1 != 0);
            pages.map(move |page| {
                let address = window.address + (page * PAGE_BYTES) as u64;
                (index * PIECE_BYTES + page * PAGE_BYTES, MemorySpan { address, length: PAGE_BYTES })
            })
        });
        dump.insert_packed(self.memory, spans);
    }
}

/// The address of the window that a span begins in.
const fn window_of(span: &MemorySpan) -> u64 {
    span.address - span.address % PIECE_BYTES as u64
}

/// Splits spans so that each is in one window.
fn within_windows(spans: &[MemorySpan]) -> Vec<MemorySpan> {
    let mut split = Vec::with_capacity(spans.len());
    for &MemorySpan { mut address, mut length } in spans {
        while length > 0 {
            let room = PIECE_BYTES - usize::try_from(address % PIECE_BYTES as u64).unwrap_or_default();
            let part = MemorySpan { address, length: length.min(room) };
            split.push(part);
            address += part.length as u64;
            length -= part.length;
        }
    }
    split
}

impl KeptWindows {
    /// Has memory ready for windows of so many bytes.
    pub(super) fn ready(bytes: usize) -> Self {
        let buffers = (0..bytes.div_ceil(BUFFER_BYTES)).map(|_| {
            let mut buffer = prefaulted(BUFFER_BYTES);
            buffer.truncate(BUFFER_BYTES);
            buffer
        });
        Self { buffers: buffers.collect(), count: 0 }
    }

    fn add(&mut self, content: &PieceBytes) -> Result<usize, Error> {
        let (buffer, at) = (self.count / BATCH, self.count % BATCH * PIECE_BYTES);
        if buffer == self.buffers.len() {
            borehole_memory::check().map_err(|over| {
                let what = format!("the process changes too much while it is copied: {over}");
                Error::from(borehole_process::Error::new(ErrorKind::Memory, what))
            })?;
            self.buffers.push(vec![0; BUFFER_BYTES]);
        }
        self.buffers[buffer][at..at + PIECE_BYTES].copy_from_slice(content);
        self.count += 1;
        Ok(self.count - 1)
    }

    fn get(&self, number: usize) -> &PieceBytes {
        let at = number % BATCH * PIECE_BYTES;
        self.buffers[number / BATCH][at..].first_chunk().expect("whole windows")
    }
}

/// Reads windows, on one thread.
struct Reader<'c, M> {
    /// The windows of the previous copy.
    known: &'c [Window],
    hasher: &'c DefaultHashBuilder,
    memory: &'c M,
    changed: Changed,
    kept: KeptWindows,
}

impl<M: ForeignMemory> Reader<'_, M> {
    fn read(mut self, spans: &[MemorySpan]) -> Result<Part, Error> {
        let mut packer = Packer::default();
        let mut buffer = prefaulted(BUFFER_BYTES);
        let start = page_start(&buffer);
        let buffer = &mut buffer[start..start + BUFFER_BYTES];
        let first = spans.first().map_or(0, window_of);
        let mut at = self.known.partition_point(|window| window.address < first);
        let (mut windows, mut unreadable_bytes) = (Vec::new(), 0);
        let mut left = spans;
        while !left.is_empty() {
            let mut batch = Batch::default();
            left = batch.take(left);
            unreadable_bytes += batch.read(self.memory, buffer)?;
            let (pieces, _) = buffer.as_chunks();
            for (&(address, pages), content) in batch.windows.iter().zip(pieces) {
                let window = Window { address, pages, hash: self.hasher.hash_one(content.as_slice()) };
                while self.known.get(at).is_some_and(|known| known.address < address) {
                    at += 1;
                }
                let content = match self.changed {
                    _ if self.known.get(at) == Some(&window) => Content::Same(at),
                    Changed::Packed => Content::Packed(packer.pack(content)),
                    Changed::Kept => Content::Kept(self.kept.add(content)?),
                };
                windows.push((window, content));
            }
        }
        Ok(Part { windows, chunks: packer.take(), kept: self.kept, unreadable_bytes })
    }
}

/// Windows that are read at once: the address, and the pages that were read.
#[derive(Default)]
struct Batch {
    windows: Vec<(u64, u8)>,
    /// The memory to read, with the offset in the buffer.
    spans: Vec<(usize, MemorySpan)>,
}

/// Whether `next`, at an offset in the buffer, continues `last` both in memory and in the buffer.
const fn goes_on(start: usize, last: &MemorySpan, offset: usize, next: &MemorySpan) -> bool {
    last.address + last.length as u64 == next.address && start + last.length == offset
}

impl Batch {
    /// Takes the spans of some windows. Returns the rest.
    fn take<'s>(&mut self, spans: &'s [MemorySpan]) -> &'s [MemorySpan] {
        for (number, span) in spans.iter().enumerate() {
            let window = window_of(span);
            if self.windows.last().is_none_or(|last| last.0 != window) {
                if self.windows.len() == BATCH {
                    return &spans[number..];
                }
                self.windows.push((window, 0));
            }
            let within = usize::try_from(span.address - window).unwrap_or_default();
            let offset = (self.windows.len() - 1) * PIECE_BYTES + within;
            match self.spans.last_mut() {
                // One call reads large parts faster than small ones.
                Some((start, last)) if goes_on(*start, last, offset, span) => last.length += span.length,
                _ => self.spans.push((offset, *span)),
            }
        }
        &[]
    }

    /// Reads the windows to `buffer`. Returns the number of bytes that could not be read.
    fn read(&mut self, memory: &impl ForeignMemory, buffer: &mut [u8]) -> Result<u64, Error> {
        let wanted: usize = self.spans.iter().map(|(_, span)| span.length).sum();
        if wanted < self.windows.len() * PIECE_BYTES {
            buffer.fill(0);
        }
        let CopiedSpans { placed, unreadable_bytes } = copy::copy(memory, &self.spans, 0, buffer)?;
        for (offset, span) in placed {
            for page in (offset..offset + span.length).step_by(PAGE_BYTES) {
                self.windows[page / PIECE_BYTES].1 |= 1 << (page % PIECE_BYTES / PAGE_BYTES);
            }
        }
        Ok(unreadable_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use borehole_process::MemoryPiece;

    use super::*;

    /// Memory that begins at address 0, with unreadable pages.
    struct Changing {
        bytes: Mutex<Vec<u8>>,
        unreadable: Vec<u64>,
    }

    impl ForeignMemory for Changing {
        fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, borehole_process::Error> {
            let bytes = self.bytes.lock().unwrap();
            let mut filled = 0;
            for piece in pieces {
                for (into, address) in piece.into.chunks_mut(4096).zip((piece.address..).step_by(4096)) {
                    if self.unreadable.contains(&(address / 4096)) {
                        return Ok(filled);
                    }
                    let at = usize::try_from(address).unwrap();
                    into.copy_from_slice(&bytes[at..at + into.len()]);
                    filled += into.len();
                }
            }
            Ok(filled)
        }
    }

    fn plan(pages: &[std::ops::Range<u64>]) -> CopyPlan {
        let span = |pages: &std::ops::Range<u64>| MemorySpan {
            address: pages.start * 4096,
            length: usize::try_from(pages.end - pages.start).unwrap() * 4096,
        };
        CopyPlan::new(pages.iter().map(span).collect())
    }

    #[test]
    fn the_copy_is_that_of_the_last_reading() {
        let content = (0..4096 * 1024).map(|at: usize| (at / 4096 * 7 + at / 64).to_le_bytes()[0]).collect();
        let mut memory = Changing { bytes: Mutex::new(content), unreadable: vec![302] };
        let mut copy = PackedCopy::default();
        let first = plan(&[1..17, 18..19, 40..900]);
        let read = copy.read(&memory, &first, Changed::Packed, Default::default()).unwrap();
        assert_eq!(copy.replace(read), 4096);
        assert!(!copy.is_changing(&memory, &first).unwrap());
        for at in (0..4096 * 1024).step_by(4096 * 50) {
            memory.bytes.lock().unwrap()[at..at + 600].fill(3);
        }
        memory.unreadable = vec![45];
        assert!(copy.is_changing(&memory, &first).unwrap());
        let last = plan(&[0..17, 20..21, 41..50, 60..950]);
        let spare = [KeptWindows::ready(1 << 20), KeptWindows::default()];
        let read = copy.read(&memory, &last, Changed::Kept, spare).unwrap();
        let kept: usize = read.0.iter().map(|part| part.kept.count).sum();
        assert!((20..60).contains(&kept), "{kept}");
        assert_eq!(copy.replace(read), 4096);
        let mut dump = Dump::default();
        copy.into_dump(&mut dump);
        let bytes = memory.bytes.into_inner().unwrap();
        let mut expected = Dump::default();
        for pages in [0..17, 20..21, 41..45, 46..50, 60..950] {
            expected.insert(pages.start as u64 * 4096, bytes[pages.start * 4096..pages.end * 4096].to_vec());
        }
        assert_eq!(dump, expected);
    }
}
