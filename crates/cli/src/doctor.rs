//! `borehole doctor`: whether capturing works here, and if not, why and what helps.

use std::fs;

use borehole::capture::{PhpOptions, PhpProcess, PythonOptions, PythonProcess, Subject as _, is_python};
use borehole_php::ThreadModel;
use borehole_process::{
    ForeignProcess as _, KernelCode, Obstacle, PerfEvents, PerfTrigger, Process, obstacles, processes,
    ptrace_scope, resident_bytes,
};
use borehole_text::{WIDEST_LAST, bytes, counted, crop_middle, printable};
use clap::Args;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::refusal;
use crate::stdout::put;
use crate::suspend;

/// The arguments of `borehole doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// Process to check [default: the system and all processes that look like PHP or Python]
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of one check.
struct Diagnosis {
    verdict: DiagnosisGrade,
    what: String,
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiagnosisGrade {
    Good,
    /// It works, with a limitation.
    Note,
    Bad,
}

impl DiagnosisGrade {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

impl Diagnosis {
    fn good(what: impl Into<String>) -> Self {
        Self { verdict: DiagnosisGrade::Good, what: what.into(), fix: None }
    }

    fn note(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: DiagnosisGrade::Note, what: what.into(), fix: Some(fix.into()) }
    }

    fn bad(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: DiagnosisGrade::Bad, what: what.into(), fix: Some(fix.into()) }
    }
}

/// Whether the program of a command line has a name like PHP's or Python's.
fn looks_like_target(command: &[u8]) -> bool {
    let program = command.split(|&byte| byte == b' ').next().unwrap_or_default();
    let name = program.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.windows(3).any(|part| part == b"php")
        || name.starts_with(b"python")
        || [b"apache2".as_slice(), b"httpd"].contains(&name)
}

/// How many processes are checked if none is named.
const MAX_PROCESSES: usize = 20;

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    suspend::defer();
    let findings = match args.pid {
        Some(process) => process_findings(process),
        None => system_findings(),
    };
    let text: String = if args.json {
        let rows: Vec<Value> = findings
            .iter()
            .map(|finding| json!({ "verdict": finding.verdict.word(), "what": finding.what, "fix": finding.fix }))
            .collect();
        format!("{}\n", json!({ "schema_version": 1, "findings": rows }))
    } else {
        findings.iter().map(line).collect()
    };
    put(&text, args.json)?;
    let is_bad = findings.iter().any(|finding| finding.verdict == DiagnosisGrade::Bad);
    Ok(if is_bad { Exit::Failed } else { Exit::Done })
}

fn line(finding: &Diagnosis) -> String {
    let shown = |text: &str| crop_middle(&printable(text.as_bytes()), WIDEST_LAST);
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!("      {}\n", shown(fix)));
    format!("{:4}  {}\n{fix}", finding.verdict.word(), shown(&finding.what))
}

fn system_findings() -> Vec<Diagnosis> {
    let mut findings = vec![scope_finding(), events_finding(std::process::id().cast_signed())];
    let all = processes().unwrap_or_default();
    let found: Vec<_> = all.iter().filter(|process| looks_like_target(&process.command)).collect();
    if found.is_empty() {
        findings.push(Diagnosis::note(
            "no process looks like PHP or Python",
            "start it first, or name a process with -p",
        ));
    }
    for process in found.iter().take(MAX_PROCESSES) {
        findings.extend(process_findings(process.id));
    }
    if found.len() > MAX_PROCESSES {
        let more = found.len() - MAX_PROCESSES;
        findings.push(Diagnosis::note(
            format!("{more} more processes look like PHP or Python"),
            "check one with -p",
        ));
    }
    findings
}

fn scope_finding() -> Diagnosis {
    match ptrace_scope() {
        None => Diagnosis::good("the security module Yama does not restrict reading other processes"),
        Some(0) => Diagnosis::good("kernel.yama.ptrace_scope is 0: processes of the same user can be read"),
        Some(1) => Diagnosis::note(
            "kernel.yama.ptrace_scope is 1: without privileges, only descendants can be read",
            "run as root, start programs with `borehole record -- COMMAND`, or run `sysctl kernel.yama.ptrace_scope=0`",
        ),
        Some(scope) => {
            let obstacle = Obstacle::OnlyPrivileged { scope };
            Diagnosis::note(obstacle.reason(), obstacle.fix())
        }
    }
}

/// Whether the system takes samples of a process by itself.
fn events_finding(id: i32) -> Diagnosis {
    const PERIOD_NS: u64 = 1_000_000_000;
    const STACK_BYTES: u32 = 4096;
    match PerfEvents::open(id, &[id], PerfTrigger::CpuTime(PERIOD_NS), STACK_BYTES)
        .map(|events| events.kernel())
    {
        Ok(KernelCode::Sampled) => Diagnosis::good(
            "perf events are allowed: record --native --mode cpu (or off-cpu) samples programs without stopping them",
        ),
        Ok(KernelCode::LeftOut) => Diagnosis::note(
            "perf events are allowed outside the kernel: CPU time in system calls is not sampled by them, and --mode off-cpu is refused",
            "run as root, or `sysctl kernel.perf_event_paranoid=1`",
        ),
        Err(error) => Diagnosis::note(
            error.to_string(),
            "record --native --mode cpu stops each thread for a moment instead; --mode off-cpu is refused",
        ),
    }
}

fn process_findings(id: i32) -> Vec<Diagnosis> {
    let process = match Process::open(id) {
        Ok(process) => process,
        Err(error) => return refusal(id, &error),
    };
    let mut findings = vec![Diagnosis::good(format!("process {id} can be read"))];
    findings.push(match process.stopper().stop() {
        Ok(_stopped) => Diagnosis::good(format!("process {id} can be stopped for a sample")),
        Err(error) => Diagnosis::note(
            error.to_string(),
            "sampling works, but torn stacks are only retried, and there are no native frames",
        ),
    });
    findings.push(events_finding(id));
    if is_in_other_namespace(id) {
        let what = format!("process {id} is in a container; its files are read through /proc/{id}/root");
        findings.push(Diagnosis::good(what));
    }
    if is_python(id) {
        findings.push(python_finding(id));
        return findings;
    }
    findings.extend(php_findings(id));
    findings.extend(opcache_findings(id, &process));
    findings.extend(heap_finding(&process));
    findings
}

/// The memory of the command itself, in bytes.
const COMMAND_BYTES: u64 = 32 << 20;

/// The memory that copying the heap of the process takes; `None` if it has ended.
fn heap_finding(process: &Process) -> Option<Diagnosis> {
    let (id, resident) = (process.id(), resident_bytes(process).ok()?);
    let [has, dump, capture] = [resident, resident / 3 + COMMAND_BYTES, resident + COMMAND_BYTES].map(bytes);
    let most = bytes(borehole_memory::budget() as u64);
    let what = format!(
        "process {id} has {has} of memory: heap dump needs about {dump}, heap capture up to {capture}; --max-memory is {most}"
    );
    Some(Diagnosis::good(what))
}

fn refusal(id: i32, error: &borehole_process::Error) -> Vec<Diagnosis> {
    if error.kind() != borehole_process::ErrorKind::Denied {
        return vec![Diagnosis::bad(error.to_string(), "list processes with ps")];
    }
    let obstacles = obstacles(id);
    if obstacles.is_empty() {
        let fix = "a seccomp filter or a security module may forbid process_vm_readv and /proc/PID/mem";
        return vec![Diagnosis::bad(error.to_string(), fix)];
    }
    let finding = |obstacle: &Obstacle| {
        Diagnosis::bad(format!("process {id} cannot be read: {}", obstacle.reason()), obstacle.fix())
    };
    obstacles.iter().map(finding).collect()
}

fn is_in_other_namespace(id: i32) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    namespace(&id.to_string()) != namespace("self")
}

fn python_finding(id: i32) -> Diagnosis {
    match PythonProcess::attach_when_ready(id, &PythonOptions::default()) {
        Ok(python) => {
            let (identity, threads) = (python.identity(), counted(python.lanes() as u64, "thread"));
            Diagnosis::good(format!("process {id} runs {identity} with {threads}"))
        }
        Err(error) => Diagnosis::bad(refusal::text(id, &error), refusal::WHAT_IS_SAMPLED),
    }
}

fn php_findings(id: i32) -> Vec<Diagnosis> {
    let php = match PhpProcess::attach_when_ready(id, &PhpOptions::default()) {
        Ok(php) => php,
        Err(error) if error.is_other_program() => {
            let what =
                format!("process {id} runs neither PHP nor Python: record -p {id} samples its native stacks");
            return vec![Diagnosis::good(what)];
        }
        Err(error) => return vec![Diagnosis::bad(refusal::text(id, &error), refusal::WHAT_IS_PHP)],
    };
    let mut findings = vec![Diagnosis::good(format!("process {id} runs {}", php.identity()))];
    if php.identity().threads == ThreadModel::Many {
        findings.push(Diagnosis::good(format!("{} of its threads run PHP", php.lanes())));
    }
    findings
}

/// Findings about opcache, from the mappings of the process.
fn opcache_findings(id: i32, process: &Process) -> Vec<Diagnosis> {
    let has = |part: &[u8]| {
        process.mappings().iter().any(|mapping| mapping.path.windows(part.len()).any(|at| at == part))
    };
    if !has(b"opcache") {
        return Vec::new();
    }
    // The JIT compiler writes its code to shared executable memory.
    let is_jit = process.mappings().iter().any(|mapping| mapping.executable && mapping.shared);
    if is_jit {
        let what = format!("process {id} runs opcache's JIT compiler");
        let fix =
            "inlined calls are missing, and lines may be those of the call; opcache.jit=off shows all calls";
        return vec![Diagnosis::note(what, fix)];
    }
    vec![Diagnosis::good(format!("process {id} has opcache loaded, without JIT"))]
}
