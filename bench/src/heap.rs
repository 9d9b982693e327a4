//! Claims on the heap of PHP: `scale.php` of the corpus, with so many objects.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use borehole_heap::rmem::MappedGraph;
use xtask::peers;

use super::measure::{Usage, Work};
use super::{Bench, Claim, ClaimUnit, Goal};

/// The heap of a program with so many objects, as a file.
pub(super) struct HeapSetting {
    setting: HeapSteps,
    folder: PathBuf,
}

impl HeapSetting {
    /// `None` where PHP is not set up.
    pub(super) fn new(bench: &Bench, objects: u32) -> Result<Option<Self>> {
        let Some(php) = php()? else { return Ok(None) };
        let setting = HeapSteps::new(bench, &php, objects);
        Ok(Some(Self { setting, folder: bench.folder.clone() }))
    }

    /// The graph, made now if nobody has made it before.
    pub(super) fn graph(&self) -> Result<&Path> {
        if !self.setting.graph.exists() {
            self.setting.analysed()?;
        }
        Ok(&self.setting.graph)
    }

    /// Where a file that is made of it goes.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("heap-{}.{name}", self.setting.objects))
    }

    /// The command that is measured.
    pub(super) fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.setting.borehole);
        command.args(arguments);
        command
    }
}

/// PHP, if it is set up.
fn php() -> Result<Option<PathBuf>> {
    let Some(php) = peers::ready("php")? else { return Ok(None) };
    Ok(Some(php.command.first().context("expected the path of PHP, found none")?.into()))
}

/// A program with so many objects, and what came of it.
struct HeapSteps {
    php: PathBuf,
    program: PathBuf,
    borehole: PathBuf,
    objects: u32,
    dump: PathBuf,
    graph: PathBuf,
}

/// The goals for a heap with so many objects: seconds that the program stands still, seconds of analysis, bytes.
const GOALS: [(u32, f64, f64, f64); 2] = [(100_000, 0.03, 0.6, 200e6), (1_000_000, 0.2, 6.0, 1.5e9)];

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    // Where PHP is not set up there is no heap.
    let Some(php) = php()? else { return Ok(Vec::new()) };
    let mut claims = Vec::new();
    for (objects, stopped, analysed, bytes) in GOALS {
        let setting = Rc::new(HeapSteps::new(bench, &php, objects));
        let name = |what: &str| format!("PHP heap, {objects} objects: {what}");
        claims.extend(asked(&setting));
        claims.extend(captured(&setting));
        let (stop, analyse, memory, open) =
            (Rc::clone(&setting), Rc::clone(&setting), Rc::clone(&setting), setting);
        claims.extend([
            Claim::new(
                name("stopped"),
                ClaimUnit::Seconds,
                Goal::Value(stopped),
                Box::new(move || stop.stopped()),
            ),
            Claim::new(
                name("dump to .rmem"),
                ClaimUnit::Seconds,
                Goal::Value(analysed),
                Box::new(move || analyse.analysed()),
            ),
            Claim::new(
                name("peak memory"),
                ClaimUnit::Bytes,
                Goal::Value(bytes),
                Box::new(move || memory.memory()),
            ),
            Claim::new(
                name("graph opened"),
                ClaimUnit::Seconds,
                Goal::Value(0.05),
                Box::new(move || open.opened()),
            ),
        ]);
    }
    Ok(claims)
}

/// The goals for copying the heap of the running program, walking it and writing the graph, in one command.
fn captured(setting: &Rc<HeapSteps>) -> [Claim; 2] {
    let (seconds, bytes) = if setting.objects < 1_000_000 { (0.8, 200e6) } else { (8.0, 1.2e9) };
    let name = |what: &str| format!("PHP heap, {} objects: {what}", setting.objects);
    let (time, memory) = (Rc::clone(setting), Rc::clone(setting));
    [
        Claim::new(
            name("captured"),
            ClaimUnit::Seconds,
            Goal::Value(seconds),
            Box::new(move || Ok(time.capture()?.cpu_seconds)),
        ),
        Claim::new(
            name("captured, memory"),
            ClaimUnit::Bytes,
            Goal::Value(bytes),
            Box::new(move || Ok(memory.capture()?.peak_bytes)),
        ),
    ]
}

/// The goals for a report on the heap, from the start of the command to its end: it opens the graph, works out what each
/// node retains, and looks for everything; and of a comparison.
fn asked(setting: &Rc<HeapSteps>) -> [Claim; 3] {
    let (seconds, bytes) = if setting.objects < 1_000_000 { (0.8, 200e6) } else { (8.0, 1.5e9) };
    let name = |what: &str| format!("PHP heap, {} objects: {what}", setting.objects);
    let (time, memory) = (Rc::clone(setting), Rc::clone(setting));
    let compared = Rc::clone(setting);
    let run = |setting: &HeapSteps, command: &str, graphs: usize| -> Result<Usage> {
        if !setting.graph.exists() {
            setting.analysed()?;
        }
        let graphs = std::iter::repeat_n(setting.graph.clone().into_os_string(), graphs);
        Work::new(&setting.borehole, [OsString::from("heap"), command.into()].into_iter().chain(graphs)).run()
    };
    [
        Claim::new(
            name("findings"),
            ClaimUnit::Seconds,
            Goal::Value(seconds),
            Box::new(move || Ok(run(&time, "report", 1)?.cpu_seconds)),
        ),
        Claim::new(
            name("findings, memory"),
            ClaimUnit::Bytes,
            Goal::Value(bytes),
            Box::new(move || Ok(run(&memory, "report", 1)?.peak_bytes)),
        ),
        // Of a heap with itself: everything has to be found again.
        Claim::new(
            name("compared"),
            ClaimUnit::Seconds,
            Goal::Value(seconds * 1.5),
            Box::new(move || Ok(run(&compared, "compare", 2)?.cpu_seconds)),
        ),
    ]
}

impl HeapSteps {
    fn new(bench: &Bench, php: &Path, objects: u32) -> Self {
        let file = |ending: &str| bench.folder.join(format!("heap-{objects}.{ending}"));
        Self {
            php: php.to_owned(),
            program: bench.corpus("php/mem/scale.php"),
            borehole: bench.borehole.clone(),
            objects,
            dump: file("rdump"),
            graph: file("rmem"),
        }
    }

    /// Starts the program, and waits until it has its heap.
    fn start(&self) -> Result<Child> {
        let mut program = Command::new(&self.php);
        program.args(["-d", "memory_limit=-1"]).arg(&self.program).arg(self.objects.to_string());
        let mut child = program.env("WAIT", "600").stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let said = child.stderr.take().context("expected what it says, found nothing")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line.starts_with("READY"), "expected a program that is ready, found {line:?}");
        Ok(child)
    }

    /// Copies the heap a few times, and answers the shortest time for which the program stood still.
    fn stopped(&self) -> Result<f64> {
        let mut program = self.start()?;
        let times: Result<Vec<f64>> = (0..3).map(|_| self.dump(&program)).collect();
        program.kill()?;
        program.wait()?;
        Ok(times?.into_iter().fold(f64::INFINITY, f64::min))
    }

    fn dump(&self, program: &Child) -> Result<f64> {
        let mut dump = Command::new(&self.borehole);
        dump.args(["heap", "dump", "--force", "--pid", &program.id().to_string(), "--output"])
            .arg(&self.dump);
        let output = dump.output()?;
        let said = String::from_utf8(output.stderr)?;
        let stopped = said.split_once("stopped for ").and_then(|(_, rest)| rest.split_once(" ms"));
        let (milliseconds, _) =
            stopped.with_context(|| format!("expected how long it stood still: {said}"))?;
        Ok(milliseconds.parse::<f64>()? / 1e3)
    }

    fn capture(&self) -> Result<Usage> {
        let mut program = self.start()?;
        let process = program.id().to_string();
        let mut capture = Command::new(&self.borehole);
        capture.args(["heap", "capture", "--force", "--pid", &process, "--output"]).arg(&self.graph);
        let usage = Work::new(&self.borehole, capture.get_args()).run();
        program.kill()?;
        program.wait()?;
        usage
    }

    /// A dump, of this run or an earlier one.
    fn dumped(&self) -> Result<()> {
        if !self.dump.exists() {
            self.stopped()?;
        }
        Ok(())
    }

    /// Seconds from the start of the command to its end: its threads count together.
    fn analysed(&self) -> Result<f64> {
        self.dumped()?;
        let begin = Instant::now();
        let status = self.analysis().stderr(Stdio::null()).status()?;
        ensure!(status.success(), "borehole heap analyze: {status}");
        Ok(begin.elapsed().as_secs_f64())
    }

    fn analysis(&self) -> Command {
        let mut analysis = Command::new(&self.borehole);
        analysis.args(["heap", "analyze", "--force"]).arg(&self.dump).arg("--output").arg(&self.graph);
        analysis
    }

    fn memory(&self) -> Result<f64> {
        self.dumped()?;
        let analysis = self.analysis();
        Ok(Work::new(&self.borehole, analysis.get_args()).run()?.peak_bytes)
    }

    /// From the bytes of the file to a graph that can be walked.
    fn opened(&self) -> Result<f64> {
        if !self.graph.exists() {
            self.analysed()?;
        }
        let bytes = fs::read(&self.graph)?;
        let begin = Instant::now();
        let view = MappedGraph::open(&bytes)?;
        let seconds = begin.elapsed().as_secs_f64();
        drop(view);
        Ok(seconds)
    }
}
