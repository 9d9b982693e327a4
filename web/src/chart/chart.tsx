// The flame chart: a lane for each thread, and its calls in the order of time.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { grouped, times } from "../numbers";
import { coloursOf, hueInks } from "../profile/colours";
import type { Named } from "../profile/link";
import { ROW, paintScene, spotAt, type Nodes, type Scene, type Spot } from "../profile/paint";
import { hideTip, showTip } from "../profile/tip";
import { clock, marks, moved, within, zoomed, type Range } from "../ranges";
import { THEMED } from "../theme";
import { fileOf, type AskChart, type ChartData, type ChartLane } from "./data";
import { heightOf, laneAt, layLane, namesOf, rowsOf, type LaneRows } from "./lanes";

// How far the pointer must be dragged to select a range, in pixels.
const DRAGGED = 4;
// How long a range must stay before its calls are asked for.
const QUIET_MS = 120;
const MOST_MARKS = 8;

interface ChartProps {
  ask: AskChart;
  whole: Range;
  // The range that is shown; `null` for all time.
  range: Range | null;
  show: (range: Range | null) => void;
  // The time that the rest of the page is about.
  selected: Range | null;
  select: (range: Range | null) => void;
  choose: (named: Named) => void;
}

// The calls in a range, with half as much at both sides. The last ones stay until there are others. Another `ask` is of other data.
function useChart(ask: AskChart, [from, to]: Range, whole: Range, width: number): [ChartData | null, string | null] {
  const [got, setGot] = useState<{ ask: AskChart; chart: ChartData } | null>(null), [fault, setFault] = useState<string | null>(null);
  const chart = got?.chart ?? null, isSharpEnough = (grainNs: number) => grainNs <= Math.max((2 * (to - from)) / width, 1);
  const isSharp = chart !== null && got?.ask === ask && chart.start_ns <= from && chart.end_ns >= to && isSharpEnough(chart.grain_ns);
  useEffect(() => {
    if (isSharp || !width) return;
    const ended = new AbortController(), half = (to - from) / 2;
    const wanted: Range = [Math.max(whole[0], from - half), Math.min(whole[1], to + half)];
    const isAll = wanted[0] <= whole[0] && wanted[1] >= whole[1];
    const timer = setTimeout(() => {
      ask(isAll ? null : [Math.floor(wanted[0]), Math.ceil(wanted[1])], Math.round(2 * width), ended.signal)
        .then((chart) => (setGot({ ask, chart }), setFault(null)), (error: Error) => ended.signal.aborted || setFault(error.message));
    }, chart ? QUIET_MS : 0);
    return () => (clearTimeout(timer), ended.abort());
  }, [ask, from, to, width]);
  return [chart, fault];
}

function Axis({ range, width }: { range: Range; width: number }) {
  const length = range[1] - range[0];
  return (
    <div class="ticks" aria-hidden="true">
      {marks(range, Math.min(MOST_MARKS, width / 110)).map((ns) => <span key={ns} style={{ left: `${((ns - range[0]) / length) * 100}%` }}>{clock(ns, length)}</span>)}
    </div>
  );
}

type ChartScene = Scene<Nodes> & { rows: LaneRows[] };

function paintTitles(paint: CanvasRenderingContext2D, { rows, scroll, width, height, colours }: ChartScene): void {
  for (const { row, name, levels, isOpen, end } of rows) {
    const y = row * ROW - scroll;
    if (y > height || end * ROW - scroll < 0) continue;
    paint.globalAlpha = 0.55;
    paint.fillStyle = colours.small;
    paint.fillRect(0, y, width, ROW - 1);
    paint.globalAlpha = 1;
    paint.fillStyle = colours.mark;
    const hidden = levels - (end - row - 1);
    paint.fillText(`${isOpen ? "▾" : "▸"} ${name}${hidden > 0 ? ` (${hidden} more ${hidden === 1 ? "level" : "levels"})` : ""}`, 6, y + ROW / 2);
  }
}

function paintSelected(paint: CanvasRenderingContext2D, { window: [from, to], width, height }: ChartScene, range: Range | null, fill: string): void {
  if (!range) return;
  const place = (ns: number) => Math.min(width, Math.max(0, ((ns - from) / (to - from)) * width));
  paint.fillStyle = fill;
  paint.fillRect(place(range[0]), 0, Math.max(1, place(range[1]) - place(range[0])), height);
}

function usePaint(canvas: { current: HTMLCanvasElement | null }, scene: ChartScene, selected: Range | null): void {
  useLayoutEffect(() => {
    const paint = canvas.current?.getContext("2d");
    if (!paint || !canvas.current || !scene.width) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(scene.width * ratio), Math.round(scene.height * ratio)];
    if (canvas.current.width !== width || canvas.current.height !== height) [canvas.current.width, canvas.current.height] = [width, height];
    paint.setTransform(width / scene.width, 0, 0, height / scene.height, 0, 0);
    paintScene(paint, scene);
    paintTitles(paint, scene);
    paintSelected(paint, scene, selected, getComputedStyle(document.documentElement).getPropertyValue("--select"));
  });
}

// Draws anew when the theme is another.
function useTheme(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const listen = () => setCount((count) => count + 1);
    addEventListener(THEMED, listen);
    return () => removeEventListener(THEMED, listen);
  }, []);
  return count;
}

export function keyed(key: string, range: Range, whole: Range): Range | null | undefined {
  const middle = (range[0] + range[1]) / 2;
  switch (key) {
    case "+": case "=": return zoomed(range, 0.5, middle, whole);
    case "-": return zoomed(range, 2, middle, whole);
    case "ArrowLeft": return moved(range, -0.25, whole);
    case "ArrowRight": return moved(range, 0.25, whole);
    case "0": case "Home": return null;
    default: return undefined;
  }
}

function describe(chart: ChartData, { part: lane, node }: Spot): string[] {
  const { fn, start, end } = chart.lanes[lane], of = fn[node];
  return [chart.names[of], fileOf(chart, of), `${times(end[node] - start[node])} from ${clock(chart.start_ns + start[node], end[node] - start[node])}`, namesOf(chart)[lane]];
}

interface Pointing {
  scene: ChartScene;
  chart: ChartData | null;
  canvas: { current: HTMLCanvasElement | null };
  whole: Range;
  show: ChartProps["show"];
  select: ChartProps["select"];
  setMarked: (fn: number | null) => void;
  setDragged: (range: Range | null) => void;
  setOpened: (change: (opened: Set<string>) => Set<string>) => void;
  say: (text: string) => void;
}

const span = (from: number, to: number): Range => (from < to ? [from, to] : [to, from]);
const toggled = (names: Set<string>, name: string): Set<string> => (names.has(name) ? new Set([...names].filter((other) => other !== name)) : new Set([...names, name]));

// The pointer: a drag selects time, a click zooms to a call, or opens and closes a lane.
function usePointer({ scene, chart, canvas, whole, show, select, setMarked, setDragged, setOpened, say }: Pointing) {
  const pressed = useRef<{ x: number; ns: number } | null>(null);
  const at = (event: MouseEvent): { x: number; y: number; ns: number } => {
    const { left, top } = canvas.current?.getBoundingClientRect() ?? { left: 0, top: 0 }, [from, to] = scene.window;
    return { x: event.clientX - left, y: event.clientY - top, ns: from + ((event.clientX - left) / scene.width) * (to - from) };
  };
  const spot = ({ x, y }: { x: number; y: number }) => (chart ? spotAt(scene, x, y) : null);
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    pressed.current = at(event);
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    const place = at(event), from = pressed.current, found = spot(place);
    if (from && Math.abs(place.x - from.x) > DRAGGED) return setDragged(span(from.ns, place.ns));
    setMarked(found && chart ? chart.lanes[found.part].fn[found.node] : null);
    if (!found || !chart) return hideTip();
    const lines = describe(chart, found);
    showTip(event, lines);
    say(lines.filter(Boolean).join(", "));
  };
  const onPointerUp = (event: PointerEvent) => {
    const from = pressed.current, place = at(event), found = spot(place);
    pressed.current = null;
    setDragged(null);
    if (!from) return;
    if (Math.abs(place.x - from.x) > DRAGGED) return select(within(span(from.ns, place.ns), whole));
    if (found && chart) {
      const { start, end } = chart.lanes[found.part], { start_ns } = chart;
      return show(within([start_ns + start[found.node], start_ns + end[found.node]], whole));
    }
    const lane = laneAt(scene.rows, place.y + scene.scroll);
    if (lane) setOpened((opened) => toggled(opened, lane.name));
  };
  const onPointerLeave = () => (hideTip(), setMarked(null));
  const onPointerCancel = () => (setDragged(null), void (pressed.current = null));
  return { at, spot, onPointerDown, onPointerMove, onPointerUp, onPointerLeave, onPointerCancel };
}

export function FlameChart({ ask, whole, range: shown, show, selected, select, choose }: ChartProps) {
  const area = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<[width: number, height: number]>([0, 0]), [scroll, setScroll] = useState(0);
  const [opened, setOpened] = useState<Set<string>>(new Set()), [marked, setMarked] = useState<number | null>(null), [status, say] = useState("");
  const [dragged, setDragged] = useState<Range | null>(null), theme = useTheme();
  const range = shown ?? whole;
  const [chart, fault] = useChart(ask, range, whole, size[0]);
  const laid = useMemo(() => chart?.lanes.map((lane) => layLane(lane, chart.start_ns)) ?? [], [chart]);
  const rows = useMemo(() => (chart ? rowsOf(chart, laid, opened) : []), [chart, laid, opened]);
  const inks = useMemo(() => (chart ? hueInks(chart.names, (fn) => fileOf(chart, fn)) : new Uint8Array()), [chart]);
  const colours = useMemo(() => coloursOf(false), [theme]);
  const scene: ChartScene = {
    rows, parts: rows.map(({ part }) => part), window: range, width: size[0], height: size[1], scroll, colours, marked, active: null, palerAbove: 0,
    inkOf: ({ fn }, node) => inks[fn[node]], nameOf: ({ fn }, node) => chart?.names[fn[node]] ?? "",
  };
  usePaint(canvas, scene, dragged ?? selected);
  useLayoutEffect(() => {
    const of = area.current;
    if (!of) return;
    const watch = new ResizeObserver(() => setSize([of.clientWidth, of.clientHeight]));
    watch.observe(of);
    return () => watch.disconnect();
  }, []);
  const { at, spot, ...pointer } = usePointer({ scene, chart, canvas, whole, show, select, setMarked, setDragged, setOpened, say });
  const onWheel = (event: WheelEvent) => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) show(zoomed(range, Math.exp(event.deltaY / 300), at(event).ns, whole));
    else if (event.shiftKey || Math.abs(sideways) > Math.abs(event.deltaY)) show(moved(range, sideways / 800, whole));
    else return;
    event.preventDefault();
  };
  const turn = useRef(onWheel);
  turn.current = onWheel;
  // A passive listener could not keep the page from scrolling.
  useLayoutEffect(() => canvas.current?.addEventListener("wheel", (event) => turn.current(event), { passive: false }), []);
  const onKeyDown = (event: KeyboardEvent) => {
    const next = keyed(event.key, range, whole);
    if (next !== undefined) show(next);
    else if (event.key === "Escape" && (shown || selected)) shown ? show(null) : select(null);
    else if (event.key === "Enter" && selected) show(selected);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onDblClick = (event: MouseEvent) => {
    const found = spot(at(event));
    if (!found || !chart) return;
    const fn = chart.lanes[found.part].fn[found.node];
    choose({ name: chart.names[fn], file: fileOf(chart, fn) });
  };
  return (
    <>
      <Axis range={range} width={size[0]} />
      <div ref={area} id="chart" class="flame" tabIndex={0} role="application" aria-describedby="chart-status" onScroll={(event) => setScroll(event.currentTarget.scrollTop)} onKeyDown={onKeyDown}
        aria-label="Flame chart: plus and minus zoom, left and right move, 0 shows all time, Enter zooms to the selected time">
        <div class="extent" style={{ height: `${heightOf(rows)}px` }}>
          <canvas ref={canvas} id="chart-canvas" style={{ height: `${size[1]}px` }} onDblClick={onDblClick} {...pointer} />
        </div>
      </div>
      <p id="chart-status" class="status" role="status">{fault ?? (status || summary(chart))}</p>
      {chart && <LaneTable chart={chart} />}
    </>
  );
}

// What a chart leaves out.
function summary(chart: ChartData | null): string {
  if (!chart) return "Reading …";
  const parts = [`${grouped(chart.lanes.length)} ${chart.lanes.length === 1 ? "lane" : "lanes"}`];
  if (chart.other_lanes) parts.push(`${grouped(chart.other_lanes)} less busy ones are left out`);
  if (chart.grain_ns > 1) parts.push(`what is shorter than ${times(chart.grain_ns)} is part of its neighbour`);
  if (chart.left_out) parts.push(`${grouped(chart.left_out)} of the deepest calls are left out`);
  return parts.join("; ") + ".";
}

// What each lane did most, for screen readers.
function LaneTable({ chart }: { chart: ChartData }) {
  const names = namesOf(chart);
  return (
    <div class="unseen">
      <table>
        <caption>Lanes, and the function of each that took most time itself</caption>
        <tbody>{chart.lanes.map((lane, at) => <tr key={at}><th scope="row">{names[at]}</th>{mostOf(lane, chart).map((text) => <td key={text}>{text}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

function mostOf(lane: ChartLane, { names }: ChartData): [name: string, time: string] {
  const sums = selfTimes(lane), [most, ns] = [...sums].reduce((one, other) => (other[1] > one[1] ? other : one), [-1, 0]);
  return [names[most] ?? "nothing", times(ns)];
}

// By function, the time without that of its callees. Calls are in the order of their ends, so a caller follows its callees.
export function selfTimes({ depth, start, end, fn }: ChartLane): Map<number, number> {
  const sums = new Map<number, number>(), below: number[] = [];
  depth.forEach((level, call) => {
    const length = end[call] - start[call];
    sums.set(fn[call], (sums.get(fn[call]) ?? 0) + length - (below[level + 1] ?? 0));
    below[level + 1] = 0;
    below[level] = (below[level] ?? 0) + length;
  });
  return sums;
}
