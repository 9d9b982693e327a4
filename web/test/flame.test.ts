import { expect, test } from "vitest";
import { layOut, levelsOf, seenLevels } from "../src/profile/layout";
import { ROW, paintScene, placeOf, spotAt, type Paint, type Part, type Scene } from "../src/profile/paint";
import { CallTree } from "../src/profile/tree";

// A program that calls `wide` functions by each function, down to a depth.
function bush(wide: number, depth: number): CallTree {
  const tree = new CallTree();
  let callers = [0];
  for (let level = 0; level < depth; level++) {
    callers = callers.flatMap((caller) => Array.from({ length: wide }, (_, fn) => tree.child(caller, fn)));
  }
  callers.forEach((leaf) => tree.addSelf(leaf, 1 + tree.fn[leaf], 0));
  for (let node = tree.length - 1; node >= 0; node--) {
    tree.add(node, tree.selfFirst[node], 0);
    if (node) tree.add(tree.caller[node], tree.first[node], 0);
  }
  return tree;
}

const MILLION = bush(10, 6);

const laid = (tree: CallTree) => {
  const wide = tree.first.slice(0, tree.length);
  return layOut(tree, wide, wide, wide[0]);
};

// What is called on a canvas.
function stub(): { paint: Paint; rects: number[][]; texts: string[]; outlines: number; inks: number; measured: number } {
  const seen = { rects: [] as number[][], texts: [] as string[], outlines: 0, inks: 0, measured: 0 };
  let fill = "";
  const paint = {
    strokeStyle: "", lineWidth: 1, globalAlpha: 1, font: "", textBaseline: "middle" as const,
    get fillStyle() { return fill; },
    set fillStyle(style) { fill = String(style); seen.inks++; },
    clearRect: () => {}, strokeRect: () => void seen.outlines++,
    fillRect: (...rect: number[]) => void seen.rects.push(rect),
    fillText: (text: string) => void seen.texts.push(text),
    measureText: (text: string) => (seen.measured++, { width: text.length * 7 } as TextMetrics),
  };
  return Object.assign(seen, { paint });
}

const COLOURS = { inks: ["red", "green", "blue"], small: "grey", text: "black", soft: "grey", hit: "pink", mark: "black", active: "blue" };

function scene(tree: CallTree, change: Partial<Scene> = {}): Scene {
  const part: Part = { tree, layout: laid(tree), row: 0, step: 1, from: 0, hits: null };
  return {
    parts: [part], window: [0, 1], width: 1400, height: 800, scroll: 0, colours: COLOURS, inkOf: ({ fn }, node) => fn[node] % 3,
    nameOf: ({ fn }, node) => `function_${fn[node]}`, marked: null, active: null, palerAbove: 0, ...change,
  };
}

test("a tree finds the calls that it made, however many there are", () => {
  const tree = bush(10, 4);
  expect(tree.length).toBe(11_111);
  for (let node = 1; node < tree.length; node++) expect(tree.find(tree.caller[node], tree.fn[node])).toBe(node);
  const deep = tree.at([3, 1, 4, 1]);
  expect([tree.path(deep), tree.depth[deep], tree.at([3, 10])]).toEqual([[3, 1, 4, 1], 4, 0]);
});

test("callees share the width of their caller, the widest first", () => {
  const tree = bush(3, 2), layout = laid(tree);
  expect(layout.levels).toEqual([0, 3, 12]);
  expect(Array.from(layout.node.subarray(0, 3), (node) => tree.fn[node])).toEqual([0, 1, 2]);
  for (let box = 3; box < 12; box++) {
    const caller = layout.box[tree.caller[layout.node[box]]];
    expect(layout.left[box]).toBeGreaterThanOrEqual(layout.left[caller] - 1e-12);
    expect(layout.right[box]).toBeLessThanOrEqual(layout.right[caller] + 1e-12);
  }
  const weights = Array.from(layout.node.subarray(3, 6), (node) => tree.first[node]);
  expect(weights).toEqual([3, 2, 1]);
});

test("weights below zero have no width, and the others stay within their caller", () => {
  const tree = new CallTree(), top = tree.child(0, 0);
  [5, -3, 4].forEach((weight, fn) => tree.add(tree.child(top, fn), weight, 0));
  tree.add(top, 6, 0);
  tree.add(0, 6, 0);
  const wide = Float64Array.from(tree.first.slice(0, tree.length), (weight) => Math.max(0, weight));
  const layout = layOut(tree, wide, wide, wide[0]);
  expect(layout.box[tree.find(top, 1)]).toBe(-1);
  expect(layout.right[layout.levels[2] - 1]).toBeCloseTo(1);
});

test("a million calls are a picture of some thousand boxes", () => {
  const tree = MILLION, all = scene(tree);
  expect(tree.length).toBe(1_111_111);
  const seen = stub(), { rects, texts } = seen;
  paintScene(seen.paint, all);
  // A pixel of a row has one box, or the ends of two.
  expect(rects.length).toBeLessThanOrEqual(2 * 6 * 1400);
  for (let row = 0; row < 6; row++) {
    const covered = rects.filter(([, y]) => y === row * ROW).reduce((sum, [, , width]) => sum + width, 0);
    expect(covered).toBeGreaterThan(1000);
  }
  expect(rects.length).toBeLessThan(4000);
  expect(texts.length).toBeLessThan(200);
  expect(texts[0]).toBe("function_0");

  // Each ink is set once, and each text is measured once.
  const again = stub();
  paintScene(again.paint, all);
  expect([seen.inks, again.inks, again.measured]).toEqual([6, 6, 0]);
});

test("a window shows what is in it, and rows that are out of view cost nothing", () => {
  const tree = MILLION, path = [9, 8, 7], zoomed = tree.at(path);
  const layout = laid(tree), box = layout.box[zoomed];
  const window: [number, number] = [layout.left[box], layout.right[box]];
  const { paint, rects } = stub();
  const shown = scene(tree, { window, height: 4 * ROW });
  paintScene(paint, shown);
  expect(rects.filter(([, y]) => y < 3 * ROW)).toHaveLength(3);
  expect(rects.filter(([, y]) => y === 3 * ROW)).toHaveLength(10);
  expect(rects.some(([, y]) => y >= 4 * ROW)).toBe(false);
  expect(spotAt(shown, 700, 2 * ROW + 5)).toEqual({ part: 0, node: zoomed });
  const [x, y, width] = placeOf(shown, { part: 0, node: zoomed }) ?? [];
  expect([Math.round(x ?? -1), y, Math.round(width ?? -1)]).toEqual([0, 2 * ROW, 1400]);
  expect(seenLevels(layout, 0, 1, 0.35 / 1400)).toBeLessThan(6);
  expect(seenLevels(layout, ...window, (0.35 / 1400) * (window[1] - window[0]))).toBe(6);
});

test("a place in the picture is of the call that is painted there, with roots above or below", () => {
  const tree = bush(3, 3), layout = laid(tree);
  const above = scene(tree), below = scene(tree, { parts: [{ ...above.parts[0], row: 2, step: -1 }] });
  for (const shown of [above, below]) {
    for (let box = 0; box < layout.levels[levelsOf(layout)]; box++) {
      const spot = { part: 0, node: layout.node[box] }, [x, y, width] = placeOf(shown, spot) ?? [0, 0, 0];
      expect(spotAt(shown, x + width / 2, y + 5)).toEqual(spot);
    }
  }
  expect(placeOf(below, { part: 0, node: tree.at([0]) })?.[1]).toBe(2 * ROW);
});

test("a match is painted as one even where a pixel stands for many calls", () => {
  const tree = MILLION, all = scene(tree), { layout } = all.parts[0];
  const boxes = layout.levels[6], hits = new Uint32Array(boxes + 1), last = layout.levels[5] + 1234;
  for (let box = 0; box < boxes; box++) hits[box + 1] = hits[box] + (box === last ? 1 : 0);
  all.parts[0].hits = hits;
  const seen = stub();
  paintScene(seen.paint, all);
  expect(seen.outlines).toBe(1);
});
