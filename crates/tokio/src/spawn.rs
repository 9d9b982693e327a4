//! The ways to spawn a recorded task.
//!
//! On a thread of a recorded runtime, the functions of this module record; elsewhere they do what Tokio's do.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use borehole_recorder::now_ns;
use tokio::task::{AbortHandle, Id, JoinHandle, LocalSet};

use crate::events::TaskSpawnEvent;
use crate::future::Traced;
use crate::hooks::TokioRecorder;
use crate::lane::{self, RuntimeLane};
use crate::thread::{number, place};

/// A recorded task, before and after it is spawned.
pub(crate) struct Spawning {
    lane: Arc<RuntimeLane>,
    spawn_loc: &'static str,
    start_ns: u64,
    #[cfg(tokio_unstable)]
    _instrumented: crate::unstable::Instrumented,
}

impl Spawning {
    pub(crate) fn new(lane: Arc<RuntimeLane>, caller: &'static Location<'static>) -> Self {
        Self {
            lane,
            spawn_loc: place(caller),
            start_ns: now_ns(),
            #[cfg(tokio_unstable)]
            _instrumented: crate::unstable::Instrumented::new(),
        }
    }

    /// The future to be spawned. Tokio must be called by the function that its user calls: a closure has no caller, and
    /// Tokio would take its place for that of the spawn.
    pub(crate) fn wrap<F: Future>(&self, future: F) -> Traced<F> {
        Traced::new(future, Arc::clone(&self.lane), self.spawn_loc)
    }

    /// Records that the future was spawned as a task of this number.
    pub(crate) fn spawned(self, id: Id) {
        if cfg!(not(tokio_unstable)) {
            let worker_id = lane::current().and_then(|lane| lane.worker());
            self.lane.handle().record(&TaskSpawnEvent {
                timestamp_ns: self.start_ns,
                task_id: number(id),
                spawn_loc: self.spawn_loc,
                instrumented: true,
                worker_id,
            });
        }
    }
}

/// Spawns a task like [`tokio::spawn`]. On a thread of a recorded runtime, its polls and wakes are recorded.
///
/// # Panics
/// If called outside a runtime.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match lane::current() {
        Some(lane) => {
            let spawning = Spawning::new(lane, Location::caller());
            let task = tokio::spawn(spawning.wrap(future));
            spawning.spawned(task.id());
            task
        }
        None => tokio::spawn(future),
    }
}

/// Spawns a task on this thread like [`tokio::task::spawn_local`]. On a thread of a recorded runtime, its polls and wakes
/// are recorded.
///
/// # Panics
/// If called outside a [`LocalSet`] or a local runtime.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match lane::current() {
        Some(lane) => {
            let spawning = Spawning::new(lane, Location::caller());
            let task = tokio::task::spawn_local(spawning.wrap(future));
            spawning.spawned(task.id());
            task
        }
        None => tokio::task::spawn_local(future),
    }
}

/// Spawns a task into a [`LocalSet`], also from outside it. On a thread of a recorded runtime, its polls and wakes are
/// recorded.
#[track_caller]
pub fn spawn_local_on<F>(future: F, set: &LocalSet) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match lane::current() {
        Some(lane) => {
            let spawning = Spawning::new(lane, Location::caller());
            let task = set.spawn_local(spawning.wrap(future));
            spawning.spawned(task.id());
            task
        }
        None => set.spawn_local(future),
    }
}

/// Spawns a task in a runtime like [`tokio::runtime::Handle::spawn`]. On a thread of a recorded runtime, or if that
/// runtime is recorded, its polls and wakes are recorded.
#[track_caller]
pub fn spawn_on<F>(future: F, runtime: &tokio::runtime::Handle) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match crate::runtime::lane_of(runtime).or_else(lane::current) {
        Some(lane) => {
            let spawning = Spawning::new(lane, Location::caller());
            let task = runtime.spawn(spawning.wrap(future));
            spawning.spawned(task.id());
            task
        }
        None => runtime.spawn(future),
    }
}

/// A set of tasks like [`tokio::task::JoinSet`], whose polls and wakes are recorded on threads of a recorded runtime.
///
/// It derefs to Tokio's, which has the methods that do not spawn.
#[derive(Debug)]
pub struct JoinSet<T>(tokio::task::JoinSet<T>);

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self(tokio::task::JoinSet::default())
    }
}

impl<T> JoinSet<T> {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self
    where
        T: 'static,
    {
        Self(tokio::task::JoinSet::new())
    }

    /// Waits until all tasks have ended, and returns what they returned.
    ///
    /// # Panics
    /// If a task has panicked.
    pub async fn join_all(self) -> Vec<T>
    where
        T: 'static,
    {
        self.0.join_all().await
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task like [`tokio::task::JoinSet::spawn`].
    ///
    /// # Panics
    /// If called outside a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        match lane::current() {
            Some(lane) => {
                let spawning = Spawning::new(lane, Location::caller());
                let task = self.0.spawn(spawning.wrap(future));
                spawning.spawned(task.id());
                task
            }
            None => self.0.spawn(future),
        }
    }

    /// Spawns a task in a runtime like [`tokio::task::JoinSet::spawn_on`].
    #[track_caller]
    pub fn spawn_on<F>(&mut self, future: F, runtime: &tokio::runtime::Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        match crate::runtime::lane_of(runtime).or_else(lane::current) {
            Some(lane) => {
                let spawning = Spawning::new(lane, Location::caller());
                let task = self.0.spawn_on(spawning.wrap(future), runtime);
                spawning.spawned(task.id());
                task
            }
            None => self.0.spawn_on(future, runtime),
        }
    }

    /// Spawns a task on this thread like [`tokio::task::JoinSet::spawn_local`].
    ///
    /// # Panics
    /// If called outside a [`LocalSet`] or a local runtime.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        match lane::current() {
            Some(lane) => {
                let spawning = Spawning::new(lane, Location::caller());
                let task = self.0.spawn_local(spawning.wrap(future));
                spawning.spawned(task.id());
                task
            }
            None => self.0.spawn_local(future),
        }
    }
}

impl<T> std::ops::Deref for JoinSet<T> {
    type Target = tokio::task::JoinSet<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> std::ops::DerefMut for JoinSet<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl TokioRecorder {
    /// Spawns a task and records its polls and wakes, also on threads that the recorder does not know.
    ///
    /// # Panics
    /// If called outside a runtime, like [`tokio::spawn`].
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let spawning = Spawning::new(self.lane(), Location::caller());
        let task = tokio::spawn(spawning.wrap(future));
        spawning.spawned(task.id());
        task
    }

    /// Spawns a task on this thread and records its polls and wakes.
    ///
    /// # Panics
    /// If called outside a [`LocalSet`] or a local runtime.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let spawning = Spawning::new(self.lane(), Location::caller());
        let task = tokio::task::spawn_local(spawning.wrap(future));
        spawning.spawned(task.id());
        task
    }
}
