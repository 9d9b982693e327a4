//! Recording of the memory that is read from a target.

use std::cell::RefCell;

use crate::error::Error;
use crate::image::{self, Image, PAGE_BYTES};
use crate::maps::{Mapping, Mappings};
use crate::memory::{Memory, Piece};
use crate::symbols::Symbols;
use crate::target::Target;

/// A target that keeps the pages read from it and serves repeated reads from them, so that its readers see exactly what
/// the image will contain.
///
/// Stop a live process while it is recorded; otherwise the pages are from different moments.
#[derive(Debug)]
pub struct Recorder<T> {
    target: T,
    image: RefCell<Image>,
}

impl<T: Target> Recorder<T> {
    /// Starts to record the reads of `target`.
    ///
    /// # Errors
    /// If the target is gone.
    pub fn new(target: T) -> Result<Self, Error> {
        let threads = target.threads()?.into_iter().map(|thread| (thread, None)).collect();
        let image = Image { mappings: target.mappings().clone(), threads, ..Image::default() };
        Ok(Self { target, image: RefCell::new(image) })
    }

    /// The image recorded so far.
    #[must_use]
    pub fn finish(self) -> Image {
        self.image.into_inner()
    }
}

impl<T: Target> Memory for Recorder<T> {
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error> {
        let mut image = self.image.borrow_mut();
        image::read_pages(pieces, |address, take| {
            if let Some(page) = image.pages.get(&address) {
                take(page);
                return Ok(true);
            }
            let mut page = Box::new([0; PAGE_BYTES]);
            let filled = self.target.read_pieces(&mut [Piece { address, into: page.as_mut_slice() }])?;
            if filled < PAGE_BYTES {
                return Ok(false);
            }
            take(&page);
            image.pages.insert(address, page);
            Ok(true)
        })
    }
}

impl<T: Target> Target for Recorder<T> {
    fn mappings(&self) -> &Mappings {
        self.target.mappings()
    }

    fn symbols(&self, mapping: &Mapping) -> Result<Symbols, Error> {
        let symbols = self.target.symbols(mapping)?;
        self.image.borrow_mut().symbols.insert(mapping.start, symbols.clone());
        Ok(symbols)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        self.target.threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        let pointer = self.target.thread_pointer(thread)?;
        self.image.borrow_mut().threads.insert(thread, Some(pointer));
        Ok(pointer)
    }
}
