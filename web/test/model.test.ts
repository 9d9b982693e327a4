import { expect, test } from "vitest";
import type { DiffData, ReportData } from "../src/profile/data";
import { Model, matching } from "../src/profile/model";
import type { CallTree } from "../src/profile/tree";

// main calls itself and a; a calls b; b and a have weight of their own, in two slices of time.
const REPORT: ReportData = {
  kind: "report", title: "t", about: "a", facts: [], notes: [], value_types: [], chart: null, all: 12, distinct: 3, value_kind: "samples", value_unit: "count",
  names: ["main", "a", "b"], files: [-1, 0, -1], file_names: ["a.rs"],
  calls: { caller: [-1, 0, 1, 2], fn: [0, 0, 1, 2] },
  cells: { call: [0, 2, 0, 1], situation: [0, 0, 0, 0], slice: [0, 0, 1, 1], values: [1, 4, 2, 5] },
  situations: [[]], dimensions: [], top: [[2, 5, 5], [1, 6, 11], [0, 1, 12]], time: null, heat: null,
};

const nodesBelow = ({ caller, length }: CallTree, node: number): number[] => Array.from({ length }, (_, at) => at).filter((at) => at > 0 && caller[at] === node);
const shape = (tree: CallTree, node = 0): unknown => Object.fromEntries(nodesBelow(tree, node).map((next) => [tree.fn[next], [tree.first[next], shape(tree, next)]]));

test("trees hold all weight in every direction", () => {
  const model = new Model(REPORT), weights = model.weigh();
  expect(shape(model.callTree(weights))).toEqual({ 0: [12, { 0: [11, { 1: [11, { 2: [5, {}] }] }] }] });
  const inverted = model.invertedTree(weights);
  expect(inverted.first[0]).toBe(12);
  expect(nodesBelow(inverted, 0).map((node) => [inverted.fn[node], inverted.first[node]])).toEqual([[0, 1], [1, 6], [2, 5]]);
});

test("a recursive function counts once in its sandwich", () => {
  const model = new Model(REPORT);
  const { callees, callers } = model.sandwich(model.weigh(), 0);
  expect(callees.first[callees.find(0, 0)]).toBe(12);
  expect(nodesBelow(callers, callers.find(0, 0))).toEqual([]);
});

test("a range of time leaves out the rest", () => {
  const model = new Model(REPORT);
  model.chosen.range = [1, 1];
  expect(model.topRows(model.weigh())).toEqual([[0, 0, 7], [1, 2, 7], [2, 5, 5]]);
});

test("a search finds names and files", () => {
  const model = new Model(REPORT), matches = matching(model, " A.RS ");
  expect([...(matches ?? [])]).toEqual([0, 1, 0]);
  expect(matching(model, " ")).toBe(null);
});

test("merged calls of a diff are as significant as their function", () => {
  const diff: DiffData = {
    ...REPORT, kind: "diff", factor: 100, unit: "%", self: [[0, 0.25, 0, 0], [0, 0.5, 0, 0]], marked: [0, 1, 0, 0],
    top: [[0, 0.25, 0.5, 0.25, 0.5, 1, 1, 1]],
  };
  const model = new Model(diff), root = model.invertedTree(model.weigh());
  expect(root.marked[root.find(0, 0)]).toBe(1);
  expect([root.first[0], root.second[0]]).toEqual([0.25, 0.5]);
  expect(model.changeText(0.25, 0.5)).toBe("+25.00%");
});
