//! Identifies PHP by its loaded modules.

use borehole_process::{ElfSymbols, ForeignMemory};

use crate::error::{Error, ErrorKind};
use crate::layout::fixed;
use crate::release::{Identity, PhpRelease, ThreadModel};
use crate::remote::{self, u32_at, u64_at};

/// The maximum number of modules, more than any build has.
const MOST_MODULES: usize = 512;

/// The fields of a `zend_module_entry` that identify the build.
struct ModuleEntry {
    api: u32,
    debug: bool,
    threads: ThreadModel,
    name: Vec<u8>,
    version: Vec<u8>,
}

/// Identifies the PHP that the modules of `module_registry` were compiled for. `release` stands for modules of an unknown one.
pub(crate) fn identify(
    memory: &impl ForeignMemory,
    symbols: &ElfSymbols,
    release: Option<PhpRelease>,
) -> Result<Identity, Error> {
    let modules = read_modules(memory, symbols)?;
    let Some(first) = modules.first() else {
        let what = "missing modules: PHP's registry is empty; PHP may be starting up or shutting down";
        return Err(Error::new(ErrorKind::Implausible, what));
    };
    if first.debug {
        let what = "unsupported PHP build: expected one without --enable-debug";
        return Err(Error::new(ErrorKind::UnsupportedVersion, what));
    }
    let found = PhpRelease::of_module_api(first.api);
    let identity = |release| Identity {
        release,
        version: version(&modules),
        threads: first.threads,
        sapi: String::new(),
    };
    match (release, found.map(identity)) {
        (Some(expected), Some(found)) if expected != found.release => Err(contradicted(expected, &found)),
        (_, Some(found)) => Ok(found),
        (Some(release), None) => Ok(identity(release)),
        (None, None) => Err(unknown(first.api)),
    }
}

/// The error that the process runs another release than it was said to.
fn contradicted(expected: PhpRelease, found: &Identity) -> Error {
    let what = format!("unexpected PHP version: expected PHP {expected}, found {found}");
    Error::new(ErrorKind::UnsupportedVersion, what)
}

fn unknown(api: u32) -> Error {
    let known: Vec<_> = PhpRelease::all().map(|release| release.to_string()).collect();
    let what =
        format!("unsupported PHP version: expected one of {}, found module API {api}", known.join(", "));
    Error::new(ErrorKind::UnsupportedVersion, what)
}

fn read_modules(memory: &impl ForeignMemory, symbols: &ElfSymbols) -> Result<Vec<ModuleEntry>, Error> {
    let missing = || Error::new(ErrorKind::NotPhp, "missing symbol module_registry");
    let registry = symbols.find("module_registry").ok_or_else(missing)?;
    let reading = |error| Error::reading("cannot read PHP's modules", error);
    let buckets = remote::buckets(memory, registry.address, MOST_MODULES).map_err(reading)?;
    let modules = buckets.iter().filter_map(|bucket| read_module(memory, bucket.pointer).transpose());
    modules.collect::<Result<_, _>>().map_err(reading)
}

fn read_module(
    memory: &impl ForeignMemory,
    address: u64,
) -> Result<Option<ModuleEntry>, borehole_process::Error> {
    let mut entry = [0; fixed::MODULE_SIZE];
    let filled = remote::read_some(memory, address, &mut entry)?;
    let size = u32_at(&entry[..filled], 0).unwrap_or_default() & 0xffff;
    if filled < fixed::MODULE_SIZE || u32::try_from(fixed::MODULE_SIZE) != Ok(size) {
        return Ok(None);
    }
    let text = |offset| {
        let address = u64_at(&entry, offset).unwrap_or_default();
        remote::mapped(remote::c_string(memory, address)).map(Option::unwrap_or_default)
    };
    Ok(Some(ModuleEntry {
        api: u32_at(&entry, fixed::MODULE_API).unwrap_or_default(),
        debug: entry[fixed::MODULE_DEBUG] != 0,
        threads: if entry[fixed::MODULE_THREADS] == 0 { ThreadModel::One } else { ThreadModel::Many },
        name: text(fixed::MODULE_NAME)?,
        version: text(fixed::MODULE_VERSION)?,
    }))
}

/// The version of PHP, which its bundled modules have. `Core` has the version of the engine.
fn version(modules: &[ModuleEntry]) -> String {
    let own = [b"standard".as_slice(), b"SPL", b"date", b"Reflection"];
    let of = |name: &&[u8]| modules.iter().find(|module| module.name == *name);
    let looks_right = |version: &&Vec<u8>| version.first().is_some_and(u8::is_ascii_digit);
    let version = own.iter().filter_map(of).map(|module| &module.version).find(looks_right);
    version.map(|version| String::from_utf8_lossy(version).into_owned()).unwrap_or_default()
}
