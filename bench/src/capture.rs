//! Claims on sampling PHP while it runs: `busy.php` of the corpus, which counts what it gets done.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use borehole_formats::rbt::{Reader, Record};
use xtask::peers;

use super::measure::{Usage, Work};
use super::{Bench, Claim, ClaimUnit, Goal};

/// How long each capture lasts.
const SECONDS: u32 = 2;

/// How long PHP takes to get to work.
const START: Duration = Duration::from_millis(300);

/// Frames that are not those of the method that calls itself: the main program, its first call, the leaf.
const OTHER_FRAMES: u32 = 3;

/// The program that is sampled, and what samples it.
struct CaptureSetting {
    php: PathBuf,
    program: PathBuf,
    borehole: PathBuf,
    file: PathBuf,
}

/// The result of sampling.
struct Capture {
    usage: Usage,
    asked: f64,
    taken: f64,
    bytes: f64,
    /// The work that the sampled program got done in a second.
    operations: f64,
}

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    // Where PHP is not set up there is nothing to sample.
    let Some(php) = peers::ready("php")? else { return Ok(Vec::new()) };
    let setting = Rc::new(CaptureSetting {
        php: php.command.first().context("expected the path of PHP, found none")?.into(),
        program: bench.corpus("php/trace/busy.php"),
        borehole: bench.borehole.clone(),
        file: bench.folder.join("capture.rbt"),
    });
    let mut claims = Vec::new();
    for depth in [10, 30, 100, 200] {
        let name = format!("PHP {depth} deep at 1 kHz: samples");
        claims.push(claim(&setting, name, ClaimUnit::PerSecond, 995.0, depth, "1000", Capture::kept));
    }
    for (depth, rate, what, goal) in
        [(10, "1000", "1 kHz", 0.04), (200, "1000", "1 kHz", 0.04), (10, "10000", "10 kHz", 0.25)]
    {
        let name = format!("PHP {depth} deep at {what}: CPU time for a second");
        claims.push(claim(&setting, name, ClaimUnit::Seconds, goal, depth, rate, Capture::cpu_share));
    }
    for (depth, goal) in [(10, 200e3), (200, 50e3)] {
        let name = format!("PHP {depth} deep, as fast as it can: samples");
        claims.push(claim(&setting, name, ClaimUnit::PerSecond, goal, depth, "max", Capture::speed));
    }
    let name = "PHP 10 deep, as fast as it can: CPU time for a sample".to_owned();
    claims.push(claim(&setting, name, ClaimUnit::Seconds, 4e-6, 10, "max", Capture::cpu_per_sample));
    let name = "PHP 10 deep at 1 kHz: bytes a sample, with its time".to_owned();
    claims.push(claim(&setting, name, ClaimUnit::Bytes, 6.0, 10, "1000", Capture::bytes_per_sample));
    claims.push(undisturbed(&setting));
    claims.push(attached(&setting));
    claims.push(many(&setting));
    Ok(claims)
}

fn claim(
    setting: &Rc<CaptureSetting>,
    name: String,
    unit: ClaimUnit,
    goal: f64,
    depth: u32,
    rate: &'static str,
    of: fn(&Capture) -> f64,
) -> Claim {
    let setting = Rc::clone(setting);
    Claim::new(name, unit, Goal::Value(goal), Box::new(move || Ok(of(&setting.capture(depth, rate)?))))
}

/// The work that the program gets done while it is sampled, and while it is not.
fn undisturbed(setting: &Rc<CaptureSetting>) -> Claim {
    let name = "PHP 10 deep at 1 kHz: what it gets done".to_owned();
    let (sampled, alone) = (Rc::clone(setting), Rc::clone(setting));
    let ours = Box::new(move || Ok(sampled.capture(10, "1000")?.operations));
    let claim = Claim::new(name, ClaimUnit::PerSecond, Goal::Ratio(0.98), ours);
    claim.against("not sampled".to_owned(), Box::new(move || operations(alone.start(10, SECONDS)?)))
}

/// From the start of a command to a stack on its output.
fn attached(setting: &Rc<CaptureSetting>) -> Claim {
    let setting = Rc::clone(setting);
    let ours = move || {
        let target = setting.start(10, 1)?;
        let begin = Instant::now();
        let mut stack = Command::new(&setting.borehole);
        let printed = stack.args(["stack", "--pid", &target.id().to_string()]).output()?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        operations(target)?;
        Ok(seconds)
    };
    let name = "PHP, started, attached to and one stack printed".to_owned();
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(0.03), Box::new(ours))
}

/// Ten processes at once.
fn many(setting: &Rc<CaptureSetting>) -> Claim {
    let setting = Rc::clone(setting);
    let ours = move || {
        let targets: Vec<Child> = (0..10).map(|_| setting.start(10, SECONDS)).collect::<Result<_>>()?;
        let pattern = setting.program.display().to_string();
        let usage = setting.record(&["--pattern", &pattern, "--rate", "100"])?;
        targets.into_iter().try_for_each(|target| operations(target).map(drop))?;
        Ok(usage.peak_bytes)
    };
    let name = "ten processes of PHP at 100 Hz: peak memory".to_owned();
    Claim::new(name, ClaimUnit::Bytes, Goal::Value(12e6), Box::new(ours))
}

impl CaptureSetting {
    /// Starts the program, whose stacks are `depth` deep.
    fn start(&self, depth: u32, seconds: u32) -> Result<Child> {
        let mut program = Command::new(&self.php);
        program.arg(&self.program).args([seconds, depth - OTHER_FRAMES].map(|number| number.to_string()));
        let child = program.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        thread::sleep(START);
        Ok(child)
    }

    fn record(&self, options: &[&str]) -> Result<Usage> {
        let duration = format!("{}s", SECONDS - 1);
        let common = ["record", "--force", "--duration", &duration, "--output"];
        let file = self.file.display().to_string();
        Work::new(&self.borehole, common.into_iter().chain([file.as_str()]).chain(options.iter().copied()))
            .run()
    }

    fn capture(&self, depth: u32, rate: &str) -> Result<Capture> {
        let target = self.start(depth, SECONDS)?;
        let usage = self.record(&["--pid", &target.id().to_string(), "--rate", rate])?;
        let operations = operations(target)?;
        let [asked, taken] = counts(&self.file, ["samples.asked", "samples.taken"])?;
        let bytes = fs::metadata(&self.file)?.len() as f64;
        Ok(Capture { usage, asked, taken, bytes, operations })
    }
}

impl Capture {
    /// Of a thousand deadlines, those that yielded a sample.
    fn kept(&self) -> f64 {
        self.taken / self.asked * 1000.0
    }

    fn speed(&self) -> f64 {
        self.taken / f64::from(SECONDS - 1)
    }

    fn cpu_share(&self) -> f64 {
        self.usage.cpu_seconds / f64::from(SECONDS - 1)
    }

    fn cpu_per_sample(&self) -> f64 {
        self.usage.cpu_seconds / self.taken
    }

    fn bytes_per_sample(&self) -> f64 {
        self.bytes / self.taken
    }
}

/// Numbers that a recording holds of itself: sums, where several processes have one each.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn counts<const N: usize>(file: &Path, keys: [&str; N]) -> Result<[f64; N]> {
    let mut counts = [0.0; N];
    let mut reader = Reader::new(File::open(file)?);
    while let Some(record) = reader.next_record()? {
        let Record::Metadata { key, value } = record else { continue };
        if let Some(at) = keys.iter().position(|wanted| wanted.as_bytes() == key) {
            counts[at] += std::str::from_utf8(value)?.parse::<f64>()?;
        }
    }
    Ok(counts)
}

/// Waits for the program's end, and reads what it says it got done in a second.
///
/// # Errors
/// When it fails, or does not say it.
pub(crate) fn operations(mut target: Child) -> Result<f64> {
    let mut said = String::new();
    target.stderr.take().context("its standard error is a pipe")?.read_to_string(&mut said)?;
    ensure!(target.wait()?.success(), "the sampled program ended badly: {said}");
    let number = said.split_whitespace().find_map(|word| word.strip_prefix("ops_per_s="));
    Ok(number.with_context(|| format!("expected ops_per_s, found {said}"))?.parse()?)
}
