//! Handles the signals that ask a process to end.

use std::fs;
use std::io;
use std::sync::Weak;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use crate::recording::Recording;

/// The signals that ask a program to end.
const REQUESTS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Completes a recording on the first signal, and then does what the signal asks for. Signals that the program ignores
/// stay ignored, as under `nohup` or in a shell's background.
pub(crate) fn finish_on_signals(recording: Weak<Recording>, patience: Duration) -> io::Result<()> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let mut signals = Signals::new(REQUESTS.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0))?;
    let obey = move || {
        for signal in signals.forever() {
            if let Some(recording) = recording.upgrade() {
                recording.stop_on(&name(signal), patience);
            }
            // An error would mean that the signal is not one of the above.
            let _ = emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("borehole-signals".to_owned()).spawn(obey)?;
    Ok(())
}

/// Dumps on each signal of this number.
pub(crate) fn dump_on_signal(recording: Weak<Recording>, signal: i32) -> io::Result<()> {
    let mut signals = Signals::new([signal])?;
    let obey = move || {
        for signal in signals.forever() {
            let Some(recording) = recording.upgrade() else { return };
            recording.request_dump(&name(signal));
        }
    };
    thread::Builder::new().name("borehole-signals".to_owned()).spawn(obey)?;
    Ok(())
}

fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// The signals that a process ignores, the first in the lowest bit, from the text of `/proc/PID/status`. None if the
/// system has no such file.
///
/// Source: Linux, `Documentation/filesystems/proc.rst`, table 1-2.
fn ignored(status: &str) -> u64 {
    // `borehole-process` has this too, but using it would bring its code for reading other processes into each program
    // that records itself.
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_found() {
        let status =
            "Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000440\n";
        assert_eq!(ignored(status), 1 << (SIGHUP - 1) | 1 << 12);
        assert_eq!(ignored(""), 0);
    }
}
