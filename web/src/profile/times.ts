// The timeline and the heat map. A range selected in one is selected in both, and the rest of the page shows only that time.

import { byId, colour, element } from "../elements";
import { seconds } from "../numbers";
import type { Heat, Timespan } from "./data";
import type { Model } from "./model";

// At most this many threads have a row of the timeline.
const MOST_LANES = 12;

export class Times {
  private readonly marks: (() => void)[] = [];

  constructor(private readonly model: Model, private readonly time: Timespan, private readonly refresh: () => void) {}

  // The slices of the timeline that overlap a time range.
  private slicesOf(startNs: number, endNs: number): [number, number] {
    const { start_ns, slice_ns, slices } = this.time;
    const place = (ns: number) => Math.min(slices - 1, Math.max(0, Math.floor((ns - start_ns) / slice_ns)));
    return [place(startNs), place(Math.max(startNs, endNs - 1))];
  }

  private sliceStart(slice: number): number {
    return this.time.start_ns + slice * this.time.slice_ns;
  }

  // The selected time; `null` for all of it.
  get rangeNs(): [number, number] | null {
    const { range } = this.model.chosen;
    return range && [this.sliceStart(range[0]), this.sliceStart(range[1] + 1)];
  }

  private setRange(range: [number, number] | null): void {
    this.markRange(range);
    this.refresh();
  }

  // Selects a time without drawing the rest of the page.
  markTime(rangeNs: [number, number] | null): void {
    this.markRange(rangeNs && this.slicesOf(...rangeNs));
  }

  private markRange(range: [number, number] | null): void {
    this.model.chosen.range = range;
    for (const mark of this.marks) mark();
    byId("all-time").hidden = !range;
    byId("range").textContent = range ? `${seconds(this.sliceStart(range[0]))} to ${seconds(this.sliceStart(range[1] + 1))}` : "";
  }

  private onKey(event: KeyboardEvent): void {
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (event.key === "Escape") this.setRange(null);
    else if (step) {
      const last = this.time.slices - 1;
      const [start, end] = this.model.chosen.range ?? (step > 0 ? [-1, -1] : [last + 1, last + 1]);
      const within = (slice: number) => Math.min(last, Math.max(0, slice));
      this.setRange(event.shiftKey ? [within(start), within(Math.max(start, end + step))] : [within(start + step), within(end + step)]);
    } else return;
    event.preventDefault();
  }

  // Makes a strip selectable with mouse, touch and keys. `startNs` to `endNs` is the time it shows.
  private selectable(strip: HTMLElement, startNs: number, endNs: number): void {
    const mark = element("div", "range");
    mark.hidden = true;
    strip.append(mark);
    const span = endNs - startNs;
    let from: number | null = null;
    const timeAt = (event: PointerEvent) => {
      const box = strip.getBoundingClientRect();
      return startNs + (Math.min(Math.max(event.clientX - box.left, 0), box.width - 0.01) / box.width) * span;
    };
    strip.addEventListener("pointerdown", (event) => {
      from = timeAt(event);
      strip.setPointerCapture(event.pointerId);
      this.setRange(this.slicesOf(from, from));
    });
    strip.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = timeAt(event);
      this.setRange(this.slicesOf(Math.min(from, to), Math.max(from, to)));
    });
    for (const end of ["pointerup", "pointercancel"]) strip.addEventListener(end, () => (from = null));
    strip.addEventListener("keydown", (event) => this.onKey(event));
    this.marks.push(() => {
      const { range } = this.model.chosen;
      mark.hidden = !range;
      if (!range) return;
      const part = (slice: number) => Math.min(1, Math.max(0, (this.sliceStart(slice) - startNs) / span));
      const left = part(range[0]);
      mark.style.left = `${left * 100}%`;
      mark.style.width = `${(part(range[1] + 1) - left) * 100}%`;
    });
  }

  // One row per thread, if threads are known; higher bars are more samples.
  private paintTimeline(): void {
    const { data, cells } = this.model;
    const strip = byId("timeline");
    const threads = data.dimensions.findIndex((dimension) => dimension.kind === "thread");
    const lanes = threads < 0 ? 1 : Math.min(data.dimensions[threads].values.length, MOST_LANES);
    const { slices } = this.time;
    const sums = Array.from({ length: lanes }, () => new Float64Array(slices));
    for (let i = 0; i < cells.call.length; i++) {
      if (cells.slice[i] < 0) continue;
      const lane = threads < 0 ? 0 : data.situations[cells.situation[i]][threads];
      if (lane < lanes) sums[lane][cells.slice[i]] += cells.values[i];
    }
    const most = sums.reduce((most, lane) => lane.reduce((most, sum) => Math.max(most, sum), most), 1);
    const laneHeight = lanes === 1 ? 100 : Math.max(14, Math.min(36, Math.floor(150 / lanes)));
    strip.style.height = `${laneHeight * lanes}px`;
    const scale = 4, paint = canvasOf(strip, slices * scale, laneHeight * lanes * 2);
    paint.fillStyle = colour("--bar");
    sums.forEach((lane, row) => lane.forEach((sum, slice) => {
      const height = Math.ceil((sum / most) * (laneHeight * 2 - 4));
      if (sum > 0) paint.fillRect(slice * scale, (row + 1) * laneHeight * 2 - height, scale - 0.6, height);
    }));
  }

  repaint(): void {
    this.paintTimeline();
    if (this.model.data.heat) paintHeat(this.model.data.heat);
  }

  start(): void {
    this.selectable(byId("timeline"), this.sliceStart(0), this.sliceStart(this.time.slices));
    const { heat } = this.model.data;
    if (heat) this.selectable(byId("heat"), heat.start_ns, heat.start_ns + (heat.samples.length / heat.rows) * heat.column_ns);
    byId("all-time").addEventListener("click", () => this.setRange(null));
    this.repaint();
  }
}

function canvasOf(strip: HTMLElement, width: number, height: number): CanvasRenderingContext2D {
  const canvas = strip.querySelector("canvas");
  const paint = canvas?.getContext("2d");
  if (!canvas || !paint) throw new Error("missing canvas");
  canvas.width = width;
  canvas.height = height;
  return paint;
}

// One column per second, from bottom to top; darker cells are more samples.
function paintHeat({ rows, samples }: Heat): void {
  const columns = samples.length / rows;
  const cell = Math.max(1, Math.floor(1600 / columns));
  const paint = canvasOf(byId("heat"), columns * cell, rows * 4);
  const most = samples.reduce((most, count) => Math.max(most, count), 1);
  paint.fillStyle = colour("--small");
  paint.fillRect(0, 0, columns * cell, rows * 4);
  const heat = colour("--heat");
  samples.forEach((count, place) => {
    if (!count) return;
    paint.fillStyle = `rgb(${heat} / ${(0.08 + 0.92 * (count / most) ** 1.5).toFixed(3)})`;
    paint.fillRect(Math.floor(place / rows) * cell, (rows - 1 - (place % rows)) * 4, cell, 4);
  });
}
