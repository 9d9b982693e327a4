//! Gives functions to the addresses of profiles.

use std::io::BufReader;

#[cfg(feature = "otlp")]
use borehole_formats::otlp;
#[cfg(feature = "pprof")]
use borehole_formats::pprof;
use borehole_formats::{AddressSymbols, ErrorKind, FilledAddresses, Position, ReadError};
use borehole_wire::envelope::Envelope;

use crate::{Error, Format, Input, Outcome};
#[cfg(feature = "pprof")]
use crate::{Limits, Target, convert};

/// A profile whose addresses have been given functions.
#[derive(Debug)]
#[non_exhaustive]
pub struct FilledProfile {
    /// The profile, without compression.
    pub document: Vec<u8>,
    /// Its format.
    pub format: Format,
    /// The addresses that have functions now, and those that have not.
    pub addresses: FilledAddresses,
    /// The outcome of converting the input to this format, if it was of another one.
    pub converted: Option<Outcome>,
}

impl Input {
    /// Copies a profile and gives functions and lines to addresses that have none. Nothing else of `pprof` and `otlp` changes.
    /// Recordings that state the files of their addresses (`rbt`, `perf-data`, `perf-script`) become `pprof`.
    ///
    /// # Errors
    /// If the input is damaged, takes more memory than allowed, or is of another format.
    pub fn fill_symbols(self, symbols: &mut dyn AddressSymbols) -> Result<FilledProfile, Error> {
        let (name, format, limits) = (self.name().to_owned(), self.format(), self.limits());
        #[cfg(feature = "pprof")]
        if matches!(format, Format::Rbt | Format::PerfData | Format::PerfScript) {
            return self.fill_converted(&name, &limits, symbols);
        }
        let input = BufReader::new(Envelope::new(self.into_bytes()));
        let filled = match format {
            #[cfg(feature = "pprof")]
            Format::Pprof => pprof::fill_symbols(input, &limits, symbols),
            #[cfg(feature = "otlp")]
            Format::Otlp => otlp::fill_symbols(input, &limits, symbols),
            other => {
                let message = match other {
                    Format::Trc => {
                        "unsupported: a trace has the names that its program knew, and does not say which files its addresses are in"
                    }
                    _ => {
                        "unsupported: expected a profile that says which files its addresses are in, of format pprof, otlp, rbt, perf-data or perf-script"
                    }
                };
                let kind = ErrorKind::Unsupported;
                Err(borehole_formats::Error::new(kind, other.name(), Position::Whole, message))
            }
        };
        let filled = filled.map_err(|error| Error::reading(&name, ReadError::Input(error)));
        filled.map(|(document, addresses)| FilledProfile { document, format, addresses, converted: None })
    }

    #[cfg(feature = "pprof")]
    fn fill_converted(
        self,
        name: &str,
        limits: &Limits,
        symbols: &mut dyn AddressSymbols,
    ) -> Result<FilledProfile, Error> {
        let mut raw = Vec::new();
        let converted = convert([self], &Target::new(Format::Pprof), &mut raw)?;
        let input = BufReader::new(Envelope::new(&raw[..]));
        let filled = pprof::fill_symbols(input, limits, symbols);
        let (document, addresses) = filled.map_err(|error| Error::reading(name, ReadError::Input(error)))?;
        Ok(FilledProfile { document, format: Format::Pprof, addresses, converted: Some(converted) })
    }
}
