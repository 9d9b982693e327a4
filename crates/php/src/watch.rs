//! The memory read with each sample besides the stack: functions that come and go, and the start time of the request.

use crate::attach::Php;
use crate::executor::Executor;
use crate::function::FunctionIdentity;
use crate::heap::layout::HeapLayout;
use crate::layout::{Layout, fixed};
use crate::remote::{moved, u64_at};
use crate::snapshot::{Extra, Snapshot};

/// The maximum number of functions that come and go read in one sample.
const MOST: usize = 256;

/// A function that has been in no stack for this number of samples is no longer watched.
const IDLE_SAMPLES: u32 = 8;

/// The maximum number of bytes of a function's instructions that are compared.
const OPS_COMPARED: usize = 4096;

/// A watched function, which may come and go.
#[derive(Debug)]
pub(crate) struct Watch {
    function: Extra,
    /// Its first instructions; empty if they are in memory that is never reused.
    ops: Extra,
    /// Both contents when they were last identified as a function, with its number and generation.
    before: Option<Before>,
    idle: u32,
}

/// The last identification of a watched function; see [`Watch`].
#[derive(Debug)]
struct Before {
    function: Vec<u8>,
    ops: Vec<u8>,
    generation: u64,
    number: usize,
}

impl Watch {
    pub(crate) fn header(&self, layout: &Layout) -> Option<FunctionIdentity> {
        FunctionIdentity::parse(&self.function.bytes, layout)
    }

    pub(crate) fn ops(&self) -> &[u8] {
        &self.ops.bytes
    }

    /// The number of the function at the last identification, if it is unchanged.
    pub(crate) fn same_as_before(&self, generation: u64) -> Option<usize> {
        let before = self.before.as_ref().filter(|before| before.generation == generation)?;
        (before.function == self.function.bytes && before.ops == self.ops.bytes).then_some(before.number)
    }

    pub(crate) fn remember(&mut self, generation: u64, number: usize) {
        let (function, ops) = (self.function.bytes.clone(), self.ops.bytes.clone());
        self.before = Some(Before { function, ops, generation, number });
    }

    /// Whether the instructions that were read are those at `wanted`; these are read from now on.
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

/// Detects that an executor serves another request. It reads two values with each sample: the start time, known only if PHP was
/// asked for it, and the handle of the next object, which never decreases within a request.
#[derive(Debug)]
pub(crate) struct RequestWatch {
    time: Option<Extra>,
    last: Option<u64>,
    /// The offset of the next object's handle in the executor's state, if there is more than one request.
    next_object: Option<usize>,
    last_object: u64,
}

impl RequestWatch {
    /// Creates a watch of the requests of `executor`. A command-line program has only one.
    pub(crate) fn new(php: &Php, executor: &Executor) -> Self {
        let layout = &php.layout;
        let has_requests = php.identity.sapi != "cli";
        let time = |sapi| Extra { address: moved(sapi, layout.sapi_request_time), bytes: vec![0; 8] };
        let objects = HeapLayout::of(php.identity.release).executor_objects + fixed::OBJECTS_TOP;
        Self {
            time: executor.sapi.filter(|_| has_requests).map(time),
            last: None,
            next_object: has_requests.then_some(objects - layout.executor_stack_top),
            last_object: 0,
        }
    }

    pub(crate) fn extra(&mut self) -> Option<&mut Extra> {
        self.time.as_mut()
    }

    pub(crate) fn has_changed(&mut self, snapshot: &Snapshot) -> bool {
        let Some(next_object) = self.next_object else { return false };
        let time = self.time.as_ref().and_then(|time| u64_at(&time.bytes, 0));
        let began_again = std::mem::replace(&mut self.last, time) != time;
        // The upper half is the size of the table.
        let object = snapshot.state(next_object).unwrap_or_default() & u64::from(u32::MAX);
        std::mem::replace(&mut self.last_object, object) > object || began_again
    }
}

#[derive(Debug, Default)]
pub(crate) struct Watches {
    functions: Vec<Watch>,
}

impl Watches {
    pub(crate) fn extras(&mut self) -> impl Iterator<Item = &mut Extra> {
        let all = self.functions.iter_mut().flat_map(|watch| [&mut watch.function, &mut watch.ops]);
        all.filter(|extra| !extra.bytes.is_empty())
    }

    /// The function at `address`, if it was read together with the frames.
    pub(crate) fn of(&mut self, address: u64) -> Option<&mut Watch> {
        let watch = self.functions.iter_mut().find(|watch| watch.function.address == address)?;
        watch.idle = 0;
        Some(watch)
    }

    /// Reads the function at `address` and the instructions `ops` from now on; `false` if there are too many.
    pub(crate) fn add(&mut self, address: u64, ops: Option<(u64, usize)>) -> bool {
        if self.functions.len() >= MOST {
            return false;
        }
        let nothing = || Extra { address: 0, bytes: Vec::new() };
        let function = Extra { address, bytes: vec![0; fixed::FUNCTION_SIZE] };
        let mut watch = Watch { function, ops: nothing(), before: None, idle: 0 };
        watch.aim_at(ops);
        self.functions.push(watch);
        true
    }

    /// Ends a sample: forgets functions that are no longer in stacks.
    pub(crate) fn grow_older(&mut self) {
        for watch in &mut self.functions {
            watch.idle += 1;
        }
        self.functions.retain(|watch| watch.idle <= IDLE_SAMPLES);
    }

    pub(crate) fn clear(&mut self) {
        self.functions.clear();
    }
}
