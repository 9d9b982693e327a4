//! The field numbers of the messages, except those of symbols, and the names of attributes.
//!
//! Source: open-telemetry/opentelemetry-proto 1.10.0, `profiles/v1development/profiles.proto`, `common/v1/common.proto`
//! and `resource/v1/resource.proto` (field numbers, as the Python package opentelemetry-proto 1.45.2 describes them);
//! OpenTelemetry's semantic conventions (names of attributes).

use crate::symbols::layout::SymbolKeys;

/// Symbols have no ids.
pub(super) const KEYS: SymbolKeys = SymbolKeys::Indexes;

/// Fields of `ProfilesData`, the outermost message, and of `ExportProfilesServiceRequest`, which is the same.
pub(super) mod data {
    pub(crate) const RESOURCE_PROFILES: u32 = 1;
    pub(crate) const DICTIONARY: u32 = 2;
}

/// Fields of `ProfilesDictionary`. The first entry of each table stands for an absent one.
pub(super) mod dictionary {
    pub(crate) const MAPPING: u32 = 1;
    pub(crate) const LOCATION: u32 = 2;
    pub(crate) const FUNCTION: u32 = 3;
    pub(crate) const LINK: u32 = 4;
    pub(crate) const STRING: u32 = 5;
    pub(crate) const ATTRIBUTE: u32 = 6;
    pub(crate) const STACK: u32 = 7;
}

/// Fields of `ResourceProfiles` and of `Resource`.
pub(super) mod resource {
    pub(crate) const RESOURCE: u32 = 1;
    pub(crate) const SCOPE_PROFILES: u32 = 2;
    pub(crate) const ATTRIBUTES: u32 = 1;
}

/// Fields of `ScopeProfiles` and of `InstrumentationScope`.
pub(super) mod scope {
    pub(crate) const SCOPE: u32 = 1;
    pub(crate) const PROFILES: u32 = 2;
    pub(crate) const NAME: u32 = 1;
    pub(crate) const VERSION: u32 = 2;
}

/// Fields of `Profile`.
pub(super) mod profile {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLES: u32 = 2;
    pub(crate) const TIME_UNIX_NANO: u32 = 3;
    pub(crate) const DURATION_NANO: u32 = 4;
    pub(crate) const PERIOD_TYPE: u32 = 5;
    pub(crate) const PERIOD: u32 = 6;
    pub(crate) const ATTRIBUTE_INDICES: u32 = 11;
}

/// Fields of `Sample`.
pub(super) mod sample {
    pub(crate) const STACK_INDEX: u32 = 1;
    pub(crate) const ATTRIBUTE_INDICES: u32 = 2;
    pub(crate) const LINK_INDEX: u32 = 3;
    pub(crate) const VALUES: u32 = 4;
    pub(crate) const TIMESTAMPS: u32 = 5;
}

/// Fields of `Stack`.
pub(super) mod stack {
    /// Leaf first.
    pub(crate) const LOCATION_INDICES: u32 = 1;
}

/// Fields of `Mapping` beside those of all [symbols](crate::symbols::layout).
pub(super) mod mapping {
    pub(crate) const ATTRIBUTE_INDICES: u32 = 5;
}

/// Fields of `Location` beside those of all [symbols](crate::symbols::layout).
pub(super) mod location {
    pub(crate) const ATTRIBUTE_INDICES: u32 = 4;
}

/// Fields of `Link`.
pub(super) mod link {
    pub(crate) const TRACE_ID: u32 = 1;
    pub(crate) const SPAN_ID: u32 = 2;
}

/// Fields of `KeyValueAndUnit`; key and unit are string indexes.
pub(super) mod attribute {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
    pub(crate) const UNIT: u32 = 3;
}

/// Fields of `KeyValue`, which names its key itself or by a string index.
pub(super) mod key_value {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
    pub(crate) const KEY_INDEX: u32 = 3;
}

/// Fields of `AnyValue` and of `ArrayValue`.
pub(super) mod any {
    pub(crate) const STRING: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const INT: u32 = 3;
    pub(crate) const DOUBLE: u32 = 4;
    pub(crate) const ARRAY: u32 = 5;
    pub(crate) const MAP: u32 = 6;
    pub(crate) const BYTES: u32 = 7;
    pub(crate) const STRING_INDEX: u32 = 8;
    pub(crate) const VALUES: u32 = 1;
}

/// The names of attributes for which the model has fields.
pub(super) mod key {
    pub(crate) const PROCESS: &str = "process.pid";
    pub(crate) const THREAD: &str = "thread.id";
    pub(crate) const THREAD_NAME: &str = "thread.name";
    /// `native` for native frames.
    pub(crate) const FRAME_TYPE: &str = "profile.frame.type";
    pub(crate) const NATIVE: &str = "native";
    /// The build ID of a mapping, in hexadecimal.
    pub(crate) const BUILD_ID: &str = "process.executable.build_id.gnu";
    pub(crate) const SCOPE_NAME: &str = "otel.scope.name";
    pub(crate) const SCOPE_VERSION: &str = "otel.scope.version";
    /// The label keys of links.
    pub(crate) const TRACE_ID: &str = "trace_id";
    pub(crate) const SPAN_ID: &str = "span_id";

    /// The attributes of resources that distinguish profiles; they become labels of the samples. One of the last two is
    /// the older name of the other.
    pub(crate) const OF_RESOURCE: [&str; 5] = [
        "service.name",
        "service.version",
        "host.name",
        "deployment.environment.name",
        "deployment.environment",
    ];
    /// The default value type among the profiles of the same samples.
    pub(crate) const DEFAULT_TYPE: &str = "default_sample_type";

    // There are no conventions for these.
    pub(crate) const INTERPRETER: &str = "borehole.interpreter";
    /// The names of the flags that are set.
    pub(crate) const STATUS: &str = "borehole.thread_status";
    /// Marks a profile whose times have an unknown origin.
    pub(crate) const CLOCK: &str = "borehole.clock";
    pub(crate) const RELATIVE: &str = "relative";
    /// For such a profile: the start of profiling, in nanoseconds on the clock of its times.
    pub(crate) const BEGAN: &str = "borehole.began_ns";
    pub(crate) const OPCODE: &str = "borehole.opcode";
    pub(crate) const END_LINE: &str = "borehole.end_line";
    pub(crate) const END_COLUMN: &str = "borehole.end_column";
}

/// The scope name of the exporter.
pub(super) const SCOPE: &str = "borehole";
