//! PHP: the machine's own, and other releases in folders that are the root of a small system each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once};
use crate::command;

/// Where a release comes from.
#[derive(Clone, Copy)]
enum PhpSource {
    Debian,
    /// Packages of the suite `experimental` on top of another.
    Experimental,
    Ubuntu,
}

/// A release that the machine does not have, and how it is had.
struct Release {
    version: &'static str,
    source: PhpSource,
    suite: &'static str,
    /// Packages besides the command line's.
    packages: &'static [&'static str],
}

/// 7.1, 7.3 and 8.0 are in no distribution that still has a mirror.
const RELEASES: &[Release] = &[
    Release { version: "7.0", source: PhpSource::Ubuntu, suite: "xenial", packages: &["php7.0-opcache"] },
    Release { version: "7.2", source: PhpSource::Ubuntu, suite: "bionic", packages: &["php7.2-opcache"] },
    Release { version: "7.4", source: PhpSource::Debian, suite: "bullseye", packages: &["php7.4-opcache"] },
    Release { version: "8.1", source: PhpSource::Ubuntu, suite: "jammy", packages: &["php8.1-opcache"] },
    Release { version: "8.3", source: PhpSource::Ubuntu, suite: "noble", packages: &["php8.3-opcache"] },
    Release { version: "8.4", source: PhpSource::Debian, suite: "trixie", packages: &["php8.4-opcache"] },
    Release {
        version: "8.5",
        source: PhpSource::Experimental,
        suite: "sid",
        packages: &["php-common=2:101", "php8.5-common"],
    },
    Release {
        version: "8.6",
        source: PhpSource::Experimental,
        suite: "sid",
        packages: &["php-common=2:102~"],
    },
];

/// The release whose folder Ubuntu's signatures are checked with: Debian packages Ubuntu's keys since then.
const HAS_UBUNTU_KEYS: &str = "8.4";

/// Finds the machine's PHP, or installs it.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn machine(_folder: &Path) -> Result<Ready> {
    debian::ensure_installed("php", "php-cli")?;
    let path = command::find("php").context("php-cli brings no php")?;
    ready(vec![path.display().to_string()])
}

/// The release that a version is of: 8.2 of 8.2.36.
pub(super) fn release_of(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// Finds the pool manager of the machine's PHP, or installs it without starting it.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn pool(folder: &Path) -> Result<Ready> {
    let version = machine(folder)?.version;
    let release = release_of(&version);
    let name = format!("php-fpm{release}");
    let kept_quiet = NoServices::begin(Path::new("/"))?;
    debian::ensure_installed(&name, &format!("php{release}-fpm"))?;
    drop(kept_quiet);
    let path = command::find(&name).with_context(|| format!("the package brings no {name}"))?;
    Ok(Ready { command: vec![path.display().to_string()], version })
}

/// The extensions that programs of the tests use and that PHP's command line does not bring.
struct Extension {
    name: &'static str,
    /// The end of its package's name.
    package: &'static str,
    /// The package of the library that it needs.
    library: &'static str,
}

const EXTENSIONS: &[Extension] = &[
    Extension { name: "pdo_sqlite", package: "sqlite3", library: "libsqlite3-0" },
    Extension { name: "dom", package: "xml", library: "libxml2" },
    Extension { name: "simplexml", package: "xml", library: "libxml2" },
];

/// The machine's PHP with more extensions: taken out of their packages, so that the machine's PHP stays as it is.
///
/// # Errors
/// When a package cannot be had.
pub(crate) fn with_extensions(folder: &Path) -> Result<Ready> {
    let Ready { mut command, version } = machine(folder)?;
    let release = release_of(&version);
    for extension in EXTENSIONS {
        if is_loaded(&command, extension.name) {
            continue;
        }
        let package = format!("php{release}-{}", extension.package);
        let files = once(folder, &package, |into| debian::unpack(&package, into))?;
        let name = extension.name;
        let path = extension_file(&files, name)?;
        command.extend(["-d".to_owned(), format!("extension={}", path.display())]);
        if !is_loaded(&command, name) {
            debian::install(extension.library)?;
        }
        ensure!(is_loaded(&command, name), "expected PHP to load {name}, found that it does not");
    }
    Ok(Ready { command, version })
}

fn is_loaded(command: &[String], extension: &str) -> bool {
    let code = format!("exit(extension_loaded('{extension}') ? 0 : 1);");
    let Some((program, arguments)) = command.split_first() else { return false };
    let output = Command::new(program).args(arguments).args(["-r", &code]).output();
    output.is_ok_and(|output| output.status.success())
}

/// The file of the extension `name` in the files of a package, which are in the folder of the interface's version.
fn extension_file(files: &Path, name: &str) -> Result<PathBuf> {
    let folders = fs::read_dir(files.join("usr/lib/php"))?;
    let file = format!("{name}.so");
    let mut found = folders.filter_map(|folder| Some(folder.ok()?.path().join(&file)));
    found.find(|path| path.is_file()).with_context(|| format!("missing {file} in {}", files.display()))
}

/// The machine's PHP with its debugger's extension, which replaces parts of the engine, taken out of its package.
///
/// # Errors
/// When the package cannot be had.
pub(crate) fn with_xdebug(folder: &Path) -> Result<Ready> {
    let Ready { mut command, version } = machine(folder)?;
    let package = format!("php{}-xdebug", release_of(&version));
    let files = once(folder, &package, |into| debian::unpack(&package, into))?;
    let path = extension_file(&files, "xdebug")?;
    command.extend(["-d".to_owned(), format!("zend_extension={}", path.display())]);
    ensure!(is_loaded(&command, "xdebug"), "expected PHP to load {}, found that it does not", path.display());
    Ok(Ready { command, version })
}

/// The ending of the version of a release that serves requests in threads. No distribution has one: it is built.
const WITH_THREADS: &str = "-zts";

/// Finds the release `version` in its folder, or makes the folder, which takes some minutes and needs root.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn release(folder: &Path, version: &str) -> Result<Ready> {
    if let Some(version) = version.strip_suffix(WITH_THREADS) {
        return with_threads(folder, version);
    }
    let known = RELEASES.iter().find(|release| release.version == version);
    let release = known.with_context(|| format!("expected a known release, found {version}"))?;
    let keys = match release.source {
        PhpSource::Ubuntu if !is_there(folder, version) => Some(ubuntu_keys(folder)?),
        _ => None,
    };
    let root = once(folder, &name(version), |into| make(release, keys.as_deref(), into))?;
    ready(vec!["chroot".to_owned(), root.display().to_string(), format!("php{version}")])
}

/// Whether the release `version` has been made.
pub(crate) fn is_there(folder: &Path, version: &str) -> bool {
    match version.strip_suffix(WITH_THREADS) {
        Some(version) => folder.join(name(version)).join("opt").join(THREADS_FOLDER).is_dir(),
        None => folder.join(name(version)).is_dir(),
    }
}

/// Where the release with threads is, in `/opt` of the release that it is built in.
const THREADS_FOLDER: &str = "php-zts";

/// Builds the release `version` with threads, in the folder of the release.
fn with_threads(folder: &Path, version: &str) -> Result<Ready> {
    release(folder, version)?;
    let root = folder.join(name(version));
    once(&root.join("opt"), THREADS_FOLDER, |into| build(&root, version, into))?;
    let program = format!("/opt/{THREADS_FOLDER}/php");
    ready(vec!["chroot".to_owned(), root.display().to_string(), program])
}

/// Builds the command line of the release's own source, stripped as distributions do it.
fn build(root: &Path, version: &str, into: &Path) -> Result<()> {
    let list = fs::read_to_string(root.join("etc/apt/sources.list"))?;
    fs::write(root.join("etc/apt/sources.list.d/source.list"), list.replace("deb ", "deb-src "))?;
    command::run(&mut chroot(root, &["apt-get", "--quiet", "update"]))?;
    install(root, &["gcc", "make", "pkgconf", "libc6-dev", "xz-utils"])?;
    let output = Path::new("/").join(into.strip_prefix(root)?).join("php");
    let script = format!(
        "mkdir -p /usr/src/php && cd /usr/src/php && apt-get --quiet source --download-only php{version} && \
         tar xf php{version}_*.orig.tar.xz --strip-components=1 && \
         ./configure --quiet --disable-all --enable-zts --enable-cli --disable-cgi --disable-phpdbg && \
         make --quiet --jobs 2 && strip -o {} sapi/cli/php",
        output.display()
    );
    command::run(&mut chroot(root, &["sh", "-c", &script]))
}

fn name(version: &str) -> String {
    format!("php-{version}")
}

fn ready(command: Vec<String>) -> Result<Ready> {
    let (program, arguments) = command.split_first().context("a command has a program")?;
    let version = command::output(Command::new(program).args(arguments).args(["-r", "echo PHP_VERSION;"]))?;
    Ok(Ready { command, version })
}

/// The file of Ubuntu's keys.
fn ubuntu_keys(folder: &Path) -> Result<PathBuf> {
    release(folder, HAS_UBUNTU_KEYS)?;
    let root = folder.join(name(HAS_UBUNTU_KEYS));
    let keys = root.join("usr/share/keyrings/ubuntu-archive-keyring.gpg");
    if !keys.is_file() {
        install(&root, &["ubuntu-keyring"])?;
    }
    ensure!(keys.is_file(), "expected Ubuntu's keys at {}, found none", keys.display());
    Ok(keys)
}

/// Makes the root of a small system with the release in it.
fn make(release: &Release, ubuntu_keys: Option<&Path>, root: &Path) -> Result<()> {
    debian::ensure_installed("debootstrap", "debootstrap")?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.arg("--variant=minbase");
    match ubuntu_keys {
        // The script that all of Ubuntu's suites share, by the name of the first, with the mirror that it knows.
        Some(keys) => {
            debootstrap.args(["--components=main,universe", "--keyring"]).arg(keys);
            debootstrap.arg(release.suite).arg(root).args(["", "gutsy"])
        }
        None => debootstrap.arg(release.suite).arg(root),
    };
    command::run(&mut debootstrap)?;
    if matches!(release.source, PhpSource::Experimental) {
        let list = root.join("etc/apt/sources.list");
        let sources = fs::read_to_string(&list)?;
        fs::write(&list, format!("{sources}{}", sources.replace(release.suite, "experimental")))?;
    }
    // A mirror may be a frozen one, whose lists are signed and out of date.
    let update = ["apt-get", "--quiet", "-o", "Acquire::Check-Valid-Until=false", "update"];
    command::run(&mut chroot(root, &update))?;
    let cli = format!("php{}-cli", release.version);
    install(root, &[&[cli.as_str()], release.packages].concat())
}

/// Installs packages in the system at `root`, and starts nothing.
fn install(root: &Path, packages: &[&str]) -> Result<()> {
    let _kept_quiet = NoServices::begin(root)?;
    let apt_get = ["apt-get", "--quiet", "install", "--yes", "--no-install-recommends"];
    command::run(chroot(root, &apt_get).args(packages).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn chroot(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).args(arguments);
    command
}

/// As long as it lives, packages that are installed start no services, unless somebody has decided that already.
pub(super) struct NoServices(Option<PathBuf>);

impl NoServices {
    pub(super) fn begin(root: &Path) -> Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let policy = root.join("usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self(None));
        }
        fs::write(&policy, "#!/bin/sh\nexit 101\n").with_context(|| policy.display().to_string())?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o755))?;
        Ok(Self(Some(policy)))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.0 {
            drop(fs::remove_file(policy));
        }
    }
}
