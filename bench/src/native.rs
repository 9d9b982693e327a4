//! Claims on native frames: programs in C of the corpus, sampled by stops and by perf events.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use borehole_native::{NativeStack, SectionPool, Unwinder};
use borehole_process::{Process, Stopper};
use xtask::{command, peers};

use super::capture::counts;
use super::measure::{Usage, Work, thread_seconds};
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// How long each recording lasts, in seconds.
const SECONDS: u32 = 2;

/// The libraries of the program with many; with the program itself, the C library, the loader and the vDSO, there are 127 modules.
const LIBRARIES: u32 = 123;

/// How often a thread is stopped to find the median.
const STOPS: usize = 1001;

/// How often one stack is unwound, and the stops in which that is done.
const UNWINDS: usize = 20_000;
const UNWIND_STOPS: usize = 20;

/// Each wait of the program that seldom runs. There are two switches for each.
const WAIT_US: &str = "400";

/// The programs that are sampled, and what samples them.
struct NativeSetting {
    /// Takes CPU time, 17 calls deep.
    busy: PathBuf,
    /// Waits, and seldom runs.
    waits: PathBuf,
    /// Has many libraries, which are in the folder.
    modules: (PathBuf, PathBuf),
    borehole: PathBuf,
    file: PathBuf,
    perf: Option<PerfPeer>,
}

/// perf, and the name that the table gives it.
struct PerfPeer {
    program: PathBuf,
    version: String,
}

/// A program that is ended in the end.
struct Target(Child);

/// A recording of perf that was read by `perf script`.
struct PerfRun {
    record: Usage,
    script: Usage,
    samples: f64,
    bytes: f64,
}

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let setting = Rc::new(NativeSetting::new(bench)?);
    let (seconds, bytes, kept) = (ClaimUnit::Seconds, ClaimUnit::Bytes, ClaimUnit::PerSecond);
    let events = ["--mode", "cpu"].as_slice();
    let stops = ["--mode", "wall"].as_slice();
    let per_second = |run: &PerfRun| (run.record.cpu_seconds + run.script.cpu_seconds) / f64::from(SECONDS);
    Ok(vec![
        against_perf(unwound(&setting), &setting, |run| run.script.cpu_seconds / run.samples),
        setting.claim("C 17 deep: stacks of a thousand that reach the root", kept, 999.0, stops, whole),
        setting.claim(
            "C 17 deep by perf events: stacks of a thousand that reach the root",
            kept,
            999.0,
            events,
            whole,
        ),
        against_perf(
            setting.claim(
                "C 17 deep at 1 kHz, with stops: CPU time for a second",
                seconds,
                0.06,
                stops,
                cpu_share,
            ),
            &setting,
            per_second,
        ),
        against_perf(
            setting.claim(
                "C 17 deep at 1 kHz, by perf events: CPU time for a second",
                seconds,
                0.06,
                events,
                cpu_share,
            ),
            &setting,
            per_second,
        ),
        stopped(&setting),
        against_perf(
            setting.claim("C 17 deep at 1 kHz: bytes a sample", bytes, 4.0, stops, bytes_per_sample),
            &setting,
            |run| run.bytes / run.samples,
        ),
        attached(&setting),
        off_cpu(&setting),
    ])
}

/// The busy program, and what stops it and unwinds its stack.
struct Unwound {
    _target: Target,
    process: Process,
    stopper: Stopper,
    unwinder: Unwinder,
    stack: NativeStack,
}

impl Unwound {
    fn start(setting: &NativeSetting) -> Result<Self> {
        let target = Target::start(&setting.busy, &[])?;
        let process = Process::open(target.id()?)?;
        let (stopper, unwinder) = (process.stopper(), Unwinder::new(&SectionPool::default()));
        Ok(Self { _target: target, process, stopper, unwinder, stack: NativeStack::default() })
    }

    /// Stops the thread and unwinds its stack, then calls `more` with what unwinds it again.
    fn stop<T>(&mut self, more: impl FnOnce(&mut dyn FnMut() -> Result<()>) -> Result<T>) -> Result<T> {
        let Self { process, stopper, unwinder, stack, .. } = self;
        let stopped = stopper.stop_thread(process.id())?;
        let registers = stopped.registers().context("missing registers")?;
        let mut unwind = || Ok(unwinder.unwind(process, registers, stack)?);
        unwind()?;
        more(&mut unwind)
    }
}

/// The time that it takes to unwind one stack.
fn unwound(setting: &Rc<NativeSetting>) -> Claim {
    let setting = Rc::clone(setting);
    let ours = move || {
        let (mut target, mut taken) = (Unwound::start(&setting)?, 0.0);
        for _ in 0..UNWIND_STOPS {
            taken += target.stop(|unwind| {
                let begin = thread_seconds()?;
                for _ in 0..UNWINDS / UNWIND_STOPS {
                    unwind()?;
                }
                Ok(thread_seconds()? - begin)
            })?;
        }
        Ok(taken / UNWINDS as f64)
    };
    let name = "C 17 deep: CPU time to unwind a stack".to_owned();
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(5e-6), Box::new(ours))
}

/// The time for which a thread is stopped, with its stack read and unwound meanwhile: the median.
fn stopped(setting: &Rc<NativeSetting>) -> Claim {
    let setting = Rc::clone(setting);
    let ours = move || {
        let mut target = Unwound::start(&setting)?;
        let mut times = Vec::with_capacity(STOPS);
        for _ in 0..STOPS {
            let begin = Instant::now();
            target.stop(|_| Ok(()))?;
            times.push(begin.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(times[STOPS / 2])
    };
    let name = "C 17 deep: a stop, in the median".to_owned();
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(60e-6), Box::new(ours))
}

/// From the start of a command to a stack on its output.
fn attached(setting: &Rc<NativeSetting>) -> Claim {
    let setting = Rc::clone(setting);
    let ours = move || {
        let (program, libraries) = &setting.modules;
        let target = Target::start(program, &[&libraries.display().to_string(), &LIBRARIES.to_string()])?;
        let begin = Instant::now();
        let mut stack = Command::new(&setting.borehole);
        let printed = stack.args(["stack", "--pid", &target.0.id().to_string()]).output()?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        Ok(seconds)
    };
    let name = "C with 127 modules, attached to and one stack printed".to_owned();
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(0.1), Box::new(ours))
}

/// The waits of a program that leaves the CPU some thousand times a second.
fn off_cpu(setting: &Rc<NativeSetting>) -> Claim {
    let (ours, theirs) = (Rc::clone(setting), Rc::clone(setting));
    let run = move || {
        let target = Target::start(&ours.waits, &[WAIT_US])?;
        cpu_share(&ours.file, ours.record(&target, "100", &["--mode", "off-cpu"])?)
    };
    let name = "C that waits 2,000 times a second: CPU time for a second of off-CPU samples".to_owned();
    let claim = Claim::new(name, ClaimUnit::Seconds, Goal::Ratio(1.0), Box::new(run));
    let Some(perf) = &setting.perf else { return claim };
    let reference = format!("perf {}, context-switches", perf.version);
    claim.against(
        reference,
        Box::new(move || {
            let target = Target::start(&theirs.waits, &[WAIT_US])?;
            let run = theirs.run_perf(&target, &["-e", "context-switches", "-c", "1"])?;
            Ok((run.record.cpu_seconds + run.script.cpu_seconds) / f64::from(SECONDS))
        }),
    )
}

/// The claim beside perf on the busy program, if it is set up.
fn against_perf(claim: Claim, setting: &Rc<NativeSetting>, of: fn(&PerfRun) -> f64) -> Claim {
    let Some(perf) = &setting.perf else { return claim };
    let (setting, name) = (Rc::clone(setting), format!("perf {}, dwarf", perf.version));
    let run: Side = Box::new(move || {
        let target = Target::start(&setting.busy, &[])?;
        Ok(of(&setting.run_perf(&target, &["-e", "cpu-clock", "-c", "1000000"])?))
    });
    claim.against(name, run)
}

impl NativeSetting {
    fn new(bench: &Bench) -> Result<Self> {
        let compile = |name: &str, more: &[&str]| compiled(bench, name, more);
        let busy = compile("shares", &["-fno-optimize-sibling-calls", "-fomit-frame-pointer"])?;
        let libraries = bench.folder.join("native-libraries");
        fs::create_dir_all(&libraries)?;
        let library = fs::read(compile("modules", &["-shared", "-fPIC"])?)?;
        for number in 0..LIBRARIES {
            fs::write(libraries.join(format!("m{number}.so")), &library)?;
        }
        let perf = peers::ready("perf")?.map(|ready| {
            let program = ready.command.first().context("perf has a path")?.into();
            anyhow::Ok(PerfPeer { program, version: ready.version })
        });
        Ok(Self {
            busy,
            waits: compile("waits", &[])?,
            modules: (compile("modules", &[])?, libraries),
            borehole: bench.borehole.clone(),
            file: bench.folder.join("native.rbt"),
            perf: perf.transpose()?,
        })
    }

    /// A claim on a recording of the busy program at 1 kHz.
    fn claim(
        self: &Rc<Self>,
        name: &str,
        unit: ClaimUnit,
        goal: f64,
        options: &'static [&'static str],
        of: fn(&Path, Usage) -> Result<f64>,
    ) -> Claim {
        let setting = Rc::clone(self);
        let ours = move || {
            let target = Target::start(&setting.busy, &[])?;
            of(&setting.file, setting.record(&target, "1000", options)?)
        };
        Claim::new(name.to_owned(), unit, Goal::Value(goal), Box::new(ours))
    }

    fn record(&self, target: &Target, rate: &str, options: &[&str]) -> Result<Usage> {
        let (pid, duration) = (target.0.id().to_string(), format!("{SECONDS}s"));
        let common =
            ["record", "--native", "--format=rbt", "--duration", &duration, "--pid", &pid, "--rate", rate];
        Work::new(&self.borehole, common.into_iter().chain(options.iter().copied())).saving(&self.file).run()
    }

    fn run_perf(&self, target: &Target, event: &[&str]) -> Result<PerfRun> {
        let perf = self.perf.as_ref().context("perf is there")?;
        let file = self.file.with_extension("perf.data");
        let (file_name, pid, seconds) =
            (file.display().to_string(), target.0.id().to_string(), SECONDS.to_string());
        let common = ["record", "-q", "--call-graph", "dwarf", "-o", &file_name, "-p", &pid];
        let arguments =
            common.into_iter().chain(event.iter().copied()).chain(["--", "sleep", seconds.as_str()]);
        let record = Work::new(&perf.program, arguments).run()?;
        let script = Work::new(&perf.program, ["script", "-i", &file_name]).run()?;
        let listed = command::output(
            Command::new(&perf.program).args(["script", "-F", "tid,time", "-i", &file_name]),
        )?;
        let samples = listed.lines().filter(|line| !line.trim().is_empty()).count() as f64;
        Ok(PerfRun { record, script, samples, bytes: fs::metadata(&file)?.len() as f64 })
    }
}

impl Target {
    /// Starts a program, and waits until it is at work.
    fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let target = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn();
        let mut target = Self(target.with_context(|| program.display().to_string())?);
        let mut line = String::new();
        BufReader::new(target.0.stdout.take().context("its output is a pipe")?).read_line(&mut line)?;
        ensure!(line == "ready\n", "expected ready, found {line}");
        Ok(target)
    }

    fn id(&self) -> Result<i32> {
        Ok(self.0.id().try_into()?)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Compiles a program of the corpus.
fn compiled(bench: &Bench, name: &str, more: &[&str]) -> Result<PathBuf> {
    let shape = if more.contains(&"-shared") { "so" } else { "bin" };
    let program = bench.folder.join(format!("native-{name}.{shape}"));
    let source = bench.corpus(&format!("native/{name}.c"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "-o"]).arg(&program).arg(source).args(more);
    let status = gcc.status().context("gcc")?;
    ensure!(status.success(), "gcc: {status}");
    Ok(program)
}

/// Of a thousand stacks, those that were followed to their root.
fn whole(file: &Path, _usage: Usage) -> Result<f64> {
    let [whole, stacks] = counts(file, ["native.whole", "native.stacks"])?;
    Ok(1000.0 * whole / stacks)
}

fn cpu_share(_file: &Path, usage: Usage) -> Result<f64> {
    Ok(usage.cpu_seconds / f64::from(SECONDS))
}

fn bytes_per_sample(file: &Path, _usage: Usage) -> Result<f64> {
    let [taken] = counts(file, ["samples.taken"])?;
    Ok(fs::metadata(file)?.len() as f64 / taken)
}
