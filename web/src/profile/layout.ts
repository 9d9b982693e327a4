// Where the calls of a tree are: level by level, the boxes of a level from left to right.

import type { CallTree } from "./tree";

export interface Layout {
  // By box: its node, and its sides as parts of the whole width.
  node: Int32Array;
  left: Float64Array;
  right: Float64Array;
  // By node: its box, or -1 as it has no width.
  box: Int32Array;
  // By level: its first box. The last element is the number of boxes.
  levels: number[];
}

// Groups of at most this many are sorted by insertion: most are small, and a general sort takes ten times as long for them.
const SMALL_GROUP = 24;

function sort(group: Int32Array, isBefore: (one: number, other: number) => boolean): void {
  if (group.length > SMALL_GROUP) return void group.sort((one, other) => (isBefore(one, other) ? -1 : 1));
  for (let end = 1; end < group.length; end++) {
    const node = group[end];
    let at = end;
    for (; at > 0 && isBefore(node, group[at - 1]); at--) group[at] = group[at - 1];
    group[at] = node;
  }
}

// By node: where its callees begin in `callees`, and the callees, those with the largest `order` first.
function calleesOf(tree: CallTree, order: Float64Array): { start: Int32Array; callees: Int32Array } {
  const { length, caller, fn } = tree;
  const start = new Int32Array(length + 1), callees = new Int32Array(length);
  for (let node = 1; node < length; node++) start[caller[node] + 1]++;
  for (let node = 0; node < length; node++) start[node + 1] += start[node];
  const next = start.slice();
  for (let node = 1; node < length; node++) callees[next[caller[node]]++] = node;
  const isBefore = (one: number, other: number) => (order[one] === order[other] ? fn[one] < fn[other] : order[one] > order[other]);
  for (let node = 0; node < length; node++) if (start[node + 1] - start[node] > 1) sort(callees.subarray(start[node], start[node + 1]), isBefore);
  return { start, callees };
}

// `wide` is the width of each node. Callees are in the order of `order`, the largest first. `whole` is the weight that the width
// stands for.
export function layOut(tree: CallTree, wide: Float64Array, order: Float64Array, whole: number): Layout {
  const { length } = tree;
  const { start, callees } = calleesOf(tree, order);
  const node = new Int32Array(length), left = new Float64Array(length), right = new Float64Array(length);
  const box = new Int32Array(length).fill(-1), levels = [0];
  let boxes = 0;
  const spread = (caller: number, from: number, width: number) => {
    // If some weights are negative, the others exceed the weight of their caller.
    let weight = 0;
    for (let at = start[caller]; at < start[caller + 1]; at++) weight += wide[callees[at]];
    weight = Math.max(weight, wide[caller]);
    for (let at = start[caller]; at < start[caller + 1] && weight > 0; at++) {
      const share = (width * wide[callees[at]]) / weight;
      if (share <= 0) continue;
      node[boxes] = callees[at];
      box[callees[at]] = boxes;
      left[boxes] = from;
      right[boxes++] = from += share;
    }
  };
  spread(0, 0, whole > 0 ? Math.min(1, wide[0] / whole) : 0);
  for (let first = 0; first < boxes; ) {
    const end = boxes;
    levels.push(end);
    for (; first < end; first++) spread(node[first], left[first], right[first] - left[first]);
  }
  return { node, left, right, box, levels };
}

// The first box from `from` to before `end` whose right side is beyond `edge`; `end` if there is none.
export function beyond({ right }: Layout, from: number, end: number, edge: number): number {
  // Most often it is near: the steps double before the halves of the last one are searched.
  let step = 1, low = from;
  while (low + step < end && right[low + step - 1] <= edge) {
    low += step;
    step *= 2;
  }
  let high = Math.min(end, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (right[middle] > edge) high = middle;
    else low = middle + 1;
  }
  return low;
}

export const levelsOf = ({ levels }: Layout): number => levels.length - 1;

// The number of levels that have a box of at least `least` between `from` and `to`.
export function seenLevels(layout: Layout, from: number, to: number, least: number): number {
  const { left, right, levels } = layout;
  for (let level = 0; level < levelsOf(layout); level++) {
    const end = levels[level + 1];
    let box = beyond(layout, levels[level], end, from);
    while (box < end && left[box] < to && right[box] - left[box] < least) box++;
    if (box >= end || left[box] >= to) return level;
  }
  return levelsOf(layout);
}
