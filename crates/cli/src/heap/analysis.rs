//! How memory is analysed, whether of a process or of a file, and what is said of that.

use borehole::capture::PhpOptions;
use borehole::heap::{Analysis, AnalyzeOptions, MemoryLimitError};
use clap::Args;

use crate::messages::say;
use crate::record::PhpArgs;

/// Which PHP it is, and where it failed.
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

    /// An option of these that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        // All are named, so that none is forgotten. The others of the failure are only given with its file.
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

/// The error with which a program ended, as `error_get_last()` says it: its calls are then those of that moment.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FailureArgs {
    /// With a heap that a shutdown function looks at: the file that the memory limit's error names
    #[arg(long = "memory-limit-error-file", value_name = "FILE", requires = "line")]
    file: Option<String>,

    /// The line that the error names
    #[arg(long = "memory-limit-error-line", value_name = "LINE", requires = "file")]
    line: Option<u32>,

    /// The longest chain of calls that is taken for one
    #[arg(long = "memory-limit-error-max-depth", value_name = "FRAMES", requires = "file", default_value_t = MemoryLimitError::DEFAULT_MAX_DEPTH)]
    max_depth: usize,
}

impl FailureArgs {
    pub(crate) fn error(&self) -> Option<MemoryLimitError> {
        let (file, line) = (self.file.clone()?.into_bytes(), self.line?);
        Some(MemoryLimitError { file, line, max_depth: self.max_depth })
    }
}

/// How the heap is walked.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WalkArgs {
    /// The thread whose heap it is to be, where each has one
    #[arg(long, value_name = "THREAD")]
    thread: Option<i32>,

    /// Replace the contents of strings by their lengths and a hash; names and literals of programs stay
    #[arg(long)]
    redact: bool,
}

/// The name of the first option that was given.
fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    options.iter().find(|(is_given, _)| *is_given).map(|&(_, name)| name)
}

impl WalkArgs {
    /// An option of these that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let Self { thread, redact } = self;
        first_given(&[(*redact, "--redact"), (thread.is_some(), "--thread")])
    }

    /// The same for the library, which `php` and `error` are lent to.
    pub(crate) fn options<'o>(
        &self,
        php: &'o PhpOptions,
        error: Option<&'o MemoryLimitError>,
    ) -> AnalyzeOptions<'o> {
        let failure = error.map(MemoryLimitError::failure);
        let mut options =
            AnalyzeOptions { thread: self.thread, failure, redact: self.redact, ..Default::default() };
        options.attach.release = php.release;
        options.attach.is_php = php.is_php.as_deref().map(|is_php| is_php as _);
        options
    }

    /// Says what came of it, of what is called `name`.
    pub(crate) fn tell(&self, name: &str, analysis: &Analysis) {
        say(&format!("{name}, {}: {}", analysis.identity, accounted(analysis)));
        if analysis.threads.len() > 1 && self.thread.is_none() {
            let threads = analysis.threads.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
            say(&format!("note: {name}: the heap of the first of the threads {threads}; --thread chooses"));
        }
    }
}

/// How much of a heap is accounted for.
fn accounted(analysis: &Analysis) -> String {
    let mut text = match analysis.used_bytes {
        None => "PHP does not use its own allocator: sizes are those that values need".to_owned(),
        Some(used) => {
            #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
            let percent = analysis.reached_bytes as f64 / used.max(1) as f64 * 100.0;
            let whole = analysis.doubt.as_deref().unwrap_or("every byte accounted for");
            // Between two requests PHP's heap is empty, and of nothing there is no share.
            let share = format!("; {percent:.2}% held by something known");
            format!("{used} bytes in use, {whole}{}", if used > 0 { share.as_str() } else { "" })
        }
    };
    for (count, what) in [
        (analysis.missing, "places that were not copied"),
        (analysis.torn, "places that contradict themselves"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    if analysis.is_failure_missing {
        text += "; the call that failed is not on the stack any more";
    }
    if analysis.is_incomplete {
        text += "; given up, because memory leads to more than it can hold";
    }
    text
}
