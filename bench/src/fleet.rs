//! A fleet that is made up: what a thousand machines write that sample their PHP workers a hundred times a second.
//!
//! * Each machine is of one service, and writes one trace: in each of ten hours it samples for a hundred seconds.
//! * A service has 10,000 stacks; few of them are common, most are rare (Zipf's law with exponent 1).
//! * A worker stays in a stack for more than one sample four times out of ten, and serves a request, which a label names, for
//!   some samples.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use borehole_formats::rbt::{FrameDef, Header, SampleDef, StackId, Writer};
use borehole_testkit::fuzzing::Random;

use super::Bench;

/// How many machines there are.
pub(crate) const HOSTS: usize = 1000;
/// How many services they are of.
pub(crate) const SERVICES: usize = 10;
/// How many samples each machine takes.
pub(crate) const SAMPLES_OF_HOST: usize = 100_000;
/// All samples.
pub(crate) const SAMPLES: usize = HOSTS * SAMPLES_OF_HOST;
/// When the first machine begins, in seconds since 1970: 2026-11-02T08:00:00Z.
pub(crate) const BEGAN: u64 = 1_793_606_400;

const STACKS_OF_SERVICE: usize = 10_000;
const FUNCTIONS_OF_SERVICE: usize = 4000;
const SHARED_FUNCTIONS: usize = 3000;
const HOURS: usize = 10;
const WORKERS: usize = 8;
const ROUTES: usize = 24;
const PERIOD_US: u32 = 10_000;
const HOUR_US: i64 = 3_600_000_000;

/// The traces, a file a machine, made unless they are there. Each was written last when its first sample was taken.
pub(crate) fn traces(bench: &Bench) -> Result<Vec<PathBuf>> {
    let folder = bench.folder.join("fleet-2");
    if !folder.is_dir() {
        let unfinished = bench.folder.join("fleet-2.unfinished");
        fs::create_dir_all(&unfinished)?;
        eprintln!("making {}", folder.display());
        for service in 0..SERVICES {
            let stacks = FleetStacks::new(service);
            for host in (service..HOSTS).step_by(SERVICES) {
                let began = Duration::from_secs(BEGAN) + Duration::from_millis(host as u64 * 37);
                let trace =
                    HostTrace { host, seed: 1_000_000 + host as u64, samples: SAMPLES_OF_HOST, began };
                write(&unfinished.join(file_name(host)), &trace, &stacks)
                    .with_context(|| format!("the trace of machine {host}"))?;
            }
        }
        fs::rename(&unfinished, &folder)?;
    }
    Ok((0..HOSTS).map(|host| folder.join(file_name(host))).collect())
}

/// Machines that each write a trace of ten seconds every minute.
pub(crate) struct MinuteFleet {
    folder: PathBuf,
    services: Vec<FleetStacks>,
}

impl MinuteFleet {
    /// How many machines there are.
    pub(crate) const HOSTS: usize = 100;
    const SAMPLES_OF_MINUTE: usize = 1000;

    pub(crate) fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, services: (0..SERVICES).map(FleetStacks::new).collect() })
    }

    /// Writes the traces of a minute in the place of those before.
    pub(crate) fn minute(&self, minute: usize) -> Result<Vec<PathBuf>> {
        let trace = |host: usize| {
            let seed = (2_000_000 + minute * Self::HOSTS + host) as u64;
            let began =
                Duration::from_secs(BEGAN + minute as u64 * 60) + Duration::from_millis(host as u64 * 37);
            let path = self.folder.join(file_name(host));
            let trace = HostTrace { host, seed, samples: Self::SAMPLES_OF_MINUTE, began };
            write(&path, &trace, &self.services[host % SERVICES])?;
            Ok(path)
        };
        (0..Self::HOSTS).map(trace).collect()
    }
}

fn file_name(host: usize) -> String {
    format!("host-{host:04}.rbt")
}

/// The name of a service.
pub(crate) fn service_name(service: usize) -> String {
    format!("service-{service}")
}

/// The stacks of a service.
struct FleetStacks {
    service: usize,
    functions: Vec<(String, String)>,
    /// Functions of each, the leaf first.
    stacks: Vec<Vec<usize>>,
    /// How common the stacks up to each are together.
    shares: Vec<f64>,
}

impl FleetStacks {
    fn new(service: usize) -> Self {
        let mut random = Random::new(service as u64 + 1);
        let shared = (0..SHARED_FUNCTIONS).map(|function| {
            let (package, class) = (function / 150, function / 10);
            let name = format!("Vendor\\Package{package}\\Component{class}::operation{}", function % 10);
            (name, format!("/srv/app/vendor/package{package}/src/Component{class}.php"))
        });
        let own = (0..FUNCTIONS_OF_SERVICE).map(|function| {
            let (domain, class) = (function / 400, function / 8);
            let name = format!("App{service}\\Domain{domain}\\Handler{class}::method{}", function % 8);
            (name, format!("/srv/app/src/Domain{domain}/Handler{class}.php"))
        });
        let functions: Vec<_> = shared.chain(own).collect();
        let mut stacks: Vec<Vec<usize>> = Vec::with_capacity(STACKS_OF_SERVICE);
        let mut path: Vec<usize> = vec![0];
        while stacks.len() < STACKS_OF_SERVICE {
            // Neighbours share many of their callers; 30 frames are usual.
            let kept = path.len() - random.below(path.len().min(24));
            path.truncate(kept.max(1));
            while path.len() < 8 || (path.len() < 60 && random.below(12) > 0) {
                path.push(random.below(functions.len()));
            }
            stacks.push(path.iter().rev().copied().collect());
        }
        shuffle(&mut stacks, &mut random);
        let mut sum = 0.0;
        let share = |rank: usize| {
            sum += 1.0 / (rank as f64 + 1.0);
            sum
        };
        let shares = (0..STACKS_OF_SERVICE).map(share).collect();
        Self { service, functions, stacks, shares }
    }

    fn choose(&self, random: &mut Random) -> usize {
        let sum = self.shares.last().copied().unwrap_or_default();
        let wanted = random.below(1 << 30) as f64 / f64::from(1 << 30) * sum;
        self.shares.partition_point(|&share| share <= wanted).min(self.stacks.len() - 1)
    }

    fn frames(&self, stack: usize) -> Vec<FrameDef<'_>> {
        let frame = |&function: &usize| {
            let (name, file) = &self.functions[function];
            FrameDef::php(name, file, 10 + signed(function * 7 % 300))
        };
        self.stacks[stack].iter().map(frame).collect()
    }
}

fn shuffle(stacks: &mut [Vec<usize>], random: &mut Random) {
    for last in (1..stacks.len()).rev() {
        stacks.swap(last, random.below(last + 1));
    }
}

/// The work that a worker is at.
#[derive(Clone, Copy, Default)]
struct Worker {
    stack: usize,
    route: usize,
    samples_left: usize,
}

/// A trace of a machine.
struct HostTrace {
    host: usize,
    seed: u64,
    samples: usize,
    /// Since 1970.
    began: Duration,
}

fn write(path: &Path, trace: &HostTrace, stacks: &FleetStacks) -> Result<()> {
    let &HostTrace { host, seed, samples, began } = trace;
    let mut random = Random::new(seed);
    let header = Header { has_timestamps: true, period_us: PERIOD_US };
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), header)?;
    writer.write_metadata(b"service", service_name(stacks.service).as_bytes())?;
    writer.write_metadata(b"host", format!("host-{host:04}").as_bytes())?;
    let routes: Vec<String> = (0..ROUTES).map(|route| format!("/section-{route}/page")).collect();
    let mut defined: Vec<Option<StackId>> = vec![None; stacks.stacks.len()];
    let mut workers = [Worker::default(); WORKERS];
    for sample in 0..samples {
        let number = random.below(WORKERS);
        let worker = &mut workers[number];
        if worker.samples_left == 0 {
            *worker = Worker { route: random.below(ROUTES), samples_left: 1 + random.below(40), ..*worker };
        }
        worker.samples_left -= 1;
        if sample < WORKERS || random.below(10) >= 4 {
            worker.stack = stacks.choose(&mut random);
        }
        let stack = match defined[worker.stack] {
            Some(stack) => stack,
            None => {
                let stack = writer.define_trace(&stacks.frames(worker.stack))?;
                *defined[worker.stack].insert(stack)
            }
        };
        let annotation = [(&b"uri"[..], routes[worker.route].as_bytes())];
        writer.write_sample(&SampleDef {
            delta_us: Some(delta_us(sample, &mut random)),
            pid: Some(4000 + signed(number)),
            annotations: Some(&annotation),
            ..SampleDef::of(stack)
        })?;
    }
    writer.finish()?.flush()?;
    File::open(path)?.set_modified(SystemTime::UNIX_EPOCH + began)?;
    Ok(())
}

/// The time since the sample before: a period and what the system adds to it, or the rest of an hour.
fn delta_us(sample: usize, random: &mut Random) -> i64 {
    let samples_of_hour = SAMPLES_OF_HOST / HOURS;
    let jitter = signed(random.below(120));
    if sample > 0 && sample.is_multiple_of(samples_of_hour) {
        return HOUR_US - signed(samples_of_hour) * i64::from(PERIOD_US) + jitter;
    }
    i64::from(PERIOD_US) - 60 + jitter
}

/// A number that is small.
fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
