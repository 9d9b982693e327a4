//! Finds CPython in a process, and checks that its structures are the known ones.

use borehole_model::Tables;
use borehole_process::ForeignProcess;

use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::release::{PythonBuild, PythonIdentity};
use crate::runtime::{self, Runtime};
use crate::walker::{SampleOutcome, StackWalker, Stillness, WalkOptions};

/// How often a stack that changes meanwhile is read again to prove the layout.
const ATTEMPTS: usize = 64;

/// How many threads are asked for a proof.
const MOST_PROOFS: usize = 16;

/// CPython in a process, with the location of its state.
#[derive(Clone, Debug)]
pub struct Python {
    pub(crate) identity: PythonIdentity,
    pub(crate) layout: Layout,
    /// The address of the runtime's state.
    pub(crate) runtime: u64,
    /// The address of `None`; 0 if it is not known.
    pub(crate) none: u64,
    engine: Option<(u64, u64)>,
}

impl Python {
    /// Finds CPython in `target`, with its release and state, and checks that they fit together.
    ///
    /// # Errors
    /// If there is no CPython, its release is unknown, its memory contradicts the release, or the process cannot be read.
    pub fn attach(target: &impl ForeignProcess) -> Result<Self, Error> {
        let mut first_error = None;
        for runtime in runtime::find(target)? {
            let proven = runtime.map(Self::of).and_then(|python| python.prove(target).map(|()| python));
            match proven {
                Ok(python) => return Ok(python),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| Error::new(ErrorKind::NotPython, "no Python found")))
    }

    fn of(runtime: Runtime) -> Self {
        let Runtime { address, identity, layout, none, engine } = runtime;
        Self { identity, layout, runtime: address, none, engine }
    }

    /// The first address of the function that runs Python's code, `_PyEval_EvalFrameDefault`, and that behind it; `None` if the
    /// program was stripped of its symbol.
    #[must_use]
    pub fn engine(&self) -> Option<(u64, u64)> {
        self.engine
    }

    /// The identity of this CPython.
    #[must_use]
    pub fn identity(&self) -> PythonIdentity {
        self.identity
    }

    /// Whether its interpreters have a global lock, of which the holder is known.
    #[must_use]
    pub fn has_gil(&self) -> bool {
        self.identity.build == PythonBuild::Gil
    }

    /// Whether it is known where a thread keeps its exceptions.
    #[must_use]
    pub fn tells_exceptions(&self) -> bool {
        self.layout.thread.exception.is_some()
    }

    /// Whether it is known which frame has begun a collection of garbage.
    #[must_use]
    pub fn tells_collections(&self) -> bool {
        self.layout.interpreter.collector.is_some()
    }

    /// Checks that threads have stacks of code, from a current frame to an outermost one.
    fn prove(&self, target: &impl ForeignProcess) -> Result<(), Error> {
        let mut tables = Tables::default();
        let mut walker = StackWalker::new(self, WalkOptions::default());
        for _ in 0..ATTEMPTS {
            let list = self.threads(target)?;
            let mut is_any_torn = false;
            for thread in list.threads.iter().take(MOST_PROOFS) {
                let sample = walker.sample(target, thread, Stillness::Still, &mut tables)?;
                match sample.outcome {
                    SampleOutcome::Stack { .. } => return Ok(()),
                    SampleOutcome::Idle | SampleOutcome::Ended => {}
                    SampleOutcome::Torn => is_any_torn = true,
                }
            }
            if !is_any_torn {
                return Ok(());
            }
        }
        let what =
            format!("expected stacks of {}, found other data in the states of its threads", self.identity);
        Err(Error::new(ErrorKind::Implausible, what))
    }
}
