//! What is read with each sample besides the stack: functions that come and go, and the time of the request.

use crate::attach::Php;
use crate::executor::Executor;
use crate::function::Header;
use crate::layout::{Layout, fixed};
use crate::remote::{moved, u64_at};
use crate::snapshot::Extra;

/// More functions that come and go than these are not looked at in one sample.
const MOST: usize = 256;

/// A function in which no stack of so many samples was is no longer watched.
const IDLE_SAMPLES: u32 = 8;

/// As many bytes of a function's instructions as are compared.
const OPS_COMPARED: usize = 4096;

/// A function that comes and goes.
#[derive(Debug)]
pub(crate) struct Watch {
    function: Extra,
    /// Its first instructions; empty if they stand in memory that is not used again.
    ops: Extra,
    idle: u32,
}

impl Watch {
    /// What was read of it.
    pub(crate) fn header(&self, layout: &Layout) -> Option<Header> {
        Header::parse(&self.function.bytes, layout)
    }

    /// Its first instructions as they were read.
    pub(crate) fn ops(&self) -> &[u8] {
        &self.ops.bytes
    }

    /// Whether the instructions that were read are `wanted`, which are read from now on.
    pub(crate) fn aim_at(&mut self, wanted: Option<(u64, usize)>) -> bool {
        let (address, length) = wanted.unwrap_or_default();
        let length = length.min(OPS_COMPARED);
        if (self.ops.address, self.ops.bytes.len()) == (address, length) {
            return true;
        }
        self.ops.address = address;
        self.ops.bytes.resize(length, 0);
        false
    }
}

/// Everything that is read with each sample.
#[derive(Debug)]
pub(crate) struct Watches {
    request_time: Extra,
    last_request_time: Option<u64>,
    functions: Vec<Watch>,
}

impl Default for Watches {
    fn default() -> Self {
        let request_time = Extra { address: 0, bytes: Vec::new() };
        Self { request_time, last_request_time: None, functions: Vec::new() }
    }
}

impl Watches {
    /// Looks at the requests of `executor`.
    pub(crate) fn aim(&mut self, php: &Php, executor: &Executor) {
        let Some(sapi) = executor.sapi.filter(|_| php.identity.sapi != "cli") else { return };
        self.request_time.address = moved(sapi, php.layout.sapi_request_time);
        self.request_time.bytes.resize(8, 0);
    }

    /// Everything that is to be read.
    pub(crate) fn extras(&mut self) -> impl Iterator<Item = &mut Extra> {
        let functions = self.functions.iter_mut();
        let functions = functions.flat_map(|watch| [&mut watch.function, &mut watch.ops]);
        let all = std::iter::once(&mut self.request_time).chain(functions);
        all.filter(|extra| !extra.bytes.is_empty())
    }

    /// Whether the request began at another time than the one before.
    pub(crate) fn is_other_request(&mut self) -> bool {
        let time = u64_at(&self.request_time.bytes, 0);
        std::mem::replace(&mut self.last_request_time, time) != time
    }

    /// The function at `address`, if it was read with the frames.
    pub(crate) fn of(&mut self, address: u64) -> Option<&mut Watch> {
        let watch = self.functions.iter_mut().find(|watch| watch.function.address == address)?;
        watch.idle = 0;
        Some(watch)
    }

    /// Has the function at `address` read from now on; `false` if there are too many.
    pub(crate) fn add(&mut self, address: u64) -> bool {
        let has_room = self.functions.len() < MOST;
        if has_room {
            let function = Extra { address, bytes: vec![0; fixed::FUNCTION_SIZE] };
            self.functions.push(Watch { function, ops: Extra { address: 0, bytes: Vec::new() }, idle: 0 });
        }
        has_room
    }

    /// Says that a sample is done: forgets what stacks are no longer in.
    pub(crate) fn grow_older(&mut self) {
        for watch in &mut self.functions {
            watch.idle += 1;
        }
        self.functions.retain(|watch| watch.idle <= IDLE_SAMPLES);
    }

    /// Forgets all functions.
    pub(crate) fn clear(&mut self) {
        self.functions.clear();
    }
}
