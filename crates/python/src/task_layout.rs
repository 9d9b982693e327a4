//! Where asyncio keeps its tasks.
//!
//! Source of the tables: the objects of running interpreters (3.8.18 to 3.13.0), whose words were compared with what the tasks
//! say about themselves. From 3.14 on, the module `_asyncio` states the layout.

use borehole_process::{ForeignMemory, ForeignProcess, mapped, moved, u64_at};

use crate::error::Error;
use crate::object_layout::ObjectLayout;
use crate::release::{PythonBuild, PythonIdentity};

/// `TaskObj` of the module `_asyncio`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskLayout {
    /// The number of bytes to read.
    pub(crate) size: usize,
    pub(crate) coroutine: usize,
    /// A text, or a number if nobody has named it.
    pub(crate) name: usize,
    pub(crate) links: TaskLinks,
}

/// How tasks are found, and who awaits them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskLinks {
    /// Tasks say what they wait for, and sets in the module `asyncio.tasks` hold them. Up to 3.13.
    Waiting {
        /// `task_fut_waiter`.
        waiter: usize,
        /// `task_callback0`, which a group of tasks sets.
        callback: usize,
        /// `task_loop`.
        event_loop: usize,
    },
    /// Tasks say who awaits them, and each thread lists its own. From 3.14 on.
    Awaited(AwaitedLinks),
}

/// The places of the links between tasks, from 3.14 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedLinks {
    /// A task or future, or a set of them.
    pub(crate) awaited_by: usize,
    /// A byte.
    pub(crate) is_set: usize,
    /// A byte: whether it is a task, and not just a future.
    pub(crate) is_task: usize,
    /// The node of the list, which begins with the address of the next one.
    pub(crate) node: usize,
    /// The list, in the state of a thread.
    pub(crate) thread_head: usize,
    /// The running task, in the state of a thread.
    pub(crate) running: usize,
}

/// Tasks take less than this in each release.
const LARGEST_TASK: usize = 512;

/// States of interpreters and threads take less.
const LARGEST_STATE: usize = 1 << 20;

/// The section with the layout.
const SECTION: &str = ".AsyncioDebug";

impl TaskLayout {
    /// The layout in `target`; `None` if the program has not loaded the module yet. The mappings of `target` must be current.
    ///
    /// # Errors
    /// If the process cannot be read.
    pub(crate) fn find(
        target: &impl ForeignProcess,
        identity: PythonIdentity,
        object: &ObjectLayout,
    ) -> Result<Option<Self>, Error> {
        if identity.version.minor < 14 {
            return Ok(Some(Self::tabled(identity, object.header)));
        }
        for mapping in
            target.mappings().iter().filter(|mapping| mapping.file_offset == 0 && mapping.shows_file())
        {
            let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            if ![&b"_asyncio"[..], b"python", b"libpython"].iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let Ok(symbols) = target.symbols(mapping) else { continue };
            if let Some(section) = symbols.find(SECTION) {
                return Ok(Self::stated(target, section.address)?);
            }
        }
        Ok(None)
    }

    fn tabled(identity: PythonIdentity, header: usize) -> Self {
        // The places of the waiter, the coroutine and the name, behind the header.
        let [waiter, coroutine, name] = match (identity.version.minor, identity.build) {
            (8, _) => [88, 96, 104],
            (9, _) => [128, 136, 144],
            (10, _) => [136, 144, 152],
            (11 | 12, _) => [112, 120, 128],
            (_, PythonBuild::Gil | PythonBuild::FreeThreaded) => [96, 104, 112],
        };
        let links = TaskLinks::Waiting { waiter: header + waiter, callback: header + 8, event_loop: header };
        Self { size: header + name + 8, coroutine: header + coroutine, name: header + name, links }
    }

    /// The layout that the module states.
    ///
    /// Source: CPython 3.14 and 3.15, `Modules/_asynciomodule.c`, `Py_AsyncioModuleDebugOffsets`: thirteen numbers.
    fn stated(memory: &impl ForeignMemory, address: u64) -> Result<Option<Self>, borehole_process::Error> {
        let mut bytes = [0; 8 * 13];
        if mapped(memory.read(moved(address, 0), &mut bytes))?.is_none() {
            return Ok(None);
        }
        let mut numbers = [0; 13];
        for (index, place) in numbers.iter_mut().enumerate() {
            let limit = if index < 7 { LARGEST_TASK } else { LARGEST_STATE };
            let number = u64_at(&bytes, 8 * index).and_then(|number| usize::try_from(number).ok());
            let Some(number) = number.filter(|&number| number < limit) else { return Ok(None) };
            *place = number;
        }
        let [size, name, awaited_by, is_task, is_set, coroutine, node, rest @ ..] = numbers;
        let [_, _, _, _, running, thread_head] = rest;
        let links = AwaitedLinks { awaited_by, is_set, is_task, node, thread_head, running };
        Ok(Some(Self { size, coroutine, name, links: TaskLinks::Awaited(links) }))
    }
}
