// What a page of a Tokio trace holds: `crates/analysis/src/tokio/page.rs` has the same fields, and says more of each. Times are
// nanoseconds since the origin of a program. Rows refer to texts, places and each other by index; -1 is none.

export type Severity = "info" | "warning" | "critical";

export interface Grid {
  first_ns: number;
  column_ns: number;
  columns: number;
}

// A worker: one value for each column of the grid.
export interface Lane {
  worker: number;
  busy_ns: number[];
  polls: number[];
  // The longest poll that began in the column.
  longest: number[];
  parked_ns: number[];
  waited_ns: number[];
  queue: number[];
}

export interface Polls {
  lane: number[];
  start_ns: number[];
  duration_ns: number[];
  task: number[];
  place: number[];
  woken_ns: number[];
  waker: number[];
  // The polls that still ran at the end of the trace.
  open: number[];
}

export interface Wakes {
  time_ns: number[];
  poll: number[];
  woken: number[];
}

export interface Spans {
  name: number[];
  start_ns: number[];
  duration_ns: number[];
  fields: number[];
}

export interface Task {
  task: number;
  place: number;
  spawned_ns: number | null;
  ended_ns: number | null;
  polls: number;
  busy_ns: number;
  longest_ns: number;
}

export interface Flag {
  severity: Severity;
  check: string;
  evidence: string;
  time_ns: number | null;
  worker: number | null;
  task: number | null;
}

export interface Stack {
  // Leaf first.
  functions: number[];
  on_cpu: number;
  off_cpu: number;
}

export interface Samples {
  time_ns: number[];
  poll: number[];
  stack: number[];
  is_off_cpu: number[];
}

// How many there are, and how many of them are in the page one by one.
export type Kept = [all: number, kept: number];

export interface Counts {
  polls: Kept;
  spans: Kept;
  tasks: Kept;
  wakes: Kept;
  samples: Kept;
  workers: Kept;
}

export interface Spread {
  count: number;
  sum_ns: number;
  p50_ns: number;
  p99_ns: number;
  max_ns: number;
}

// Some rows of a table.
export interface Limited<T> {
  rows: T[];
  distinct: number;
}

export interface PlaceRow {
  spawned_at: string;
  durations: Spread;
}

export interface SpanRow {
  name: string;
  durations: Spread;
  busy_ns: number;
  longest_start_ns: number;
  unmatched: number;
}

export interface BlockingRow {
  count: number;
  first_ns: number;
  leaf: string;
  call: string;
  callers: string[];
}

export interface SiteRow {
  count: number;
  bytes: number;
  first_ns: number;
  callers: string[];
}

export interface EventRow {
  name: string;
  count: number;
  per_second: number | null;
  fields: { name: string; unit: string | null; count: number; p50: number; p99: number; max: number }[];
}

// The parts of the report that the page shows as tables.
export interface Report {
  input?: string;
  events: number;
  lost_events: number;
  polls: { durations: Spread; unended: number; places: Limited<PlaceRow>; longest: Limited<{ duration_ns: number; is_open: boolean }> };
  delays: { durations: Spread };
  tasks: { spawned: number; alive: number; older: number; older_alive: number };
  blocking: { samples: number; in_polls: number; stacks: Limited<BlockingRow> };
  spans: Limited<SpanRow>;
  allocations: { outstanding: number; outstanding_bytes: number; dropped: number; sites: Limited<SiteRow> } | null;
  other_events: Limited<EventRow>;
}

// One program of the trace.
export interface Program {
  // The clock of the trace at the origin, as text: it needs 64 bits.
  origin_ns: string;
  end_ns: number;
  grid: Grid;
  lanes: Lane[];
  polls: Polls;
  wakes: Wakes;
  // By column; -1 where it is not known.
  queue: number[];
  alive: number[];
  spans: Spans;
  tasks: Task[];
  flags: Flag[];
  stacks: Stack[];
  samples: Samples;
  places: string[];
  texts: string[];
  counts: Counts;
  report: Report;
}

export interface TokioData {
  kind: "tokio";
  title: string;
  programs: Program[];
}
