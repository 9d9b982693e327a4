import { expect, test } from "vitest";
import { layOut } from "../src/profile/layout";
import { blockAt, boxesBelow, layMap, squarify } from "../src/profile/map";
import { CallTree } from "../src/profile/tree";

test("areas are in proportion, fill the whole, and are nearly square", () => {
  // The example of the paper: 6, 6, 4, 3, 2, 2, 1 in 6 by 4.
  const areas = squarify([6, 6, 4, 3, 2, 2, 1], 24, [0, 0, 6, 4]);
  expect(areas.map(([, , width, height]) => Math.round(width * height * 1000) / 1000)).toEqual([6, 6, 4, 3, 2, 2, 1]);
  expect(areas.slice(0, 2)).toEqual([[0, 0, 3, 2], [0, 2, 3, 2]]);
  for (const [x, y, width, height] of areas) {
    expect(Math.max(width / height, height / width)).toBeLessThan(3);
    expect([x >= 0, y >= 0, x + width <= 6 + 1e-9, y + height <= 4 + 1e-9]).toEqual([true, true, true, true]);
  }
  expect(squarify([], 0, [0, 0, 6, 4])).toEqual([]);
});

// Two roots of 600 and 300 bytes; the first holds 400 and 100.
function heap() {
  const tree = new CallTree();
  const [app, other] = [tree.child(0, 0), tree.child(0, 1)], [cache, list] = [tree.child(app, 2), tree.child(app, 3)];
  for (const [node, bytes] of [[0, 900], [app, 600], [other, 300], [cache, 400], [list, 100]]) tree.add(node, bytes, 0);
  const wide = tree.first.slice(0, tree.length);
  return { tree, wide, layout: layOut(tree, wide, wide, wide[0]), app, other, cache, list };
}

test("blocks are inside their holder, and a place is of the innermost one", () => {
  const { tree, wide, layout, app, other, cache, list } = heap();
  expect([boxesBelow(tree, layout, 0), boxesBelow(tree, layout, app), boxesBelow(tree, layout, other)]).toEqual([[app, other], [cache, list], []]);
  const blocks = layMap(tree, layout, wide, 0, 900, 600);
  expect(blocks.map((block) => block.node).sort()).toEqual([app, other, cache, list]);
  const of = (node: number) => blocks.find((block) => block.node === node)!;
  expect(of(app).width * of(app).height).toBeCloseTo(2 * of(other).width * of(other).height);
  for (const node of [cache, list]) {
    expect(of(node).x).toBeGreaterThan(of(app).x);
    expect(of(node).y + of(node).height).toBeLessThan(of(app).y + of(app).height);
  }
  const { x, y, width, height } = of(cache);
  expect(blockAt(blocks, x + width / 2, y + height / 2)?.node).toBe(cache);
  expect(blockAt(blocks, of(app).x + 1, of(app).y + 1)?.node).toBe(app);
  expect(blockAt(blocks, 901, 1)).toBe(null);
  expect(layMap(tree, layout, wide, app, 900, 600)[0]).toMatchObject({ node: app, x: 0, y: 0, width: 900, height: 600 });
});
