// Paints the boxes of trees of calls on a canvas. What is narrower than a pixel is painted together, so a picture takes as long
// for a million calls as for some thousand.

import { beyond, levelsOf, type Layout } from "./layout";
import type { CallTree } from "./tree";

export const ROW = 20;
const BOX = ROW - 1;
const PADDING = 4;
const NARROWEST_TEXT = 26;

// What is painted of nodes.
export interface Nodes {
  fn: ArrayLike<number>;
  depth: ArrayLike<number>;
}

// A tree in a picture: level n is in row `row + n * step`. Levels below `from` are not shown.
export interface Part<T extends Nodes = CallTree> {
  tree: T;
  layout: Layout;
  row: number;
  step: 1 | -1;
  from: number;
  // By box, the number of matches before it; `null` without a search.
  hits: Uint32Array | null;
}

export interface Colours {
  // By ink: the fill of boxes. `inkOf` of a scene chooses it.
  inks: string[];
  small: string;
  text: string;
  soft: string;
  hit: string;
  mark: string;
  active: string;
}

// A node of a part.
export interface Spot {
  part: number;
  node: number;
}

export interface Scene<T extends Nodes = CallTree> {
  parts: Part<T>[];
  // The part of the width that is shown, in the unit of the layouts.
  window: [from: number, to: number];
  // In pixels of the style.
  width: number;
  height: number;
  scroll: number;
  colours: Colours;
  // The ink of a node; -1 for those that are small.
  inkOf: (tree: T, node: number) => number;
  nameOf: (tree: T, node: number) => string;
  // Calls of this function are marked; `null` for none.
  marked: number | null;
  active: Spot | null;
  // Callers of the zoomed call are paler: those of the first part above this level.
  palerAbove: number;
}

type View<T extends Nodes> = Pick<Scene<T>, "parts" | "window" | "width" | "scroll">;

// What is used of a canvas.
export type Paint = Pick<CanvasRenderingContext2D, "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "textBaseline" | "fillRect" | "strokeRect" | "fillText" | "measureText" | "clearRect">;

export const FONT = '11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

// How strongly boxes are painted.
const [FULL, PALER, MISSED] = [0, 1, 2];
const STRENGTHS = [1, 0.62, 0.28];

// Boxes to paint: place, width, and the ink with its strength.
class Boxes {
  x = new Float32Array(4096);
  y = new Float32Array(4096);
  width = new Float32Array(4096);
  ink = new Int32Array(4096);
  length = 0;

  // `isRun` is a pixel with many calls: it continues the one at its left.
  add(x: number, y: number, width: number, ink: number, isRun: boolean): void {
    const last = this.length - 1;
    if (isRun && last >= 0 && this.ink[last] === ink && this.y[last] === y && this.x[last] + this.width[last] === x) {
      this.width[last] += width;
      return;
    }
    if (this.length === this.x.length) {
      for (const column of ["x", "y", "width"] as const) {
        const grown = new Float32Array(2 * this.length);
        grown.set(this[column]);
        this[column] = grown;
      }
      const inks = new Int32Array(2 * this.length);
      inks.set(this.ink);
      this.ink = inks;
    }
    this.x[this.length] = x;
    this.y[this.length] = y;
    this.width[this.length] = width;
    this.ink[this.length++] = ink;
  }

  // The boxes in the order of their inks: changing the ink is what costs.
  private ordered(inks: number): Int32Array {
    const start = new Int32Array(inks + 1), order = new Int32Array(this.length);
    for (let box = 0; box < this.length; box++) start[this.ink[box] + 1]++;
    for (let ink = 0; ink < inks; ink++) start[ink + 1] += start[ink];
    for (let box = 0; box < this.length; box++) order[start[this.ink[box]]++] = box;
    return order;
  }

  fill(paint: Paint, fills: string[]): void {
    let last = -1;
    for (const box of this.ordered(fills.length * STRENGTHS.length)) {
      if (this.ink[box] !== last) {
        last = this.ink[box];
        paint.fillStyle = fills[last % fills.length];
        paint.globalAlpha = STRENGTHS[Math.floor(last / fills.length)];
      }
      paint.fillRect(this.x[box], this.y[box], this.width[box], BOX);
    }
    paint.globalAlpha = 1;
  }
}

// The widths of texts, each measured once.
const measured = new Map<string, number>();
const MOST_MEASURED = 50_000;

function widthOf(paint: Paint, text: string): number {
  let width = measured.get(text);
  if (width === undefined) {
    if (measured.size > MOST_MEASURED) measured.clear();
    measured.set(text, (width = paint.measureText(text).width));
  }
  return width;
}

// As much of a text as fits.
export function fitting(paint: Paint, text: string, space: number): string {
  const width = widthOf(paint, text);
  if (width <= space) return text;
  const some = Math.floor((space * text.length) / width) - 1;
  return some > 0 ? text.slice(0, some) + "…" : "";
}

// Calls back for each box in the window, and for each run of boxes that share a pixel. The first is the one at the left; `end` is the
// box after the last one.
function eachBox({ layout }: Pick<Part, "layout">, level: number, { window: [from, to], width }: Pick<Scene, "window" | "width">, call: (box: number, end: number, x: number, wide: number) => void): void {
  const { left, right, levels } = layout, end = levels[level + 1], scale = width / (to - from);
  let box = beyond(layout, levels[level], end, from);
  while (box < end && left[box] < to) {
    const x = (left[box] - from) * scale, wide = (right[box] - left[box]) * scale;
    if (wide >= 1) {
      call(box, box + 1, x, wide);
      box++;
      continue;
    }
    const pixel = Math.floor(x), edge = from + (pixel + 1) / scale;
    let next = Math.max(box + 1, beyond(layout, box, end, edge));
    // The one that ends in the next pixel is of this one, unless it is wide enough for itself.
    if (next < end && left[next] < edge && (right[next] - left[next]) * scale < 1) next++;
    call(box, next, pixel, 1);
    box = next;
  }
}

// The levels of a part that are in the picture.
function shownLevels({ layout, row, step, from }: Omit<Part, "tree">, { scroll, height }: Pick<Scene, "scroll" | "height">): [first: number, end: number] {
  const [top, bottom] = [Math.floor(scroll / ROW), Math.ceil((scroll + height) / ROW)];
  const [one, other] = step > 0 ? [top - row, bottom - row] : [row - bottom + 1, row - top + 1];
  return [Math.max(from, one), Math.min(levelsOf(layout), other)];
}

interface Label {
  text: string;
  x: number;
  y: number;
  isSoft: boolean;
}

interface Painted {
  boxes: Boxes;
  labels: Label[];
  outlines: [style: string, line: number, x: number, y: number, width: number][];
}

function collect<T extends Nodes>(scene: Scene<T>, part: Part<T>, place: number, paint: Paint, into: Painted): void {
  const { colours, marked, active } = scene, { tree, layout, hits } = part;
  const inks = colours.inks.length + 1;
  const activeBox = active?.part === place ? layout.box[active.node] : -1;
  const [first, end] = shownLevels(part, scene);
  for (let level = first; level < end; level++) {
    const y = (part.row + level * part.step) * ROW - Math.round(scene.scroll);
    eachBox(part, level, scene, (box, next, x, wide) => {
      const node = layout.node[box], isOne = next === box + 1;
      const isHit = hits !== null && hits[next] > hits[box];
      const ink = isOne ? scene.inkOf(tree, node) : -1;
      const strength = hits && !isHit ? MISSED : place === 0 && level < scene.palerAbove ? PALER : FULL;
      const seenX = Math.max(x, -1), seen = Math.min(x + wide, scene.width + 1) - seenX;
      const shown = Math.max(seen - (wide > 3 ? 1 : 0), 1);
      into.boxes.add(seenX, y, shown, strength * inks + (ink < 0 ? inks - 1 : ink), !isOne);
      if (isHit) into.outlines.push([colours.hit, wide > 6 ? 2 : 1, seenX, y, shown]);
      if (activeBox >= box && activeBox < next) into.outlines.push([colours.active, 2, seenX, y, shown]);
      else if (marked !== null && tree.fn[node] === marked && isOne) into.outlines.push([colours.mark, 1.5, seenX, y, shown]);
      if (seen < NARROWEST_TEXT) return;
      const text = fitting(paint, scene.nameOf(tree, node), seen - 2 * PADDING);
      if (text) into.labels.push({ text, x: Math.max(seenX, 0) + PADDING, y: y + BOX / 2 + 0.5, isSoft: strength === MISSED || ink < 0 });
    });
  }
}

// Paints a scene. The canvas is scaled to pixels of the style.
export function paintScene<T extends Nodes>(paint: Paint, scene: Scene<T>): void {
  const { colours, width, height } = scene;
  paint.clearRect(0, 0, width, height);
  paint.font = FONT;
  paint.textBaseline = "middle";
  const painted: Painted = { boxes: new Boxes(), labels: [], outlines: [] };
  scene.parts.forEach((part, place) => collect(scene, part, place, paint, painted));
  painted.boxes.fill(paint, [...colours.inks, colours.small]);
  for (const isSoft of [false, true]) {
    paint.fillStyle = isSoft ? colours.soft : colours.text;
    for (const label of painted.labels) if (label.isSoft === isSoft) paint.fillText(label.text, label.x, label.y);
  }
  for (const [style, line, x, y, width] of painted.outlines) {
    paint.strokeStyle = style;
    paint.lineWidth = line;
    paint.strokeRect(x + line / 2, y + line / 2, Math.max(width - line, 0.5), BOX - line);
  }
}

// The node at a place of the picture; `null` if none is there.
export function spotAt<T extends Nodes>({ parts, window: [from, to], width, scroll }: View<T>, x: number, y: number): Spot | null {
  const row = Math.floor((y + scroll) / ROW), at = from + (x / width) * (to - from);
  for (const [place, part] of parts.entries()) {
    const level = (row - part.row) * part.step, { layout } = part;
    if (level < part.from || level >= levelsOf(layout)) continue;
    const end = layout.levels[level + 1], box = beyond(layout, layout.levels[level], end, at);
    if (box < end && layout.left[box] <= at) return { part: place, node: layout.node[box] };
  }
  return null;
}

// Where a node is in the picture: left, top, width and height, whether it is in view or not.
export function placeOf<T extends Nodes>({ parts, window: [from, to], width, scroll }: View<T>, { part: place, node }: Spot): [number, number, number, number] | null {
  const { layout, tree, row, step } = parts[place], box = layout.box[node];
  if (box < 0) return null;
  const scale = width / (to - from), level = tree.depth[node] - 1;
  return [(layout.left[box] - from) * scale, (row + level * step) * ROW - scroll, (layout.right[box] - layout.left[box]) * scale, BOX];
}
