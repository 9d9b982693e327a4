//! The tasks of asyncio: which one runs, what the others wait in, and who awaits whom.
//!
//! A task that waits does not change. So what was read of it is remembered, and compared with the same memory at each point in
//! time, of all tasks in few calls. Only tasks that have changed are read anew, and no more than [`MOST_READ`] of them at a
//! time.

use borehole_model::{Frame, FrameId, StackId, Tables};
use borehole_process::{ForeignMemory, mapped, moved, u64_at};
use hashbrown::{HashMap, HashSet};

use crate::attach::Python;
use crate::chain::RawFrame;
use crate::containers::{attribute, dict, list, number, set};
use crate::coroutines::{AwaitedKind, AwaitedTypes, frame_of, waiting_frames};
use crate::error::Error;
use crate::layout::Layout;
use crate::noted::{NotedReads, NotingMemory};
use crate::objects::{integer, read_text};
use crate::task_layout::{AwaitedLinks, TaskLayout, TaskLinks};
use crate::threads::PythonThread;
use crate::watched::WatchedPlaces;

/// The tasks that are read anew at one point in time. Each takes some microseconds.
pub(crate) const MOST_READ: usize = 1 << 9;

/// The tasks that are known of a process.
const MOST_TASKS: usize = 1 << 17;

/// The tasks that are known while nothing lists them, because only running ones are asked for.
const MOST_UNLISTED: usize = 1 << 12;

/// The futures between a task and the one that awaits it.
const MOST_FUTURES: usize = 64;

/// The points in time until the sets of tasks are searched for again.
const SEARCH_PAUSE: u64 = 64;

/// The tasks that may be unlisted until all are listed anew.
const MOST_UNWATCHED: usize = 1 << 7;

/// The points in time until memory of tasks that are no more is left out.
const OLDEST_WATCH: u64 = 64;

/// The name of a task that nobody has named begins so, and ends in a number.
const UNNAMED: &[u8] = b"Task-";

/// Which names of tasks are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskNames {
    /// Those that the program gives. The numbers of all others would make each stack a distinct one.
    #[default]
    Given,
    /// All, including those that asyncio makes up.
    All,
}

/// How it is told whether a task has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// By comparing what was noted with the copies, which may not have all of it.
    Unlisted,
    /// So too, but its places are listed under its name.
    Listed,
    /// By comparing the copies alone: the last one had what was noted.
    Copied,
}

/// A task as it was read.
#[derive(Debug)]
pub(crate) struct KnownTask {
    noted: NotedReads,
    /// The point in time at which it was equal to what was noted.
    checked: u64,
    watch: Watch,
    /// The address of the frame of its coroutine.
    pub(crate) coroutine_frame: u64,
    /// The frames in which it waits, the innermost first.
    pub(crate) frames: Vec<RawFrame>,
    /// The frame that stands for it in a stack.
    pub(crate) marker: FrameId,
    /// The task that awaits it, as far as it says so itself; 0 for none.
    awaiter: u64,
    /// The futures and tasks that it waits for, where tasks say that instead.
    waits_for: Vec<u64>,
    event_loop: u64,
    /// The weak reference by which it was found; 0 for none.
    weakref: u64,
    /// The next node of its list.
    next: u64,
    /// The state of the thread that it belongs to; 0 if that is not known.
    pub(crate) thread: u64,
    /// Its stack, which is valid for this stack of the task that awaits it, and for one generation of code.
    pub(crate) stack: Option<(Option<StackId>, u64, StackId)>,
}

/// The task that a thread runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningTask {
    /// The index of the frame of its coroutine in the stack of the thread.
    pub(crate) outermost: usize,
    pub(crate) marker: FrameId,
    /// 0 for none.
    pub(crate) awaiter: u64,
}

/// Where an interpreter of 3.8 to 3.13 has its tasks.
#[derive(Clone, Copy, Debug, Default)]
struct TaskSets {
    /// The dict of running tasks, by event loop.
    running: u64,
    /// The set of weak references to all tasks.
    all: u64,
    /// When to search again, if they were not found.
    again: u64,
}

/// The tasks of a process.
#[derive(Debug)]
pub(crate) struct TaskIndex {
    layout: TaskLayout,
    names: TaskNames,
    pub(crate) known: HashMap<u64, KnownTask>,
    /// The tasks in the order of their lists.
    pub(crate) listed: Vec<u64>,
    /// The tasks by what they wait for.
    awaiters: HashMap<u64, u64>,
    /// The tasks that await others.
    pub(crate) awaiting: HashSet<u64>,
    types: AwaitedTypes,
    weakrefs: HashMap<u64, u64>,
    sets: HashMap<u64, TaskSets>,
    loops: HashMap<u64, u64>,
    now: u64,
    budget: usize,
    /// Whether tasks were left out at the last point in time.
    pub(crate) is_cut: bool,
    /// The memory of all tasks that were read.
    watched: WatchedPlaces,
    /// The tasks whose places are not listed there.
    unlisted: usize,
}

impl TaskIndex {
    pub(crate) fn new(layout: TaskLayout, names: TaskNames) -> Self {
        Self {
            layout,
            names,
            known: HashMap::new(),
            listed: Vec::new(),
            awaiters: HashMap::new(),
            awaiting: HashSet::new(),
            types: AwaitedTypes::default(),
            weakrefs: HashMap::new(),
            sets: HashMap::new(),
            loops: HashMap::new(),
            now: 0,
            budget: 0,
            is_cut: false,
            watched: WatchedPlaces::default(),
            unlisted: 0,
        }
    }

    /// Whether all tasks have to be read to know who awaits one.
    pub(crate) fn needs_scan(&self) -> bool {
        matches!(self.layout.links, TaskLinks::Waiting { .. })
    }

    /// Begins the next point in time.
    pub(crate) fn begin(&mut self) {
        self.now += 1;
        self.budget = MOST_READ;
        // A scan drops the tasks that are no more.
        if self.listed.is_empty() && self.known.len() > MOST_UNLISTED {
            self.known.clear();
        }
        self.is_cut = false;
    }

    /// Reads all tasks of these threads.
    pub(crate) fn scan(
        &mut self,
        memory: &impl ForeignMemory,
        python: &Python,
        threads: &[PythonThread],
        tables: &mut Tables,
    ) -> Result<(), Error> {
        self.compare(memory)?;
        self.listed.clear();
        match self.layout.links {
            TaskLinks::Awaited(links) => {
                for thread in threads {
                    let head = moved(thread.state, links.thread_head);
                    self.scan_list(memory, &python.layout, (head, thread.state), links, tables)?;
                }
            }
            TaskLinks::Waiting { .. } => {
                let interpreters: HashSet<u64> =
                    threads.iter().map(|thread| thread.interpreter_state).collect();
                for interpreter in interpreters {
                    self.scan_set(memory, python, (interpreter, threads), tables)?;
                }
            }
        }
        let listed: HashSet<u64> = self.listed.iter().copied().collect();
        self.known.retain(|task, _| listed.contains(task));
        self.weakrefs.retain(|_, task| listed.contains(task));
        self.note_awaiters();
        Ok(())
    }

    /// Compares all known tasks with the memory now.
    fn compare(&mut self, memory: &impl ForeignMemory) -> Result<(), Error> {
        let Self { known, watched, unlisted, now, .. } = self;
        if *unlisted > MOST_UNWATCHED || now.is_multiple_of(OLDEST_WATCH) {
            let whole = known.iter().filter(|(_, task)| task.noted.is_whole());
            *watched = WatchedPlaces::of(whole.map(|(&address, task)| (address, &task.noted)));
            known.values_mut().for_each(|task| task.watch = Watch::Listed);
        }
        let changed = watched.look(memory)?;
        *unlisted = 0;
        for (address, task) in known.iter_mut().filter(|(_, task)| task.noted.is_whole()) {
            let is_still = match task.watch {
                Watch::Copied => !changed.contains(address),
                Watch::Listed | Watch::Unlisted => task.noted.is_still(watched.copies()),
            };
            match task.watch {
                Watch::Unlisted => *unlisted += 1,
                _ if is_still => task.watch = Watch::Copied,
                _ => task.watch = Watch::Listed,
            }
            if is_still {
                task.checked = *now;
            }
        }
        Ok(())
    }

    fn scan_list(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        (head, thread): (u64, u64),
        links: AwaitedLinks,
        tables: &mut Tables,
    ) -> Result<(), Error> {
        let mut node = number(memory, head)?.unwrap_or_default();
        for _ in 0..MOST_TASKS {
            if node == 0 || node == head {
                break;
            }
            let task = node.wrapping_sub(links.node as u64);
            let Some(known) = self.current(memory, layout, task, tables)? else {
                self.is_cut = true;
                break;
            };
            known.thread = thread;
            node = known.next;
            self.listed.push(task);
        }
        Ok(())
    }

    fn scan_set(
        &mut self,
        memory: &impl ForeignMemory,
        python: &Python,
        (interpreter, threads): (u64, &[PythonThread]),
        tables: &mut Tables,
    ) -> Result<(), Error> {
        let layout = &python.layout;
        let TaskSets { all, .. } = self.sets(memory, python, interpreter)?;
        if all == 0 {
            return Ok(());
        }
        let Some(members) = set(memory, &layout.object, all)? else { return Ok(()) };
        for weakref in members.into_iter().take(MOST_TASKS) {
            let Some(task) = self.referent(memory, layout, weakref)? else { continue };
            let Some(known) = self.current_of(memory, layout, (task, weakref), tables)? else {
                self.is_cut = true;
                continue;
            };
            let event_loop = known.event_loop;
            let ident = self.ident_of(memory, layout, event_loop)?;
            let mut own = threads.iter().filter(|thread| thread.interpreter_state == interpreter);
            // The main thread is the last of the list.
            let main = own.clone().next_back();
            let thread =
                own.find(|thread| thread.library_id == ident).or(main).map_or(0, |thread| thread.state);
            if let Some(known) = self.known.get_mut(&task) {
                known.thread = thread;
            }
            self.listed.push(task);
        }
        Ok(())
    }

    /// The task to which a weak reference points; `None` if it is none, or the task is gone.
    fn referent(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        weakref: u64,
    ) -> Result<Option<u64>, Error> {
        // What was noted of the task includes what this reference points to.
        let is_same = |known: &KnownTask| known.weakref == weakref && known.checked == self.now;
        if let Some(&task) = self.weakrefs.get(&weakref)
            && self.known.get(&task).is_some_and(is_same)
        {
            return Ok(Some(task));
        }
        if self.types.of(memory, layout, weakref)? != AwaitedKind::Weakref {
            return Ok(None);
        }
        // `PyWeakReference.wr_object`, which is `None` for an object that is gone.
        let task = number(memory, moved(weakref, layout.object.header))?.unwrap_or_default();
        self.weakrefs.insert(weakref, task);
        Ok(Some(task))
    }

    /// The thread that runs an event loop, as `threading.get_ident()` names it; 0 if that is not known.
    fn ident_of(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        event_loop: u64,
    ) -> Result<u64, Error> {
        if let Some(&ident) = self.loops.get(&event_loop) {
            return Ok(ident);
        }
        let ident = attribute(memory, &layout.object, event_loop, b"_thread_id")?;
        let ident = match ident {
            Some(ident) => {
                integer(memory, &layout.object, ident)?.and_then(|ident| u64::try_from(ident).ok())
            }
            None => None,
        };
        let ident = ident.unwrap_or_default();
        if self.loops.len() >= MOST_FUTURES {
            self.loops.clear();
        }
        if ident != 0 {
            self.loops.insert(event_loop, ident);
        }
        Ok(ident)
    }

    fn sets(
        &mut self,
        memory: &impl ForeignMemory,
        python: &Python,
        interpreter: u64,
    ) -> Result<TaskSets, Error> {
        let sets = self.sets.get(&interpreter).copied().unwrap_or_default();
        if sets.all != 0 || self.now < sets.again {
            return Ok(sets);
        }
        let variable = |name: &str| python.module_variable(memory, interpreter, "asyncio.tasks", name);
        let running = variable("_current_tasks")?.unwrap_or_default();
        let all = match variable("_scheduled_tasks")? {
            Some(all) => Some(all),
            None => variable("_all_tasks")?,
        };
        // A `WeakSet`.
        let all = match all {
            Some(all) => attribute(memory, &python.layout.object, all, b"data")?.unwrap_or_default(),
            None => 0,
        };
        let sets = TaskSets { running, all, again: self.now + SEARCH_PAUSE };
        self.sets.insert(interpreter, sets);
        Ok(sets)
    }

    /// The task at `address` as it is at this point in time; `None` if there is none, or the budget is used up.
    pub(crate) fn current(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Option<&mut KnownTask>, Error> {
        let weakref = self.known.get(&address).map_or(0, |task| task.weakref);
        self.current_of(memory, layout, (address, weakref), tables)
    }

    /// Like [`Self::current`], for a task that was found by a weak reference.
    fn current_of(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        (address, weakref): (u64, u64),
        tables: &mut Tables,
    ) -> Result<Option<&mut KnownTask>, Error> {
        let is_same = |task: &KnownTask| task.checked == self.now && task.weakref == weakref;
        if !self.known.get(&address).is_some_and(is_same) {
            if self.budget == 0 {
                return Ok(None);
            }
            self.budget -= 1;
            let Some(task) = self.read(memory, layout, (address, weakref), tables)? else {
                self.known.remove(&address);
                return Ok(None);
            };
            self.note(address, task);
        }
        Ok(self.known.get_mut(&address))
    }

    /// Notes a task that was just read. Its places stay listed if they are those of before.
    fn note(&mut self, address: u64, mut task: KnownTask) {
        let before = self.known.remove(&address);
        let is_listed = |before: &KnownTask| before.watch != Watch::Unlisted;
        if before.filter(is_listed).is_some_and(|before| before.noted.places().eq(task.noted.places())) {
            task.watch = Watch::Listed;
        } else {
            self.unlisted += 1;
        }
        self.known.insert(address, task);
    }

    fn read(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        (address, weakref): (u64, u64),
        tables: &mut Tables,
    ) -> Result<Option<KnownTask>, Error> {
        let noting = NotingMemory::new(memory);
        if weakref != 0 && number(&noting, moved(weakref, layout.object.header))? != Some(address) {
            return Ok(None);
        }
        let mut head = vec![0; self.layout.size];
        if mapped(noting.read(address, &mut head))?.is_none() {
            return Ok(None);
        }
        let word = |at: usize| u64_at(&head, at).unwrap_or_default();
        let coroutine = word(self.layout.coroutine);
        let frames = waiting_frames(&noting, layout, &mut self.types, coroutine)?;
        let coroutine_frame = frame_of(&noting, layout, coroutine)?;
        let marker = self.marker(memory, layout, word(self.layout.name), tables)?;
        let (awaiter, waits_for, event_loop, next) = match self.layout.links {
            TaskLinks::Awaited(links) => {
                (self.awaiter(&noting, layout, &head, links)?, Vec::new(), 0, word(links.node))
            }
            TaskLinks::Waiting { waiter, callback, event_loop } => {
                let awaiter = self.parent_of_group(&noting, layout, word(callback))?;
                (awaiter, self.waits_for(&noting, layout, word(waiter))?, word(event_loop), 0)
            }
        };
        Ok(Some(KnownTask {
            noted: noting.into_noted(),
            checked: self.now,
            watch: Watch::Unlisted,
            coroutine_frame,
            frames,
            marker,
            awaiter,
            waits_for,
            event_loop,
            weakref,
            next,
            thread: 0,
            stack: None,
        }))
    }

    /// The frame that stands for a task with this name.
    fn marker(
        &self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        name: u64,
        tables: &mut Tables,
    ) -> Result<FrameId, Error> {
        let mut name = match read_text(memory, &layout.object, name)? {
            Some(text) => text,
            None => match integer(memory, &layout.object, name)? {
                Some(number) => [UNNAMED, number.to_string().as_bytes()].concat(),
                None => Vec::new(),
            },
        };
        if self.names == TaskNames::Given && is_unnamed(&name) {
            name.clear();
        }
        let function =
            if name.is_empty() { b"<task>".to_vec() } else { [b"<task ", name.as_slice(), b">"].concat() };
        let function = tables.intern_string(&function)?;
        Ok(tables.intern_frame(&Frame::named(function))?)
    }

    /// The task that awaits the task or future whose bytes are `head`, through any futures between them; 0 for none.
    fn awaiter(
        &self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        head: &[u8],
        links: AwaitedLinks,
    ) -> Result<u64, Error> {
        let mut head = head.to_vec();
        for _ in 0..MOST_FUTURES {
            let mut next = u64_at(&head, links.awaited_by).unwrap_or_default();
            if next == 0 {
                return Ok(0);
            }
            if head.get(links.is_set).is_some_and(|&flag| flag != 0) {
                // Several await it, and a stack shows one.
                let members = set(memory, &layout.object, next)?.unwrap_or_default();
                next = members.into_iter().min().unwrap_or_default();
            }
            if mapped(memory.read(next, &mut head))?.is_none() {
                return Ok(0);
            }
            if head.get(links.is_task).is_some_and(|&flag| flag != 0) {
                return Ok(next);
            }
        }
        Ok(0)
    }

    /// The futures and tasks that a task waits for: one, or those that it gathers.
    fn waits_for(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        waiter: u64,
    ) -> Result<Vec<u64>, Error> {
        if waiter == 0 {
            return Ok(Vec::new());
        }
        if self.types.of(memory, layout, waiter)? != AwaitedKind::Gathering {
            return Ok(vec![waiter]);
        }
        let children = attribute(memory, &layout.object, waiter, b"_children")?;
        let Some(children) = children else { return Ok(vec![waiter]) };
        Ok(list(memory, &layout.object, children)?.unwrap_or_default())
    }

    /// The task that waits for the group to which a task belongs: its first callback is a method of the group.
    fn parent_of_group(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        callback: u64,
    ) -> Result<u64, Error> {
        if callback == 0 || self.types.of(memory, layout, callback)? != AwaitedKind::BoundMethod {
            return Ok(0);
        }
        // `PyMethodObject.im_self`.
        let group = number(memory, moved(callback, layout.object.header + 8))?.unwrap_or_default();
        if self.types.of(memory, layout, group)? != AwaitedKind::TaskGroup {
            return Ok(0);
        }
        Ok(attribute(memory, &layout.object, group, b"_parent_task")?.unwrap_or_default())
    }

    fn note_awaiters(&mut self) {
        self.awaiters.clear();
        for (&address, task) in &self.known {
            for &awaited in &task.waits_for {
                // A stack shows one of several, and always the same.
                let awaiter = self.awaiters.entry(awaited).or_insert(address);
                *awaiter = address.min(*awaiter);
            }
        }
        self.awaiting =
            self.listed.iter().map(|&task| self.awaiter_of(task)).filter(|&task| task != 0).collect();
    }

    /// The task that awaits the one at `address`; 0 for none.
    pub(crate) fn awaiter_of(&self, address: u64) -> u64 {
        let stated = self.known.get(&address).map_or(0, |task| task.awaiter);
        match stated {
            0 => self.awaiters.get(&address).copied().unwrap_or_default(),
            stated => stated,
        }
    }

    /// The tasks of a thread that nobody else's stack shows, as they were read at this point in time.
    pub(crate) fn waiting_of(&self, thread: u64) -> impl Iterator<Item = (u64, &KnownTask)> {
        let tasks = self.listed.iter().filter_map(|task| Some((*task, self.known.get(task)?)));
        tasks.filter(move |(address, task)| {
            let is_leaf = !self.awaiting.contains(address) && !task.frames.is_empty();
            is_leaf && task.thread == thread && task.checked == self.now
        })
    }

    /// The task that `thread` runs, if the frame of its coroutine is among `frames`.
    pub(crate) fn running(
        &mut self,
        memory: &impl ForeignMemory,
        python: &Python,
        (thread, frames): (&PythonThread, &[RawFrame]),
        tables: &mut Tables,
    ) -> Result<Option<RunningTask>, Error> {
        let layout = &python.layout;
        for task in self.candidates(memory, python, thread)? {
            let mut head = vec![0; self.layout.size];
            if task == 0 || mapped(memory.read(task, &mut head))?.is_none() {
                continue;
            }
            let coroutine = u64_at(&head, self.layout.coroutine).unwrap_or_default();
            let frame = frame_of(memory, layout, coroutine)?;
            let Some(outermost) = frames.iter().rposition(|found| found.address == frame) else { continue };
            let name = u64_at(&head, self.layout.name).unwrap_or_default();
            let marker = self.marker(memory, layout, name, tables)?;
            let awaiter = match self.layout.links {
                TaskLinks::Awaited(links) => self.awaiter(memory, layout, &head, links)?,
                TaskLinks::Waiting { callback, .. } => {
                    let callback = u64_at(&head, callback).unwrap_or_default();
                    match self.parent_of_group(memory, layout, callback)? {
                        0 => self.awaiters.get(&task).copied().unwrap_or_default(),
                        parent => parent,
                    }
                }
            };
            return Ok(Some(RunningTask { outermost, marker, awaiter }));
        }
        Ok(None)
    }

    /// The tasks of which a thread may run one.
    fn candidates(
        &mut self,
        memory: &impl ForeignMemory,
        python: &Python,
        thread: &PythonThread,
    ) -> Result<Vec<u64>, Error> {
        match self.layout.links {
            TaskLinks::Awaited(links) => {
                Ok(number(memory, moved(thread.state, links.running))?.into_iter().collect())
            }
            TaskLinks::Waiting { .. } => {
                let TaskSets { running, .. } = self.sets(memory, python, thread.interpreter_state)?;
                if running == 0 {
                    return Ok(Vec::new());
                }
                let entries = dict(memory, &python.layout.object, running)?.unwrap_or_default();
                Ok(entries.into_iter().map(|[_, task]| task).take(MOST_FUTURES).collect())
            }
        }
    }
}

/// Whether asyncio made the name up.
fn is_unnamed(name: &[u8]) -> bool {
    name.strip_prefix(UNNAMED).is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_number_only_is_made_up() {
        assert!(is_unnamed(b"Task-17"));
        for name in [&b"Task-"[..], b"Task-1a", b"task-1", b"fetch"] {
            assert!(!is_unnamed(name));
        }
    }
}
