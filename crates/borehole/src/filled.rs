//! Gives functions to the addresses of profiles.

use std::io::BufReader;

#[cfg(feature = "otlp")]
use borehole_formats::otlp;
#[cfg(feature = "pprof")]
use borehole_formats::pprof;
use borehole_formats::{AddressSymbols, ErrorKind, FilledAddresses, Position, ReadError};
use borehole_wire::envelope::Envelope;

use crate::{Error, Format, Input};

impl Input {
    /// Copies a profile, without compression, and gives functions and lines to addresses that have none. Nothing else changes.
    ///
    /// # Errors
    /// If the input is damaged, takes more memory than allowed, or is of a format other than `pprof` and `otlp`.
    pub fn fill_symbols(self, symbols: &mut dyn AddressSymbols) -> Result<(Vec<u8>, FilledAddresses), Error> {
        let (name, format, limits) = (self.name().to_owned(), self.format(), self.limits());
        let input = BufReader::new(Envelope::new(self.into_bytes()));
        let filled = match format {
            #[cfg(feature = "pprof")]
            Format::Pprof => pprof::fill_symbols(input, &limits, symbols),
            #[cfg(feature = "otlp")]
            Format::Otlp => otlp::fill_symbols(input, &limits, symbols),
            other => {
                let message = "unsupported: expected a profile with addresses, of format pprof or otlp";
                let kind = ErrorKind::Unsupported;
                Err(borehole_formats::Error::new(kind, other.name(), Position::Whole, message))
            }
        };
        filled.map_err(|error| Error::reading(&name, ReadError::Input(error)))
    }
}
