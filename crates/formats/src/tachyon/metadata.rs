//! The facts of a file as metadata of a segment, in both directions, so that exporting restores them.

use borehole_model::{Mode, Segment, StringId, TableFull, Tables};
use borehole_wire::Compression;

use super::NAME;
use super::layout::{COMPRESSION_NONE, COMPRESSION_ZSTD, Config, FileHeader, MAX_DEPTH};
use super::statistics::Statistics;

/// The version of Python: `3.15.2`.
const PYTHON_VERSION: &str = "python_version";
/// The sampling mode: `wall`, `cpu`, `gil`, `all`, `exception`.
const MODE: &str = "mode";
/// The sampling features, joined by commas: `all_threads`, `native`, `gc`, `opcodes`, `blocking`.
const FEATURES: &str = "features";
/// The start of profiling, in microseconds on the clock of the samples. Not valid for formats with another origin.
const START_TIME_US: &str = "start_time_us";
/// The compression of the samples: [`NONE`] or [`ZSTD`].
const COMPRESSION: &str = "compression";
/// The duration of profiling.
const DURATION_S: &str = "duration_s";
/// The number of ticks per second.
const SAMPLE_RATE: &str = "sample_rate";
/// The percentage of failed ticks.
const ERROR_RATE: &str = "error_rate";
/// The percentage of missed ticks.
const MISSED_SAMPLES: &str = "missed_samples";

/// Not compressed.
const NONE: &str = "none";
/// Zstandard.
const ZSTD: &str = "zstd";

/// The segment of a file, with its header and statistics as metadata.
pub(super) fn segment(
    header: &FileHeader,
    statistics: Option<&Statistics>,
    tables: &mut Tables,
) -> Result<Segment, TableFull> {
    let mut pairs = Vec::new();
    let mut put = |key: &str, value: String| -> Result<(), TableFull> {
        pairs.push((tables.intern_string(key.as_bytes())?, tables.intern_string(value.as_bytes())?));
        Ok(())
    };
    let [major, minor, micro] = header.python;
    put(PYTHON_VERSION, format!("{major}.{minor}.{micro}"))?;
    if let Some(mode) = header.config.mode() {
        put(MODE, mode.to_owned())?;
    }
    if let Some(features) = header.config.features() {
        put(FEATURES, features.collect::<Vec<_>>().join(","))?;
    }
    put(START_TIME_US, header.start_us.to_string())?;
    if let Some(name) = compression_name(header.compression) {
        put(COMPRESSION, name.to_owned())?;
    }
    if let Some(&Statistics { duration_s, sample_rate, error_rate, missed_samples }) = statistics {
        put(DURATION_S, duration_s.to_string())?;
        put(SAMPLE_RATE, sample_rate.to_string())?;
        for (key, value) in [(ERROR_RATE, error_rate), (MISSED_SAMPLES, missed_samples)] {
            if let Some(value) = value {
                put(key, value.to_string())?;
            }
        }
    }
    Ok(Segment {
        format: NAME,
        period_ns: header.interval_us.checked_mul(1000).filter(|&period| period > 0),
        has_times: true,
        // In two's complement before the clock's origin; `None` if the time overflows.
        began_ns: header.start_us.cast_signed().checked_mul(1000),
        depth_limit: u32::try_from(MAX_DEPTH).ok(),
        metadata: pairs,
        // In the mode `all` every thread is sampled at every tick, whatever it does.
        mode: header.config.mode().and_then(Mode::named).unwrap_or_default(),
        ..Segment::default()
    })
}

const fn compression_name(number: u32) -> Option<&'static str> {
    match number {
        COMPRESSION_NONE => Some(NONE),
        COMPRESSION_ZSTD => Some(ZSTD),
        _ => None,
    }
}

/// The facts in a segment's metadata that the format can hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeaderFacts {
    pub(super) python: Option<[u8; 3]>,
    pub(super) compression: Option<Compression>,
    pub(super) config: Config,
    pub(super) statistics: Option<Statistics>,
    /// The number of entries that the format cannot hold.
    pub(super) others: u64,
}

impl HeaderFacts {
    pub(super) fn of(segment: &Segment, tables: &Tables) -> Self {
        let text = |id: StringId| std::str::from_utf8(tables.string(id)).unwrap_or_default();
        let value = |key: &str| {
            let found = segment.metadata.iter().find(|(known, _)| text(*known) == key);
            found.map(|&(_, value)| text(value))
        };
        let number = |key: &str| value(key).and_then(|value| value.parse::<f64>().ok());
        let features = value(FEATURES);
        let mut config = Config::named(value(MODE), features.map(|names| names.split(',')));
        if features.is_some() {
            config = config.with_features_known();
        }
        let statistics = number(DURATION_S).zip(number(SAMPLE_RATE));
        let python = value(PYTHON_VERSION).and_then(version);
        let compression = match value(COMPRESSION) {
            Some(NONE) => Some(Compression::None),
            Some(ZSTD) => Some(Compression::Zstd),
            _ => None,
        };
        let statistics = statistics.map(|(duration_s, sample_rate)| Statistics {
            duration_s,
            sample_rate,
            error_rate: number(ERROR_RATE),
            missed_samples: number(MISSED_SAMPLES),
        });
        // Metadata outlive the clock that they refer to: the start of profiling holds for that clock only.
        let has_start = segment.began_ns.is_some() && value(START_TIME_US).is_some();
        let taken = [python.is_some(), compression.is_some(), has_start].map(u64::from).iter().sum::<u64>()
            + config.entries()
            + statistics.as_ref().map_or(0, Statistics::entries);
        let others = (segment.metadata.len() as u64).saturating_sub(taken);
        // A profile in wall time was not necessarily sampled in that mode.
        if config.mode().is_none() && segment.mode != Mode::Wall {
            config = config.with_mode(segment.mode.name());
        }
        Self { python, compression, config, statistics, others }
    }
}

/// Parses a version such as `3.15.2`.
fn version(text: &str) -> Option<[u8; 3]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}
