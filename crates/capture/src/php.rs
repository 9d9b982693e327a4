//! A process that runs PHP, as a subject to sample.

use borehole_model::{Label, LabelValue, LabelsId, StackId, TableFull, Tables};
use borehole_native::CallPlace;
use borehole_php::{
    AttachOptions, Executor, Identity, Php, PhpRelease, SampleOutcome, SampledStack, ServedRequest,
    StackWalker, ThreadModel, WalkOptions,
};
use borehole_process::{ErrorKind, Process, Registers, Stopper};

use crate::environment::EnvironmentLabels;
use crate::error::Error;
use crate::native::{NativeFrames, NativeSampler, NativeSettings, ScriptCall};
use crate::native_counts::NativeCounts;
use crate::ready::when_ready;
use crate::resting::RestWatch;
use crate::subject::{Look, Patience, Subject};

/// Decides by the path of a mapped file whether it is PHP.
pub type IsPhpFile = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The options for attaching to PHP and walking its stacks.
#[derive(Default)]
pub struct PhpOptions {
    /// The maximum number of frames of a stack, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// Whether frames contain the name of the instruction.
    pub opcodes: bool,
    /// The release; `None`: it is read from the process.
    pub release: Option<PhpRelease>,
    /// Decides which mapped file is PHP; `None`: it is searched for.
    pub is_php: Option<IsPhpFile>,
    /// The labels of samples.
    pub labels: RequestLabels,
    /// Whether stacks contain native frames.
    pub native: NativeFrames,
    /// The variables of the environment that become labels of samples.
    pub environment: Vec<String>,
}

/// The facts about the current request that become labels of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLabels {
    /// The method and the start time: `http.method`, `request.start` in seconds since 1970.
    pub request: bool,
    /// The path and query: `http.url`.
    pub uri: bool,
    /// The file of the script: `script`.
    pub script: bool,
}

impl RequestLabels {
    fn is_any(self) -> bool {
        self.request || self.uri || self.script
    }

    fn of(self, request: ServedRequest) -> Vec<(&'static str, Vec<u8>)> {
        let ServedRequest { method, uri, query, script, time_unix_s } = request;
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
    walker: StackWalker,
    walk: WalkOptions,
    labels: RequestLabels,
    environment: EnvironmentLabels,
    executors: Vec<Executor>,
    native: Option<NativeSampler>,
    calls: Vec<ScriptCall>,
    /// The states of the threads of the executors; empty unless native frames are wanted.
    rests: Vec<RestWatch>,
    /// For comparing stacks.
    buffer: Vec<u8>,
}

impl PhpProcess {
    /// Attaches to the process of this number.
    ///
    /// # Errors
    /// If the process does not exist, may not be read, or does not run a supported PHP. The error says which.
    pub fn attach(id: i32, options: &PhpOptions) -> Result<Self, Error> {
        let process = Process::open(id)?;
        let is_php = options.is_php.as_ref().map(|is_php| is_php.as_ref() as &dyn Fn(&[u8]) -> bool);
        let php = Php::attach(&process, &AttachOptions { release: options.release, is_php })?;
        let executors = php.executors(&process)?;
        let native = native_of(&php, options)?;
        // Joined stacks are cut when they are complete.
        let depth = options.depth.filter(|_| native.is_none());
        let walk = WalkOptions { depth, opcodes: options.opcodes, calls: native.is_some() };
        let walker = StackWalker::new(&php, walk);
        let environment = EnvironmentLabels::of(id, &options.environment);
        let labels = options.labels;
        let (calls, rests, buffer) = (Vec::new(), Vec::new(), Vec::new());
        let mut attached =
            Self { process, php, walker, walk, labels, environment, executors, native, calls, rests, buffer };
        attached.watch_rests();
        Ok(attached)
    }

    /// Begins to watch the threads of the executors.
    fn watch_rests(&mut self) {
        if self.native.is_some() {
            let (process, executors) = (self.process.id(), self.executors.iter());
            let thread = |executor: &Executor| executor.thread.unwrap_or(process);
            self.rests = executors.map(|executor| RestWatch::of(process, thread(executor))).collect();
        }
    }

    /// Like [`attach`](Self::attach), for a process that may have just been started: retries for half a second.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_when_ready(id: i32, options: &PhpOptions) -> Result<Self, Error> {
        when_ready(|| Self::attach(id, options))
    }

    /// The identity of the PHP in the process.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.php.identity()
    }

    /// The executors, each with a stack: one, or one per thread.
    #[must_use]
    pub fn executors(&self) -> &[Executor] {
        &self.executors
    }
}

/// The sampler of native frames, if they are wanted.
fn native_of(php: &Php, options: &PhpOptions) -> Result<Option<NativeSampler>, Error> {
    if options.native.is_any() && php.engine().is_none() {
        return Err(Error::Unsupported(format!(
            "unsupported native frames: expected PHP 7.4 or newer with the symbol execute_ex, found {}",
            php.identity()
        )));
    }
    let settings = NativeSettings {
        frames: options.native,
        depth: options.depth,
        engine: php.engine(),
        hosts_made_code: true,
    };
    Ok(NativeSampler::if_wanted(settings))
}

impl Subject for PhpProcess {
    fn process(&self) -> i32 {
        self.process.id()
    }

    fn stopper(&self) -> Stopper {
        self.process.stopper()
    }

    fn lanes(&self) -> usize {
        self.executors.len()
    }

    fn thread(&self, lane: usize) -> Option<u64> {
        self.executors.get(lane)?.thread?.try_into().ok()
    }

    fn thread_to_stop(&self, lane: usize) -> Option<i32> {
        self.native.as_ref()?;
        let executor = self.executors.get(lane)?;
        Some(executor.thread.unwrap_or_else(|| self.process.id()))
    }

    fn needs_stop(&self) -> bool {
        self.native.is_some()
    }

    fn look_stopped(
        &mut self,
        lane: usize,
        registers: Option<Registers>,
        tables: &mut Tables,
    ) -> Result<Look, Error> {
        let look = self.look(lane, tables)?;
        if let Some(native) = &mut self.native {
            native.unwind(&self.process, registers)?;
            if let Some(rest) = self.rests.get_mut(lane) {
                rest.note_stop(registers, native.print());
            }
        }
        Ok(look)
    }

    fn will_stop(&mut self, lane: usize) -> bool {
        let rest = self.rests.get_mut(lane);
        !rest.is_some_and(|rest| rest.rests(&self.process, &mut self.buffer))
    }

    fn look_released(&mut self, lane: usize, look: Look, tables: &mut Tables) -> Result<Look, Error> {
        let Some(native) = &mut self.native else { return Ok(look) };
        let call = |below| ScriptCall { below, place: CallPlace::NextEntry };
        self.calls.clear();
        self.calls.extend(self.walker.calls().map(call));
        let look = native.complete(&mut self.process, look, &self.calls, tables)?;
        if let Some(rest) = self.rests.get_mut(lane) {
            rest.note_look(look);
        }
        Ok(look)
    }

    fn named(
        &mut self,
        stack: StackId,
        patience: Patience,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        match &mut self.native {
            Some(native) => native.named(stack, patience, tables),
            None => Ok(Some(stack)),
        }
    }

    fn native_modules(&self) -> Vec<String> {
        self.native.as_ref().map(NativeSampler::modules).unwrap_or_default()
    }

    fn take_native_counts(&mut self) -> NativeCounts {
        self.native.as_mut().map(NativeSampler::take_counts).unwrap_or_default()
    }

    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        if let Some(look) = self.rests.get(lane).and_then(RestWatch::look) {
            return Ok(look);
        }
        let Some(executor) = self.executors.get(lane) else { return Ok(Look::Idle) };
        Ok(match self.walker.sample(&self.process, executor, tables)? {
            SampleOutcome::Stack(SampledStack { id: stack, omitted, .. }) => Look::Stack { stack, omitted },
            SampleOutcome::Idle => Look::Idle,
            SampleOutcome::Torn => Look::Torn,
        })
    }

    fn labels(&mut self, lane: usize, tables: &mut Tables) -> Result<Option<LabelsId>, Error> {
        let Some(executor) = self.executors.get(lane).filter(|_| self.labels.is_any()) else {
            return Ok(self.environment.alone(tables).map_err(borehole_php::Error::from)?);
        };
        let Some(request) = self.php.request(&self.process, executor)? else {
            return Ok(self.environment.alone(tables).map_err(borehole_php::Error::from)?);
        };
        let environment = self.environment.labels(tables).map_err(borehole_php::Error::from)?;
        let intern = |(key, value): (&str, Vec<u8>)| {
            let key = tables.intern_string(key.as_bytes())?;
            Ok(Label { key, value: LabelValue::Text(tables.intern_string(&value)?) })
        };
        let labels: Result<Vec<Label>, TableFull> = self.labels.of(request).into_iter().map(intern).collect();
        let labels = labels.and_then(|labels| tables.intern_labels(&[labels, environment].concat()));
        Ok(Some(labels.map_err(borehole_php::Error::from)?))
    }

    fn forget(&mut self) {
        self.walker = StackWalker::new(&self.php, self.walk);
        if let Some(native) = &mut self.native {
            native.forget();
        }
        self.rests.iter_mut().for_each(RestWatch::forget);
        self.environment.forget();
    }

    fn refresh(&mut self) -> Result<(), Error> {
        if !self.process.runs_same_program() {
            let what = format!("process {} has ended or replaced its program", self.process.id());
            return Err(borehole_process::Error::new(ErrorKind::Gone, what).into());
        }
        if self.php.identity().threads == ThreadModel::Many {
            self.executors = self.php.executors(&self.process)?;
            self.watch_rests();
        }
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("php".to_owned(), self.php.identity().to_string())]
    }
}
