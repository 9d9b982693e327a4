// Draws the timeline into a canvas.

import { colour } from "../elements";
import { grouped } from "../numbers";
import type { Moments } from "./moments";
import { clock, marks, type Range } from "../ranges";
import { GAP, SPAN, columnsBetween, laneSum, type Row } from "./rows";

export const AXIS = 20;
export const FLAGS = 16;

// Polls are coloured by length: the class, and the length from which on it holds.
export const LENGTHS: [name: string, fromNs: number, text: string][] = [
  ["short", 0, "under 1 ms"],
  ["slow", 1e6, "from 1 ms"],
  ["long", 10e6, "from 10 ms"],
  ["critical", 50e6, "from 50 ms"],
];

export function lengthOf(durationNs: number): string {
  let found = LENGTHS[0][0];
  for (const [name, from] of LENGTHS) if (durationNs >= from) found = name;
  return found;
}

export interface Scene {
  moments: Moments;
  rows: Row[];
  range: Range;
  // The width of the canvas, and of the labels at its left, in pixels.
  width: number;
  gutter: number;
  // The poll, the span and the lane that are selected.
  poll: number | null;
  span: number | null;
  lane: number;
  // Whether a poll or a span matches the search; `null` without one.
  matchesPoll: ((poll: number) => boolean) | null;
  matchesSpan: ((span: number) => boolean) | null;
  // The range that is being dragged.
  dragged: Range | null;
}

export const timeAt = ({ range: [from, to], width, gutter }: Scene, x: number): number =>
  from + (Math.min(Math.max(x - gutter, 0), width - gutter) / Math.max(width - gutter, 1)) * (to - from);

const xOf = ({ range: [from, to], width, gutter }: Scene, ns: number): number => gutter + ((ns - from) / (to - from)) * (width - gutter);

export const heightOf = (rows: Row[]): number => {
  const last = rows[rows.length - 1];
  return (last ? last.top + last.height : AXIS + FLAGS) + GAP;
};

class Painter {
  private readonly colours = new Map<string, string>();

  constructor(private readonly paint: CanvasRenderingContext2D, private readonly scene: Scene) {}

  // A colour or a number of the style; each is asked for once.
  private value(name: string): string {
    let found = this.colours.get(name);
    if (found === undefined) this.colours.set(name, (found = colour(name)));
    return found;
  }

  private use(name: string): void {
    this.paint.fillStyle = this.paint.strokeStyle = this.value(name);
  }

  private text(text: string, x: number, y: number, width: number): void {
    if (width < 12) return;
    const { paint } = this;
    paint.save();
    paint.beginPath();
    paint.rect(x, y - 12, width, 18);
    paint.clip();
    paint.fillText(text, x, y);
    paint.restore();
  }

  axis(height: number): void {
    const { paint, scene } = this;
    const { range, width, gutter } = scene;
    paint.font = "11px system-ui, sans-serif";
    for (const at of marks(range, (width - gutter) / 110)) {
      const x = Math.round(xOf(scene, at)) + 0.5;
      this.use("--line");
      paint.fillRect(x, AXIS - 4, 1, height - AXIS);
      this.use("--soft");
      this.text(clock(at, range[1] - range[0]), x + 3, 12, width - x - 3);
    }
  }

  // A triangle for each flag that has a time; critical ones are filled.
  flags(): void {
    const { paint, scene } = this;
    scene.moments.program.flags.forEach(({ severity, time_ns }) => {
      if (time_ns === null || time_ns < scene.range[0] || time_ns > scene.range[1]) return;
      const x = xOf(scene, time_ns), top = AXIS;
      this.use(`--${severity}`);
      paint.beginPath();
      paint.moveTo(x - 5, top);
      paint.lineTo(x + 5, top);
      paint.lineTo(x, top + 10);
      paint.closePath();
      if (severity === "critical") paint.fill();
      else paint.stroke();
    });
  }

  row(row: Row): void {
    const { paint, scene } = this;
    this.use("--track");
    paint.fillRect(scene.gutter, row.top, scene.width - scene.gutter, row.height);
    paint.font = "11px system-ui, sans-serif";
    if (row.kind === "lane") this.lane(row.lane, row);
    else if (row.kind === "spans") this.spans(row);
    else this.series(row);
    this.use(row.kind === "lane" && row.lane === scene.lane ? "--ink" : "--soft");
    this.text(this.label(row), 0, row.top + Math.min(row.height, 22) / 2 + 4, scene.gutter - 6);
  }

  private label(row: Row): string {
    const { program } = this.scene.moments;
    if (row.kind === "lane") return `Worker ${program.lanes[row.lane].worker}`;
    if (row.kind === "spans") return program.texts[row.group.name] ?? "";
    return row.kind === "queue" ? "Queue" : "Tasks alive";
  }

  private lane(lane: number, { top, height }: { top: number; height: number }): void {
    const { paint, scene } = this;
    const { program } = scene.moments;
    this.columns(lane, top, height);
    for (const poll of scene.moments.pollsBetween(lane, ...scene.range)) this.poll(poll, top, height);
    if (lane === scene.lane) {
      this.use("--accent");
      paint.fillRect(scene.gutter - 4, top, 2, height);
    }
    const most = program.lanes[lane].queue.reduce((most, length) => Math.max(most, length), 0);
    if (most > 0) this.steps(program.lanes[lane].queue, most, top + 5, height - 10);
  }

  // What a lane did, pixel by pixel or column by column, whichever is wider.
  private columns(lane: number, top: number, height: number): void {
    const { paint, scene } = this;
    const { program, longestNs } = scene.moments;
    const { first_ns, column_ns } = program.grid;
    let from = scene.gutter;
    while (from < scene.width) {
      const places = columnsBetween(program, timeAt(scene, from), timeAt(scene, from + 1));
      const end = first_ns + (places[1] + 1) * column_ns;
      const to = Math.min(scene.width, Math.max(from + 1, xOf(scene, end)));
      const sum = laneSum(program, lane, longestNs[lane], places);
      const middle = height - 8;
      if (sum.busy > 0 || sum.polls > 0) {
        this.use(`--poll-${lengthOf(sum.longestNs)}`);
        paint.globalAlpha = 0.55;
        const size = Math.max(1, sum.busy * middle);
        paint.fillRect(from, top + 4 + middle - size, to - from, size);
      }
      this.use("--parked");
      paint.globalAlpha = sum.parked;
      paint.fillRect(from, top + height - 3, to - from, 3);
      this.use("--waited");
      paint.globalAlpha = sum.waited > 0 ? Math.max(0.35, sum.waited) : 0;
      paint.fillRect(from, top, to - from, 3);
      paint.globalAlpha = 1;
      from = to;
    }
  }

  private poll(poll: number, top: number, height: number): void {
    const { paint, scene } = this;
    const { polls } = scene.moments.program;
    const left = Math.max(scene.gutter, xOf(scene, polls.start_ns[poll]));
    const right = Math.min(scene.width, xOf(scene, scene.moments.endNs(poll)));
    const wide = right - left, isSelected = poll === scene.poll;
    const isHit = !scene.matchesPoll || scene.matchesPoll(poll);
    if (wide < 0.7 && !isSelected && !scene.matchesPoll) return;
    this.use(`--poll-${lengthOf(polls.duration_ns[poll])}`);
    paint.globalAlpha = isHit ? 1 : 0.18;
    paint.fillRect(left, top + 4, Math.max(1, wide - (wide > 3 ? 0.6 : 0)), height - 8);
    paint.globalAlpha = 1;
    if (isSelected) {
      this.use("--ink");
      paint.lineWidth = 2;
      paint.strokeRect(left - 1, top + 2, Math.max(4, wide + 2), height - 4);
      paint.lineWidth = 1;
    } else if (scene.matchesPoll && isHit) {
      this.use("--hit");
      paint.fillRect(left, top, Math.max(2, wide), 3);
    }
    if (wide > 40) {
      this.use("--poll-ink");
      this.text(scene.moments.place(poll).replace(/^.*\//, "") || `task ${polls.task[poll]}`, left + 4, top + height / 2 + 4, wide - 8);
    }
  }

  // Calls `draw` with the height of the greatest value at each pixel, as a part of `most`. Values below 0 are not known.
  private eachPixel(values: number[], most: number, draw: (x: number, part: number | null) => void): void {
    const { program } = this.scene.moments;
    for (let x = this.scene.gutter; x < this.scene.width; x++) {
      const [first, last] = columnsBetween(program, timeAt(this.scene, x), timeAt(this.scene, x + 1));
      let value = -1;
      for (let column = first; column <= last; column++) value = Math.max(value, values[column] ?? -1);
      draw(x, value < 0 ? null : value / most);
    }
  }

  // A line that is as high as the values of the columns.
  private steps(values: number[], most: number, top: number, height: number): void {
    const { paint } = this;
    this.use("--queue");
    paint.beginPath();
    let isDown = false;
    this.eachPixel(values, most, (x, part) => {
      if (part !== null) paint[isDown ? "lineTo" : "moveTo"](x, top + height * (1 - part));
      isDown = part !== null;
    });
    paint.stroke();
  }

  private series(row: Row & { kind: "queue" | "alive" }): void {
    const { paint, scene } = this;
    const values = scene.moments.program[row.kind];
    const most = values.reduce((most, value) => Math.max(most, value), 1);
    this.steps(values, most, row.top + 2, row.height - 4);
    paint.globalAlpha = 0.25;
    this.eachPixel(values, most, (x, part) => {
      const height = (row.height - 4) * (part ?? 0);
      paint.fillRect(x, row.top + row.height - 2 - height, 1, height);
    });
    paint.globalAlpha = 1;
    this.use("--soft");
    this.text(`max ${grouped(most)}`, scene.gutter + 4, row.top + 12, 120);
  }

  private spans(row: Row & { kind: "spans" }): void {
    const { paint, scene } = this;
    const { spans, texts } = scene.moments.program;
    // Neighbours differ.
    const hue = (150 + scene.rows.indexOf(row) * 83) % 360;
    row.group.rows.forEach((of, place) => {
      const top = row.top + place * SPAN;
      for (const span of of) {
        const left = Math.max(scene.gutter, xOf(scene, spans.start_ns[span]));
        const right = Math.min(scene.width, xOf(scene, spans.start_ns[span] + spans.duration_ns[span]));
        if (right < scene.gutter || left > scene.width) continue;
        const isHit = !scene.matchesSpan || scene.matchesSpan(span);
        paint.globalAlpha = isHit ? 1 : 0.18;
        paint.fillStyle = `oklch(${this.value("--box-l")} ${this.value("--box-c")} ${hue})`;
        paint.fillRect(left, top, Math.max(1, right - left - 0.5), SPAN - 1);
        paint.globalAlpha = 1;
        if (span === scene.span) {
          this.use("--ink");
          paint.strokeRect(left - 0.5, top - 0.5, Math.max(3, right - left), SPAN);
        }
        if (right - left > 60 && spans.fields[span] >= 0) {
          this.use("--box-ink");
          this.text(texts[spans.fields[span]], left + 3, top + 10, right - left - 6);
        }
      }
    });
  }

  drag(height: number): void {
    const { paint, scene } = this;
    if (!scene.dragged) return;
    const [left, right] = scene.dragged.map((ns) => xOf(scene, ns));
    this.use("--select");
    paint.fillRect(left, 0, right - left, height);
  }
}

export function paintScene(canvas: HTMLCanvasElement, scene: Scene): void {
  const paint = canvas.getContext("2d");
  if (!paint) return;
  const height = heightOf(scene.rows), scale = Math.max(1, Math.min(3, devicePixelRatio || 1));
  canvas.width = Math.round(scene.width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, scene.width, height);
  const painter = new Painter(paint, scene);
  painter.axis(height);
  for (const row of scene.rows) painter.row(row);
  painter.flags();
  painter.drag(height);
}
