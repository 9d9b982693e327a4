//! `borehole stack`: the current stacks of a process.

use std::collections::BTreeMap;

use anyhow::Context as _;
use borehole::capture::{Look, Subject};
use borehole::model::{FrameId, StackId, Status, Tables};
use borehole_text::printable;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::cell::sized_line;
use crate::exit::Exit;
use crate::record::{NativeArgs, PhpArgs};
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

    #[command(flatten)]
    php: PhpArgs,

    #[command(flatten)]
    native: NativeArgs,
}

/// Attempts to read a stack of a running process before the process is stopped.
const LOOKS: usize = 10;

pub(crate) fn run(args: &StackArgs) -> anyhow::Result<Exit> {
    let mut subjects = args.php.subjects(args.depth);
    args.native.apply(args.depth, &mut subjects);
    let mut process = refusal::attach_any(args.pid, &subjects)?;
    let names: BTreeMap<u64, Vec<u8>> = process.new_thread_names().into_iter().collect();
    let mut tables = Tables::default();
    let mut stacks = Vec::new();
    for lane in 0..process.lanes() {
        let look = look(&mut *process, lane, &mut tables)?;
        let thread = process.thread(lane);
        let name = thread.and_then(|thread| names.get(&thread).cloned());
        stacks.push(ThreadLook { thread, name, status: process.status(lane), look });
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

fn look(process: &mut dyn Subject, lane: usize, tables: &mut Tables) -> anyhow::Result<Look> {
    let (id, mut stopper) = (process.process(), process.stopper());
    let gone = || format!("process {id} can no longer be read");
    let looks = if process.needs_stop() { 0 } else { LOOKS };
    for _ in 0..looks {
        match process.look(lane, tables).with_context(gone)? {
            Look::Torn => {}
            look => return Ok(look),
        }
    }
    let _ = process.will_stop(lane);
    let stopped = match process.thread_to_stop(lane) {
        Some(thread) => stopper.stop_thread(thread),
        None => stopper.stop(),
    };
    let stopped = match (stopped, process.needs_stop()) {
        (Err(error), true) => return Err(error.into()),
        (stopped, _) => stopped.context("the stack changed at every attempt to read it")?,
    };
    let look = process.look_stopped(lane, stopped.registers(), tables).with_context(gone)?;
    drop(stopped);
    process.look_released(lane, look, tables).with_context(gone)
}

/// The result for a thread.
struct ThreadLook {
    /// Its number; `None` if the process is looked at as a whole.
    thread: Option<u64>,
    name: Option<Vec<u8>>,
    status: Option<Status>,
    look: Look,
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
    for ThreadLook { thread, name, status, look } in stacks {
        if let Some(thread) = thread {
            text += &format!("thread {thread}{}\n", described(name.as_deref(), *status));
        }
        match *look {
            Look::Idle => text += &format!("  idle: no {name_of} code is executing\n"),
            Look::Ended => text += "  has ended\n",
            Look::Torn => text += "  changing too fast to be read\n",
            Look::Stack { stack, omitted } => {
                for (index, frame) in tables.frames_leaf_first(Some(stack)).enumerate() {
                    text += &sized_line(&format!("  #{index} {}", frame_text(frame, tables)));
                    text.push('\n');
                }
                if omitted > 0 {
                    text += &format!("  ... {omitted} more\n");
                }
            }
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
            object.insert("frames".to_owned(), frames(stack, tables));
            object.insert("omitted".to_owned(), omitted.into());
            "running"
        }
    };
    object.insert("state".to_owned(), state.into());
    Value::Object(object)
}

/// The frames, as `borehole dump` writes them.
fn frames(stack: StackId, tables: &Tables) -> Value {
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
        }
        Value::Object(object)
    };
    tables.frames_leaf_first(Some(stack)).map(frame).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
