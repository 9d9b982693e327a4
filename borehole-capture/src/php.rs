//! A process that runs PHP, as what is sampled.

use borehole_model::Tables;
use borehole_php::{
    AttachOptions, Executor, Identity, Outcome, Php, Release, Stack, Threads, WalkOptions, Walker,
};
use borehole_process::{ErrorKind, Process};

use crate::error::Error;
use crate::subject::{Look, Subject};

/// Tells by the path of a mapped file whether it is PHP.
pub type IsPhp = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// How PHP is attached to and walked.
#[derive(Default)]
pub struct PhpOptions {
    /// How many frames of a stack are kept, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// Whether frames carry the name of the instruction.
    pub opcodes: bool,
    /// The release, where the process must not be asked for it.
    pub release: Option<Release>,
    /// Which mapped file is PHP; `None`: it is looked for.
    pub is_php: Option<IsPhp>,
}

/// A process that runs PHP.
pub struct PhpProcess {
    process: Process,
    php: Php,
    walker: Walker,
    executors: Vec<Executor>,
}

impl PhpProcess {
    /// Attaches to the process of this number.
    ///
    /// # Errors
    /// When there is none, it may not be read, or runs no PHP that is understood: the error says which.
    pub fn attach(id: i32, options: &PhpOptions) -> Result<Self, Error> {
        let process = Process::open(id)?;
        let is_php = options.is_php.as_ref().map(|is_php| is_php.as_ref() as &dyn Fn(&[u8]) -> bool);
        let php = Php::attach(&process, &AttachOptions { release: options.release, is_php })?;
        let executors = php.executors(&process)?;
        let walker = Walker::new(&php, WalkOptions { depth: options.depth, opcodes: options.opcodes });
        Ok(Self { process, php, walker, executors })
    }

    /// Exactly which PHP it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.php.identity()
    }

    /// What has a stack: one executor, or one a thread.
    #[must_use]
    pub fn executors(&self) -> &[Executor] {
        &self.executors
    }
}

impl Subject for PhpProcess {
    fn process(&self) -> i32 {
        self.process.id()
    }

    fn lanes(&self) -> usize {
        self.executors.len()
    }

    fn thread(&self, lane: usize) -> Option<u64> {
        self.executors.get(lane)?.thread?.try_into().ok()
    }

    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        let Some(executor) = self.executors.get(lane) else { return Ok(Look::Idle) };
        Ok(match self.walker.sample(&self.process, executor, tables)? {
            Outcome::Stack(Stack { id: stack, omitted, .. }) => Look::Stack { stack, omitted },
            Outcome::Idle => Look::Idle,
            Outcome::Torn => Look::Torn,
        })
    }

    fn refresh(&mut self) -> Result<(), Error> {
        if !self.process.runs_same_program() {
            let what = format!("process {} has ended or runs another program", self.process.id());
            return Err(borehole_process::Error::new(ErrorKind::Gone, what).into());
        }
        if self.php.identity().threads == Threads::Many {
            self.executors = self.php.executors(&self.process)?;
        }
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("php".to_owned(), self.php.identity().to_string())]
    }
}
