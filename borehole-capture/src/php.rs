//! A process that runs PHP, as what is sampled.

use borehole_model::{Label, LabelValue, LabelsId, TableFull, Tables};
use borehole_php::{
    AttachOptions, Executor, Identity, Outcome, Php, Release, Request, Stack, Threads, WalkOptions, Walker,
};
use borehole_process::{ErrorKind, Process};

use crate::error::Error;
use crate::ready::when_ready;
use crate::subject::{Look, Subject};

/// Tells by the path of a mapped file whether it is PHP.
pub type IsPhpFile = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

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
    pub is_php: Option<IsPhpFile>,
    /// What samples are labelled with.
    pub labels: RequestLabels,
}

/// Which facts about the request that is served become labels of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLabels {
    /// Its method and when it began: `http.method`, `request.start` in seconds since 1970.
    pub request: bool,
    /// Its path and query: `http.url`.
    pub uri: bool,
    /// The file of its script: `script`.
    pub script: bool,
}

impl RequestLabels {
    fn is_any(self) -> bool {
        self.request || self.uri || self.script
    }

    /// Keys and values.
    fn of(self, request: Request) -> Vec<(&'static str, Vec<u8>)> {
        let Request { method, uri, query, script, time_unix_s } = request;
        let uri = uri.map(|uri| match query {
            Some(query) if !query.is_empty() && !uri.contains(&b'?') => [uri, query].join(&b'?'),
            _ => uri,
        });
        let start = time_unix_s.map(|seconds| format!("{seconds:.3}").into_bytes());
        let all = [
            ("http.method", method, self.request),
            ("http.url", uri, self.uri),
            ("script", script, self.script),
            ("request.start", start, self.request),
        ];
        all.into_iter()
            .filter(|(.., is_wanted)| *is_wanted)
            .filter_map(|(key, value, _)| Some((key, value?)))
            .collect()
    }
}

/// A process that runs PHP.
pub struct PhpProcess {
    process: Process,
    php: Php,
    walker: Walker,
    walk: WalkOptions,
    labels: RequestLabels,
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
        let walk = WalkOptions { depth: options.depth, opcodes: options.opcodes };
        let walker = Walker::new(&php, walk);
        Ok(Self { process, php, walker, walk, labels: options.labels, executors })
    }

    /// The same, of a process that may just have been started: what is not ready yet is tried again for half a second.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_when_ready(id: i32, options: &PhpOptions) -> Result<Self, Error> {
        when_ready(|| Self::attach(id, options))
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

    fn labels(&mut self, lane: usize, tables: &mut Tables) -> Result<Option<LabelsId>, Error> {
        let Some(executor) = self.executors.get(lane).filter(|_| self.labels.is_any()) else {
            return Ok(None);
        };
        let Some(request) = self.php.request(&self.process, executor)? else { return Ok(None) };
        let intern = |(key, value): (&str, Vec<u8>)| {
            let key = tables.intern_string(key.as_bytes())?;
            Ok(Label { key, value: LabelValue::Text(tables.intern_string(&value)?) })
        };
        let labels: Result<Vec<Label>, TableFull> = self.labels.of(request).into_iter().map(intern).collect();
        let labels = labels.and_then(|labels| tables.intern_labels(&labels));
        Ok(Some(labels.map_err(borehole_php::Error::from)?))
    }

    fn forget(&mut self) {
        self.walker = Walker::new(&self.php, self.walk);
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
