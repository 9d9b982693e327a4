// The rows of the timeline from top to bottom, and the spans packed into rows.

import type { Program } from "./data";

export const LANE = 30;
export const SERIES = 34;
export const SPAN = 13;
export const GAP = 5;

// At most this many names of spans have rows, and each has at most this many.
const MOST_NAMES = 12;
const MOST_DEEP = 4;

export interface SpanGroup {
  name: number;
  // By row: its spans, by start.
  rows: number[][];
}

export type Row =
  | { kind: "lane"; lane: number; top: number; height: number }
  | { kind: "queue" | "alive"; top: number; height: number }
  | { kind: "spans"; group: SpanGroup; top: number; height: number };

// The time from the first to the last thing that the page shows. Spans may be outside of what the runtime did.
export function wholeOf({ grid, end_ns, spans }: Program): [fromNs: number, toNs: number] {
  let from = grid.columns ? 0 : Infinity, to = grid.columns ? end_ns : -Infinity;
  spans.start_ns.forEach((start, span) => {
    from = Math.min(from, start);
    to = Math.max(to, start + spans.duration_ns[span]);
  });
  return from < to ? [from, to] : [0, Math.max(end_ns, 1)];
}

// The names of spans whose spans take the most time, with their spans packed: those that overlap are below each other, as far
// as there is room.
export function spanGroups({ spans }: Program): SpanGroup[] {
  const byName = new Map<number, number[]>(), total = new Map<number, number>();
  spans.name.forEach((name, span) => {
    const list = byName.get(name);
    if (list) list.push(span);
    else byName.set(name, [span]);
    total.set(name, (total.get(name) ?? 0) + spans.duration_ns[span]);
  });
  const names = [...byName.keys()].sort((one, other) => (total.get(other) ?? 0) - (total.get(one) ?? 0));
  return names.slice(0, MOST_NAMES).map((name) => ({ name, rows: packed(spans, byName.get(name) ?? []) }));
}

function packed(spans: Program["spans"], of: number[]): number[][] {
  const rows: number[][] = [], ends: number[] = [];
  for (const span of [...of].sort((one, other) => spans.start_ns[one] - spans.start_ns[other])) {
    let row = ends.findIndex((end) => end <= spans.start_ns[span]);
    // Where there is no room, spans cover each other.
    if (row < 0) row = ends.length < MOST_DEEP ? ends.length : ends.indexOf(Math.min(...ends));
    (rows[row] ??= []).push(span);
    ends[row] = Math.max(ends[row] ?? 0, spans.start_ns[span] + spans.duration_ns[span]);
  }
  return rows;
}

export function rowsOf(program: Program, groups: SpanGroup[], top: number): Row[] {
  const rows: Row[] = [];
  const add = (row: { kind: "lane"; lane: number } | { kind: "queue" | "alive" } | { kind: "spans"; group: SpanGroup }, height: number) => {
    rows.push({ ...row, top, height } as Row);
    top += height + GAP;
  };
  program.lanes.forEach((_, lane) => add({ kind: "lane", lane }, LANE));
  if (program.queue.length) add({ kind: "queue" }, SERIES);
  if (program.alive.length) add({ kind: "alive" }, SERIES);
  for (const group of groups) add({ kind: "spans", group }, group.rows.length * SPAN);
  return rows;
}

export const rowAt = (rows: Row[], y: number): Row | undefined => rows.find((row) => y >= row.top - GAP / 2 && y < row.top + row.height + GAP / 2);

// The places of the columns of a grid that overlap a range of time.
export function columnsBetween({ grid }: Program, fromNs: number, toNs: number): [first: number, last: number] {
  const place = (ns: number) => Math.min(grid.columns - 1, Math.max(0, Math.floor((ns - grid.first_ns) / grid.column_ns)));
  return [place(fromNs), place(toNs)];
}

// What a lane did in some columns.
export interface LaneSum {
  busy: number;
  parked: number;
  waited: number;
  polls: number;
  longestNs: number;
  queue: number;
}

// Shares are of the time of the columns.
export function laneSum(program: Program, lane: number, longest: Float64Array, [first, last]: [number, number]): LaneSum {
  const { busy_ns, parked_ns, waited_ns, polls, queue } = program.lanes[lane];
  const sum: LaneSum = { busy: 0, parked: 0, waited: 0, polls: 0, longestNs: 0, queue: 0 };
  for (let column = first; column <= last; column++) {
    sum.busy += busy_ns[column] ?? 0;
    sum.parked += parked_ns[column] ?? 0;
    sum.waited += waited_ns[column] ?? 0;
    sum.polls += polls[column] ?? 0;
    sum.longestNs = Math.max(sum.longestNs, longest[column] ?? 0);
    sum.queue = Math.max(sum.queue, queue[column] ?? 0);
  }
  const time = (last - first + 1) * program.grid.column_ns || 1;
  for (const share of ["busy", "parked", "waited"] as const) sum[share] = Math.min(1, sum[share] / time);
  return sum;
}
