// Lanes as rows of a picture: a title for each, and its calls below, level by level.

import type { Layout } from "../profile/layout";
import { ROW, type Nodes, type Part } from "../profile/paint";
import type { ChartData, ChartLane } from "./data";

// A lane that is not opened shows this many levels.
const CLOSED_LEVELS = 8;

export interface LaneRows {
  lane: number;
  name: string;
  // The row of its title.
  row: number;
  // The row after its last one.
  end: number;
  // How many levels it has, shown or not.
  levels: number;
  isOpen: boolean;
  part: Part<Nodes>;
}

// The calls of a lane by level, in the order of time.
export function layLane({ depth, start, end, fn }: ChartLane, startNs: number): { layout: Layout; nodes: Nodes } {
  const length = depth.length;
  const levels: number[] = [0];
  for (const level of depth) while (levels.length < level + 2) levels.push(0);
  for (const level of depth) levels[level + 1]++;
  for (let level = 1; level < levels.length; level++) levels[level] += levels[level - 1];
  const node = new Int32Array(length), box = new Int32Array(length), next = levels.slice();
  // Calls of a level end in the order in which they begin, and they are listed in the order of their ends.
  for (let call = 0; call < length; call++) {
    box[call] = next[depth[call]]++;
    node[box[call]] = call;
  }
  const left = Float64Array.from(node, (call) => startNs + start[call]), right = Float64Array.from(node, (call) => startNs + end[call]);
  return { layout: { node, left, right, box, levels }, nodes: { fn, depth: depth.map((level) => level + 1) } };
}

// The names of all lanes: with the process, if there are several.
export function namesOf({ lanes }: Pick<ChartData, "lanes">): string[] {
  const areSeveral = new Set(lanes.map(({ process }) => process)).size > 1;
  return lanes.map(({ name, process }) => (areSeveral && process !== null ? `process ${process} · ${name}` : name));
}

// The rows of all lanes. `opened` are those of which all levels are shown.
export function rowsOf(chart: ChartData, laid: ReturnType<typeof layLane>[], opened: Set<string>): LaneRows[] {
  let row = 0;
  const isOne = chart.lanes.length === 1;
  return namesOf(chart).map((name, lane) => {
    const { layout, nodes } = laid[lane], levels = layout.levels.length - 1;
    const isOpen = isOne || opened.has(name), shown = isOpen ? levels : Math.min(levels, CLOSED_LEVELS);
    const part = { tree: nodes, layout: { ...layout, levels: layout.levels.slice(0, shown + 1) }, row: row + 1, step: 1 as const, from: 0, hits: null };
    const rows = { lane, name, row, end: row + 1 + shown, levels, isOpen, part };
    row = rows.end;
    return rows;
  });
}

export const heightOf = (rows: LaneRows[]): number => (rows.length ? rows[rows.length - 1].end : 1) * ROW;

// The lane at a height.
export const laneAt = (rows: LaneRows[], y: number): LaneRows | null => rows.find(({ row, end }) => y >= row * ROW && y < end * ROW) ?? null;
