//! A heap in memory: a thread owns the graph and answers questions, because what is known of a graph borrows from it.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use borehole::heap::retention::Follow;
use borehole::heap::views::Heap;
use borehole::heap::{HeapFile, OpenOptions};
use tokio::sync::oneshot;

use crate::refusal::{Refusal, RefusalKind};

/// A question to the thread of a heap.
type HeapQuestion = Box<dyn FnOnce(&Heap<'_>) + Send>;

/// A heap that answers questions, one after another. Its thread ends when this is dropped.
pub(crate) struct OpenedHeap {
    questions: Sender<HeapQuestion>,
}

impl OpenedHeap {
    /// Opens the heap at `path`, and waits until it can be asked.
    pub(super) fn open(path: &Path, name: &str) -> Result<Self, Refusal> {
        let (questions, asked) = channel::<HeapQuestion>();
        let (opened, is_open) = channel();
        let (path, name) = (path.to_owned(), name.to_owned());
        let answering = move || {
            let file = match HeapFile::open(&path) {
                Ok(file) => file.called(name),
                Err(error) => return drop(opened.send(Err(error.into()))),
            };
            let options = OpenOptions { lenient: true, ..OpenOptions::default() };
            match file.graph(&options) {
                Ok(found) => {
                    let heap = Heap::new(&*found.graph, Follow::default());
                    let _ = opened.send(Ok(()));
                    asked.into_iter().for_each(|question| question(&heap));
                }
                Err(error) => drop(opened.send(Err(error.into()))),
            }
        };
        let thread = thread::Builder::new().name("borehole-heap".to_owned()).spawn(answering);
        thread.map_err(|error| Refusal::new(RefusalKind::Busy, format!("cannot start a thread: {error}")))?;
        is_open.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Self { questions })
    }

    /// Asks the heap. Nothing is computed if nobody waits any more when it is the question's turn.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Heap<'_>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let asked = move |heap: &Heap<'_>| {
            if !answer.is_closed() {
                let _ = answer.send(question(heap));
            }
        };
        self.questions.send(Box::new(asked)).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())
    }
}

fn ended() -> Refusal {
    Refusal::new(RefusalKind::Internal, "the thread of the heap has ended; the file may have been changed")
}
