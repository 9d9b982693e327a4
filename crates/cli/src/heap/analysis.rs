//! Options for analysing the memory of a process or a file, and messages about the result.

use borehole::capture::PhpOptions;
use borehole::heap::{Analysis, AnalyzeOptions, MemoryLimitError};
use borehole_text::{counted, percent_of};
use clap::Args;

use crate::messages::say;
use crate::record::PhpArgs;

/// Options about the PHP in the memory, and about the error that ended its program.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PhpHeapArgs {
    #[command(flatten)]
    pub(crate) failure: FailureArgs,

    #[command(flatten)]
    pub(crate) php: PhpArgs,
}

impl PhpHeapArgs {
    pub(crate) fn options(&self) -> PhpOptions {
        self.php.options(None)
    }

    /// The first of these options that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        // All fields are named, so that none is forgotten. The other options of the failure require its file.
        let Self { failure: FailureArgs { file, line: _, max_depth: _ }, php } = self;
        let PhpArgs { php_version, php_path, php_regex: _ } = php;
        let options = [
            (file.is_some(), "--memory-limit-error-file"),
            (php_version.is_some(), "--php-version"),
            (php_path.is_some(), "--php-path"),
        ];
        first_given(&options)
    }
}

/// The error that ended a program, as `error_get_last()` returns it. The calls are then those of that moment.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FailureArgs {
    /// The file in the memory-limit error, if a shutdown function captures the heap
    #[arg(long = "memory-limit-error-file", value_name = "FILE", requires = "line")]
    file: Option<String>,

    /// The line in that error
    #[arg(long = "memory-limit-error-line", value_name = "LINE", requires = "file")]
    line: Option<u32>,

    /// Maximum depth of the stacks to search for that error
    #[arg(long = "memory-limit-error-max-depth", value_name = "FRAMES", requires = "file", default_value_t = MemoryLimitError::DEFAULT_MAX_DEPTH)]
    max_depth: usize,
}

impl FailureArgs {
    pub(crate) fn error(&self) -> Option<MemoryLimitError> {
        let (file, line) = (self.file.clone()?.into_bytes(), self.line?);
        Some(MemoryLimitError { file, line, max_depth: self.max_depth })
    }
}

/// Options for the walk of the heap.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WalkArgs {
    /// The thread whose heap to read, if each thread has one
    #[arg(long, value_name = "THREAD")]
    thread: Option<i32>,

    /// Replace the contents of strings with their length and a hash, except the program's own names and literals
    #[arg(long)]
    redact: bool,
}

/// The name of the first option that was given.
fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    options.iter().find(|(is_given, _)| *is_given).map(|&(_, name)| name)
}

impl WalkArgs {
    /// The first of these options that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let Self { thread, redact } = self;
        first_given(&[(*redact, "--redact"), (thread.is_some(), "--thread")])
    }

    /// These options for the library, which borrows `php` and `error`.
    pub(crate) fn options<'o>(
        &self,
        php: &'o PhpOptions,
        error: Option<&'o MemoryLimitError>,
    ) -> AnalyzeOptions<'o> {
        let failure = error.map(MemoryLimitError::failure);
        let mut options = AnalyzeOptions {
            thread: self.thread,
            failure,
            redact: self.redact,
            memory_goal: crate::memory::asked(),
            ..Default::default()
        };
        options.attach.release = php.release;
        options.attach.is_php = php.is_php.as_deref().map(|is_php| is_php as _);
        options
    }

    /// Prints a summary of the analysis of `name`.
    pub(crate) fn tell(&self, name: &str, analysis: &Analysis) {
        say(&format!("{name}, {}: {}", analysis.identity, accounted(analysis)));
        if analysis.threads.len() > 1 && self.thread.is_none() {
            let threads = analysis.threads.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
            say(&format!(
                "note: {name}: reading the heap of the first of the threads {threads}; --thread selects another"
            ));
        }
    }
}

/// A message about how much of a heap is accounted for.
fn accounted(analysis: &Analysis) -> String {
    let mut text = match analysis.used_bytes {
        None => "PHP does not use its own allocator, so sizes are those that the values need".to_owned(),
        Some(used) => {
            let percent = percent_of(analysis.reached_bytes, used);
            let whole = analysis.doubt.as_deref().unwrap_or("every byte accounted for");
            // Between two requests PHP's heap is empty, so there is no percentage.
            let share = format!("; {percent:.2}% held by something known");
            format!("{} in use, {whole}{}", counted(used, "byte"), if used > 0 { share.as_str() } else { "" })
        }
    };
    let places = [
        (analysis.missing, "not copied"),
        (analysis.torn, "torn"),
        (analysis.left_out, "in shared memory that was left out"),
    ];
    for (count, what) in places {
        if count > 0 {
            text += &format!("; {} {what}", counted(count, "place"));
        }
    }
    if analysis.is_failure_missing {
        text += "; the failed call is no longer on the stack";
    }
    if analysis.is_incomplete {
        text += "; stopped early, because values refer to more memory than there is";
    }
    text
}
