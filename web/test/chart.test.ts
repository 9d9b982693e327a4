import { expect, test } from "vitest";
import { keyed, selfTimes } from "../src/chart/chart";
import type { ChartData, ChartLane } from "../src/chart/data";
import { laneAt, layLane, namesOf, rowsOf } from "../src/chart/lanes";
import { ROW, placeOf, spotAt } from "../src/profile/paint";

// main calls a, which calls b twice; after a gap, main runs alone. Calls are in the order of their ends.
const LANE: ChartLane = { name: "thread 1", process: null, depth: [2, 2, 1, 0, 0], start: [0, 30, 0, 0, 80], end: [20, 50, 50, 60, 100], fn: [2, 2, 1, 0, 0] };
const CHART: ChartData = { start_ns: 1000, end_ns: 1100, grain_ns: 1, other_lanes: 0, left_out: 0, names: ["main", "a", "b"], files: [-1, -1, -1], file_names: [], lanes: [LANE, { ...LANE, name: "thread 2" }] };

test("a place in the chart is of the call that was running then", () => {
  const laid = CHART.lanes.map((lane) => layLane(lane, CHART.start_ns)), rows = rowsOf(CHART, laid, new Set());
  expect(rows.map(({ row, end }) => [row, end])).toEqual([[0, 4], [4, 8]]);
  const view = { parts: rows.map(({ part }) => part), window: [1000, 1100] as [number, number], width: 1000, scroll: 0 };
  // Below the title of the second lane: main, a, and b.
  const under = (ms: number, level: number) => spotAt(view, ms * 10, (5 + level) * ROW + 3);
  expect([under(10, 0), under(10, 1), under(40, 2)]).toEqual([3, 2, 1].map((node) => ({ part: 1, node })));
  expect([under(25, 2), under(70, 0), under(90, 1)]).toEqual([null, null, null]);
  expect(placeOf(view, { part: 0, node: 1 })).toEqual([300, 3 * ROW, 200, ROW - 1]);
  expect(laneAt(rows, 4 * ROW + 1)?.name).toBe("thread 2");
});

test("lanes show some levels, and all of them when they are opened", () => {
  const deep: ChartLane = { ...LANE, name: "deep", depth: [20], start: [0], end: [10], fn: [0] };
  const chart = { ...CHART, lanes: [deep, LANE] }, laid = chart.lanes.map((lane) => layLane(lane, 0));
  expect(rowsOf(chart, laid, new Set()).map(({ end, row }) => end - row)).toEqual([9, 4]);
  expect(rowsOf(chart, laid, new Set(["deep"])).map(({ end, row }) => end - row)).toEqual([22, 4]);
});

test("lanes of several processes are named with them", () => {
  const lanes = [10, 10, 11].map((process) => ({ ...LANE, process }));
  expect(namesOf({ lanes })).toEqual(["process 10 · thread 1", "process 10 · thread 1", "process 11 · thread 1"]);
  expect(namesOf({ lanes: lanes.slice(0, 2) })).toEqual(["thread 1", "thread 1"]);
});

test("the time of a call without its callees is its own", () => {
  expect([...selfTimes(LANE)]).toEqual([[2, 40], [1, 10], [0, 30]]);
});

test("keys zoom and move within the whole time", () => {
  expect(keyed("+", [0, 1000], [0, 1000])).toEqual([250, 750]);
  expect(keyed("ArrowRight", [0, 400], [0, 1000])).toEqual([100, 500]);
  expect(keyed("ArrowLeft", [0, 400], [0, 1000])).toEqual([0, 400]);
  expect([keyed("0", [0, 1], [0, 9]), keyed("x", [0, 1], [0, 9])]).toEqual([null, undefined]);
});
