//! The requests to end.

use std::io;
use std::sync::Weak;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::recording::Recording;

/// Completes a recording on the first signal, and then does what the signal asks for.
pub(crate) fn finish_on_signals(recording: Weak<Recording>, patience: Duration) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let obey = move || {
        for signal in signals.forever() {
            if let Some(recording) = recording.upgrade() {
                recording.stop(patience);
            }
            // An error would mean that the signal is none of those above.
            let _ = emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("borehole-signals".to_owned()).spawn(obey)?;
    Ok(())
}
