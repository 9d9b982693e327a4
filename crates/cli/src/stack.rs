//! `borehole stack`: the current stacks of a process.

use anyhow::Context as _;
use borehole::capture::{Look, PhpProcess, Subject as _};
use borehole::model::{FrameId, StackId, Tables};
use borehole_text::printable;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::cell::sized_line;
use crate::exit::Exit;
use crate::record::PhpArgs;
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
}

/// Attempts to read a stack of a running process before the process is stopped.
const LOOKS: usize = 10;

pub(crate) fn run(args: &StackArgs) -> anyhow::Result<Exit> {
    let mut process = refusal::attach(args.pid, &args.php.options(args.depth))?;
    let mut tables = Tables::default();
    let mut stacks = Vec::new();
    for lane in 0..process.lanes() {
        let look = look(&mut process, lane, &mut tables)?;
        stacks.push((process.thread(lane), look));
    }
    let text =
        if args.json { as_json(&process, &stacks, &tables) } else { as_text(&process, &stacks, &tables) };
    put(&text, args.json)?;
    Ok(Exit::Done)
}

fn look(process: &mut PhpProcess, lane: usize, tables: &mut Tables) -> anyhow::Result<Look> {
    let (id, mut stopper) = (process.process(), process.stopper());
    let mut look = || {
        let looked = process.look(lane, tables);
        looked.with_context(|| format!("process {id} can no longer be read"))
    };
    for _ in 0..LOOKS {
        match look()? {
            Look::Torn => {}
            look => return Ok(look),
        }
    }
    let _stopped = stopper.stop().context("the stack changed at every attempt to read it")?;
    look()
}

/// The result for each thread, with its id if there are several threads.
type ThreadLooks = [(Option<u64>, Look)];

fn as_text(process: &PhpProcess, stacks: &ThreadLooks, tables: &Tables) -> String {
    let mut text =
        format!("process {}: {}\n", process.process(), printable(process.identity().to_string().as_bytes()));
    for (thread, look) in stacks {
        if let Some(thread) = thread {
            text += &format!("thread {thread}\n");
        }
        match *look {
            Look::Idle => text += "  idle: no PHP code is executing\n",
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
    text
}

fn as_json(process: &PhpProcess, stacks: &ThreadLooks, tables: &Tables) -> String {
    let stacks: Vec<Value> =
        stacks.iter().map(|(thread, look)| stack_object(*thread, *look, tables)).collect();
    let object = json!({
        "schema_version": 1,
        "pid": process.process(),
        "php": process.identity().to_string(),
        "stacks": stacks,
    });
    format!("{object}\n")
}

fn stack_object(thread: Option<u64>, look: Look, tables: &Tables) -> Value {
    let mut object = Map::new();
    if let Some(thread) = thread {
        object.insert("tid".to_owned(), thread.into());
    }
    let state = match look {
        Look::Idle => "idle",
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
        Value::Object(object)
    };
    tables.frames_leaf_first(Some(stack)).map(frame).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
