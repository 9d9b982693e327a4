// The calls of the page, and the trees built from them. Weights are pairs: before and after in a diff; in a report the
// second one is 0.

const data = JSON.parse(document.getElementById("data").textContent);
const isDiff = data.kind === "diff";
// For a heap, calls are blocks and weights are bytes.
const isHeap = data.kind === "heap";
const SMALL = -1;

// The selection: slices of time (first and last), and a value of each dimension.
const chosen = { range: null, values: data.dimensions.map(() => null) };

const calls = { caller: data.calls.caller, fn: data.calls.fn };
const callCount = calls.caller.length;

// The calls of cells are stored as differences.
const cells = (() => {
  const { call, situation, slice, values } = data.cells;
  let at = 0;
  return { call: call.map((step) => (at += step)), situation, slice, values };
})();

function isChosen(situation, slice) {
  if (chosen.range && (slice < chosen.range[0] || slice > chosen.range[1])) return false;
  const values = data.situations[situation];
  return chosen.values.every((value, dimension) => value === null || values[dimension] === value);
}

const isFiltered = () => chosen.range !== null || chosen.values.some((value) => value !== null);

// The self weight of each call.
function selfWeights() {
  if (isDiff) return [data.self[0], data.self[1]];
  if (isHeap) return [data.self, new Float64Array(callCount)];
  const weights = new Float64Array(callCount);
  for (let i = 0; i < cells.call.length; i++) {
    if (isChosen(cells.situation[i], cells.slice[i])) weights[cells.call[i]] += cells.values[i];
  }
  return [weights, new Float64Array(callCount)];
}

// Sums of values may be negative; such a box has no width.
const wide = (node) => (isDiff ? (node.first + node.second) / 2 : Math.max(0, node.first));

function newNode(fn, caller) {
  return { fn, caller, first: 0, second: 0, selfFirst: 0, selfSecond: 0, count: 0, below: new Map(), marked: false, depth: caller ? caller.depth + 1 : 0 };
}

function child(node, fn) {
  let found = node.below.get(fn);
  if (!found) node.below.set(fn, (found = newNode(fn, node)));
  return found;
}

// The self and total weight of each call.
function weigh() {
  const self = selfWeights();
  const total = self.map((side) => Float64Array.from(side));
  for (let i = callCount - 1; i >= 0; i--) {
    const caller = calls.caller[i];
    if (caller >= 0) {
      total[0][caller] += total[0][i];
      total[1][caller] += total[1][i];
    }
  }
  return { self, total };
}

// From the roots.
function callTree(weights) {
  const root = newNode(null, null);
  const nodes = new Array(callCount);
  for (let i = 0; i < callCount; i++) {
    const caller = calls.caller[i] >= 0 ? nodes[calls.caller[i]] : root;
    const first = weights.total[0][i], second = weights.total[1][i];
    const node = (nodes[i] = first || second ? child(caller, calls.fn[i]) : caller);
    if (node === caller) continue;
    node.first += first;
    node.second += second;
    node.selfFirst += weights.self[0][i];
    node.selfSecond += weights.self[1][i];
    if (isDiff) node.marked = node.marked || data.marked[i] === 1;
    if (isHeap) node.count += data.counts[i];
    if (caller === root) {
      root.first += first;
      root.second += second;
    }
  }
  return root;
}

// Adds the callers of a call to `node`, each with the call's weight.
function addCallers(node, call, first, second) {
  for (let at = call; at >= 0; at = calls.caller[at]) {
    node = child(node, calls.fn[at]);
    node.first += first;
    node.second += second;
  }
}

// From the leaves to the roots.
function invertedTree(weights) {
  const root = newNode(null, null);
  for (let i = 0; i < callCount; i++) {
    const first = weights.self[0][i], second = weights.self[1][i];
    if (!first && !second) continue;
    root.first += first;
    root.second += second;
    addCallers(root, i, first, second);
  }
  for (const node of root.below.values()) {
    node.selfFirst = node.first;
    node.selfSecond = node.second;
  }
  markByFunction(root);
  return root;
}

// Merged nodes have no test of their own: they take the mark of their function.
function markByFunction(root) {
  if (!isDiff) return;
  const marked = new Set(data.top.filter((row) => row[7] === 1).map((row) => row[0]));
  const open = [root];
  while (open.length) {
    const node = open.pop();
    node.marked = marked.has(node.fn);
    open.push(...node.below.values());
  }
}

// The callers and the callees of all calls of a function, merged. A recursive call counts with the outermost one.
function sandwich(weights, fn) {
  const callees = newNode(null, null), callers = newNode(null, null);
  const target = child(callees, fn), source = child(callers, fn);
  const inside = new Array(callCount).fill(null);
  for (let i = 0; i < callCount; i++) {
    const above = calls.caller[i] >= 0 ? inside[calls.caller[i]] : null;
    const first = weights.total[0][i], second = weights.total[1][i];
    if (!first && !second) continue;
    if (above) {
      inside[i] = child(above, calls.fn[i]);
    } else if (calls.fn[i] === fn) {
      inside[i] = target;
      for (const node of [callees, callers, source]) {
        node.first += first;
        node.second += second;
      }
      if (calls.caller[i] >= 0) addCallers(source, calls.caller[i], first, second);
    } else continue;
    inside[i].first += first;
    inside[i].second += second;
    inside[i].selfFirst += weights.self[0][i];
    inside[i].selfSecond += weights.self[1][i];
  }
  markByFunction(callees);
  markByFunction(callers);
  return { callees, callers };
}

// Rows of the top table: function, self and total of one side or of both. Without a selection they are exact; with one, they
// count only the calls in the page.
function topRows(weights) {
  if (isDiff || !isFiltered()) return data.top;
  const self = new Map(), total = new Map();
  const add = (sums, fn, weight) => sums.set(fn, (sums.get(fn) || 0) + weight);
  // By call: the functions on its path, as a list that continues the list of its caller.
  const onPath = new Array(callCount);
  for (let i = 0; i < callCount; i++) {
    const fn = calls.fn[i], above = calls.caller[i] >= 0 ? onPath[calls.caller[i]] : null;
    let isFirst = fn !== SMALL;
    for (let at = above; at && isFirst; at = at.above) isFirst = at.fn !== fn;
    onPath[i] = { fn, above };
    if (isFirst && weights.total[0][i]) add(total, fn, weights.total[0][i]);
    if (fn !== SMALL && weights.self[0][i]) add(self, fn, weights.self[0][i]);
  }
  return [...total].map(([fn, weight]) => [fn, self.get(fn) || 0, weight]);
}

const fnName = (fn) => (fn === SMALL ? (isHeap ? "(others)" : "(smaller calls)") : data.names[fn]);
const fnFile = (fn) => (fn === SMALL || data.files[fn] < 0 ? "" : data.file_names[data.files[fn]]);
