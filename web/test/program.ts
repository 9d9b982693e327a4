// A small program: two workers, three tasks, one stuck.

import type { Program, Spread } from "../src/tokio/data";

const NONE: Spread = { count: 0, sum_ns: 0, p50_ns: 0, p99_ns: 0, max_ns: 0 };
const MS = 1e6;

export const PROGRAM: Program = {
  origin_ns: "18446744073709551000",
  end_ns: 100 * MS,
  grid: { first_ns: 0, column_ns: 10 * MS, columns: 10 },
  lanes: [
    { worker: 0, busy_ns: [10, 10, 5, 0, 0, 0, 0, 0, 0, 0].map((ms) => ms * MS), polls: [1, 0, 1, 0, 0, 0, 0, 0, 0, 0], longest: [0, -1, 1, -1, -1, -1, -1, -1, -1, -1], parked_ns: Array(10).fill(0), waited_ns: Array(10).fill(0), queue: [0, 7, 0, 0, 0, 0, 0, 0, 0, 0] },
    { worker: 3, busy_ns: Array(10).fill(0), polls: [0, 0, 0, 0, 0, 1, 0, 0, 0, 0], longest: [-1, -1, -1, -1, -1, 2, -1, -1, -1, -1], parked_ns: Array(10).fill(5 * MS), waited_ns: Array(10).fill(0), queue: Array(10).fill(0) },
  ],
  polls: { lane: [0, 0, 1], start_ns: [0, 21 * MS, 50 * MS], duration_ns: [20 * MS, 4 * MS, 50 * MS], task: [11, 12, 13], place: [0, 1, 1], woken_ns: [-1, 5 * MS, -1], waker: [0, 11, 0], open: [2] },
  wakes: { time_ns: [5 * MS], poll: [0], woken: [12] },
  queue: [], alive: [],
  spans: { name: [2, 2, 2], start_ns: [0, MS, 30 * MS], duration_ns: [20 * MS, 5 * MS, MS], fields: [3, -1, -1] },
  tasks: [{ task: 13, place: 1, spawned_ns: null, ended_ns: null, polls: 0, busy_ns: 0, longest_ns: 0 }],
  flags: [
    { severity: "critical", check: "stuck-poll", evidence: "poll is still running", time_ns: 50 * MS, worker: 3, task: 13 },
    { severity: "info", check: "unsealed-file", evidence: "the file was never sealed", time_ns: null, worker: null, task: null },
  ],
  stacks: [{ functions: [0, 1], on_cpu: 1, off_cpu: 2 }],
  samples: { time_ns: [MS, 2 * MS, 3 * MS], poll: [0, 0, 0], stack: [0, 0, -1], is_off_cpu: [1, 0, 1] },
  places: ["src/main.rs:10:5", "src/db.rs:7:1"],
  texts: ["futex_wait", "lock", "request", "route=/a"],
  counts: { polls: [3, 3], spans: [3, 3], tasks: [1, 1], wakes: [1, 1], samples: [3, 3], workers: [2, 2] },
  report: {
    events: 9, lost_events: 0, tasks: { spawned: 0, alive: 0, older: 3, older_alive: 3 },
    polls: { durations: NONE, unended: 1, places: { rows: [], distinct: 0 }, longest: { rows: [{ duration_ns: 50 * MS, is_open: true }], distinct: 1 } }, delays: { durations: NONE },
    blocking: { samples: 0, in_polls: 0, stacks: { rows: [], distinct: 0 } }, spans: { rows: [], distinct: 0 }, allocations: null, other_events: { rows: [], distinct: 0 },
  },
};
