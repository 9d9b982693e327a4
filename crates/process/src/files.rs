//! The files of `/proc/PID`.

use std::fs;
use std::io::{self, ErrorKind as IoError};
use std::path::PathBuf;

use borehole_text::cause;

use crate::error::{Error, ErrorKind};

pub(crate) fn path(process: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/{name}"))
}

pub(crate) fn read(process: i32, name: &str) -> Result<Vec<u8>, Error> {
    fs::read(path(process, name)).map_err(|error| of_io(process, name, &error))
}

pub(crate) fn of_io(process: i32, name: &str, error: &io::Error) -> Error {
    let kind = match (error.kind(), error.raw_os_error()) {
        (IoError::NotFound, _) | (_, Some(libc::ESRCH)) => return gone(process),
        (IoError::PermissionDenied, _) => ErrorKind::Denied,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, format!("/proc/{process}/{name}: {}", cause(error)))
}

pub(crate) fn gone(process: i32) -> Error {
    Error::new(ErrorKind::Gone, format!("process {process} does not exist or has ended"))
}

/// The state and start time of a process. Two processes that had the same number differ in their start times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The letter of the state; `Z` is a process that has ended.
    pub(crate) state: u8,
    pub(crate) parent: i32,
    /// The start time in ticks since the machine was started.
    pub(crate) started: u64,
}

/// Reads `/proc/PID/stat`, or `task/TID/stat` of a thread.
///
/// Source: Linux, `Documentation/filesystems/proc.rst`, table 1-4.
pub(crate) fn stat(process: i32, name: &str) -> Result<Stat, Error> {
    let text = read(process, name)?;
    parse_stat(&text)
        .ok_or_else(|| Error::new(ErrorKind::Malformed, format!("/proc/{process}/{name}: invalid")))
}

fn parse_stat(text: &[u8]) -> Option<Stat> {
    // The name is in parentheses and may itself contain some.
    let behind_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(text.get(behind_name..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

pub(crate) fn status_field(status: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(status);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Whether this process ignores a signal, as it does under `nohup`. `false` if the system does not say.
///
/// Source: Linux, `Documentation/filesystems/proc.rst`, table 1-2.
#[must_use]
pub fn ignores(signal: i32) -> bool {
    // `/proc/PID` may be another process if `/proc` belongs to another PID namespace, so use `self`.
    fs::read("/proc/self/status").is_ok_and(|status| is_ignored(&status, signal))
}

fn is_ignored(status: &[u8], signal: i32) -> bool {
    let mask = status_field(status, "SigIgn").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    let place = u32::try_from(signal.saturating_sub(1)).ok();
    mask.zip(place).and_then(|(mask, place)| mask.checked_shr(place)).is_some_and(|mask| mask & 1 == 1)
}

/// The entries of a folder whose names are numbers.
pub(crate) fn numbers(folder: &std::path::Path) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder)?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<i32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The threads of a process, the main thread first.
pub(crate) fn threads(process: i32) -> Result<Vec<i32>, Error> {
    let folder = path(process, "task");
    let mut threads = numbers(&folder).map_err(|error| of_io(process, "task", &error))?;
    threads.sort_by_key(|&thread| thread != process);
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_trap() {
        let text = b"42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2";
        assert_eq!(parse_stat(text), Some(Stat { state: b'S', parent: 7, started: 987_654 }));
        assert_eq!(parse_stat(b"42 (a"), None);
    }

    #[test]
    fn fields_of_a_status_are_found_by_their_whole_name() {
        let status = b"Name:\tphp\nUid:\t33\t33\t33\t33\nUidMap: 0\n";
        assert_eq!(status_field(status, "Uid").unwrap(), "33\t33\t33\t33");
        assert_eq!(status_field(status, "Nam"), None);
    }

    #[test]
    fn the_first_signal_is_the_lowest_bit() {
        let status =
            b"Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t8000000000001001\nSigCgt:\t0000000000000440\n";
        let ignored: Vec<_> = (-1..=65).filter(|&signal| is_ignored(status, signal)).collect();
        assert_eq!(ignored, [1, 13, 64]);
        assert!(!is_ignored(b"", 1));
    }
}
