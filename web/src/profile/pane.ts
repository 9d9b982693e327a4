// A canvas that shows trees of calls, and moves from one window of them to the next.

import { seenLevels } from "./layout";
import { paintScene, placeOf, spotAt, type Part, type Scene, type Spot } from "./paint";

type Window = [from: number, to: number];

const MOVE_MS = 140;
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// What all panes of a flame graph show alike.
export type Look = Omit<Scene, "parts" | "window" | "width" | "height" | "scroll">;

export class Pane {
  parts: Part[] = [];
  // The window that is shown, or that the picture moves to.
  window: Window = [0, 1];
  width = 0;
  height = 0;
  private scroll = 0;
  private from: Window = [0, 1];
  private begun = -Infinity;
  private readonly paint: CanvasRenderingContext2D;

  constructor(readonly canvas: HTMLCanvasElement) {
    const paint = canvas.getContext("2d", { alpha: true });
    if (!paint) throw new Error("missing canvas");
    this.paint = paint;
  }

  // Takes the width that the canvas has, and this height.
  fit(width: number, height: number): void {
    const ratio = devicePixelRatio || 1, { canvas } = this;
    const [wide, high] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    canvas.style.height = `${height}px`;
    [this.width, this.height] = [Math.max(width, 1), height];
    this.paint.setTransform(wide / this.width, 0, 0, high / Math.max(height, 1), 0, 0);
  }

  moveTo(window: Window, isMoved: boolean): void {
    this.from = this.shown(performance.now());
    this.window = window;
    this.begun = isMoved && !isStill() ? performance.now() : -Infinity;
  }

  private shown(now: number): Window {
    const part = Math.min(1, (now - this.begun) / MOVE_MS), done = 1 - (1 - part) ** 3;
    return [0, 1].map((side) => this.from[side] + (this.window[side] - this.from[side]) * done) as Window;
  }

  // The number of rows of a part that have something to see.
  rowsOf({ layout }: Part, least: number): number {
    const [from, to] = this.window;
    return seenLevels(layout, from, to, (least * (to - from)) / this.width);
  }

  private view(now: number) {
    return { parts: this.parts, window: this.shown(now), width: this.width, height: this.height, scroll: this.scroll };
  }

  // Draws, and says whether the picture still moves.
  draw(look: Look, scroll: number): boolean {
    const now = performance.now();
    this.scroll = scroll;
    paintScene(this.paint, { ...look, ...this.view(now) });
    return now - this.begun < MOVE_MS;
  }

  // Paints something else.
  with(call: (paint: CanvasRenderingContext2D) => void): void {
    call(this.paint);
  }

  spotAt(event: MouseEvent): Spot | null {
    const box = this.canvas.getBoundingClientRect();
    return spotAt(this.view(performance.now()), event.clientX - box.left, event.clientY - box.top);
  }

  // Where a node will be once the picture stands still.
  placeOf(spot: Spot): [number, number, number, number] | null {
    return placeOf({ ...this.view(performance.now()), window: this.window }, spot);
  }
}
