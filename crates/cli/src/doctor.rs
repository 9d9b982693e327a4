//! `borehole doctor`: whether capturing will work here, and if not, why and what helps.

use std::fs;
use std::io::{self, Write as _};

use borehole::capture::{PhpOptions, PhpProcess, Subject as _};
use borehole_php::Threads;
use borehole_process::{Obstacle, Process, Stopper, Target as _, obstacles, processes, ptrace_scope};
use clap::Args;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::outputs::stdout_error;
use crate::refusal;

/// What to look at.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// A process; without it the system and all processes that look like PHP are looked at
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
struct Finding {
    verdict: Verdict,
    what: String,
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    /// It works, but something is to be known.
    Note,
    Bad,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

impl Finding {
    fn good(what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Good, what: what.into(), fix: None }
    }

    fn note(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, what: what.into(), fix: Some(fix.into()) }
    }

    fn bad(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Bad, what: what.into(), fix: Some(fix.into()) }
    }
}

/// Whether the program that a command line begins with has a name like PHP's.
fn looks_like_php(command: &[u8]) -> bool {
    let program = command.split(|&byte| byte == b' ').next().unwrap_or_default();
    let name = program.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.windows(3).any(|part| part == b"php") || [b"apache2".as_slice(), b"httpd"].contains(&name)
}

/// How many processes are looked at when none is named.
const MAX_PROCESSES: usize = 20;

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
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
    io::stdout().write_all(text.as_bytes()).map_err(stdout_error)?;
    let is_bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    Ok(if is_bad { Exit::Failed } else { Exit::Done })
}

fn line(finding: &Finding) -> String {
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!("      {fix}\n"));
    format!("{:4}  {}\n{fix}", finding.verdict.word(), finding.what)
}

fn system_findings() -> Vec<Finding> {
    let mut findings = vec![scope_finding()];
    let all = processes().unwrap_or_default();
    let found: Vec<_> = all.iter().filter(|process| looks_like_php(&process.command)).collect();
    if found.is_empty() {
        findings.push(Finding::note("no process looks like PHP", "name one with -p, or start it first"));
    }
    for process in found.iter().take(MAX_PROCESSES) {
        findings.extend(process_findings(process.id));
    }
    if found.len() > MAX_PROCESSES {
        let more = found.len() - MAX_PROCESSES;
        findings.push(Finding::note(format!("{more} more processes look like PHP"), "look at one with -p"));
    }
    findings
}

fn scope_finding() -> Finding {
    let fix = "run as root, or start programs with `borehole record -- COMMAND`, or `sysctl kernel.yama.ptrace_scope=0`";
    match ptrace_scope() {
        None => Finding::good("the security module Yama does not restrict who may read whom"),
        Some(0) => Finding::good("kernel.yama.ptrace_scope is 0: processes of the same user may be read"),
        Some(1) => Finding::note(
            "kernel.yama.ptrace_scope is 1: without privileges only descendants may be read",
            fix,
        ),
        Some(scope) => Finding::note(
            format!("kernel.yama.ptrace_scope is {scope}: only CAP_SYS_PTRACE may read, if anybody"),
            fix,
        ),
    }
}

fn process_findings(id: i32) -> Vec<Finding> {
    let process = match Process::open(id) {
        Ok(process) => process,
        Err(error) => return refusal(id, &error),
    };
    let mut findings = vec![Finding::good(format!("process {id} may be read"))];
    findings.push(match Stopper::new(id).stop() {
        Ok(_stopped) => Finding::good(format!("process {id} may be stopped for a sample")),
        Err(error) => {
            Finding::note(error.to_string(), "sampling works all the same; torn stacks are only retried")
        }
    });
    if is_in_other_namespace(id) {
        let what = format!("process {id} is in a container: its files are read through /proc/{id}/root");
        findings.push(Finding::good(what));
    }
    findings.extend(php_findings(id));
    findings.extend(opcache_findings(id, &process));
    findings
}

fn refusal(id: i32, error: &borehole_process::Error) -> Vec<Finding> {
    if error.kind() != borehole_process::ErrorKind::Denied {
        return vec![Finding::bad(error.to_string(), "look for it with ps")];
    }
    let obstacles = obstacles(id);
    if obstacles.is_empty() {
        let fix = "a seccomp filter or another security module may forbid process_vm_readv and /proc/PID/mem";
        return vec![Finding::bad(error.to_string(), fix)];
    }
    let finding = |obstacle: &Obstacle| {
        Finding::bad(format!("process {id} may not be read: {}", obstacle.reason()), obstacle.fix())
    };
    obstacles.iter().map(finding).collect()
}

fn is_in_other_namespace(id: i32) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    namespace(&id.to_string()) != namespace("self")
}

fn php_findings(id: i32) -> Vec<Finding> {
    let php = match PhpProcess::attach_when_ready(id, &PhpOptions::default()) {
        Ok(php) => php,
        Err(error) => {
            return vec![Finding::bad(refusal::text(id, &error), refusal::WHAT_IS_PHP)];
        }
    };
    let mut findings = vec![Finding::good(format!("process {id} runs {}", php.identity()))];
    if php.identity().threads == Threads::Many {
        findings.push(Finding::good(format!("{} threads of it serve requests", php.lanes())));
    }
    findings
}

/// What opcache has mapped.
fn opcache_findings(id: i32, process: &Process) -> Vec<Finding> {
    let has = |part: &[u8]| {
        process.mappings().iter().any(|mapping| mapping.path.windows(part.len()).any(|at| at == part))
    };
    if !has(b"opcache") {
        return Vec::new();
    }
    // Code that is made while it runs stands in memory that is shared and can be executed.
    let is_jit = process.mappings().iter().any(|mapping| mapping.executable && mapping.shared);
    if is_jit {
        let what = format!("process {id} has opcache's JIT compiler on");
        let fix = "calls that it has compiled into their callers do not show, and lines may be those of the call; \
                   opcache.jit=off shows all";
        return vec![Finding::note(what, fix)];
    }
    vec![Finding::good(format!("process {id} has opcache loaded, without JIT"))]
}
