//! PHP that is not a program of its own: in Apache, in its debugger, in a program that embeds it.

use std::path::Path;

use anyhow::{Context, Result};

use super::php::{self, NoServices};
use super::{Ready, debian, once};
use crate::command;

/// A program that has PHP in it: Python, which loads the library and lets it include the script that it is given.
const EMBEDDING: &str = "import ctypes, sys; library, script = sys.argv[1:]; php = ctypes.CDLL(library); \
    php.php_embed_init(0, None); php.zend_eval_string(('include %r;' % script).encode(), None, b'embedding'); \
    php.php_embed_shutdown()";

/// Finds the web server with the machine's PHP as its module, or installs both without starting anything.
///
/// # Errors
/// When they cannot be installed.
pub(crate) fn apache(folder: &Path) -> Result<Ready> {
    let version = php::machine(folder)?.version;
    let release = php::release_of(&version);
    let module = format!("/usr/lib/apache2/modules/libphp{release}.so");
    if !Path::new(&module).is_file() {
        let kept_quiet = NoServices::begin(Path::new("/"))?;
        debian::install(&format!("libapache2-mod-php{release}"))?;
        drop(kept_quiet);
    }
    let path = command::find("apache2").context("the module for apache2 brings no apache2")?;
    let load = format!("LoadModule php_module {module}");
    Ok(Ready { command: vec![path.display().to_string(), "-c".to_owned(), load], version })
}

/// A program of the debugger's package, which stays in a folder.
///
/// # Errors
/// When the package cannot be had.
pub(crate) fn debugger(folder: &Path) -> Result<Ready> {
    let version = php::machine(folder)?.version;
    let release = php::release_of(&version);
    let files = unpacked(folder, &format!("php{release}-phpdbg"))?;
    let path = files.join(format!("usr/bin/phpdbg{release}"));
    Ok(Ready { command: vec![path.display().to_string(), "-qrr".to_owned()], version })
}

/// A program that embeds the library, which stays in a folder.
///
/// # Errors
/// When the package cannot be had, or there is no Python.
pub(crate) fn embedding(folder: &Path) -> Result<Ready> {
    let version = php::machine(folder)?.version;
    let release = php::release_of(&version);
    let files = unpacked(folder, &format!("libphp{release}-embed"))?;
    let library = files.join(format!("usr/lib/libphp{release}.so"));
    let python = command::find("python3").context("missing python3")?;
    let words = [&*python.display().to_string(), "-c", EMBEDDING, &*library.display().to_string()];
    Ok(Ready { command: words.map(str::to_owned).into(), version })
}

fn unpacked(folder: &Path, package: &str) -> Result<std::path::PathBuf> {
    once(folder, package, |into| debian::unpack(package, into))
}
