import { expect, test } from "vitest";
import { flagPoll } from "../src/tokio/details";
import { fromFragment, toFragment, WHOLE, type View } from "../src/tokio/link";
import { Moments } from "../src/tokio/moments";
import { lengthOf, timeAt, type Scene } from "../src/tokio/paint";
import { around, clock, marks, moved, within, zoomed } from "../src/ranges";
import { laneSum, rowsOf, spanGroups, wholeOf } from "../src/tokio/rows";
import { searchIn } from "../src/tokio/search";
import { keyedRange, selectionAt } from "../src/tokio/timeline";
import { PROGRAM } from "./program";

const MS = 1e6;
const moments = new Moments(PROGRAM);

test("a link holds every selection, whatever is in its name", () => {
  const views: View[] = [
    WHOLE,
    { program: 2, range: [5, 900], selection: { kind: "poll", worker: 3, startNs: 50 * MS } },
    { program: 0, range: null, selection: { kind: "span", name: "a@b&flag=1#%\n", startNs: -7 } },
    { program: 0, range: null, selection: { kind: "task", task: 12 } },
    { program: 0, range: null, selection: { kind: "column", worker: 0, atNs: 4 } },
    { program: 0, range: null, selection: { kind: "flag", flag: 0 } },
  ];
  for (const view of views) expect(fromFragment(new URLSearchParams(String(toFragment(view))))).toEqual(view);
});

test("a link that makes no sense shows the whole trace", () => {
  for (const fragment of ["", "#", "#t=9-5", "#t=a-b&poll=x@y", "#program=-3&flag=0", "#task=99999999999999999999"]) {
    expect(fromFragment(new URLSearchParams(fragment))).toEqual(WHOLE);
  }
});

test("ranges stay within the trace, and the wheel keeps its place", () => {
  expect(within([-5000, 5000], [0, 20_000])).toEqual([0, 10_000]);
  expect(within([-1e9, 1e9], [0, 20_000])).toEqual([0, 20_000]);
  expect(zoomed([0, 10_000], 0.5, 2000, [0, 20_000])).toEqual([1000, 6000]);
  expect(moved([15_000, 20_000], 0.5, [0, 20_000])).toEqual([15_000, 20_000]);
  const [from, to] = around(50 * MS, 10 * MS, [0, 100 * MS]);
  expect([from < 50 * MS, to > 60 * MS]).toEqual([true, true]);
});

test("the shortest range still has different marks", () => {
  const texts = marks([1e9, 1e9 + 100], 5).map((at) => clock(at, 100));
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.length).toBeGreaterThan(2);
});

test("a poll leads to the poll that woke its task", () => {
  const { polls } = PROGRAM;
  expect(moments.pollOfTaskAt(polls.waker[1], polls.woken_ns[1])).toBe(0);
  expect(moments.pollOfTask(PROGRAM.wakes.woken[0], PROGRAM.wakes.time_ns[0])).toBe(1);
  expect(moments.stacksIn(0).map(({ stack, onCpu, offCpu }) => [stack?.functions.length ?? null, onCpu, offCpu])).toEqual([[2, 1, 1], [null, 0, 1]]);
});

test("polls are found by where they overlap", () => {
  expect(moments.pollsBetween(0, 19 * MS, 21 * MS)).toEqual([0, 1]);
  expect(moments.pollsBetween(0, 20.5 * MS, 20.6 * MS)).toEqual([]);
  expect(moments.pollsBetween(7, 0, 1)).toEqual([]);
  expect(moments.pollAt(3, 50 * MS)).toBe(2);
  expect([moments.pollAt(3, 51 * MS), moments.pollAt(9, 0)]).toEqual([null, null]);
});

test("a flag is about the poll of its worker, task and time", () => {
  expect(flagPoll(moments, 0)).toBe(2);
  expect(flagPoll(moments, 1)).toBe(null);
});

test("columns that are seen as one add up", () => {
  const sum = laneSum(PROGRAM, 0, moments.longestNs[0], [0, 3]);
  expect([sum.busy, sum.polls, sum.longestNs, sum.queue]).toEqual([25 / 40, 2, 20 * MS, 7]);
});

test("spans that overlap have rows of their own", () => {
  expect(spanGroups(PROGRAM)).toEqual([{ name: 2, rows: [[0, 2], [1]] }]);
});

test("spans of a trace without a runtime have a time", () => {
  const { spans } = PROGRAM, grid = { first_ns: 0, column_ns: 1, columns: 0 };
  expect(wholeOf({ ...PROGRAM, grid, spans: { ...spans, start_ns: spans.start_ns.map((start) => start + 1e15) } })).toEqual([1e15, 1e15 + 31 * MS]);
  expect(wholeOf({ ...PROGRAM, grid, end_ns: 0, spans: { name: [], start_ns: [], duration_ns: [], fields: [] } })).toEqual([0, 1]);
  expect(wholeOf(PROGRAM)).toEqual([0, 100 * MS]);
});

test("a click finds what is drawn there", () => {
  const rows = rowsOf(PROGRAM, spanGroups(PROGRAM), 36);
  const scene: Scene = { moments, rows, range: [0, 100 * MS], width: 1100, gutter: 100, poll: null, span: null, lane: 0, matchesPoll: null, matchesSpan: null, dragged: null };
  const at = (ms: number) => 100 + ms * 10;
  expect(timeAt(scene, at(50))).toBe(50 * MS);
  const [first, second, spans] = rows.map((row) => row.top + 5);
  expect(selectionAt(scene, at(10), first)).toEqual({ kind: "poll", worker: 0, startNs: 0 });
  expect(selectionAt(scene, at(40), first)).toEqual({ kind: "column", worker: 0, atNs: 40 * MS });
  expect(selectionAt(scene, at(99), second)).toEqual({ kind: "poll", worker: 3, startNs: 50 * MS });
  expect(selectionAt(scene, at(30.5), spans)).toEqual({ kind: "span", name: "request", startNs: 30 * MS });
  expect(selectionAt(scene, at(50), 25)).toEqual({ kind: "flag", flag: 0 });
  expect(selectionAt(scene, at(5), 25)).toBe(null);
});

test("a search is for texts, or for a task or worker by number", () => {
  const polls = (query: string) => [0, 1, 2].filter((poll) => searchIn(PROGRAM, query)?.poll(poll));
  expect([polls("DB.rs"), polls("task 11"), polls("worker 3"), polls("task 1")]).toEqual([[1, 2], [0], [2], []]);
  expect(searchIn(PROGRAM, "route=/a")?.span(0)).toBe(true);
  expect(searchIn(PROGRAM, "  ")).toBe(null);
});

test("polls are coloured by length, and keys zoom", () => {
  expect([0, 999_999, MS, 10 * MS, 50 * MS].map(lengthOf)).toEqual(["short", "short", "slow", "long", "critical"]);
  const shown = { range: [40, 60].map((ms) => ms * MS) as [number, number], whole: [0, 100 * MS] as [number, number] };
  expect(keyedRange("+", shown)).toEqual([45 * MS, 55 * MS]);
  expect(keyedRange("ArrowLeft", shown)).toEqual([35 * MS, 55 * MS]);
  expect([keyedRange("0", shown), keyedRange("x", shown)]).toEqual([null, undefined]);
});
