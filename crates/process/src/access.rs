//! Explains why a process may not be read, and what would help.
//!
//! Source: Linux, `ptrace(2)`, "Ptrace access mode checking"; `Documentation/admin-guide/LSM/Yama.rst`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::error::{Error, ErrorKind};
use crate::files;

/// An obstacle to reading another process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The process belongs to another user.
    OtherUser {
        /// The user of the process.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// The process changed its user after it was started, as workers of php-fpm do, and does not allow its own user to read it.
    NotDumpable,
    /// The system lets processes read only their descendants.
    OnlyDescendants,
    /// The system lets only privileged processes read others, or none.
    OnlyPrivileged {
        /// The setting `kernel.yama.ptrace_scope`.
        scope: u8,
    },
    /// The process is in a user namespace (a container) in which this process has no rights.
    OtherUserNamespace,
    /// This process runs as root, but its container or service lacks the capability.
    RootWithoutCapability,
}

impl Obstacle {
    /// Describes the obstacle, as the end of a sentence about the process.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::OtherUser { owner, own } => {
                format!("it belongs to user {owner}, and this process runs as user {own}")
            }
            Self::NotDumpable => "it changed its user after it started, so it is not dumpable".to_owned(),
            Self::OnlyDescendants => {
                "kernel.yama.ptrace_scope is 1, so only descendants can be read".to_owned()
            }
            Self::OnlyPrivileged { scope: 2 } => {
                "kernel.yama.ptrace_scope is 2, so reading needs CAP_SYS_PTRACE".to_owned()
            }
            Self::OnlyPrivileged { scope } => {
                format!("kernel.yama.ptrace_scope is {scope}, so no process can read another")
            }
            Self::OtherUserNamespace => "it is in another user namespace".to_owned(),
            Self::RootWithoutCapability => "root lacks CAP_SYS_PTRACE here".to_owned(),
        }
    }

    /// Describes the remedy.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::OtherUser { .. } => "run as root, as that user, or with CAP_SYS_PTRACE",
            Self::NotDumpable => {
                "run as root or with CAP_SYS_PTRACE; for php-fpm also `process.dumpable = yes` in the pool's configuration"
            }
            Self::OnlyDescendants => {
                "run as root, start the program with `borehole record -- COMMAND`, or run `sysctl kernel.yama.ptrace_scope=0`"
            }
            Self::OnlyPrivileged { scope: 2 } => "run as root or with CAP_SYS_PTRACE",
            Self::OnlyPrivileged { .. } => {
                "reboot with a lower kernel.yama.ptrace_scope; it cannot be lowered while the system runs"
            }
            Self::OtherUserNamespace => "run as root on the host, or inside the container",
            Self::RootWithoutCapability => {
                "give the container or service SYS_PTRACE (docker: --cap-add SYS_PTRACE; kubernetes: capabilities.add; \
                 systemd: AmbientCapabilities)"
            }
        }
    }
}

/// The capability to trace and read other processes.
///
/// Source: Linux, `include/uapi/linux/capability.h`.
const CAP_SYS_PTRACE: u32 = 19;

/// The obstacles to reading the memory of `process`, as far as the system shows them; the most certain one first.
#[must_use]
pub fn obstacles(process: i32) -> Vec<Obstacle> {
    let mut found = Vec::new();
    let own = Credentials::of("self");
    let is_privileged = own.may_trace;
    let namespaces = namespace(&format!("/proc/{process}")).zip(namespace("/proc/self"));
    if namespaces.is_some_and(|(its, own)| its != own) {
        found.push(Obstacle::OtherUserNamespace);
    }
    let owner = Credentials::of(&process.to_string()).user;
    if !is_privileged && own.user == 0 {
        found.push(Obstacle::RootWithoutCapability);
    } else if !is_privileged && owner != own.user {
        found.push(Obstacle::OtherUser { owner, own: own.user });
    } else if !is_privileged && is_not_dumpable(process, owner) {
        found.push(Obstacle::NotDumpable);
    }
    match ptrace_scope() {
        Some(1) if !is_privileged => found.push(Obstacle::OnlyDescendants),
        Some(2) if !is_privileged => found.push(Obstacle::OnlyPrivileged { scope: 2 }),
        Some(scope @ 3..) => found.push(Obstacle::OnlyPrivileged { scope }),
        _ => {}
    }
    found
}

pub(crate) fn explain(process: i32, error: Error) -> Error {
    if error.kind() != ErrorKind::Denied {
        return error;
    }
    let what = match obstacles(process).first() {
        Some(obstacle) => {
            format!("cannot read process {process}: {}; {}", obstacle.reason(), obstacle.fix())
        }
        None => format!("cannot read process {process}, and the system does not say why: {error}"),
    };
    Error::new(ErrorKind::Denied, what)
}

struct Credentials {
    user: u32,
    may_trace: bool,
}

impl Credentials {
    /// Reads the credentials of the process whose folder in `/proc` is called `name`.
    fn of(name: &str) -> Self {
        let status = fs::read(format!("/proc/{name}/status")).unwrap_or_default();
        let users = files::status_field(&status, "Uid").unwrap_or_default();
        // The real, effective, saved and file-system user; the last one counts.
        let user =
            users.split_ascii_whitespace().nth(3).and_then(|user| user.parse().ok()).unwrap_or(u32::MAX);
        let capabilities = files::status_field(&status, "CapEff").unwrap_or_default();
        let capabilities = u64::from_str_radix(&capabilities, 16).unwrap_or(0);
        Self { user, may_trace: capabilities >> CAP_SYS_PTRACE & 1 == 1 }
    }
}

/// Whether the process is not dumpable: its files then belong to root.
fn is_not_dumpable(process: i32, owner: u32) -> bool {
    owner != 0 && fs::metadata(files::path(process, "mem")).is_ok_and(|mem| mem.uid() == 0)
}

fn namespace(folder: &str) -> Option<std::path::PathBuf> {
    fs::read_link(format!("{folder}/ns/user")).ok()
}

/// The setting of the security module Yama; `None` if the kernel lacks it.
#[must_use]
pub fn ptrace_scope() -> Option<u8> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}
