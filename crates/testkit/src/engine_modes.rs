//! The modes of PHP's engine, as ways to start the machine's PHP.

use std::process::Command;

use crate::Scratch;
use crate::corpus::corpus;
use crate::peers;

/// The part of a setting that stands for a folder of the test.
const FOLDER: &str = "{folder}";

/// The part of a setting that stands for the folder of PHP programs in the corpus.
const PROGRAMS: &str = "{programs}";

/// A mode of PHP's engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineMode {
    /// The name, for messages of tests.
    pub name: &'static str,
    /// The peer that has it.
    peer: &'static str,
    /// Settings, as on the command line.
    settings: &'static [&'static str],
    /// Whether PHP has its own allocator.
    pub has_allocator: bool,
}

/// The modes that every release of PHP has: how code is kept and run.
pub const CODE_MODES: [EngineMode; 4] = [
    mode("interpreted", &["opcache.enable_cli=0"]),
    mode("opcache", &["opcache.enable_cli=1"]),
    mode("function JIT", &["opcache.enable_cli=1", "opcache.jit_buffer_size=32M", "opcache.jit=1205"]),
    mode(
        "tracing JIT",
        &[
            "opcache.enable_cli=1",
            "opcache.jit_buffer_size=32M",
            "opcache.jit=1254",
            "opcache.jit_hot_func=2",
            "opcache.jit_hot_loop=2",
            "opcache.jit_hot_return=2",
        ],
    ),
];

/// The modes of the machine's PHP that need files, other programs or the environment.
pub const OTHER_MODES: [EngineMode; 12] = [
    mode(
        "opcache that caches nothing",
        &["opcache.enable_cli=1", "opcache.file_update_protection=2000000000"],
    ),
    mode(
        "opcache, full",
        &[
            "opcache.enable_cli=1",
            "opcache.memory_consumption=8",
            "opcache.interned_strings_buffer=7",
            "auto_prepend_file={programs}/modes/fill.php",
            "sys_temp_dir={folder}",
            FRESH,
        ],
    ),
    mode("file cache only, filled", &FILES_ONLY),
    mode("file cache only, read", &FILES_ONLY),
    mode("file cache, read", &["opcache.enable_cli=1", "opcache.file_cache={folder}", FRESH]),
    mode(
        "preloading",
        &[
            "opcache.enable_cli=1",
            "opcache.preload={programs}/modes/preload.php",
            "opcache.preload_user=root",
        ],
    ),
    xdebug("Xdebug, off", &["xdebug.mode=off", "opcache.enable_cli=0"]),
    xdebug("Xdebug, develop", &["xdebug.mode=develop", DEEP, "opcache.enable_cli=0"]),
    xdebug("Xdebug, debug", &["xdebug.mode=debug", "opcache.enable_cli=0"]),
    xdebug("Xdebug, opcache", &["xdebug.mode=develop,debug", DEEP, "opcache.enable_cli=1"]),
    without_allocator("no allocator", &["opcache.enable_cli=0"]),
    without_allocator("no allocator, opcache", &["opcache.enable_cli=1"]),
];

/// Allows recursion that is deeper than Xdebug's own limit.
const DEEP: &str = "xdebug.max_nesting_level=-1";

/// Caches scripts however new they are.
const FRESH: &str = "opcache.file_update_protection=0";

const FILES_ONLY: [&str; 4] =
    ["opcache.enable_cli=1", "opcache.file_cache={folder}", "opcache.file_cache_only=1", FRESH];

const fn mode(name: &'static str, settings: &'static [&'static str]) -> EngineMode {
    EngineMode { name, peer: "php", settings, has_allocator: true }
}

const fn xdebug(name: &'static str, settings: &'static [&'static str]) -> EngineMode {
    EngineMode { peer: "php-xdebug", ..mode(name, settings) }
}

const fn without_allocator(name: &'static str, settings: &'static [&'static str]) -> EngineMode {
    EngineMode { has_allocator: false, ..mode(name, settings) }
}

impl EngineMode {
    /// The machine's PHP in this mode; `None` if it is skipped. Modes that keep files keep them in `scratch`.
    ///
    /// # Panics
    /// If its peer is not installed.
    #[must_use]
    #[track_caller]
    pub fn command(&self, scratch: &Scratch) -> Option<Command> {
        let mut command = peers::peer(self.peer)?.command();
        command.args(self.options(scratch));
        if !self.has_allocator {
            command.env("USE_ZEND_ALLOC", "0");
        }
        Some(command)
    }

    /// Its settings as options of the command line.
    #[must_use]
    pub fn options(&self, scratch: &Scratch) -> Vec<String> {
        let programs = corpus("php");
        let setting = |setting: &&str| {
            let setting = setting.replace(FOLDER, &scratch.folder().to_string_lossy());
            ["-d".to_owned(), setting.replace(PROGRAMS, &programs.to_string_lossy())]
        };
        self.settings.iter().flat_map(setting).collect()
    }
}
