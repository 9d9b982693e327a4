//! What is read with each sample besides the stack: functions that come and go, and when the request began.

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
    /// What both were when they were last found to be a function, its number, and of which generation that is.
    before: Option<Before>,
    idle: u32,
}

/// See [`Watch`].
#[derive(Debug)]
struct Before {
    function: Vec<u8>,
    ops: Vec<u8>,
    generation: u64,
    number: usize,
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

    /// The function that it was before, if it is still the same.
    pub(crate) fn same_as_before(&self, generation: u64) -> Option<usize> {
        let before = self.before.as_ref().filter(|before| before.generation == generation)?;
        (before.function == self.function.bytes && before.ops == self.ops.bytes).then_some(before.number)
    }

    /// Says which function it is.
    pub(crate) fn remember(&mut self, generation: u64, number: usize) {
        let (function, ops) = (self.function.bytes.clone(), self.ops.bytes.clone());
        self.before = Some(Before { function, ops, generation, number });
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

/// When the request of an executor began, read with each sample: another time is another request.
#[derive(Debug)]
pub(crate) struct RequestWatch {
    time: Option<Extra>,
    last: Option<u64>,
}

impl RequestWatch {
    /// Looks at the requests of `executor`. A program of the command line has only one.
    pub(crate) fn new(php: &Php, executor: &Executor) -> Self {
        let sapi = executor.sapi.filter(|_| php.identity.sapi != "cli");
        let time = |sapi| Extra { address: moved(sapi, php.layout.sapi_request_time), bytes: vec![0; 8] };
        Self { time: sapi.map(time), last: None }
    }

    /// What is to be read.
    pub(crate) fn extra(&mut self) -> Option<&mut Extra> {
        self.time.as_mut()
    }

    /// Whether the request began at another time than the one before.
    pub(crate) fn has_changed(&mut self) -> bool {
        let time = self.time.as_ref().and_then(|time| u64_at(&time.bytes, 0));
        std::mem::replace(&mut self.last, time) != time
    }
}

/// The functions that are read with each sample.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    functions: Vec<Watch>,
}

impl Watches {
    /// Everything that is to be read.
    pub(crate) fn extras(&mut self) -> impl Iterator<Item = &mut Extra> {
        let all = self.functions.iter_mut().flat_map(|watch| [&mut watch.function, &mut watch.ops]);
        all.filter(|extra| !extra.bytes.is_empty())
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
            self.functions.push(Watch {
                function,
                ops: Extra { address: 0, bytes: Vec::new() },
                before: None,
                idle: 0,
            });
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
