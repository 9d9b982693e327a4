//! Claims on sampling Python while it runs: `busy.py` of the corpus, which counts what it gets done.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use xtask::peers;

use super::capture::{counts, operations};
use super::measure::Work;
use super::python::PythonPeer;
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// How long each recording lasts, in seconds.
const SECONDS: u32 = 2;

/// How long Python takes to get to work.
const START: Duration = Duration::from_millis(700);

/// The program that is sampled, and what samples it.
struct PythonSetting {
    python: PythonPeer,
    /// The program, as Python sees it.
    program: String,
    borehole: PathBuf,
    file: PathBuf,
}

/// A kind of work, threads or tasks that do it, and the depth of their stacks.
#[derive(Clone, Copy)]
struct Load(&'static str, u32, u32);

/// The result of sampling.
struct Recorded {
    cpu_seconds: f64,
    peak_bytes: f64,
    taken: f64,
    lost: f64,
    missed: f64,
    cut: f64,
    operations: f64,
}

/// One hot thread.
const ONE: Load = Load("calls", 1, 10);

/// Threads that wait for each other's lock.
const EIGHT: Load = Load("calls", 8, 30);

const GENERATORS: Load = Load("generators", 1, 20);

const TASKS: Load = Load("tasks", 10_000, 0);

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let Some(python) = PythonPeer::find(bench, "sampling Python")? else { return Ok(Vec::new()) };
    let program = python.lend(&bench.corpus("python/speed/busy.py"))?;
    let file = bench.folder.join("python.rbt");
    let setting = Rc::new(PythonSetting { python, program, borehole: bench.borehole.clone(), file });
    let (seconds, bytes, kept) = (ClaimUnit::Seconds, ClaimUnit::Bytes, ClaimUnit::PerSecond);
    let fast = ["--rate=max"].as_slice();
    let thousand = ["--rate=1000"].as_slice();
    let claim = |name, unit, goal, load, options, of| setting.claim(name, unit, goal, (load, options), of);
    let name = "Python 10 deep, as fast as it can: CPU time for a sample";
    let mut hot = claim(name, seconds, 6e-6, ONE, fast, Recorded::cpu_per_sample);
    if let Some((version, run)) = setting.py_spy(ONE, "--nonblocking")? {
        hot = hot.against(version, run);
    }
    let name = "Python 10 deep with native frames at 1 kHz: CPU time for a sample";
    let mut native = claim(name, seconds, 60e-6, ONE, &["--rate=1000", "--native"], Recorded::cpu_per_sample);
    if let Some((version, run)) = setting.py_spy(ONE, "--native")? {
        native = native.against(version, run);
    }
    let name = "eight threads of Python 30 deep, as fast as it can: CPU time for a sample";
    let eight = claim(name, seconds, 2.5e-6, EIGHT, fast, Recorded::cpu_per_sample);
    let name = "eight threads of Python 30 deep at 1 kHz: CPU time for a second";
    let eight_steady = claim(name, seconds, 0.04, EIGHT, thousand, Recorded::cpu_share);
    let name = "eight threads of Python 30 deep at 1 kHz: peak memory";
    let eight_small = claim(name, bytes, 12e6, EIGHT, thousand, |recorded| recorded.peak_bytes);
    let name = "generators of Python at 1 kHz: whole stacks of a thousand";
    let generators = claim(name, kept, 999.0, GENERATORS, thousand, Recorded::kept);
    let name = "10,000 tasks of asyncio at 100 Hz: looks of a hundred that see all";
    let tasks = claim(name, kept, 90.0, TASKS, &["--rate=100", "--async=all"], Recorded::whole_looks);
    let (undisturbed, attached) = (undisturbed(&setting), attached(&setting));
    Ok(vec![hot, native, eight, eight_steady, eight_small, generators, tasks, undisturbed, attached])
}

/// The work that 160 threads get done while they are sampled, and while they are not.
fn undisturbed(setting: &Rc<PythonSetting>) -> Claim {
    let load = Load("calls", 160, 10);
    let (sampled, alone) = (Rc::clone(setting), Rc::clone(setting));
    let ours = Box::new(move || Ok(sampled.recorded(load, &["--rate=100"])?.operations));
    let claim = Claim::new(
        "160 threads of Python at 100 Hz: what they get done".to_owned(),
        ClaimUnit::PerSecond,
        Goal::Ratio(0.98),
        ours,
    );
    claim.against("not sampled".to_owned(), Box::new(move || operations(alone.start(load)?)))
}

/// From the start of a command to a stack on its output.
fn attached(setting: &Rc<PythonSetting>) -> Claim {
    let setting = Rc::clone(setting);
    let ours = move || {
        let target = setting.start(Load("calls", 1, 10))?;
        let begin = Instant::now();
        let printed =
            Command::new(&setting.borehole).args(["stack", "--pid", &target.id().to_string()]).output()?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        operations(target)?;
        Ok(seconds)
    };
    let name = "Python, attached to and one stack printed".to_owned();
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(0.05), Box::new(ours))
}

impl PythonSetting {
    /// Starts the program, which lives a second longer than a recording.
    fn start(&self, Load(work, threads, depth): Load) -> Result<Child> {
        let numbers = [threads, depth, SECONDS + 1].map(|number| number.to_string());
        let arguments = [self.program.as_str(), work].into_iter().chain(numbers.iter().map(String::as_str));
        let mut program = self.python.command(&arguments.collect::<Vec<_>>());
        let child = program.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        thread::sleep(START);
        Ok(child)
    }

    fn recorded(&self, load: Load, options: &[&str]) -> Result<Recorded> {
        let target = self.start(load)?;
        let (pid, duration) = (target.id().to_string(), format!("{SECONDS}s"));
        let common = ["record", "--format=rbt", "--duration", &duration, "--pid", &pid];
        let usage = Work::new(&self.borehole, common.into_iter().chain(options.iter().copied()))
            .saving(&self.file)
            .run()?;
        let operations = operations(target)?;
        let [taken, torn, failed, missed, cut] = counts(
            &self.file,
            ["samples.taken", "samples.torn", "samples.failed", "samples.missed", "samples.cut_tasks"],
        )?;
        Ok(Recorded {
            cpu_seconds: usage.cpu_seconds,
            peak_bytes: usage.peak_bytes,
            taken,
            lost: torn + failed,
            missed,
            cut,
            operations,
        })
    }

    fn claim(
        self: &Rc<Self>,
        name: &str,
        unit: ClaimUnit,
        goal: f64,
        (load, options): (Load, &'static [&'static str]),
        of: fn(&Recorded) -> f64,
    ) -> Claim {
        let setting = Rc::clone(self);
        let ours = Box::new(move || Ok(of(&setting.recorded(load, options)?)));
        Claim::new(name.to_owned(), unit, Goal::Value(goal), ours)
    }

    /// The CPU time that py-spy takes for a sample, with one more option; `None` if it is not set up.
    fn py_spy(self: &Rc<Self>, load: Load, option: &'static str) -> Result<Option<(String, Side)>> {
        let Some(ready) = peers::ready("py-spy")? else { return Ok(None) };
        let (setting, name) = (Rc::clone(self), format!("py-spy {} {option}, at 1 kHz", ready.version));
        let run = move || {
            let program = ready.command.first().context("py-spy has a path")?;
            let target = setting.start(load)?;
            let (pid, duration) = (target.id().to_string(), SECONDS.to_string());
            let file = setting.file.with_extension("folded");
            let common = ["record", option, "--rate", "1000", "--format", "raw", "--duration"];
            let rest = [duration.as_str(), "--pid", &pid, "--output", &file.display().to_string()]
                .map(str::to_owned);
            let arguments = common.into_iter().map(str::to_owned).chain(rest);
            let usage = Work::new(Path::new(program), arguments).run()?;
            operations(target)?;
            Ok(usage.cpu_seconds / folded_samples(&fs::read_to_string(&file)?)?)
        };
        Ok(Some((name, Box::new(run))))
    }
}

impl Recorded {
    fn cpu_per_sample(&self) -> f64 {
        self.cpu_seconds / self.taken
    }

    fn cpu_share(&self) -> f64 {
        self.cpu_seconds / f64::from(SECONDS)
    }

    /// Of a thousand stacks that were read, those that were whole.
    fn kept(&self) -> f64 {
        1000.0 * self.taken / (self.taken + self.lost)
    }

    /// Of a hundred looks, those that were in time and left no task out.
    fn whole_looks(&self) -> f64 {
        let asked = f64::from(SECONDS) * 100.0;
        100.0 * (1.0 - (self.cut + self.missed) / asked)
    }
}

/// The samples in lines of stacks, each with its number at the end.
fn folded_samples(text: &str) -> Result<f64> {
    let number = |line: &str| Ok(line.rsplit(' ').next().context("a line has a number")?.parse::<f64>()?);
    text.lines().map(number).sum()
}
