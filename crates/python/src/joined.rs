//! Joins the stack of a running task to those of the tasks that await it.

use borehole_model::{StackId, Tables};
use borehole_process::{ForeignMemory, ForeignProcess};

use crate::error::Error;
use crate::task_layout::TaskLayout;
use crate::tasks::TaskIndex;
use crate::threads::PythonThread;
use crate::walker::{Instruction, SampledTasks, StackWalker, resolve};

/// The tasks in one stack, each awaited by the next.
const MOST_AWAITERS: usize = 1 << 8;

impl StackWalker {
    /// Finds where asyncio keeps its tasks, if they are to be shown. Returns whether that is still to be found, because the
    /// program has not loaded asyncio. The mappings of `target` must be current.
    ///
    /// # Errors
    /// If the process cannot be read.
    pub fn find_tasks(&mut self, target: &impl ForeignProcess) -> Result<bool, Error> {
        if self.options.tasks == SampledTasks::None || self.tasks.is_some() {
            return Ok(false);
        }
        let layout = TaskLayout::find(target, self.python.identity, &self.python.layout.object)?;
        self.tasks = layout.map(|layout| TaskIndex::new(layout, self.options.task_names));
        Ok(self.tasks.is_none())
    }

    /// Reads the tasks of these threads. To be called once for each point in time. Returns whether tasks were left out because
    /// too many had changed; the next call reads more of them.
    ///
    /// # Errors
    /// If the process is gone, or the tables are full.
    pub fn scan_tasks(
        &mut self,
        memory: &impl ForeignMemory,
        threads: &[PythonThread],
        tables: &mut Tables,
    ) -> Result<bool, Error> {
        let Some(tasks) = &mut self.tasks else { return Ok(false) };
        tasks.begin();
        if self.options.tasks == SampledTasks::All || tasks.needs_scan() {
            tasks.scan(memory, &self.python, threads, tables)?;
        }
        Ok(tasks.is_cut)
    }

    /// The stacks of the tasks of `thread` that wait, each joined to the tasks that await it. A task that awaits another one is
    /// in the stack of that one only. To be called behind [`StackWalker::sample`] of the thread.
    ///
    /// # Errors
    /// If the process is gone, or the tables are full.
    pub fn suspended(
        &mut self,
        memory: &impl ForeignMemory,
        thread: &PythonThread,
        tables: &mut Tables,
    ) -> Result<Vec<StackId>, Error> {
        let Some(tasks) = self.tasks.as_ref().filter(|_| self.options.tasks == SampledTasks::All) else {
            return Ok(Vec::new());
        };
        let runs = |frame: u64| self.chain.frames.iter().any(|running| running.address == frame);
        let waiting = tasks.waiting_of(thread.state).filter(|(_, task)| !runs(task.coroutine_frame));
        let waiting: Vec<u64> = waiting.map(|(address, _)| address).collect();
        let mut stacks = Vec::new();
        for task in waiting {
            stacks.extend(self.stack_of(memory, task, tables)?);
        }
        Ok(stacks)
    }

    /// Cuts the sampled stack behind the frames of the running task, and returns the stack below them; `None` if no task runs.
    pub(crate) fn join(
        &mut self,
        memory: &impl ForeignMemory,
        thread: &PythonThread,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        let Some(tasks) = &mut self.tasks else { return Ok(None) };
        let Some(running) = tasks.running(memory, &self.python, (thread, &self.chain.frames), tables)? else {
            return Ok(None);
        };
        self.chain.frames.truncate(running.outermost + 1);
        let below = self.stack_of(memory, running.awaiter, tables)?;
        Ok(Some(tables.intern_stack(below, running.marker)?))
    }

    /// The stack of the task at `address`, on those of the tasks that await it; `None` if there is no such task.
    fn stack_of(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        let Some(tasks) = &mut self.tasks else { return Ok(None) };
        let (mut chain, mut next) = (Vec::new(), address);
        while next != 0 && chain.len() < MOST_AWAITERS && !chain.contains(&next) {
            if tasks.current(memory, &self.python.layout, next, tables)?.is_none() {
                break;
            }
            chain.push(next);
            next = tasks.awaiter_of(next);
        }
        let mut stack = None;
        for task in chain.into_iter().rev() {
            stack = self.with_task(memory, stack, task, tables)?;
        }
        Ok(stack)
    }

    /// The stack `below` with a task on it.
    fn with_task(
        &mut self,
        memory: &impl ForeignMemory,
        below: Option<StackId>,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        let Self { python, codes, tasks: Some(tasks), .. } = self else { return Ok(below) };
        let Some(task) = tasks.known.get_mut(&address) else { return Ok(below) };
        if let Some((known_below, generation, stack)) = task.stack
            && (known_below, generation) == (below, codes.generation)
        {
            return Ok(Some(stack));
        }
        let mut stack = tables.intern_stack(below, task.marker)?;
        for frame in task.frames.iter().rev() {
            let Some((code, offset)) = resolve(memory, &python.layout, codes, frame, tables)? else { break };
            if !codes.is_shim(code) {
                let at = Instruction { offset, opcode: None };
                let frame = codes.frame((code, at), python, None, tables)?;
                stack = tables.intern_stack(Some(stack), frame)?;
            }
        }
        task.stack = Some((below, codes.generation, stack));
        Ok(Some(stack))
    }
}
