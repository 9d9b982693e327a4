//! Database servers that run during a test.
//!
//! Each has its own folder, a free port on loopback, a database [`DATABASE`] for everybody, a user [`GUARDED_USER`] who
//! needs a password, and a certificate for `localhost`.

mod certificates;
mod proxy;
mod small_disk;

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use tempfile::TempDir;

use crate::peers::{Peer, peer};

pub use proxy::{Proxy, ProxyFailure};
pub use small_disk::SmallDisk;

/// The database that each server has.
pub const DATABASE: &str = "heaps";

/// A user who needs [`GUARDED_PASSWORD`].
pub const GUARDED_USER: &str = "guarded";

/// The password of [`GUARDED_USER`].
pub const GUARDED_PASSWORD: &str = "open sesame: 1@2/3";

/// The name of the PostgreSQL tablespace on a small file system.
const SMALL: &str = "small";

/// The user `nobody`: servers refuse to run as root.
const NOBODY: u32 = 65_534;

/// The time limit for a server to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL, in a root file system of its own.
    Mysql,
}

impl ServerKind {
    const fn peer(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
        }
    }
}

/// The optional properties of a server.
#[derive(Clone, Copy, Debug)]
struct ServerExtras {
    /// Whether it supports encryption.
    has_tls: bool,
    /// The arguments of `openssl req -x509` for a certificate that it has signed itself; `None` for one of an authority.
    self_signed: Option<&'static [&'static str]>,
    /// The size of the file system of its tables, if they have one of their own.
    disk: Option<&'static str>,
}

const USUAL: ServerExtras = ServerExtras { has_tls: true, self_signed: None, disk: None };

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct DatabaseServer {
    kind: ServerKind,
    peer: Peer,
    /// The small file system of its tables, if they have one of their own.
    disk: Option<SmallDisk>,
    /// The folder of its files.
    folder: TempDir,
    port: u16,
    extras: ServerExtras,
    process: Option<Child>,
}

impl DatabaseServer {
    /// Starts a server; `None`, with a line on stderr, if it is skipped.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    #[track_caller]
    pub fn start(kind: ServerKind) -> Option<Self> {
        Self::start_anywhere(kind, USUAL)
    }

    /// Starts a server without encryption; `None`, with a line on stderr, if it is skipped.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    #[track_caller]
    pub fn start_without_tls(kind: ServerKind) -> Option<Self> {
        Self::start_anywhere(kind, ServerExtras { has_tls: false, ..USUAL })
    }

    /// Starts a server with a certificate that `openssl req -x509` makes with these `arguments`; `None`, with a line on stderr,
    /// if it is skipped.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    #[track_caller]
    pub fn start_self_signed(kind: ServerKind, arguments: &'static [&'static str]) -> Option<Self> {
        Self::start_anywhere(kind, ServerExtras { self_signed: Some(arguments), ..USUAL })
    }

    /// Starts a server whose tables have a file system of their own, with a `size` as `mount` takes it. `None`, with a line on
    /// stderr, if the server is skipped.
    ///
    /// # Panics
    /// If it is not installed, does not start, or the file system cannot be mounted, which only root can do.
    #[must_use]
    #[track_caller]
    pub fn start_on_small_disk(kind: ServerKind, size: &'static str) -> Option<Self> {
        Self::start_anywhere(kind, ServerExtras { disk: Some(size), ..USUAL })
    }

    #[track_caller]
    fn start_anywhere(kind: ServerKind, extras: ServerExtras) -> Option<Self> {
        let peer = peer(kind.peer())?;
        let folder = match root(kind, &peer) {
            Some(root) => TempDir::new_in(root.join("tmp")),
            None => TempDir::new(),
        };
        let folder = folder.expect("the system has a folder for temporary files");
        let server = Self { kind, peer, folder, port: free_port(), disk: None, extras, process: None };
        Some(server.begun())
    }

    fn begun(mut self) -> Self {
        give_away(self.folder.path());
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(self.folder.path(), mode).expect("a folder of ours can be closed to others");
        self.write_files();
        // PostgreSQL takes the place of the tables as an option of the database; for the others, a database is a folder.
        if self.kind == ServerKind::Postgresql {
            self.mount_disk(SMALL);
        }
        self.initialize();
        self.run().unwrap_or_else(|complaint| panic!("{complaint}"));
        if self.kind != ServerKind::Postgresql {
            self.mount_disk(&format!("data/{DATABASE}"));
        }
        self
    }

    /// Mounts the small file system at `name` in the server's folder.
    fn mount_disk(&mut self, name: &str) {
        let Some(size) = self.extras.disk else { return };
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).expect("the folder takes a folder");
        self.disk = Some(SmallDisk::mount(&path, size));
        give_away(&path);
    }

    /// Resizes the small file system of its tables.
    ///
    /// # Panics
    /// If there is none.
    pub fn grow_disk(&self, size: &str) {
        self.disk.as_ref().expect("the tables are on a file system of their own").resize(size);
    }

    /// The certificate of the authority that signed the certificate of the server, or that one itself if the server has signed
    /// it; only tests trust it.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join(certificates::AUTHORITY)
    }

    /// The address of `database` for a user with all privileges.
    #[must_use]
    pub fn address(&self, database: &str) -> String {
        let (scheme, user) = match self.kind {
            ServerKind::Postgresql => ("postgresql", "postgres"),
            ServerKind::Mariadb | ServerKind::Mysql => ("mysql", "root"),
        };
        format!("{scheme}://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// A program of the server, run as the current user.
    #[must_use]
    pub fn program(&self, name: &str) -> Command {
        let server = self.peer.command();
        let beside = Path::new(server.get_program()).with_file_name(name);
        if beside.is_file() { Command::new(beside) } else { Command::new(name) }
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.peer.version()
    }

    /// Kills the server with SIGKILL, so that it cannot clean up.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("the server runs");
        process.kill().expect("a process of ours can be killed");
        process.wait().expect("a process of ours can be waited for");
    }

    /// Stops all its processes, so that it accepts connections but answers nothing, or lets them go on.
    ///
    /// # Panics
    /// If it does not run.
    pub fn freeze(&self, is_frozen: bool) {
        let first = self.process.as_ref().expect("the server runs").id();
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        succeed(Command::new("kill").args([signal, &first.to_string()]));
        for child in children(first) {
            let sent = Command::new("kill").args([signal, &child.to_string()]).output().expect("kill runs");
            // A server's own helpers end whenever they are done.
            let has_ended = || !Path::new(&format!("/proc/{child}")).exists();
            assert!(sent.status.success() || has_ended(), "{child}: {sent:?}");
        }
    }

    /// Starts it again with its files.
    ///
    /// # Panics
    /// If it runs, or does not start.
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        let begin = Instant::now();
        while let Err(complaint) = self.run() {
            // After a kill, the processes for connections of PostgreSQL end by themselves, a little later.
            assert!(complaint.contains("still in use") && begin.elapsed() < PATIENCE, "{complaint}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The log of the server.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(self.folder.path().join("log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    fn write_files(&self) {
        let guarded = match self.kind {
            ServerKind::Postgresql => format!(
                "CREATE DATABASE {DATABASE} ENCODING 'UTF8' TEMPLATE template0;\n\
                 CREATE ROLE {GUARDED_USER} LOGIN SUPERUSER PASSWORD '{GUARDED_PASSWORD}';\n{}",
                self.extras.disk.map_or_else(String::new, |_| format!(
                    "CREATE TABLESPACE {SMALL} LOCATION '{}';\n\
                     ALTER DATABASE {DATABASE} SET default_tablespace = '{SMALL}';\n",
                    self.inside(SMALL)
                ))
            ),
            ServerKind::Mariadb | ServerKind::Mysql => format!(
                "CREATE DATABASE IF NOT EXISTS {DATABASE};\n\
                 CREATE USER IF NOT EXISTS '{GUARDED_USER}'@'%' IDENTIFIED BY '{GUARDED_PASSWORD}';\n\
                 GRANT ALL ON *.* TO '{GUARDED_USER}'@'%';\n"
            ),
        };
        fs::write(self.folder.path().join("first.sql"), guarded).expect("the folder takes a file");
        if self.extras.has_tls {
            match self.extras.self_signed {
                Some(arguments) => certificates::write_self_signed(self.folder.path(), arguments),
                None => certificates::write(self.folder.path()),
            }
            give_away(&self.folder.path().join(certificates::KEY));
        }
    }

    fn initialize(&self) {
        let data = self.inside("data");
        let mut command = match self.kind {
            ServerKind::Postgresql => self.command("initdb"),
            ServerKind::Mariadb => self.command("mariadb-install-db"),
            ServerKind::Mysql => self.command("mysqld"),
        };
        match self.kind {
            ServerKind::Postgresql => {
                command.args(["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
                command.arg("--no-sync");
            }
            ServerKind::Mariadb => {
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.arg(format!("--datadir={data}"));
            }
            ServerKind::Mysql => {
                command.args(["--no-defaults", "--initialize-insecure", &format!("--datadir={data}")]);
            }
        }
        succeed(&mut command);
        if self.kind == ServerKind::Postgresql {
            let rules = format!(
                "host all {GUARDED_USER} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n"
            );
            fs::write(self.folder.path().join("data/pg_hba.conf"), rules).expect("the folder takes a file");
            let first = File::open(self.folder.path().join("first.sql")).expect("the file was just written");
            let mut single = self.command("postgres");
            succeed(single.args(["--single", "-D", &data, "postgres"]).stdin(first));
        }
    }

    /// Starts it, or returns its log.
    fn run(&mut self) -> Result<(), String> {
        let (data, port) = (self.inside("data"), self.port.to_string());
        let mut command = match self.kind {
            ServerKind::Postgresql => {
                let mut command = self.command("postgres");
                command.args([
                    "-D",
                    &data,
                    "-k",
                    &self.inside(""),
                    "-p",
                    &port,
                    "-c",
                    "listen_addresses=127.0.0.1",
                ]);
                if self.extras.has_tls {
                    let [certificate, key] =
                        [certificates::CERTIFICATE, certificates::KEY].map(|name| self.inside(name));
                    command.args(["-c", "ssl=on", "-c", &format!("ssl_cert_file={certificate}")]);
                    command.args(["-c", &format!("ssl_key_file={key}")]);
                }
                command
            }
            ServerKind::Mariadb | ServerKind::Mysql => {
                let mut command =
                    self.command(if self.kind == ServerKind::Mysql { "mysqld" } else { "mariadbd" });
                command.arg("--no-defaults");
                let named = [("datadir", &*data), ("port", &port), ("bind-address", "127.0.0.1")];
                let own = [("socket", "socket"), ("pid-file", "pid"), ("init-file", "first.sql")];
                command.args(named.map(|(name, value)| format!("--{name}={value}")));
                command.args(own.map(|(name, file)| format!("--{name}={}", self.inside(file))));
                if self.extras.has_tls {
                    let own = [("ssl-cert", certificates::CERTIFICATE), ("ssl-key", certificates::KEY)];
                    command.args(own.map(|(name, file)| format!("--{name}={}", self.inside(file))));
                }
                if self.kind == ServerKind::Mysql {
                    command.args(["--mysqlx=OFF", "--secure-file-priv="]);
                }
                command
            }
        };
        let log = File::create(self.folder.path().join("log")).expect("the folder takes a file");
        let output = log.try_clone().expect("a file can be used twice");
        let process = command.stdin(Stdio::null()).stdout(output).stderr(log).spawn();
        self.process = Some(process.unwrap_or_else(|error| panic!("{command:?}: {error}")));
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let ready = match self.kind {
            ServerKind::Postgresql => "ready to accept connections",
            ServerKind::Mariadb | ServerKind::Mysql => "ready for connections",
        };
        let begin = Instant::now();
        while !self.log().contains(ready) {
            let process = self.process.as_mut().expect("the server was started");
            let status = process.try_wait().expect("a process of ours can be asked");
            if status.is_some() || begin.elapsed() > PATIENCE {
                self.process = None;
                return Err(format!("{:?} does not start ({status:?}):\n{}", self.kind, self.log()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The path of the file `name` of its folder, as the server sees it.
    fn inside(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let inside = match root(self.kind, &self.peer) {
            Some(root) => Path::new("/").join(path.strip_prefix(root).expect("the folder is in the system")),
            None => path,
        };
        inside.display().to_string()
    }

    /// A program of the server, not run as root.
    fn command(&self, program: &str) -> Command {
        let server = self.peer.command();
        let found = Path::new(server.get_program());
        if let Some(root) = root(self.kind, &self.peer) {
            let mut command = Command::new(found);
            command
                .arg(format!("--userspec={NOBODY}:{NOBODY}"))
                .arg(root)
                .arg(format!("/usr/sbin/{program}"));
            return command;
        }
        let beside = found.with_file_name(program);
        let mut command = if beside.is_file() { Command::new(beside) } else { Command::new(program) };
        if is_root(&self.folder.path().join("first.sql")) {
            command.uid(NOBODY).gid(NOBODY);
        }
        // MariaDB servers delete temporary files of other servers when they start.
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path());
        command
    }
}

/// The root file system that a server needs.
fn root(kind: ServerKind, peer: &Peer) -> Option<PathBuf> {
    (kind == ServerKind::Mysql)
        .then(|| peer.command().get_args().next().map(PathBuf::from).expect("a system has a root"))
}

/// The processes that the process `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    listed.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn free_port() -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    port.expect("the loopback has a free port").port()
}

/// Gives files of root to the server.
fn give_away(path: &Path) {
    if is_root(path) {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
    }
}

/// Whether the current user is root.
fn is_root(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.uid() == 0)
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error: io::Error| panic!("{command:?}: {error}"));
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{errors}", output.status);
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // The folder is deleted, so the server need not clean up.
        if self.kind == ServerKind::Postgresql {
            // This also ends the processes for its connections.
            let _ =
                self.command("pg_ctl").args(["stop", "-m", "immediate", "-D", &self.inside("data")]).output();
        }
        let _ = process.kill();
        let _ = process.wait();
    }
}
