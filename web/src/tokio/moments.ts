// Lookups in one program of a trace: which poll is where, what happened in it, and what belongs to a task.

import type { Program, Stack, Task } from "./data";

export interface SampledStack {
  stack: Stack | null;
  onCpu: number;
  offCpu: number;
}

export class Moments {
  // By lane: its polls, ordered by start.
  readonly pollsOfLane: number[][];
  // By lane and column: the duration of the longest poll that began there.
  readonly longestNs: Float64Array[];
  private readonly ofTask = new Map<number, number[]>();
  private readonly wakesOf = new Map<number, number[]>();
  private readonly samplesOf = new Map<number, number[]>();
  private readonly tasks = new Map<number, Task>();
  private readonly open: Set<number>;
  // By lane: the longest duration among its polls.
  private readonly reach: number[];

  constructor(readonly program: Program) {
    const { lanes, polls, wakes, samples, tasks } = program;
    this.pollsOfLane = lanes.map(() => []);
    polls.lane.forEach((lane, poll) => {
      this.pollsOfLane[lane]?.push(poll);
      push(this.ofTask, polls.task[poll], poll);
    });
    for (const of of [...this.pollsOfLane, ...this.ofTask.values()]) of.sort((one, other) => polls.start_ns[one] - polls.start_ns[other]);
    this.reach = this.pollsOfLane.map((of) => of.reduce((most, poll) => Math.max(most, polls.duration_ns[poll]), 0));
    this.longestNs = lanes.map((lane) => Float64Array.from(lane.longest, (poll) => (poll < 0 ? 0 : polls.duration_ns[poll])));
    wakes.poll.forEach((poll, wake) => push(this.wakesOf, poll, wake));
    samples.poll.forEach((poll, sample) => push(this.samplesOf, poll, sample));
    for (const task of tasks) this.tasks.set(task.task, task);
    this.open = new Set(polls.open);
  }

  task(number: number): Task | undefined {
    return this.tasks.get(number);
  }

  pollsOf(task: number): number[] {
    return this.ofTask.get(task) ?? [];
  }

  // The wakes that a poll made.
  wakesIn(poll: number): number[] {
    return this.wakesOf.get(poll) ?? [];
  }

  isOpen(poll: number): boolean {
    return this.open.has(poll);
  }

  endNs(poll: number): number {
    return this.program.polls.start_ns[poll] + this.program.polls.duration_ns[poll];
  }

  place(poll: number): string {
    return this.program.places[this.program.polls.place[poll]] ?? "";
  }

  laneOf(worker: number): number {
    return this.program.lanes.findIndex((lane) => lane.worker === worker);
  }

  // The polls of a lane that overlap a stretch of time, in their order.
  pollsBetween(lane: number, fromNs: number, toNs: number): number[] {
    const { start_ns } = this.program.polls;
    const of = this.pollsOfLane[lane] ?? [];
    const first = firstAt(of, start_ns, fromNs - (this.reach[lane] ?? 0));
    const found: number[] = [];
    for (let at = first; at < of.length && start_ns[of[at]] <= toNs; at++) {
      if (this.endNs(of[at]) >= fromNs) found.push(of[at]);
    }
    return found;
  }

  // The longest poll of a lane within a stretch of time.
  longestBetween(lane: number, fromNs: number, toNs: number): number | null {
    const { duration_ns } = this.program.polls;
    return this.pollsBetween(lane, fromNs, toNs).reduce<number | null>((best, poll) => (best === null || duration_ns[poll] > duration_ns[best] ? poll : best), null);
  }

  // The poll of a worker that began at a time.
  pollAt(worker: number, startNs: number): number | null {
    const of = this.pollsOfLane[this.laneOf(worker)] ?? [];
    const poll = of[firstAt(of, this.program.polls.start_ns, startNs)];
    return poll !== undefined && this.program.polls.start_ns[poll] === startNs ? poll : null;
  }

  // The poll of a task that ran at a time, or the next one after it.
  pollOfTask(task: number, timeNs: number): number | null {
    return this.pollsOf(task).find((poll) => this.endNs(poll) >= timeNs) ?? null;
  }

  // The poll of a task that contains a time.
  pollOfTaskAt(task: number, timeNs: number): number | null {
    const poll = this.pollOfTask(task, timeNs);
    return poll !== null && this.program.polls.start_ns[poll] <= timeNs ? poll : null;
  }

  // The stacks of the samples in a poll, the most frequent first.
  stacksIn(poll: number): SampledStack[] {
    const { samples, stacks } = this.program;
    const found = new Map<number, SampledStack>();
    for (const sample of this.samplesOf.get(poll) ?? []) {
      const row = samples.stack[sample];
      let sampled = found.get(row);
      if (!sampled) found.set(row, (sampled = { stack: stacks[row] ?? null, onCpu: 0, offCpu: 0 }));
      if (samples.is_off_cpu[sample]) sampled.offCpu += 1;
      else sampled.onCpu += 1;
    }
    return [...found.values()].sort((one, other) => other.onCpu + other.offCpu - one.onCpu - one.offCpu);
  }
}

function push(lists: Map<number, number[]>, key: number, value: number): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

// The first place in `rows`, which are ordered by `times`, whose time is not before `timeNs`.
function firstAt(rows: number[], times: number[], timeNs: number): number {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[rows[middle]] < timeNs) low = middle + 1;
    else high = middle;
  }
  return low;
}
