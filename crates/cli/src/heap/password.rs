//! Connects to database servers: how long to wait, and their passwords.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use borehole::heap::sql::{Access, Database, ErrorKind, Server};
use borehole::heap::{Address, HeapFile};
use clap::Args;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use crate::inputs::is_stdin;
use crate::values::duration;

/// How database servers are waited for.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct WaitArgs {
    /// How long to wait for a database server that does not accept the connection, or does not answer, such as 2m
    /// [default: 30s], or for a row of a file [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
}

/// The address, with a password if its server requires one and a user can type it.
pub(super) fn asked(address: Address, access: Access, waits: WaitArgs) -> anyhow::Result<Address> {
    let Address::Server(server) = address else { return Ok(address) };
    let server = match waits.timeout {
        Some(timeout) => server.with_timeout(timeout),
        None => server,
    };
    if server.has_password() || !io::stdin().is_terminal() {
        return Ok(Address::Server(server));
    }
    match Database::connect(&server, access) {
        Err(error) if error.kind() == ErrorKind::Denied => {
            let password = prompt(&server)?;
            Ok(Address::Server(server.with_password(password)))
        }
        // Other errors appear when the database is opened.
        _ => Ok(Address::Server(server)),
    }
}

/// Opens a file or a database that holds a heap.
pub(crate) fn open(path: &Path, waits: WaitArgs) -> anyhow::Result<HeapFile> {
    ensure!(!is_stdin(path), "standard input: expected a file with a heap, found `-`");
    match asked(Address::new(path), Access::Read, waits)? {
        Address::Server(server) => Ok(HeapFile::of_server(server)),
        Address::File(path) => Ok(HeapFile::open(&path)?),
    }
}

/// Reads a line from the terminal without showing it.
fn prompt(server: &Server) -> anyhow::Result<String> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal = terminal.context("missing terminal to ask for a password")?;
    let shown = tcgetattr(&terminal)?;
    let mut hidden: Termios = shown.clone();
    hidden.local_flags.remove(LocalFlags::ECHO);
    // Before the prompt appears, so that nothing that is typed is shown or lost.
    tcsetattr(&terminal, SetArg::TCSAFLUSH, &hidden)?;
    let mut line = String::new();
    let read = write!(terminal, "password for {}: ", server.name())
        .and_then(|()| BufReader::new(&terminal).read_line(&mut line));
    tcsetattr(&terminal, SetArg::TCSAFLUSH, &shown)?;
    writeln!(terminal)?;
    read?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}
