//! What a worker is being asked for.

use borehole_process::Memory;

use crate::attach::Php;
use crate::error::Error;
use crate::executor::Executor;
use crate::function::unmapped_as_none;
use crate::layout::fixed;
use crate::remote::{self, u64_at};

/// The request that an executor serves; of a command-line program only the script is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: Option<Vec<u8>>,
    /// The path that was asked for.
    pub uri: Option<Vec<u8>>,
    /// What stands behind the question mark.
    pub query: Option<Vec<u8>>,
    /// The file of the script.
    pub script: Option<Vec<u8>>,
    /// When it began, in seconds since 1970; `None` if PHP has had no reason yet to look at the clock.
    pub time_unix_s: Option<f64>,
}

impl Php {
    /// The request that `executor` serves; `None` if it serves none, or where that stands is not known.
    ///
    /// # Errors
    /// When the process is gone or may no longer be read.
    pub fn request(&self, memory: &impl Memory, executor: &Executor) -> Result<Option<Request>, Error> {
        let Some(sapi) = executor.sapi else { return Ok(None) };
        let time = self.layout.sapi_request_time;
        let mut state = vec![0; time + 8];
        if unmapped_as_none(memory.read(sapi, &mut state))?.is_none() {
            return Ok(None);
        }
        let text = |offset| match u64_at(&state, offset) {
            None | Some(0) => Ok(None),
            Some(address) => unmapped_as_none(remote::c_string(memory, address)),
        };
        let seconds = f64::from_bits(u64_at(&state, time).unwrap_or_default());
        let request = Request {
            method: text(fixed::SAPI_METHOD)?,
            uri: text(fixed::SAPI_URI)?,
            query: text(fixed::SAPI_QUERY)?,
            script: text(fixed::SAPI_SCRIPT)?,
            time_unix_s: (seconds.is_finite() && seconds > 0.0).then_some(seconds),
        };
        Ok((request != Request::default()).then_some(request))
    }
}
