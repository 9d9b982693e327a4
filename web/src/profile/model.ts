// The calls of the page, and the trees built from them. Weights are pairs: before and after in a diff; in a report the
// second one is 0. In a heap, calls are blocks and weights are bytes.

import { bytes, digits, grouped, times } from "../numbers";
import type { PageData, TopRow } from "./data";
import { CallTree, SMALL } from "./tree";

type Sides = [ArrayLike<number>, ArrayLike<number>];

// The self and total weight of each call.
export interface Weights {
  self: Sides;
  total: [Float64Array, Float64Array];
}

// The selection: slices of time (first and last), and a value of each dimension.
export interface Chosen {
  range: [number, number] | null;
  values: (number | null)[];
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

  // The width of each node of a tree. Sums of values may be negative; such a box has no width.
  wide({ length, first, second }: CallTree): Float64Array {
    const wide = new Float64Array(length);
    for (let node = 0; node < length; node++) wide[node] = this.isDiff ? (first[node] + second[node]) / 2 : Math.max(0, first[node]);
    return wide;
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
  callTree({ self, total }: Weights): CallTree {
    const { data } = this, { calls } = data;
    const tree = new CallTree(), nodes = new Int32Array(this.callCount);
    for (let i = 0; i < this.callCount; i++) {
      const above = calls.caller[i], caller = above >= 0 ? nodes[above] : 0;
      const first = total[0][i], second = total[1][i];
      nodes[i] = caller;
      if (!first && !second) continue;
      const node = (nodes[i] = tree.child(caller, calls.fn[i]));
      tree.add(node, first, second);
      tree.addSelf(node, self[0][i], self[1][i]);
      if (data.kind === "diff") tree.marked[node] |= data.marked[i];
      if (data.kind === "heap") tree.count[node] += data.counts[i];
      if (!caller) tree.add(0, first, second);
    }
    return tree;
  }

  // Adds the callers of a call below `node`, each with the call's weight.
  private addCallers(tree: CallTree, node: number, call: number, first: number, second: number): void {
    const { caller, fn } = this.data.calls;
    for (let at = call; at >= 0; at = caller[at]) {
      node = tree.child(node, fn[at]);
      tree.add(node, first, second);
    }
  }

  // From the leaves to the roots.
  invertedTree({ self }: Weights): CallTree {
    const tree = new CallTree();
    for (let i = 0; i < this.callCount; i++) {
      const first = self[0][i], second = self[1][i];
      if (!first && !second) continue;
      tree.add(0, first, second);
      this.addCallers(tree, 0, i, first, second);
    }
    for (let node = 1; node < tree.length; node++) if (!tree.caller[node]) tree.addSelf(node, tree.first[node], tree.second[node]);
    this.markByFunction(tree);
    return tree;
  }

  // Merged nodes have no test of their own: they take the mark of their function.
  private markByFunction(tree: CallTree): void {
    if (!this.isDiff) return;
    const marked = new Set(this.data.top.filter((row) => row[7] === 1).map((row) => row[0]));
    for (let node = 1; node < tree.length; node++) tree.marked[node] = marked.has(tree.fn[node]) ? 1 : 0;
  }

  // The callers and the callees of all calls of a function, merged. A recursive call counts with the outermost one.
  sandwich({ self, total }: Weights, fn: number): { callees: CallTree; callers: CallTree } {
    const { calls } = this.data;
    const callees = new CallTree(), callers = new CallTree();
    const target = callees.child(0, fn), source = callers.child(0, fn);
    // By call: its node below the function; 0 if it is not below it.
    const inside = new Int32Array(this.callCount);
    for (let i = 0; i < this.callCount; i++) {
      const above = calls.caller[i] >= 0 ? inside[calls.caller[i]] : 0;
      const first = total[0][i], second = total[1][i];
      if (!first && !second) continue;
      if (above) inside[i] = callees.child(above, calls.fn[i]);
      else if (calls.fn[i] === fn) {
        inside[i] = target;
        callees.add(0, first, second);
        callers.add(0, first, second);
        callers.add(source, first, second);
        if (calls.caller[i] >= 0) this.addCallers(callers, source, calls.caller[i], first, second);
      } else continue;
      callees.add(inside[i], first, second);
      callees.addSelf(inside[i], self[0][i], self[1][i]);
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

// By function, whether it matches a query; `null` without a query.
export function matching(model: Model, query: string): Uint8Array | null {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  return Uint8Array.from(model.data.names, (name, fn) => ((name + " " + model.fnFile(fn)).toLowerCase().includes(wanted) ? 1 : 0));
}
