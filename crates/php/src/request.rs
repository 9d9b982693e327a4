//! The request that a worker serves.

use borehole_process::ForeignMemory;

use crate::attach::Php;
use crate::error::Error;
use crate::executor::Executor;
use crate::layout::fixed;
use crate::remote::{self, u64_at};

/// The request that an executor serves. For a command-line program, only the script is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedRequest {
    /// `GET`, `POST`, …
    pub method: Option<Vec<u8>>,
    /// The requested path with the query.
    ///
    /// Until code of the request has used `$_SERVER`, only the server's name of the script is known.
    pub uri: Option<Vec<u8>>,
    /// The query: the part after the question mark.
    pub query: Option<Vec<u8>>,
    /// The path of the script.
    pub script: Option<Vec<u8>>,
    /// The start of the request in seconds since 1970; `None` if PHP has not read the clock yet.
    pub time_unix_s: Option<f64>,
}

impl Php {
    /// The request that `executor` serves; `None` if it serves none, or its place is unknown.
    ///
    /// # Errors
    /// If the process is gone or may no longer be read.
    pub fn request(
        &self,
        memory: &impl ForeignMemory,
        executor: &Executor,
    ) -> Result<Option<ServedRequest>, Error> {
        let Some(sapi) = executor.sapi else { return Ok(None) };
        let time = self.layout.sapi_request_time;
        let mut state = vec![0; time + 8];
        if remote::mapped(memory.read(sapi, &mut state))?.is_none() {
            return Ok(None);
        }
        let text = |offset| match u64_at(&state, offset) {
            None | Some(0) => Ok(None),
            Some(address) => remote::mapped(remote::c_string(memory, address)),
        };
        let seconds = f64::from_bits(u64_at(&state, time).unwrap_or_default());
        let request = ServedRequest {
            method: text(fixed::SAPI_METHOD)?,
            uri: match remote::mapped(asked_for(memory, executor))?.flatten() {
                Some(uri) => Some(uri),
                None => text(fixed::SAPI_URI)?,
            },
            query: text(fixed::SAPI_QUERY)?,
            script: text(fixed::SAPI_SCRIPT)?,
            time_unix_s: (seconds.is_finite() && seconds > 0.0).then_some(seconds),
        };
        Ok((request != ServedRequest::default()).then_some(request))
    }
}

/// The maximum number of entries searched; the entries that PHP adds itself come first.
const LOOKED_AT: usize = 256;

/// `$_SERVER['REQUEST_URI']`, if it exists.
fn asked_for(
    memory: &impl ForeignMemory,
    executor: &Executor,
) -> Result<Option<Vec<u8>>, borehole_process::Error> {
    let variables = remote::moved(executor.globals, fixed::EXECUTOR_VARIABLES);
    let Some(server) = entry(memory, variables, b"_SERVER", fixed::KIND_ARRAY)? else { return Ok(None) };
    match entry(memory, server, b"REQUEST_URI", fixed::KIND_STRING)? {
        Some(uri) => remote::string(memory, uri).map(Some),
        None => Ok(None),
    }
}

/// The value named `name`, of type `kind`, in the hash table at `table`.
fn entry(
    memory: &impl ForeignMemory,
    table: u64,
    name: &[u8],
    kind: u8,
) -> Result<Option<u64>, borehole_process::Error> {
    let hash = remote::hash(name);
    let found = remote::buckets(memory, table, LOOKED_AT)?.into_iter().find(|bucket| bucket.hash == hash);
    Ok(found.filter(|bucket| bucket.kind == kind && bucket.key != 0).map(|bucket| bucket.pointer))
}
