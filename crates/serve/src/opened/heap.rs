//! A heap in memory. A thread owns the graph and answers questions, because what is known of a graph borrows from it; another
//! one tells what is known soon, whatever the first one computes.

use std::cell::RefCell;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use borehole::heap::retention::Follow;
use borehole::heap::views::{BlockLimits, Heap, HeapOutline, HeapPage};
use borehole::heap::{Graph, HeapFile, OpenOptions};
use tokio::sync::oneshot;

use super::wanted::{Wanted, WantedGraph, while_wanted};
use crate::refusal::{Refusal, RefusalKind};

/// A question to the thread of a heap.
struct HeapQuestion {
    answer: Box<dyn FnOnce(&Heap<'_>) + Send>,
    wanted: Wanted,
}

/// A question that needs no analysis.
type GraphQuestion = Box<dyn FnOnce(&dyn Graph) + Send>;

/// A heap that answers questions, one after another. Its threads end when this is dropped.
pub(crate) struct OpenedHeap {
    questions: Sender<HeapQuestion>,
    soon: Sender<GraphQuestion>,
    outline: Arc<OnceLock<Arc<HeapOutline>>>,
    page: Arc<OnceLock<Arc<HeapPage>>>,
}

/// The questions to a heap.
struct Asked {
    questions: Receiver<HeapQuestion>,
    soon: Receiver<GraphQuestion>,
}

impl Asked {
    /// Answers until nobody can ask any more.
    fn answer(self, graph: &(dyn Graph + Sync)) {
        let Self { questions, soon } = self;
        thread::scope(|scope| {
            scope.spawn(move || soon.into_iter().for_each(|question| question(graph)));
            // That of the question which is being answered.
            let wanted = RefCell::new(Wanted::default());
            let graph = WantedGraph { graph, is_wanted: || wanted.borrow().is_wanted() };
            let heap = Heap::new(&graph, Follow::default());
            for question in questions {
                wanted.replace(question.wanted);
                (question.answer)(&heap);
            }
        });
    }
}

impl OpenedHeap {
    /// Opens the heap at `path`, and waits until it can be asked.
    pub(super) fn open(path: &Path, name: &str) -> Result<Self, Refusal> {
        let (opened, is_open) = channel();
        let (path, name) = (path.to_owned(), name.to_owned());
        let heap = Self::answering(move |asked| {
            let file = match HeapFile::open(&path) {
                Ok(file) => file.called(name),
                Err(error) => return drop(opened.send(Err(error.into()))),
            };
            let options = OpenOptions { lenient: true, ..OpenOptions::default() };
            match file.graph(&options) {
                Ok(found) => {
                    let _ = opened.send(Ok(()));
                    asked.answer(&*found.graph);
                }
                Err(error) => drop(opened.send(Err(error.into()))),
            }
        })?;
        is_open.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(heap)
    }

    /// A heap that is in memory already.
    #[cfg(test)]
    pub(crate) fn of(graph: impl Graph + Send + Sync + 'static) -> Self {
        Self::answering(move |asked| asked.answer(&graph)).unwrap()
    }

    /// A heap whose questions are answered by `answer`, in a thread of its own.
    fn answering(answer: impl FnOnce(Asked) + Send + 'static) -> Result<Self, Refusal> {
        let (questions, asked) = channel();
        let (soon, asked_soon) = channel();
        let asked = Asked { questions: asked, soon: asked_soon };
        let thread = thread::Builder::new().name("borehole-heap".to_owned()).spawn(move || answer(asked));
        thread.map_err(|error| Refusal::new(RefusalKind::Busy, format!("cannot start a thread: {error}")))?;
        Ok(Self { questions, soon, outline: Arc::default(), page: Arc::default() })
    }

    /// Asks the heap. Nothing is computed if nobody waits any more when it is the question's turn, and what is being computed
    /// ends when the one who asked has gone.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Heap<'_>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let wanted = Wanted::default();
        let _waiter = wanted.waiter();
        let (answer, answered) = oneshot::channel();
        let asked = move |heap: &Heap<'_>| {
            if !answer.is_closed()
                && let Some(found) = while_wanted(|| question(heap))
            {
                let _ = answer.send(found);
            }
        };
        self.questions.send(HeapQuestion { answer: Box::new(asked), wanted }).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())
    }

    /// The heap as far as it is known soon.
    pub(crate) async fn outline(&self) -> Result<Arc<HeapOutline>, Refusal> {
        let (answer, answered) = oneshot::channel();
        let outline = self.outline.clone();
        let asked = move |graph: &dyn Graph| {
            let _ = answer.send(outline.get_or_init(|| Arc::new(HeapOutline::of(graph))).clone());
        };
        self.soon.send(Box::new(asked)).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())
    }

    /// The page of the explorer. It is kept: of a large heap it takes longer than any table.
    pub(crate) async fn page(&self) -> Result<Arc<HeapPage>, Refusal> {
        if let Some(page) = self.page.get() {
            return Ok(page.clone());
        }
        let page = self.page.clone();
        let limits = BlockLimits::default();
        self.ask(move |heap| page.get_or_init(|| Arc::new(HeapPage::new(heap, limits))).clone()).await
    }
}

fn ended() -> Refusal {
    Refusal::new(RefusalKind::Internal, "the thread of the heap has ended; the file may have been changed")
}
