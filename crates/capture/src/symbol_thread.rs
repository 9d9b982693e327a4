//! The thread that looks up symbols, so that no sample waits for files.

use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use borehole_model::FrameId;
use borehole_symbols::{AddressNames, CodeAddress, Module, SymbolFrame, SymbolSettings, Symbolizer};

/// The number of modules that are remembered. Processes that come and go have the same ones, but each below its own root.
const MOST_MODULES: usize = 1 << 16;

/// The most bytes of files that are held for their names.
const SYMBOL_BYTES: u64 = 512 << 20;

/// The thread's symbols are those of all processes that are sampled: files of one build are loaded once.
static REQUESTS: LazyLock<Sender<SymbolRequest>> = LazyLock::new(|| {
    let (sender, requests) = mpsc::channel();
    // Without the thread, requests are dropped, and so answered without names.
    let _ = thread::Builder::new().name("symbols".to_owned()).spawn(move || answer_all(&requests));
    sender
});

/// An address to look up. It is answered when it is dropped, also if nobody has looked it up.
#[derive(Debug)]
pub(crate) struct SymbolRequest {
    place: CodePlace,
    answer: SymbolAnswer,
    answers: Sender<SymbolAnswer>,
}

/// The place of code.
#[derive(Debug)]
pub(crate) enum CodePlace {
    /// At an offset in the file of a module.
    File(Module, u64),
    /// At an address in the kernel.
    Kernel(u64),
}

/// The functions at an address.
#[derive(Debug)]
pub(crate) struct SymbolAnswer {
    /// The frame that stands for the address.
    pub(crate) raw: FrameId,
    /// The functions, the most inlined first. Empty if none is known.
    pub(crate) frames: Vec<SymbolFrame>,
    /// The offset in the file, or the address in the kernel.
    pub(crate) offset: u64,
}

impl SymbolRequest {
    /// Asks for the functions at a place.
    pub(crate) fn send(raw: FrameId, place: CodePlace, answers: &Sender<SymbolAnswer>) {
        let (CodePlace::File(_, offset) | CodePlace::Kernel(offset)) = place;
        let answer = SymbolAnswer { raw, frames: Vec::new(), offset };
        let _ = REQUESTS.send(Self { place, answer, answers: answers.clone() });
    }

    fn look_up(&mut self, symbols: &mut Symbolizer, kernel: &mut Option<AddressNames>) {
        match &self.place {
            CodePlace::File(module, file_offset) => {
                let id = symbols.module(module.clone());
                let frames = &mut self.answer.frames;
                if symbols.resolve(id, CodeAddress::FileOffset(*file_offset), frames).is_err() {
                    frames.clear();
                }
                frames.retain(|frame| frame.function.is_some());
            }
            CodePlace::Kernel(address) => {
                // Where the system hides them, the kernel is one function.
                let names = kernel.get_or_insert_with(|| AddressNames::kernel().unwrap_or_default());
                let found = names.find(*address).map(|(name, offset)| SymbolFrame {
                    function: Some(name.into()),
                    offset: Some(offset),
                    ..SymbolFrame::default()
                });
                self.answer.frames.extend(found);
            }
        }
    }
}

impl Drop for SymbolRequest {
    fn drop(&mut self) {
        let frames = std::mem::take(&mut self.answer.frames);
        let _ = self.answers.send(SymbolAnswer { frames, ..self.answer });
    }
}

fn answer_all(requests: &Receiver<SymbolRequest>) {
    let (mut symbols, mut kernel) = (symbolizer(), None);
    for mut request in requests {
        if symbols.module_count() >= MOST_MODULES {
            symbols = symbolizer();
        }
        request.look_up(&mut symbols, &mut kernel);
    }
}

fn symbolizer() -> Symbolizer {
    let mut settings = SymbolSettings::default();
    settings.loaded_bytes = SYMBOL_BYTES;
    Symbolizer::new(settings)
}
