//! The control group of the process: a container's limits, and what it has used of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::recorder::Handle;
use crate::source::{Source, SourceState};
use crate::trc::TraceEvent;

/// The resources that the control group has used so far. Borehole's own.
///
/// Absent: the group does not measure it, or has no such limit.
///
/// Source of the numbers: Linux, `Documentation/admin-guide/cgroup-v2.rst`: `cpu.stat`, `memory.current`, `memory.max`,
/// `memory.events`.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CgroupEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// CPU time.
    #[traceevent(unit = "us", kind = "counter")]
    pub cpu_us: Option<u64>,
    /// The number of periods in which it ran out of CPU time.
    #[traceevent(kind = "counter")]
    pub throttled_periods: Option<u64>,
    /// The time that it had to wait because of that, added up over processors.
    #[traceevent(unit = "us", kind = "counter")]
    pub throttled_us: Option<u64>,
    /// Memory in use.
    #[traceevent(unit = "bytes", kind = "gauge")]
    pub memory_bytes: Option<u64>,
    /// The most memory that it may use.
    #[traceevent(unit = "bytes", kind = "gauge")]
    pub memory_limit_bytes: Option<u64>,
    /// The number of processes killed for lack of memory.
    #[traceevent(kind = "counter")]
    pub oom_kills: Option<u64>,
}

pub(crate) struct CgroupSource {
    folder: PathBuf,
}

const EVERY: Duration = Duration::from_millis(500);

/// The place where systems mount control groups.
const MOUNT: &str = "/sys/fs/cgroup";

impl CgroupSource {
    /// The group of this process; `None` if it cannot be read.
    pub(crate) fn of_process() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let folder = folder(Path::new(MOUNT), &groups)?;
        Some(Self { folder })
    }

    fn read(&self, timestamp_ns: u64) -> CgroupEvent {
        let file = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let (cpu, events) = (file("cpu.stat"), file("memory.events"));
        CgroupEvent {
            timestamp_ns,
            cpu_us: value(&cpu, "usage_usec"),
            throttled_periods: value(&cpu, "nr_throttled"),
            throttled_us: value(&cpu, "throttled_usec"),
            memory_bytes: file("memory.current").trim().parse().ok(),
            // Without a limit, it is the word `max`.
            memory_limit_bytes: file("memory.max").trim().parse().ok(),
            oom_kills: value(&events, "oom_kill"),
        }
    }
}

/// The folder of the group in the unified hierarchy, from the text of `/proc/self/cgroup`. In a container, the mount often
/// is the group itself.
fn folder(mount: &Path, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = mount.join(path.trim_start_matches('/'));
    let is_there = |folder: &Path| folder.join("cpu.stat").exists();
    if is_there(&folder) { Some(folder) } else { Some(mount.to_owned()).filter(|mount| is_there(mount)) }
}

/// The value of a line `key value`.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

impl Source for CgroupSource {
    fn name(&self) -> &'static str {
        "cgroup"
    }

    fn interval(&self) -> Duration {
        EVERY
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        handle.record_now(|timestamp_ns| self.read(timestamp_ns));
        SourceState::Continues
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use borehole_testkit::Scratch;

    #[test]
    fn a_group_is_read_where_it_is_mounted() {
        let mount = Scratch::new();
        fs::create_dir_all(mount.path("shop/web")).unwrap();
        let stat = "usage_usec 12\nnr_periods 9\nnr_throttled 3\nthrottled_usec 450\n";
        let files = [("cpu.stat", stat), ("memory.max", "max\n"), ("memory.current", "4096\n")];
        for (file, text) in files {
            fs::write(mount.path("shop/web").join(file), text).unwrap();
        }
        let folder = folder(mount.folder(), "12:cpu:/old\n0::/shop/web\n").unwrap();
        let expected = CgroupEvent {
            timestamp_ns: 7,
            cpu_us: Some(12),
            throttled_periods: Some(3),
            throttled_us: Some(450),
            memory_bytes: Some(4096),
            memory_limit_bytes: None,
            oom_kills: None,
        };
        assert_eq!(CgroupSource { folder }.read(7), expected);
        assert_eq!(super::folder(mount.folder(), "0::/elsewhere\n"), None);
        fs::write(mount.path("cpu.stat"), "").unwrap();
        assert_eq!(super::folder(mount.folder(), "0::/elsewhere\n").as_deref(), Some(mount.folder()));
    }
}
