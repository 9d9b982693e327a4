// The calls of the page, and the trees built from them. Weights are pairs: before and after in a diff; in a report the
// second one is 0. In a heap, calls are blocks and weights are bytes.

import { bytes, digits, grouped, spread, times } from "../numbers";
import type { PageData, TopRow } from "./data";

export const SMALL = -1;

type Sides = [ArrayLike<number>, ArrayLike<number>];

// The self and total weight of each call.
export interface Weights {
  self: Sides;
  total: [Float64Array, Float64Array];
}

export interface CallNode {
  fn: number | null;
  caller: CallNode | null;
  first: number;
  second: number;
  selfFirst: number;
  selfSecond: number;
  count: number;
  below: Map<number, CallNode>;
  marked: boolean;
  depth: number;
}

// A node that stands for a call, not for the root of a tree.
export type BoxNode = CallNode & { fn: number };

export const isCall = (node: CallNode): node is BoxNode => node.fn !== null;

// The selection: slices of time (first and last), and a value of each dimension.
export interface Chosen {
  range: [number, number] | null;
  values: (number | null)[];
}

function newNode(fn: number | null, caller: CallNode | null): CallNode {
  return { fn, caller, first: 0, second: 0, selfFirst: 0, selfSecond: 0, count: 0, below: new Map(), marked: false, depth: caller ? caller.depth + 1 : 0 };
}

function child(node: CallNode, fn: number): CallNode {
  let found = node.below.get(fn);
  if (!found) node.below.set(fn, (found = newNode(fn, node)));
  return found;
}

export class Model {
  readonly chosen: Chosen;
  readonly cells: PageData["cells"];
  readonly isDiff: boolean;
  readonly isHeap: boolean;
  private readonly callCount: number;

  constructor(readonly data: PageData) {
    this.isDiff = data.kind === "diff";
    this.isHeap = data.kind === "heap";
    this.chosen = { range: null, values: data.dimensions.map(() => null) };
    this.callCount = data.calls.caller.length;
    // The calls of cells are stored as differences.
    let at = 0;
    this.cells = { ...data.cells, call: data.cells.call.map((step) => (at += step)) };
  }

  isFiltered(): boolean {
    return this.chosen.range !== null || this.chosen.values.some((value) => value !== null);
  }

  private isChosen(situation: number, slice: number): boolean {
    const { range } = this.chosen;
    if (range && (slice < range[0] || slice > range[1])) return false;
    const values = this.data.situations[situation];
    return this.chosen.values.every((value, dimension) => value === null || values[dimension] === value);
  }

  private selfWeights(): Sides {
    if (this.data.kind === "diff") return this.data.self;
    const none = new Float64Array(this.callCount);
    if (this.data.kind === "heap") return [this.data.self, none];
    const weights = new Float64Array(this.callCount);
    const { call, situation, slice, values } = this.cells;
    for (let i = 0; i < call.length; i++) {
      if (this.isChosen(situation[i], slice[i])) weights[call[i]] += values[i];
    }
    return [weights, none];
  }

  // Sums of values may be negative; such a box has no width.
  wide(node: CallNode): number {
    return this.isDiff ? (node.first + node.second) / 2 : Math.max(0, node.first);
  }

  weigh(): Weights {
    const self = this.selfWeights();
    const total: Weights["total"] = [Float64Array.from(self[0]), Float64Array.from(self[1])];
    for (let i = this.callCount - 1; i >= 0; i--) {
      const caller = this.data.calls.caller[i];
      if (caller >= 0) {
        total[0][caller] += total[0][i];
        total[1][caller] += total[1][i];
      }
    }
    return { self, total };
  }

  // From the roots.
  callTree(weights: Weights): CallNode {
    const { data } = this;
    const root = newNode(null, null);
    const nodes: CallNode[] = new Array(this.callCount);
    for (let i = 0; i < this.callCount; i++) {
      const above = data.calls.caller[i];
      const caller = above >= 0 ? nodes[above] : root;
      const first = weights.total[0][i], second = weights.total[1][i];
      const node = (nodes[i] = first || second ? child(caller, data.calls.fn[i]) : caller);
      if (node === caller) continue;
      node.first += first;
      node.second += second;
      node.selfFirst += weights.self[0][i];
      node.selfSecond += weights.self[1][i];
      if (data.kind === "diff") node.marked = node.marked || data.marked[i] === 1;
      if (data.kind === "heap") node.count += data.counts[i];
      if (caller === root) {
        root.first += first;
        root.second += second;
      }
    }
    return root;
  }

  // Adds the callers of a call to `node`, each with the call's weight.
  private addCallers(node: CallNode, call: number, first: number, second: number): void {
    const { caller, fn } = this.data.calls;
    for (let at = call; at >= 0; at = caller[at]) {
      node = child(node, fn[at]);
      node.first += first;
      node.second += second;
    }
  }

  // From the leaves to the roots.
  invertedTree(weights: Weights): CallNode {
    const root = newNode(null, null);
    for (let i = 0; i < this.callCount; i++) {
      const first = weights.self[0][i], second = weights.self[1][i];
      if (!first && !second) continue;
      root.first += first;
      root.second += second;
      this.addCallers(root, i, first, second);
    }
    for (const node of root.below.values()) {
      node.selfFirst = node.first;
      node.selfSecond = node.second;
    }
    this.markByFunction(root);
    return root;
  }

  // Merged nodes have no test of their own: they take the mark of their function.
  private markByFunction(root: CallNode): void {
    if (!this.isDiff) return;
    const marked = new Set(this.data.top.filter((row) => row[7] === 1).map((row) => row[0]));
    const open = [root];
    for (let node = open.pop(); node; node = open.pop()) {
      node.marked = isCall(node) && marked.has(node.fn);
      open.push(...node.below.values());
    }
  }

  // The callers and the callees of all calls of a function, merged. A recursive call counts with the outermost one.
  sandwich(weights: Weights, fn: number): { callees: CallNode; callers: CallNode } {
    const { calls } = this.data;
    const callees = newNode(null, null), callers = newNode(null, null);
    const target = child(callees, fn), source = child(callers, fn);
    const inside: (CallNode | null)[] = new Array(this.callCount).fill(null);
    for (let i = 0; i < this.callCount; i++) {
      const above = calls.caller[i] >= 0 ? inside[calls.caller[i]] : null;
      const first = weights.total[0][i], second = weights.total[1][i];
      if (!first && !second) continue;
      let node: CallNode;
      if (above) {
        node = child(above, calls.fn[i]);
      } else if (calls.fn[i] === fn) {
        node = target;
        for (const whole of [callees, callers, source]) {
          whole.first += first;
          whole.second += second;
        }
        if (calls.caller[i] >= 0) this.addCallers(source, calls.caller[i], first, second);
      } else continue;
      inside[i] = node;
      node.first += first;
      node.second += second;
      node.selfFirst += weights.self[0][i];
      node.selfSecond += weights.self[1][i];
    }
    this.markByFunction(callees);
    this.markByFunction(callers);
    return { callees, callers };
  }

  // Rows of the top table: function, self and total of one side or of both. Without a selection they are exact; with one,
  // they count only the calls in the page.
  topRows(weights: Weights): TopRow[] {
    const { calls, top } = this.data;
    if (this.isDiff || !this.isFiltered()) return top;
    interface Path { fn: number; above: Path | null }
    const self = new Map<number, number>(), total = new Map<number, number>();
    const add = (sums: Map<number, number>, fn: number, weight: number) => sums.set(fn, (sums.get(fn) ?? 0) + weight);
    // By call: the functions on its path, as a list that continues the list of its caller.
    const onPath: Path[] = new Array(this.callCount);
    for (let i = 0; i < this.callCount; i++) {
      const fn = calls.fn[i], above = calls.caller[i] >= 0 ? onPath[calls.caller[i]] : null;
      let isFirst = fn !== SMALL;
      for (let at = above; at && isFirst; at = at.above) isFirst = at.fn !== fn;
      onPath[i] = { fn, above };
      if (isFirst && weights.total[0][i]) add(total, fn, weights.total[0][i]);
      if (fn !== SMALL && weights.self[0][i]) add(self, fn, weights.self[0][i]);
    }
    return [...total].map(([fn, weight]) => [fn, self.get(fn) ?? 0, weight]);
  }

  fnName(fn: number): string {
    return fn === SMALL ? (this.isHeap ? "(others)" : "(smaller calls)") : this.data.names[fn];
  }

  fnFile(fn: number): string {
    return fn === SMALL || this.data.files[fn] < 0 ? "" : this.data.file_names[this.data.files[fn]];
  }

  // A name always has the same hue; names of one file have similar hues.
  hue(fn: number): number {
    const name = this.fnName(fn), file = this.fnFile(fn) || name.split(/::|\\|\.|;/)[0];
    return (spread(file) * 330 + spread(name) * 30 + 20) % 360;
  }

  // A value of a profile, in its unit.
  amount(number: number): string {
    const size = Math.abs(number), unit = this.data.kind === "report" ? this.data.value_unit : "";
    const text = unit === "nanoseconds" ? times(size) : unit === "bytes" ? bytes(size) : unit === "count" || unit === "" ? grouped(size) : `${grouped(size)} ${unit}`;
    return number < 0 ? `-${text}` : text;
  }

  // The kind of a profile's values.
  get valueKind(): string {
    return this.data.kind === "report" ? this.data.value_kind : "";
  }

  // A value of a diff, in its unit.
  value(number: number): string {
    return this.data.kind === "diff" ? digits(number * this.data.factor) + this.data.unit : digits(number);
  }

  changeText(before: number, after: number): string {
    const change = after - before;
    return (change > 0 ? "+" : "") + this.value(change);
  }
}

// Whether a function matches a query; `null` without a query.
export function matcher(model: Model, query: string): ((fn: number) => boolean) | null {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const known = new Map<number, boolean>();
  return (fn) => {
    let found = known.get(fn);
    if (found === undefined) {
      found = fn !== SMALL && (model.fnName(fn) + " " + model.fnFile(fn)).toLowerCase().includes(wanted);
      known.set(fn, found);
    }
    return found;
  };
}
