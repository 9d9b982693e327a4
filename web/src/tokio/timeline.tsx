// The timeline: a canvas of lanes, which mouse, wheel, touch and keys move, zoom and select in.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { grouped, times } from "../numbers";
import { useLatest, useShown, type Shown } from "./context";
import type { Selection } from "./link";
import { AXIS, FLAGS, LENGTHS, heightOf, paintScene, timeAt, type Scene } from "./paint";
import { clock, moved, within, zoomed, type Range } from "../ranges";
import { columnsBetween, laneSum, rowAt, rowsOf, spanGroups, SPAN, type Row } from "./rows";

// How far from what it means a pointer may be, in pixels.
const NEAR = 3;
// How far it must be dragged to select a range.
const DRAGGED = 5;

const gutterOf = (width: number): number => (width < 600 ? 64 : 110);

// The flag whose triangle is at a place.
function flagAt(scene: Scene, x: number): number | null {
  const reach = ((scene.range[1] - scene.range[0]) / Math.max(scene.width - scene.gutter, 1)) * 6;
  const at = timeAt(scene, x);
  const distance = (flag: number) => Math.abs((scene.moments.program.flags[flag].time_ns ?? Infinity) - at);
  const near = scene.moments.program.flags.map((_, flag) => flag).filter((flag) => distance(flag) <= reach);
  return near.sort((one, other) => distance(one) - distance(other))[0] ?? null;
}

// What is at a place of the canvas.
export function selectionAt(scene: Scene, x: number, y: number): Selection | null {
  if (y >= AXIS - 2 && y < AXIS + FLAGS) {
    const flag = flagAt(scene, x);
    return flag === null ? null : { kind: "flag", flag };
  }
  const row = rowAt(scene.rows, y);
  if (!row || x < scene.gutter) return null;
  const from = timeAt(scene, x - NEAR), to = timeAt(scene, x + NEAR);
  if (row.kind === "lane") return selectionInLane(scene, row.lane, timeAt(scene, x), [from, to]);
  return row.kind === "spans" ? spanAt(scene, row, y, [from, to]) : null;
}

function selectionInLane({ moments }: Scene, lane: number, at: number, [from, to]: Range): Selection {
  const { worker } = moments.program.lanes[lane];
  const poll = moments.longestBetween(lane, at, at) ?? moments.longestBetween(lane, from, to);
  return poll === null ? { kind: "column", worker, atNs: at } : { kind: "poll", worker, startNs: moments.program.polls.start_ns[poll] };
}

function spanAt({ moments }: Scene, row: Row & { kind: "spans" }, y: number, [from, to]: Range): Selection | null {
  const { spans, texts } = moments.program;
  const of = row.group.rows[Math.floor((y - row.top) / SPAN)] ?? [];
  const span = of.find((span) => spans.start_ns[span] <= to && spans.start_ns[span] + spans.duration_ns[span] >= from);
  return span === undefined ? null : { kind: "span", name: texts[spans.name[span]], startNs: spans.start_ns[span] };
}

// What the status line says of a place.
function hint(scene: Scene, selection: Selection | null, atNs: number, y: number): string {
  const { moments, range } = scene;
  const { polls } = moments.program;
  const row = rowAt(scene.rows, y), time = clock(atNs, range[1] - range[0]);
  if (selection?.kind === "poll") {
    const poll = moments.pollAt(selection.worker, selection.startNs);
    if (poll !== null) return `${time}: worker ${selection.worker}, poll of ${times(polls.duration_ns[poll])}, task ${polls.task[poll]}, ${moments.place(poll)}`;
  }
  if (selection?.kind === "flag") return moments.program.flags[selection.flag].evidence;
  if (selection?.kind === "span") return `${time}: span ${selection.name}`;
  if (row?.kind === "lane") {
    const sum = laneSum(moments.program, row.lane, moments.longestNs[row.lane], columnsBetween(moments.program, atNs, atNs));
    return `${time}: worker ${moments.program.lanes[row.lane].worker}, ${(sum.busy * 100).toFixed(0)}% busy, ${(sum.parked * 100).toFixed(0)}% parked, ${sum.polls} polls begin, queue ${sum.queue}`;
  }
  if (row?.kind === "queue" || row?.kind === "alive") {
    const [column] = columnsBetween(moments.program, atNs, atNs);
    const value = moments.program[row.kind][column] ?? -1;
    return `${time}: ${row.kind === "queue" ? "global queue" : "tasks alive"} ${value < 0 ? "unknown" : grouped(value)}`;
  }
  return time;
}

// The next range for a key; `null` for all time, `undefined` if the key is none of these.
export function keyedRange(key: string, { range, whole }: Pick<Shown, "range" | "whole">): Range | null | undefined {
  const middle = (range[0] + range[1]) / 2;
  switch (key) {
    case "+": case "=": case "w": return zoomed(range, 0.5, middle, whole);
    case "-": case "s": return zoomed(range, 2, middle, whole);
    case "ArrowLeft": case "a": return moved(range, -0.25, whole);
    case "ArrowRight": case "d": return moved(range, 0.25, whole);
    case "0": case "Home": return null;
    default: return undefined;
  }
}

// The poll before or after the selected one in a lane, among those that the page has.
function neighbour({ moments, selection, range }: Shown, lane: number, step: 1 | -1): number | null {
  const of = moments.pollsOfLane[lane] ?? [];
  const { start_ns } = moments.program.polls;
  const at = selection?.kind === "poll" && moments.laneOf(selection.worker) === lane ? selection.startNs : null;
  if (at === null) return moments.longestBetween(lane, ...range);
  const place = of.findIndex((poll) => start_ns[poll] === at) + step;
  return of[place] ?? null;
}

function useScene(shown: Shown, lane: number, width: number, dragged: Range | null): Scene {
  const { moments, range, search, selection } = shown;
  const rows = useMemo(() => rowsOf(moments.program, spanGroups(moments.program), AXIS + FLAGS), [moments]);
  const { spans, texts } = moments.program;
  const span = selection?.kind === "span" ? spans.start_ns.findIndex((start, span) => start === selection.startNs && texts[spans.name[span]] === selection.name) : null;
  const poll = selection?.kind === "poll" ? moments.pollAt(selection.worker, selection.startNs) : null;
  return { moments, rows, range, width, gutter: gutterOf(width), poll, span, lane, dragged, matchesPoll: search?.poll ?? null, matchesSpan: search?.span ?? null };
}

// The pointer: a drag selects a range, a click what is below it, the wheel zooms and moves.
function usePointer(scene: Scene, shown: Shown, setLane: (lane: number) => void, setDragged: (range: Range | null) => void, say: (text: string) => void) {
  const pressed = useRef<{ x: number; ns: number } | null>(null);
  const place = (event: MouseEvent): [x: number, y: number] => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const span = (from: number, to: number): Range => (from < to ? [from, to] : [to, from]);
  return {
    onPointerDown(event: PointerEvent) {
      if (event.button !== 0) return;
      const [x] = place(event);
      pressed.current = { x, ns: timeAt(scene, x) };
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    },
    onPointerMove(event: PointerEvent) {
      const [x, y] = place(event), from = pressed.current;
      if (from && Math.abs(x - from.x) > DRAGGED) return setDragged(span(from.ns, timeAt(scene, x)));
      say(hint(scene, selectionAt(scene, x, y), timeAt(scene, x), y));
    },
    onPointerUp(event: PointerEvent) {
      const [x, y] = place(event), from = pressed.current;
      pressed.current = null;
      setDragged(null);
      if (!from) return;
      if (Math.abs(x - from.x) > DRAGGED) return shown.zoom(within(span(from.ns, timeAt(scene, x)), shown.whole));
      const row = rowAt(scene.rows, y);
      if (row?.kind === "lane") setLane(row.lane);
      shown.select(selectionAt(scene, x, y));
    },
    onPointerCancel() {
      pressed.current = null;
      setDragged(null);
    },
    onWheel(event: WheelEvent) {
      event.preventDefault();
      const [x] = place(event);
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) return shown.zoom(moved(shown.range, sideways / 800, shown.whole));
      shown.zoom(zoomed(shown.range, Math.exp(event.deltaY / 400), timeAt(scene, x), shown.whole));
    },
  };
}

function Legend() {
  return (
    <p class="key">
      {LENGTHS.map(([name, , text]) => <span key={name}><i class={`poll-${name}`} />{text}</span>)}
      <span><i class="parked-key" />parked</span>
      <span><i class="waited-key" />waiting for a CPU</span>
      <span><i class="queue-key" />queue</span>
    </p>
  );
}

export function Timeline() {
  const shown = useShown();
  const holder = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(800), [lane, setLane] = useState(0);
  const [dragged, setDragged] = useState<Range | null>(null), [status, say] = useState("");
  const scene = useScene(shown, lane, width, dragged);
  useLayoutEffect(() => {
    const holding = holder.current;
    if (!holding) return;
    const measure = () => setWidth(Math.max(holding.clientWidth, 200));
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(holding);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (canvas.current) paintScene(canvas.current, scene);
  });
  const { onWheel, ...pointer } = usePointer(scene, shown, setLane, setDragged, say);
  // A passive listener could not keep the page from scrolling.
  const turn = useLatest(onWheel);
  useLayoutEffect(() => canvas.current?.addEventListener("wheel", (event) => turn.current(event), { passive: false }), []);
  const onKeyDown = (event: KeyboardEvent) => {
    const lanes = shown.moments.program.lanes.length;
    if (event.key === "ArrowUp") setLane(Math.max(0, lane - 1));
    else if (event.key === "ArrowDown") setLane(Math.min(lanes - 1, lane + 1));
    else if (event.key === "[" || event.key === "]" || event.key === "Enter") {
      const poll = neighbour(shown, lane, event.key === "[" ? -1 : 1);
      if (poll !== null) shown.jump(poll);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section aria-labelledby="timeline-title">
      <div class="bar">
        <h2 id="timeline-title">Timeline</h2>
        <Legend />
      </div>
      <div ref={holder} id="timeline" class="lanes" tabIndex={0} role="application" aria-describedby="timeline-status"
        aria-label="Timeline: arrow keys up and down choose a worker, left and right move, plus and minus zoom, brackets step through polls" onKeyDown={onKeyDown}>
        <canvas ref={canvas} height={heightOf(scene.rows)} {...pointer} />
      </div>
      <p id="timeline-status" class="status" role="status">{status}</p>
    </section>
  );
}
