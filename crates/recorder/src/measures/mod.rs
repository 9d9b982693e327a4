//! Measurements of the process and its surroundings, as sources.

#[cfg(target_os = "linux")]
mod accept_queues;
#[cfg(feature = "allocations")]
mod allocations;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(all(target_os = "linux", feature = "cpu-samples"))]
mod cpu_samples;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(unix)]
mod process;

use std::io;

#[cfg(target_os = "linux")]
pub use accept_queues::TcpAcceptQueueEvent;
#[cfg(feature = "allocations")]
pub use allocations::MemoryProfileOverflowEvent;
#[cfg(target_os = "linux")]
pub use cgroup::CgroupEvent;
#[cfg(unix)]
pub use process::ProcessResourceUsageEvent;

use crate::recorder::Handle;

impl Handle {
    /// Adds the sources that measure the process: its CPU time, memory and faults, and on Linux the same of its cgroup, with
    /// throttling, and the accept queues of its listening sockets.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn add_resources(&self) -> io::Result<()> {
        #[cfg(unix)]
        self.add_source(Box::new(process::ProcessSource))?;
        #[cfg(target_os = "linux")]
        {
            if let Some(source) = cgroup::CgroupSource::of_process() {
                self.add_source(Box::new(source))?;
            }
            self.add_source(Box::new(accept_queues::AcceptQueueSource::new()))?;
        }
        Ok(())
    }
}
