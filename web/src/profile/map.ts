// A tree map: a block for each node, as large as its weight, inside the block of its caller.

import { beyond, type Layout } from "./layout";
import { FONT, fitting, type Colours, type Paint } from "./paint";
import type { CallTree } from "./tree";

// Blocks that are smaller at one side hold no others.
const SMALLEST = 4;
const TITLE = 16;
const PADDING = 2;
// What is deeper is too small to be seen on any screen.
const DEEPEST = 40;

export interface Block {
  node: number;
  x: number;
  y: number;
  width: number;
  height: number;
  // The space for its name above the blocks inside it; 0 if it has none.
  title: number;
}

type Area = [x: number, y: number, width: number, height: number];

// The callees of a node that have a width, the widest first.
export function boxesBelow({ caller, depth }: CallTree, { left, right, node, box, levels }: Layout, of: number): number[] {
  const level = of ? depth[of] : 0;
  if (level >= levels.length - 1) return [];
  const end = levels[level + 1], found: number[] = [];
  const [from, to] = of ? [left[box[of]], right[box[of]]] : [0, 1];
  for (let at = beyond({ left, right, node, box, levels }, levels[level], end, from); at < end && left[at] < to; at++) if (caller[node[at]] === of) found.push(node[at]);
  return found;
}

// The worst ratio of sides of blocks in a row along a side of length `side`.
function worst(areas: number[], sum: number, side: number): number {
  const thickness = sum / side;
  return areas.reduce((worst, area) => Math.max(worst, thickness ** 2 / area, area / thickness ** 2), 1);
}

// Divides an area in proportion to weights, the largest first, into blocks that are as square as they can be.
//
// Source: Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000).
export function squarify(weights: number[], total: number, [x, y, width, height]: Area): Area[] {
  const scale = (width * height) / (total || 1), areas: Area[] = [];
  let row: number[] = [], sum = 0;
  const place = () => {
    const isTall = height > width, thickness = sum / (isTall ? width : height);
    let at = isTall ? x : y;
    for (const area of row) {
      const length = area / thickness;
      areas.push(isTall ? [at, y, length, thickness] : [x, at, thickness, length]);
      at += length;
    }
    if (isTall) [y, height] = [y + thickness, height - thickness];
    else [x, width] = [x + thickness, width - thickness];
    [row, sum] = [[], 0];
  };
  for (const weight of weights) {
    const area = weight * scale, side = Math.min(width, height);
    if (row.length && worst([...row, area], sum + area, side) > worst(row, sum, side)) place();
    row.push(area);
    sum += area;
  }
  if (row.length) place();
  return areas;
}

// The blocks below a node; a block precedes those inside it.
export function layMap(tree: CallTree, layout: Layout, wide: Float64Array, root: number, width: number, height: number): Block[] {
  const blocks: Block[] = [], open: [node: number, area: Area, depth: number][] = [[root, [0, 0, width, height], 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [node, [x, y, w, h], depth] = next;
    const title = node && w > 34 && h > TITLE + 8 ? TITLE : 0;
    if (node) blocks.push({ node, x, y, width: w, height: h, title });
    const inside: Area = node ? [x + PADDING, y + (title || PADDING), w - 2 * PADDING, h - (title || PADDING) - PADDING] : [x, y, w, h];
    if (Math.min(inside[2], inside[3]) < SMALLEST || depth === DEEPEST) continue;
    const below = boxesBelow(tree, layout, node), weights = below.map((node) => wide[node]);
    const areas = squarify(weights, Math.max(wide[node], weights.reduce((sum, weight) => sum + weight, 0)), inside);
    areas.forEach((area, place) => Math.min(area[2], area[3]) >= 1 && open.push([below[place], area, depth + 1]));
  }
  return blocks;
}

// The innermost block at a place; `null` if there is none.
export function blockAt(blocks: Block[], x: number, y: number): Block | null {
  return blocks.findLast((block) => x >= block.x && y >= block.y && x < block.x + block.width && y < block.y + block.height) ?? null;
}

export interface MapLook {
  colours: Colours;
  inkOf: (tree: CallTree, node: number) => number;
  nameOf: (tree: CallTree, node: number) => string;
  marked: number | null;
  active: number | null;
  hits: Uint8Array | null;
}

export function paintMap(paint: Paint, tree: CallTree, blocks: Block[], look: MapLook, width: number, height: number): void {
  const { colours } = look;
  paint.clearRect(0, 0, width, height);
  paint.font = FONT;
  paint.textBaseline = "middle";
  for (const { node, x, y, width, height, title } of blocks) {
    const ink = look.inkOf(tree, node), isMissed = look.hits !== null && !look.hits[tree.fn[node]];
    paint.globalAlpha = isMissed ? 0.28 : 1;
    paint.fillStyle = ink < 0 ? colours.small : colours.inks[ink];
    paint.fillRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), Math.max(height - 1, 1));
    paint.globalAlpha = 1;
    const isActive = look.active === node, isMarked = look.marked === tree.fn[node], isHit = look.hits !== null && !isMissed;
    if (isActive || isMarked || isHit) {
      paint.strokeStyle = isActive ? colours.active : isHit ? colours.hit : colours.mark;
      paint.lineWidth = isActive || isHit ? 2 : 1.5;
      paint.strokeRect(x + 1.5, y + 1.5, Math.max(width - 3, 1), Math.max(height - 3, 1));
    }
    if (!title) continue;
    const text = fitting(paint, look.nameOf(tree, node), width - 8);
    paint.fillStyle = isMissed || ink < 0 ? colours.soft : colours.text;
    if (text) paint.fillText(text, x + 5, y + title / 2 + 1);
  }
}

