//! The location of the state of PHP's executors: one for the process, or one for each thread.

use borehole_process::{ElfSymbols, ForeignMemory, ForeignProcess};

use crate::error::{Error, ErrorKind};
use crate::release::ThreadModel;
use crate::remote::{moved, u32_at};

/// The state of one executor, where the walk of a stack starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executor {
    /// Its thread; `None` if PHP has one executor for the whole process.
    pub thread: Option<i32>,
    /// The address of its `zend_executor_globals`.
    pub globals: u64,
    /// The address of its `sapi_globals_struct`.
    pub(crate) sapi: Option<u64>,
    /// The address of its `zend_compiler_globals`.
    pub(crate) compiler: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecutorLocation {
    /// The offset, from the thread pointer, of the pointer to a thread's block, which contains the state; `None`: the state
    /// is in global variables.
    block_pointer: Option<i64>,
    /// The addresses, or the offsets in the block.
    executor: u64,
    sapi: Option<u64>,
    compiler: Option<u64>,
}

impl ExecutorLocation {
    /// Finds the state of the PHP with these symbols.
    pub(crate) fn find(
        memory: &impl ForeignMemory,
        symbols: &ElfSymbols,
        threads: ThreadModel,
    ) -> Result<Self, Error> {
        let address =
            |name: &str| symbols.find(name).map(|symbol| symbol.address).ok_or_else(|| missing(name));
        let offset =
            |name: &str| memory.read_u64(address(name)?).map_err(|error| Error::reading(name, error));
        Ok(match threads {
            ThreadModel::One => Self {
                block_pointer: None,
                executor: address("executor_globals")?,
                sapi: address("sapi_globals").ok(),
                compiler: address("compiler_globals").ok(),
            },
            ThreadModel::Many => Self {
                block_pointer: Some(block_pointer(memory, address(BLOCK_OFFSET)?)?),
                executor: offset("executor_globals_offset")?,
                sapi: offset("sapi_globals_offset").ok(),
                compiler: offset("compiler_globals_offset").ok(),
            },
        })
    }

    /// The address of the block with the state of `executor`; `None` if the state is in global variables.
    pub(crate) fn block_of(&self, executor: &Executor) -> Option<u64> {
        self.block_pointer.map(|_| executor.globals.wrapping_sub(self.executor))
    }

    pub(crate) fn executors(&self, target: &impl ForeignProcess) -> Result<Vec<Executor>, Error> {
        let Self { block_pointer, executor, sapi, compiler } = *self;
        let Some(block_pointer) = block_pointer else {
            return Ok(vec![Executor { thread: None, globals: executor, sapi, compiler }]);
        };
        let (mut executors, mut refused) = (Vec::new(), None);
        for thread in target.threads()? {
            let pointer = match target.thread_pointer(thread) {
                Ok(pointer) => pointer,
                Err(error) => {
                    let is_gone = error.kind() == borehole_process::ErrorKind::Gone;
                    refused = if is_gone { refused } else { Some(error) };
                    continue;
                }
            };
            // Threads that serve no requests have no block.
            let block = target.read_u64(pointer.wrapping_add_signed(block_pointer)).unwrap_or_default();
            if block != 0 {
                let at = |offset: u64| block.wrapping_add(offset);
                let (globals, sapi, compiler) = (at(executor), sapi.map(at), compiler.map(at));
                executors.push(Executor { thread: Some(thread), globals, sapi, compiler });
            }
        }
        match refused {
            Some(error) if executors.is_empty() => {
                Err(Error::reading("cannot find the state of PHP's threads", error))
            }
            _ => Ok(executors),
        }
    }
}

/// The function that returns the offset, from the thread pointer, of the pointer to a thread's block.
const BLOCK_OFFSET: &str = "tsrm_get_ls_cache_tcb_offset";

fn missing(symbol: &str) -> Error {
    Error::new(ErrorKind::UnsupportedVersion, format!("unsupported PHP build: missing symbol {symbol}"))
}

/// Reads the return value of [`BLOCK_OFFSET`] from its machine code: `mov rax, imm32` in a program, `mov rax, [rip+rel32]` in a
/// library, either of them after `endbr64` if the compiler was told to add it.
fn block_pointer(memory: &impl ForeignMemory, function: u64) -> Result<i64, Error> {
    let mut code = [0; 16];
    memory.read(function, &mut code).map_err(|error| Error::reading(BLOCK_OFFSET, error))?;
    let skipped = if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
    let number = u32_at(&code, skipped + 3).unwrap_or_default().cast_signed();
    match &code[skipped..skipped + 3] {
        [0x48, 0xc7, 0xc0] => Ok(i64::from(number)),
        [0x48, 0x8b, 0x05] => {
            let next = moved(function, skipped + 7);
            let slot = next.wrapping_add_signed(i64::from(number));
            let value = memory.read_u64(slot).map_err(|error| Error::reading(BLOCK_OFFSET, error))?;
            Ok(value.cast_signed())
        }
        _ => {
            let what =
                format!("unsupported PHP build: expected {BLOCK_OFFSET} to return a number, found {code:x?}");
            Err(Error::new(ErrorKind::UnsupportedVersion, what))
        }
    }
}
