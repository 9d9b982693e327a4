//! The location of the state of PHP's executors: one for the process, or one for each thread.

use borehole_process::{Memory, Symbols, Target};

use crate::attach::Php;
use crate::error::{Error, ErrorKind};
use crate::release::Threads;
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

/// How to find the executors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In global variables.
    Global { executor: u64, sapi: Option<u64>, compiler: Option<u64> },
    /// In a block for each thread, whose address is at an offset from the thread pointer.
    PerThread { block_pointer: i64, executor: u64, sapi: Option<u64>, compiler: Option<u64> },
}

impl Place {
    /// Finds the state of the PHP with these symbols.
    pub(crate) fn find(memory: &impl Memory, symbols: &Symbols, threads: Threads) -> Result<Self, Error> {
        match threads {
            Threads::One => Self::global(symbols),
            Threads::Many => Self::per_thread(memory, symbols),
        }
    }

    fn global(symbols: &Symbols) -> Result<Self, Error> {
        let address = |name: &str| symbols.find(name).map(|symbol| symbol.address);
        let executor = address("executor_globals").ok_or_else(|| missing("executor_globals"))?;
        Ok(Self::Global { executor, sapi: address("sapi_globals"), compiler: address("compiler_globals") })
    }

    fn per_thread(memory: &impl Memory, symbols: &Symbols) -> Result<Self, Error> {
        let offset = |name: &str| {
            let symbol = symbols.find(name).ok_or_else(|| missing(name))?;
            memory.read_u64(symbol.address).map_err(|error| Error::reading(name, error))
        };
        let code = symbols.find(BLOCK_OFFSET).ok_or_else(|| missing(BLOCK_OFFSET))?;
        Ok(Self::PerThread {
            block_pointer: block_pointer(memory, code.address)?,
            executor: offset("executor_globals_offset")?,
            sapi: offset("sapi_globals_offset").ok(),
            compiler: offset("compiler_globals_offset").ok(),
        })
    }
}

/// The function that returns the offset, from the thread pointer, of the pointer to a thread's block.
const BLOCK_OFFSET: &str = "tsrm_get_ls_cache_tcb_offset";

fn missing(symbol: &str) -> Error {
    Error::new(ErrorKind::UnsupportedVersion, format!("unsupported build of PHP: missing symbol {symbol}"))
}

/// Reads the return value of [`BLOCK_OFFSET`] from its machine code: `mov rax, imm32` in a program, `mov rax, [rip+rel32]` in a
/// library, either of them after `endbr64` if the compiler was told to add it.
fn block_pointer(memory: &impl Memory, function: u64) -> Result<i64, Error> {
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
            let what = format!(
                "unsupported build of PHP: expected {BLOCK_OFFSET} to return a number, found {code:x?}"
            );
            Err(Error::new(ErrorKind::UnsupportedVersion, what))
        }
    }
}

impl Php {
    /// The current executors: one, or one for each thread that serves requests.
    ///
    /// # Errors
    /// If the process is gone, or none of its threads has a known executor and one of them cannot be read.
    pub fn executors(&self, target: &impl Target) -> Result<Vec<Executor>, Error> {
        match self.place {
            Place::Global { executor, sapi, compiler } => {
                Ok(vec![Executor { thread: None, globals: executor, sapi, compiler }])
            }
            Place::PerThread { block_pointer, executor, sapi, compiler } => {
                let (mut executors, mut refused) = (Vec::new(), None);
                for thread in target.threads()? {
                    let pointer = match target.thread_pointer(thread) {
                        Ok(pointer) => pointer,
                        Err(error) => {
                            refused = Some(error)
                                .filter(|error| error.kind() != borehole_process::ErrorKind::Gone)
                                .or(refused);
                            continue;
                        }
                    };
                    // Threads that serve no requests have no block.
                    let block =
                        target.read_u64(pointer.wrapping_add_signed(block_pointer)).unwrap_or_default();
                    if block != 0 {
                        let at = |offset: u64| block.wrapping_add(offset);
                        let (globals, sapi, compiler) = (at(executor), sapi.map(at), compiler.map(at));
                        executors.push(Executor { thread: Some(thread), globals, sapi, compiler });
                    }
                }
                match refused {
                    Some(error) if executors.is_empty() => {
                        Err(Error::reading("cannot look where threads keep their state", error))
                    }
                    _ => Ok(executors),
                }
            }
        }
    }
}
