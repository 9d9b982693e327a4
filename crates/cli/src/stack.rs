//! `borehole stack`: the current stacks of a process.

use std::collections::BTreeMap;

use anyhow::Context as _;
use borehole::capture::{LocalVariable, Look, Patience, SampledTasks, Subject, SubjectOptions, TaskNames};
use borehole::model::{FrameId, StackId, Status, Tables};
use borehole_text::printable;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::cell::sized_line;
use crate::exit::Exit;
use crate::messages::say;
use crate::record::{NativeArgs, PhpArgs, TasksArgs};
use crate::refusal;
use crate::stdout::put;

/// The arguments of `borehole stack`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StackArgs {
    /// Process to read
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Maximum number of frames per stack, counted from the leaf
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,

    /// Python: print local variables too. Their thread is stopped while they are read, and none of its code runs
    #[arg(long)]
    locals: bool,

    #[command(flatten)]
    tasks: TasksArgs,

    #[command(flatten)]
    php: PhpArgs,

    #[command(flatten)]
    native: NativeArgs,
}

impl StackArgs {
    fn subjects(&self) -> SubjectOptions {
        let mut subjects = self.php.subjects(self.depth);
        subjects.python.tasks = self.tasks.sampled();
        subjects.python.task_names = TaskNames::All;
        self.native.apply(self.depth, true, &mut subjects);
        subjects
    }
}

/// Looks at a process until all its tasks are known: enough for a hundred thousand.
const LOOKS_AT_TASKS: usize = 200;

/// Attempts to read a stack of a running process before the process is stopped, and of a stopped one.
const LOOKS: usize = 10;

pub(crate) fn run(args: &StackArgs) -> anyhow::Result<Exit> {
    let mut process = refusal::attach_any(args.pid, &args.subjects())?;
    let names: BTreeMap<u64, Vec<u8>> = process.new_thread_names().into_iter().collect();
    let mut tables = Tables::default();
    let mut stacks = Vec::new();
    if args.tasks.sampled() != SampledTasks::None && !knows_all_tasks(&mut *process, &mut tables)? {
        say("warning: some tasks are left out: too many change all the time");
    }
    for lane in 0..process.lanes() {
        let (look, locals) = look(&mut *process, lane, args.locals, &mut tables)?;
        let look = named(&mut *process, look, &mut tables)?;
        let thread = process.thread(lane);
        let name = thread.and_then(|thread| names.get(&thread).cloned());
        let tasks = process.waiting_tasks(lane, &mut tables)?;
        stacks.push(ThreadLook { thread, name, status: process.status(lane), look, locals, tasks });
    }
    let runtime = process.facts();
    let text = if args.json {
        as_json(args.pid, &runtime, &stacks, &tables)
    } else {
        as_text(args.pid, &runtime, &stacks, &tables)
    };
    put(&text, args.json)?;
    Ok(Exit::Done)
}

/// The look with the names of native code.
fn named(process: &mut dyn Subject, look: Look, tables: &mut Tables) -> anyhow::Result<Look> {
    let Look::Stack { stack, omitted } = look else { return Ok(look) };
    let stack = process.named(stack, Patience::Wait, tables)?.unwrap_or(stack);
    Ok(Look::Stack { stack, omitted })
}

/// Looks at the process until all its tasks are known: each look reads a limited number of new ones.
fn knows_all_tasks(process: &mut dyn Subject, tables: &mut Tables) -> anyhow::Result<bool> {
    let gone = || "the process can no longer be read";
    for _ in 0..LOOKS_AT_TASKS {
        process.prepare().with_context(gone)?;
        process.look(0, tables).with_context(gone)?;
        if process.take_cut_tasks() == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The local variables of each frame that is not native, the leaf first.
type Locals = Vec<Vec<LocalVariable>>;

fn look(
    process: &mut dyn Subject,
    lane: usize,
    has_locals: bool,
    tables: &mut Tables,
) -> anyhow::Result<(Look, Locals)> {
    let id = process.process();
    let gone = || format!("process {id} can no longer be read");
    // A thread that waits does not change.
    let must_stop = process.needs_stop() || has_locals && process.will_stop(lane);
    for _ in 0..if must_stop { 0 } else { LOOKS } {
        match process.look(lane, tables).with_context(gone)? {
            Look::Torn => {}
            look if has_locals => return Ok((look, process.locals(lane).with_context(gone)?)),
            look => return Ok((look, Locals::new())),
        }
    }
    let _ = process.will_stop(lane);
    // PHP may be stopped in the middle of a call.
    for _ in 1..LOOKS {
        match look_stopped(process, lane, has_locals, tables)? {
            (Look::Torn, _) => {}
            found => return Ok(found),
        }
    }
    look_stopped(process, lane, has_locals, tables)
}

fn look_stopped(
    process: &mut dyn Subject,
    lane: usize,
    has_locals: bool,
    tables: &mut Tables,
) -> anyhow::Result<(Look, Locals)> {
    let (id, mut stopper) = (process.process(), process.stopper());
    let gone = || format!("process {id} can no longer be read");
    let stopped = match process.thread_to_stop(lane) {
        Some(thread) => stopper.stop_thread(thread),
        None => stopper.stop(),
    };
    let stopped = match (stopped, process.needs_stop()) {
        (Err(error), true) => return Err(error.into()),
        (stopped, _) => stopped.context("the stack changed at every attempt to read it")?,
    };
    let look = process.look_stopped(lane, stopped.registers(), tables).with_context(gone)?;
    let locals = if has_locals { process.locals(lane).with_context(gone)? } else { Locals::new() };
    drop(stopped);
    Ok((process.look_released(lane, look, tables).with_context(gone)?, locals))
}

/// The result for a thread.
struct ThreadLook {
    /// Its number; `None` if the process is looked at as a whole.
    thread: Option<u64>,
    name: Option<Vec<u8>>,
    status: Option<Status>,
    look: Look,
    locals: Locals,
    /// The stacks of the tasks that wait.
    tasks: Vec<StackId>,
}

/// The runtime among the facts of a process: the key and the value.
pub(crate) fn runtime(facts: &[(String, String)]) -> Option<(&str, &str)> {
    let is_runtime = |(key, _): &&(String, String)| matches!(key.as_str(), "php" | "python" | "program");
    facts.iter().find(is_runtime).map(|(key, value)| (key.as_str(), value.as_str()))
}

fn as_text(process: i32, facts: &[(String, String)], stacks: &[ThreadLook], tables: &Tables) -> String {
    let (language, identity) = runtime(facts).unwrap_or_default();
    let mut text = format!("process {process}: {}\n", printable(identity.as_bytes()));
    let name_of = match language {
        "python" => "Python",
        "program" => "native",
        _ => "PHP",
    };
    for ThreadLook { thread, name, status, look, locals, tasks } in stacks {
        if let Some(thread) = thread {
            text += &format!("thread {thread}{}\n", described(name.as_deref(), *status));
        }
        match *look {
            Look::Idle => text += &format!("  idle: no {name_of} code is executing\n"),
            Look::Ended => text += "  has ended\n",
            Look::Torn => text += "  changing too fast to be read\n",
            Look::Stack { stack, omitted } => {
                text += &frame_lines(stack, locals, tables);
                if omitted > 0 {
                    text += &format!("  ... {omitted} more\n");
                }
            }
        }
        for &task in tasks {
            text += &format!("  waiting:\n{}", frame_lines(task, &Locals::new(), tables));
        }
    }
    text
}

/// The frames of a stack, each with its local variables below it.
fn frame_lines(stack: StackId, locals: &Locals, tables: &Tables) -> String {
    let mut text = String::new();
    let mut locals = locals.iter();
    for (index, frame) in tables.frames_leaf_first(Some(stack)).enumerate() {
        text += &sized_line(&format!("  #{index} {}", frame_text(frame, tables)));
        text.push('\n');
        let is_native = tables.frame(frame).native.is_some();
        let of_frame = if is_native { None } else { locals.next() };
        for LocalVariable { name, value } in of_frame.into_iter().flatten() {
            let line = format!("       {} = {}", printable(name), printable(value.as_bytes()));
            text += &sized_line(&line);
            text.push('\n');
        }
    }
    text
}

/// The name of a thread and its state, as far as they are known.
fn described(name: Option<&[u8]>, status: Option<Status>) -> String {
    let name = name.map_or_else(String::new, |name| format!(" \"{}\"", printable(name)));
    let words: Vec<&str> = status.map_or_else(Vec::new, |status| {
        let known = status.names().filter_map(|flag| match flag {
            "has_gil" => Some("holds the GIL"),
            "on_cpu" => Some("on CPU"),
            "gil_requested" => Some("waits for the GIL"),
            "has_exception" => Some("handles an exception"),
            "main_thread" => Some("main thread"),
            _ => None,
        });
        known.collect()
    });
    if words.is_empty() { name } else { format!("{name}: {}", words.join(", ")) }
}

fn frame_text(frame: FrameId, tables: &Tables) -> String {
    let frame = tables.frame(frame);
    let mut text = printable(tables.string(frame.function));
    if let Some(file) = frame.file {
        text += &format!(" {}", printable(tables.string(file)));
        if let Some(line) = frame.line {
            text += &format!(":{line}");
        }
    }
    if let Some(opcode) = frame.opcode {
        text += &format!(" {}", printable(tables.string(opcode)));
    }
    if let Some(native) = frame.native {
        text += &format!(" {}", printable(tables.string(native.module)));
    }
    text
}

fn as_json(process: i32, facts: &[(String, String)], stacks: &[ThreadLook], tables: &Tables) -> String {
    let stacks: Vec<Value> = stacks.iter().map(|look| stack_object(look, tables)).collect();
    let (language, identity) = runtime(facts).unwrap_or_default();
    let object = json!({
        "schema_version": 1,
        "pid": process,
        language: identity,
        "stacks": stacks,
    });
    format!("{object}\n")
}

fn stack_object(found: &ThreadLook, tables: &Tables) -> Value {
    let mut object = Map::new();
    if let Some(thread) = found.thread {
        object.insert("tid".to_owned(), thread.into());
    }
    if let Some(name) = &found.name {
        object.insert("name".to_owned(), lossy(name).into());
    }
    if let Some(status) = found.status {
        object.insert("status".to_owned(), status.names().collect());
    }
    let state = match found.look {
        Look::Idle => "idle",
        Look::Ended => "ended",
        Look::Torn => "torn",
        Look::Stack { stack, omitted } => {
            object.insert("frames".to_owned(), frames(stack, &found.locals, tables));
            object.insert("omitted".to_owned(), omitted.into());
            "running"
        }
    };
    object.insert("state".to_owned(), state.into());
    if !found.tasks.is_empty() {
        let tasks = found.tasks.iter().map(|&task| frames(task, &Locals::new(), tables)).collect();
        object.insert("waiting".to_owned(), tasks);
    }
    Value::Object(object)
}

/// The frames, as `borehole dump` writes them.
fn frames(stack: StackId, locals: &Locals, tables: &Tables) -> Value {
    let mut locals = locals.iter();
    let frame = |id: FrameId| {
        let frame = tables.frame(id);
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("function", lossy(tables.string(frame.function)).into());
        if let Some(file) = frame.file {
            put("file", lossy(tables.string(file)).into());
        }
        if let Some(line) = frame.line {
            put("line", line.into());
        }
        if let Some(opcode) = frame.opcode {
            put("opcode", lossy(tables.string(opcode)).into());
        }
        if let Some(native) = frame.native {
            let module = lossy(tables.string(native.module));
            put("native", json!({ "module": module, "offset": native.offset }));
        } else if let Some(variables) = locals.next() {
            let variable = |variable: &LocalVariable| (lossy(&variable.name), variable.value.clone().into());
            put("locals", Value::Object(variables.iter().map(variable).collect()));
        }
        Value::Object(object)
    };
    tables.frames_leaf_first(Some(stack)).map(frame).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
