//! The signal handling of this process.

use std::fs;

use crate::files::status_field;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_is_the_lowest_bit() {
        let status =
            b"Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t8000000000001001\nSigCgt:\t0000000000000440\n";
        let ignored: Vec<_> = (-1..=65).filter(|&signal| is_ignored(status, signal)).collect();
        assert_eq!(ignored, [1, 13, 64]);
        assert!(!is_ignored(b"", 1));
    }
}
