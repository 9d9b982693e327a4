//! Claims on whole conversions: the command, as a user runs it.

use std::path::Path;

use super::inputs::{Traces, name};
use super::measure::Work;
use super::{Bench, Claim, ClaimUnit, Goal};

/// The most CPU time for a million samples.
const MILLION_SECONDS: f64 = 0.060;

/// The most that a streaming conversion may hold, however long its input.
const STREAMING_BYTES: f64 = 24e6;

/// How much more a hundred times as many samples may take. Where pages fall differs from run to run.
const SAME_MEMORY: f64 = 0.9;

/// The formats that are written as the input streams by, or from what is distinct in it.
const STREAMED: [&str; 6] = ["folded", "pprof", "callgrind", "speedscope", "jsonl", "rbt"];

pub(crate) fn claims(bench: &Bench, traces: &Traces) -> Vec<Claim> {
    let mut claims = vec![piped(bench, &traces.million)];
    for format in ["folded", "pprof"] {
        claims.extend([&traces.million, &traces.timed].map(|input| cpu(bench, input, format)));
    }
    for format in STREAMED {
        claims.push(memory(bench, &traces.million, &traces.hundred_million, format));
    }
    let [few, many] = &traces.shallow;
    claims.push(memory(bench, few, many, "phpspy"));
    claims
}

/// A pipe is as good as a file.
fn piped(bench: &Bench, input: &Path) -> Claim {
    let work = convert(bench, Path::new("-"), "folded").reading(input);
    let name = format!("{} from a pipe to folded, CPU", name(input));
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(MILLION_SECONDS), work.cpu_seconds())
}

fn cpu(bench: &Bench, input: &Path, format: &str) -> Claim {
    let work = convert(bench, input, format).saving(&bench.folder.join(format!("output.{format}")));
    let name = format!("{} to {format}, CPU", name(input));
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(MILLION_SECONDS), work.cpu_seconds())
}

/// Memory for many samples beside that for few, which is the reference here. It does not depend on what else
/// the machine does, so once is enough.
fn memory(bench: &Bench, few: &Path, many: &Path, format: &str) -> Claim {
    let goal = Goal::Both { value: STREAMING_BYTES, ratio: SAME_MEMORY };
    let claim_name = format!("{} to {format}, peak memory", name(many));
    let ours = convert(bench, many, format).peak_bytes();
    let reference = convert(bench, few, format).peak_bytes();
    Claim::new(claim_name, ClaimUnit::Bytes, goal, ours).against(name(few), reference).once()
}

fn convert(bench: &Bench, input: &Path, format: &str) -> Work {
    let words = ["convert".as_ref(), input.as_os_str(), "--to".as_ref(), format.as_ref()];
    Work::new(&bench.borehole, words)
}
