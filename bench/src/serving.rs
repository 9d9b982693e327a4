//! Claims on the server: how soon there is something to see, how soon it changes, and how much is asked at once.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::heap::HeapSetting;
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// The input of all claims.
const ON: &str = "a profile of 1 M samples";
/// Requests for top tables in one round, and the clients that send them.
const REQUESTS: usize = 1_000;
const CLIENTS: usize = 8;

/// The server's program, and the profile that it serves.
struct ServingSetting {
    program: PathBuf,
    profile: PathBuf,
}

pub(crate) fn claims(bench: &Bench, profile: &Path) -> Vec<Claim> {
    let setting = Rc::new(ServingSetting {
        program: bench.borehole.with_file_name("borehole-serve"),
        profile: profile.to_owned(),
    });
    let of = |what: &str, unit, goal, work: fn(&ServingSetting) -> Result<f64>| {
        let setting = Rc::clone(&setting);
        let side: Side = Box::new(move || work(&setting));
        Claim::new(format!("server of {ON}: {what}"), unit, Goal::Value(goal), side)
    };
    vec![
        of("first view, from its start", ClaimUnit::Seconds, 0.3, first_view),
        of("a changed range", ClaimUnit::Seconds, 0.05, changed_range),
        of("a search", ClaimUnit::Seconds, 0.05, search),
        of("top tables", ClaimUnit::PerSecond, 200.0, top_tables),
        of("memory after these", ClaimUnit::Bytes, 200e6, memory),
        of("first answer to an assistant, from its start", ClaimUnit::Seconds, 0.3, assistant),
    ]
}

/// The objects of the heap, which are 13 M nodes.
const OBJECTS: u32 = 1_000_000;

/// Claims on a large heap: what the explorer shows first, and with what it goes on.
pub(crate) fn heap_claims(bench: &Bench) -> Result<Vec<Claim>> {
    let Some(heap) = HeapSetting::new(bench, OBJECTS)? else { return Ok(Vec::new()) };
    let (heap, program) = (Rc::new(heap), bench.borehole.with_file_name("borehole-serve"));
    let of = |what: &str, goal, view: &'static str| {
        let (heap, program) = (Rc::clone(&heap), program.clone());
        let side: Side = Box::new(move || {
            let profile = heap.graph()?.to_owned();
            first_answer(&ServingSetting { program: program.clone(), profile }, view)
        });
        let name = format!("server of a PHP heap, {OBJECTS} objects: {what}, from its start");
        Claim::new(name, ClaimUnit::Seconds, Goal::Value(goal), side).once()
    };
    Ok(vec![of("first view", 1.5, "outline"), of("retained sizes", 15.0, "page")])
}

/// A server that ends with the measurement.
struct Serving {
    child: Child,
    host: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(setting: &ServingSetting) -> Result<Self> {
        let mut command = Command::new(&setting.program);
        command.arg("serve").arg(&setting.profile).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| setting.program.display().to_string())?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut address)?;
        let host = address.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { child, host })
    }

    /// A server that has read the profile.
    fn warm(setting: &ServingSetting) -> Result<(Self, String)> {
        let serving = Self::start(setting)?;
        let id = serving.id()?;
        get(&serving.host, &format!("/api/v1/inputs/{id}/page"))?;
        Ok((serving, id))
    }

    fn id(&self) -> Result<String> {
        let inputs: Value = serde_json::from_slice(&get(&self.host, "/api/v1/inputs")?)?;
        Ok(inputs["inputs"][0]["id"].as_str().context("no input")?.to_owned())
    }
}

/// The body of an answer.
fn get(host: &str, path: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    ensure!(bytes.starts_with(b"HTTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&bytes));
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("no head")?;
    Ok(bytes.split_off(end + 4))
}

fn first_view(setting: &ServingSetting) -> Result<f64> {
    first_answer(setting, "page")
}

/// The time from the start of a server to its answer.
fn first_answer(setting: &ServingSetting, view: &str) -> Result<f64> {
    let begin = Instant::now();
    let serving = Serving::start(setting)?;
    let id = serving.id()?;
    get(&serving.host, &format!("/api/v1/inputs/{id}/{view}"))?;
    Ok(begin.elapsed().as_secs_f64())
}

fn changed_range(setting: &ServingSetting) -> Result<f64> {
    elapsed(setting, "page?from=100000000000&to=200000000000")
}

fn search(setting: &ServingSetting) -> Result<f64> {
    elapsed(setting, "top?match=method42")
}

/// The time of one answer of a server that has read the profile.
fn elapsed(setting: &ServingSetting, question: &str) -> Result<f64> {
    let (serving, id) = Serving::warm(setting)?;
    let begin = Instant::now();
    get(&serving.host, &format!("/api/v1/inputs/{id}/{question}"))?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Asks for top tables from several clients.
fn ask_for_tops(serving: &Serving, id: &str) -> Result<()> {
    let clients = (0..CLIENTS).map(|_| {
        let (host, path) = (serving.host.clone(), format!("/api/v1/inputs/{id}/top"));
        thread::spawn(move || (0..REQUESTS / CLIENTS).try_for_each(|_| get(&host, &path).map(drop)))
    });
    let clients: Vec<_> = clients.collect();
    clients
        .into_iter()
        .try_for_each(|client| client.join().unwrap_or_else(|_| anyhow::bail!("a client panicked")))
}

fn top_tables(setting: &ServingSetting) -> Result<f64> {
    let (serving, id) = Serving::warm(setting)?;
    let begin = Instant::now();
    ask_for_tops(&serving, &id)?;
    Ok(REQUESTS as f64 / begin.elapsed().as_secs_f64())
}

fn memory(setting: &ServingSetting) -> Result<f64> {
    let (serving, id) = Serving::warm(setting)?;
    ask_for_tops(&serving, &id)?;
    let status = fs::read_to_string(format!("/proc/{}/status", serving.child.id()))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: f64 = peak.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0)
}

fn assistant(setting: &ServingSetting) -> Result<f64> {
    let begin = Instant::now();
    let mut command = Command::new(&setting.program);
    command.arg("mcp").arg(&setting.profile).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().context("no input")?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let client = json!({ "name": "bench", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))?;
    lines.next().context("no answer")??;
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let name = setting.profile.file_name().unwrap_or_default().to_string_lossy();
    let params = json!({ "name": "top", "arguments": { "input": name } });
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }))?;
    let answer = lines.next().context("no answer")??;
    let seconds = begin.elapsed().as_secs_f64();
    drop(input);
    child.wait()?;
    ensure!(answer.contains("Functions, of"), "{answer}");
    Ok(seconds)
}
