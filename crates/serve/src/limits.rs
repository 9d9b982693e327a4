//! The limits of the server, each with its reason.

use std::time::Duration;

/// The limits of the list of inputs.
pub(crate) struct CatalogueLimits;

impl CatalogueLimits {
    /// The number of inputs listed: ten days of a file a minute. Of more, the newest are listed.
    pub(crate) const INPUTS: usize = 20_000;
    /// The depth of folders.
    pub(crate) const DEPTH: usize = 8;
    /// How long a look at the folders is good for.
    pub(crate) const FRESH: Duration = Duration::from_millis(500);
    /// How often folders are looked at while somebody listens for changes.
    pub(crate) const WATCHED: Duration = Duration::from_secs(2);
    /// The bytes of an id, which has two characters for each.
    pub(crate) const ID_BYTES: usize = 6;
    /// The size of files whose first sample is read for the list.
    pub(crate) const LOOKED_INTO_BYTES: u64 = 4 << 20;
    /// The number of events looked at for the metadata of a trace. Recorders describe a file at its beginning.
    pub(crate) const LOOKED_AT_EVENTS: u32 = 64;
    /// The length of a host's, service's or process's name.
    pub(crate) const FACT_CHARS: usize = 120;
}

/// The limits of what is kept in memory.
pub(crate) struct CacheLimits;

impl CacheLimits {
    /// The number of inputs kept open.
    pub(crate) const INPUTS: usize = 64;
    /// The number of inputs that are read at the same time.
    pub(crate) const READERS: usize = 2;
    /// The number of answers that are computed at the same time. A question whose client has gone before its turn is dropped.
    pub(crate) const ANSWERERS: usize = 8;
    /// The part of the budget of memory that may be held before inputs are dropped, as a divisor.
    pub(crate) const BUDGET_PART: usize = 2;
}

/// The limits of connections.
pub(crate) struct ConnectionLimits;

impl ConnectionLimits {
    /// How long a client may take to send a request's head, and to stay silent between requests.
    pub(crate) const HEAD: Duration = Duration::from_secs(10);
    /// How long a client may take nothing of an answer. Whoever is slower than that has gone, or means to be in the way.
    pub(crate) const STALL: Duration = Duration::from_secs(30);
    /// How long a connection lives. Clients open another one, and continue.
    pub(crate) const LIFE: Duration = Duration::from_secs(3600);
    /// The size of a request's body, uploads aside.
    pub(crate) const BODY_BYTES: usize = 1 << 20;
    /// The length of a request's query.
    pub(crate) const QUERY_BYTES: usize = 16 << 10;
}

/// The limits of answers.
pub(crate) struct AnswerLimits;

impl AnswerLimits {
    /// The rows of a table unless more are asked for: enough to find a culprit.
    pub(crate) const ROWS: usize = 25;
    /// The inputs of a list for reading, unless more are asked for.
    pub(crate) const INPUTS: usize = 100;
    /// The most rows that can be asked for.
    pub(crate) const MOST_ROWS: usize = 10_000;
    /// The call paths of an answer; each is long.
    pub(crate) const PATHS: usize = 1_000;
    /// The length of a name. What is longer is not read by people, and could drown an assistant.
    pub(crate) const NAME_CHARS: usize = 200;
    /// The levels around a function, and of a tree.
    pub(crate) const AROUND_LEVELS: usize = 3;
    pub(crate) const TREE_LEVELS: usize = 12;
    /// The call paths and cells of a page in the explorer: ten megabytes, which a browser reads in a tenth of a second.
    pub(crate) const PAGE_CALLS: usize = 100_000;
    pub(crate) const PAGE_CELLS: usize = 400_000;
    /// The columns of a flame chart: those of a wide screen with two pixels for each.
    pub(crate) const COLUMNS: usize = 8_000;
    /// The stretches of a timeline.
    pub(crate) const STRETCHES: usize = 20;
    /// The further checks that findings name.
    pub(crate) const NEXT: usize = 5;
    /// The size of a source file.
    pub(crate) const SOURCE_BYTES: u64 = 4 << 20;
    /// The tokens of an answer to an assistant, unless it asks for more or fewer.
    pub(crate) const TOKENS: usize = 4_000;
}

/// The limits of reli's tools, which are reli's defaults.
pub(crate) struct RmemLimits;

impl RmemLimits {
    /// The nodes of a list.
    pub(crate) const ROWS: usize = 100;
    /// The rows of a ranking.
    pub(crate) const RANKED: usize = 50;
    /// The most rows that can be asked for.
    pub(crate) const MOST: usize = 10_000;
    /// The nodes of which a subtree's statistics are made, and their depth.
    pub(crate) const SUBTREE_NODES: usize = 100_000;
    pub(crate) const SUBTREE_DEPTH: usize = 50;
    /// The classes that are named of a cycle.
    pub(crate) const CLASSES: usize = 5;
    /// The nodes that a search looks at in one step.
    pub(crate) const WORK: usize = 1 << 16;
}

/// The limits of uploads.
pub(crate) struct UploadLimits;

impl UploadLimits {
    /// The size of an upload.
    pub(crate) const BYTES: u64 = 256 << 20;
    /// The size of all uploads together: they are kept in the system's folder for temporary files.
    pub(crate) const ALL_BYTES: u64 = 2 << 30;
    /// The length of a name.
    pub(crate) const NAME_CHARS: usize = 100;
}

/// The limits of recordings.
pub(crate) struct RecordingLimits;

impl RecordingLimits {
    /// How long a recording is unless somebody says so, and at most, in seconds.
    pub(crate) const USUAL_SECONDS: u64 = 30;
    pub(crate) const SECONDS: u64 = 3600;
    /// How long an assistant waits for one: clients give up after a minute.
    pub(crate) const ASSISTANT_SECONDS: u64 = 50;
    /// Samples per second.
    pub(crate) const USUAL_RATE: u64 = 100;
    pub(crate) const RATE: u64 = 10_000;
    /// The recordings at the same time, and since the server started.
    pub(crate) const AT_ONCE: usize = 4;
    pub(crate) const ALL: usize = 1_000;
    /// How long the server waits for its recorders when it ends.
    pub(crate) const LAST_WAIT: Duration = Duration::from_secs(5);
    /// The part of a recorder's words that is kept.
    pub(crate) const MESSAGE_BYTES: u64 = 1 << 16;
    pub(crate) const MESSAGE_LINES: usize = 3;
}

/// The limits of questions about lakes.
pub(crate) struct LakeLimits;

impl LakeLimits {
    /// The questions at the same time: each is a program of its own.
    pub(crate) const AT_ONCE: usize = 2;
    /// How long an answer may take.
    pub(crate) const TIME: Duration = Duration::from_secs(120);
    /// The size of an answer, of which a table shows the beginning.
    pub(crate) const BYTES: u64 = 16 << 20;
    /// The part of a complaint that is kept.
    pub(crate) const MESSAGE_BYTES: u64 = 1 << 16;
}
