//! `borehole explore --diagnose`: the bytes that the terminal sends.

use std::io::{self, Write as _};

use super::terminal::{RawKeys, RawTerminal};

/// Prints what the terminal sends as hexadecimal digits, until q or Ctrl-C.
pub(super) fn run() -> io::Result<()> {
    let mut raw = RawTerminal::enter(RawKeys::All, &[])?;
    let mut out = io::stdout().lock();
    write!(out, "press keys; q quits\r\n")?;
    loop {
        out.flush()?;
        let bytes = raw.read(std::time::Duration::from_millis(100))?;
        if crate::interrupt::requested() {
            return Ok(());
        }
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { continue };
        let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        write!(out, "{}  \"{}\"\r\n", hex.join(" "), borehole_text::printable(&bytes))?;
        if bytes == b"q" || bytes == b"\x03" {
            return out.flush();
        }
    }
}
