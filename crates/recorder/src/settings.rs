//! The settings of a recording from the environment of the process, so that a service is set up without being built again.

use std::env;
use std::io;
use std::time::Duration;

use borehole_wire::Compression;
use borehole_wire::envelope::WRITTEN;

use crate::options::Builder;
use crate::recorder::Recorder;

/// The beginning of the names of all variables. A variable with this beginning that is no setting is an error.
pub const PREFIX: &str = "BOREHOLE_TRACE";

/// Declares the settings: the end of the variable's name, and what it sets.
macro_rules! settings {
    ($($name:ident = $end:literal, $about:literal;)*) => {
        $(const $name: &str = $end;)*

        /// All settings: the end of the name, after [`PREFIX`], and a description.
        pub const SETTINGS: &[(&str, &str)] = &[$(($end, $about)),*];
    };
}

settings! {
    ENABLED = "", "`on` (default) or `off`";
    FOLDER = "_FOLDER", "the folder of the files; default `traces`";
    NAME = "_NAME", "the start of their names; default `trace`";
    SERVICE = "_SERVICE", "the name of the service, for the metadata";
    FLUSH_MS = "_FLUSH_MS", "the time between flushes; default 500";
    ROTATE_SECONDS = "_ROTATE_SECONDS", "the age at which a file is completed; default 60";
    SEGMENT_MIB = "_SEGMENT_MIB", "the size at which a file is completed; default 64";
    BUDGET_MIB = "_BUDGET_MIB", "the size of all files; default 1024";
    BUFFER_KIB = "_BUFFER_KIB", "the buffer of a thread; default 1024";
    COMPRESSION = "_COMPRESSION", "`gzip` (default), `zstd` or `none`";
    RING_MIB = "_RING_MIB", "keep so much in memory, and write it only when something happens";
    DUMP_SECONDS = "_DUMP_SECONDS", "the minimum time between two triggered dumps; default 10";
    DUMP_SIGNAL = "_DUMP_SIGNAL", "the number of a signal that dumps, such as 10 for SIGUSR1";
    LONG_POLL_MS = "_LONG_POLL_MS", "dump when a poll takes longer";
    RESOURCES = "_RESOURCES", "`on` (default) or `off`: CPU time and memory of process and cgroup, accept queues";
    ALLOCATIONS_KIB = "_ALLOCATIONS_KIB", "sample an allocation about every so many KiB";
    CPU_HZ = "_CPU_HZ", "take so many samples of each second of CPU time of each thread";
    OFF_CPU = "_OFF_CPU", "`on` or `off` (default): take a sample each time that a thread leaves the CPU";
    UPLOAD = "_UPLOAD", "copy completed files there, such as `s3://bucket/prefix`";
    UPLOAD_KIB_PER_SECOND = "_UPLOAD_KIB_PER_SECOND", "the budget for copying; default 4096";
    UPLOAD_PENDING_MIB = "_UPLOAD_PENDING_MIB", "the size of all files that wait to be copied; default 256";
    LAKE = "_LAKE", "add completed files to this lake, with the program borehole-lake";
}

/// The settings that the environment gives. The defaults are those of [`Builder`].
///
/// # Examples
///
/// ```
/// use borehole_recorder::Settings;
///
/// let variables = [("BOREHOLE_TRACE_CPU_HZ", "99"), ("PATH", "/bin")];
/// let settings = Settings::from_variables(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))?;
/// assert_eq!((settings.is_enabled, settings.cpu_hz), (true, Some(99)));
///
/// let misspelt = [("BOREHOLE_TRACE_HZ".to_owned(), "99".to_owned())];
/// assert!(Settings::from_variables(misspelt).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Whether to record.
    pub is_enabled: bool,
    /// The options of the recording.
    pub builder: Builder,
    /// The number of a signal that dumps.
    pub dump_signal: Option<i32>,
    /// Polls that take longer dump.
    pub long_poll: Option<Duration>,
    /// Whether to measure what the process and its cgroup use.
    pub resources: bool,
    /// The average number of bytes between two sampled allocations.
    pub allocation_bytes: Option<u64>,
    /// The number of samples of each second of CPU time of each thread.
    pub cpu_hz: Option<u32>,
    /// Whether to take a sample each time that a thread leaves the CPU.
    pub off_cpu: bool,
    /// The place to copy completed files to.
    pub upload: Option<String>,
    /// The budget for copying, in bytes per second.
    pub upload_bytes_per_second: u64,
    /// The size of all files that wait to be copied.
    pub upload_pending_bytes: u64,
    /// The lake to add completed files to.
    pub lake: Option<String>,
}

/// The most samples of a second of CPU time: more take longer than the time that they are of.
const MOST_CPU_HZ: u32 = 10_000;

impl Default for Settings {
    fn default() -> Self {
        Self {
            is_enabled: true,
            builder: Recorder::builder("traces"),
            dump_signal: None,
            long_poll: None,
            resources: true,
            allocation_bytes: None,
            cpu_hz: None,
            off_cpu: false,
            upload: None,
            upload_bytes_per_second: 4 << 20,
            upload_pending_bytes: 256 << 20,
            lake: None,
        }
    }
}

impl Settings {
    /// Reads the settings from the environment of the process.
    ///
    /// # Errors
    /// If a variable that begins with [`PREFIX`] is no setting, or its value is invalid.
    pub fn from_env() -> io::Result<Self> {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self::from_variables(env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    /// Reads the settings from variables. Those of other programs, and empty ones, are ignored.
    ///
    /// # Errors
    /// Like [`Settings::from_env`].
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> io::Result<Self> {
        let mut settings = Self::default();
        for (name, value) in variables {
            if let Some(end) = name.strip_prefix(PREFIX).filter(|_| !value.is_empty()) {
                settings.set(end, &value).map_err(|expected| invalid(&name, &value, &expected))?;
            }
        }
        Ok(settings)
    }

    /// Sets one setting; the error is the expected value.
    fn set(&mut self, end: &str, value: &str) -> Result<(), String> {
        match end {
            ENABLED => self.is_enabled = switch(value)?,
            RESOURCES => self.resources = switch(value)?,
            UPLOAD => self.upload = Some(value.to_owned()),
            LAKE => self.lake = Some(value.to_owned()),
            DUMP_SIGNAL => {
                let is_signal = |signal: &i32| (1..=64).contains(signal);
                let signal = value.parse().ok().filter(is_signal);
                self.dump_signal = Some(signal.ok_or("the number of a signal")?);
            }
            LONG_POLL_MS => self.long_poll = Some(Duration::from_millis(number(value)?)),
            ALLOCATIONS_KIB => self.allocation_bytes = Some(scaled(value, 10)?),
            CPU_HZ => {
                let hz = value.parse().ok().filter(|hz| (1..=MOST_CPU_HZ).contains(hz));
                self.cpu_hz = Some(hz.ok_or_else(|| format!("a whole number from 1 to {MOST_CPU_HZ}"))?);
            }
            OFF_CPU => self.off_cpu = switch(value)?,
            UPLOAD_KIB_PER_SECOND => self.upload_bytes_per_second = scaled(value, 10)?,
            UPLOAD_PENDING_MIB => self.upload_pending_bytes = scaled(value, 20)?,
            _ => self.builder = set_option(self.builder.clone(), end, value)?,
        }
        Ok(())
    }
}

fn set_option(builder: Builder, end: &str, value: &str) -> Result<Builder, String> {
    Ok(match end {
        FOLDER => builder.folder(value),
        NAME => builder.name(value),
        SERVICE => builder.metadata("service", value),
        FLUSH_MS => builder.flush_every(Duration::from_millis(number(value)?)),
        ROTATE_SECONDS => builder.rotate_every(Duration::from_secs(number(value)?)),
        SEGMENT_MIB => builder.segment_bytes(scaled(value, 20)?),
        BUDGET_MIB => builder.budget_bytes(scaled(value, 20)?),
        BUFFER_KIB => {
            builder.buffer_bytes(usize::try_from(scaled(value, 10)?).map_err(|_| "a smaller number")?)
        }
        COMPRESSION => builder.compression(compression(value)?),
        RING_MIB => builder.ring_bytes(scaled(value, 20)?),
        DUMP_SECONDS => builder.dump_every(Duration::from_secs(number(value)?)),
        _ => return Err(String::new()),
    })
}

fn number(value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "a whole number above 0".to_owned())
}

/// A number of units of 2 to the power of `shift` bytes.
fn scaled(value: &str, shift: u32) -> Result<u64, String> {
    number(value)?.checked_mul(1 << shift).ok_or_else(|| "a smaller number".to_owned())
}

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" | "1" | "true" => Ok(true),
        "off" | "0" | "false" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

fn compression(value: &str) -> Result<Compression, String> {
    match value.parse() {
        Ok(known) if !WRITTEN.contains(&known) => {
            Err("gzip or none: this program is built without the feature zstd".to_owned())
        }
        Ok(known) => Ok(known),
        Err(_) => Err("gzip, zstd or none".to_owned()),
    }
}

fn invalid(name: &str, value: &str, expected: &str) -> io::Error {
    let message = if expected.is_empty() {
        let names: Vec<_> = SETTINGS.iter().map(|(end, _)| format!("{PREFIX}{end}")).collect();
        format!("unknown setting {name}: expected one of {}", names.join(", "))
    } else {
        format!("invalid {name}: expected {expected}, found \"{}\"", value.escape_debug())
    };
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_variables(variables).map_err(|error| error.to_string())
    }

    #[test]
    fn every_setting_is_read() {
        let settings = read(&[
            ("BOREHOLE_TRACE", "off"),
            ("BOREHOLE_TRACE_FOLDER", "/var/traces"),
            ("BOREHOLE_TRACE_SERVICE", "shop"),
            ("BOREHOLE_TRACE_RING_MIB", "16"),
            ("BOREHOLE_TRACE_LONG_POLL_MS", "20"),
            ("BOREHOLE_TRACE_NAME", ""),
            ("PATH", "/bin"),
        ])
        .unwrap();
        assert!(!settings.is_enabled && settings.builder.name == "trace");
        assert_eq!(settings.builder.folder.to_str(), Some("/var/traces"));
        assert_eq!(settings.builder.metadata, [("service".to_owned(), "shop".to_owned())]);
        assert_eq!(
            (settings.builder.ring_bytes, settings.long_poll),
            (Some(16 << 20), Some(Duration::from_millis(20)))
        );
        for (end, _) in SETTINGS {
            let accepted =
                ["1", "gzip", "on"].iter().any(|value| read(&[(&format!("{PREFIX}{end}"), value)]).is_ok());
            assert!(accepted, "{end}");
        }
    }

    #[test]
    fn a_wrong_setting_is_an_error_that_says_how_it_should_be() {
        let refusal = |name, value| read(&[(name, value)]).unwrap_err();
        assert_eq!(
            refusal("BOREHOLE_TRACE_RING_MIB", "1.5"),
            "invalid BOREHOLE_TRACE_RING_MIB: expected a whole number above 0, found \"1.5\""
        );
        assert_eq!(
            refusal("BOREHOLE_TRACE", "yes please"),
            "invalid BOREHOLE_TRACE: expected on or off, found \"yes please\""
        );
        let unknown = refusal("BOREHOLE_TRACE_FODLER", "x");
        assert!(
            unknown.starts_with("unknown setting BOREHOLE_TRACE_FODLER: expected one of BOREHOLE_TRACE, ")
        );
        assert!(refusal("BOREHOLE_TRACE_BUDGET_MIB", "18446744073709551615").contains("a smaller number"));
    }
}
