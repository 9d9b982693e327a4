// A tree of calls in columns, so that a million of them are a few arrays.

// The function of calls that are too small to be shown each, and of the root, which is no call.
export const SMALL = -1;
const ROOT = -2;

const FIRST_CAPACITY = 256;

function grownFloats(from: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(capacity);
  grown.set(from);
  return grown;
}

function grownIntegers(from: Int32Array, capacity: number): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(capacity);
  grown.set(from);
  return grown;
}

export class CallTree {
  // By node; node 0 is the root. A caller has a smaller number than its callees.
  fn = new Int32Array(FIRST_CAPACITY);
  caller = new Int32Array(FIRST_CAPACITY);
  depth = new Int32Array(FIRST_CAPACITY);
  first = new Float64Array(FIRST_CAPACITY);
  second = new Float64Array(FIRST_CAPACITY);
  selfFirst = new Float64Array(FIRST_CAPACITY);
  selfSecond = new Float64Array(FIRST_CAPACITY);
  count = new Float64Array(FIRST_CAPACITY);
  marked = new Int32Array(FIRST_CAPACITY);
  length = 1;
  // Nodes by caller and function: a table without lists, at most half full. 0 is an empty place.
  private places = new Int32Array(2 * FIRST_CAPACITY);

  constructor() {
    this.fn[0] = ROOT;
    this.caller[0] = -1;
  }

  private place(caller: number, fn: number): number {
    const { places } = this, mask = places.length - 1;
    let place = Math.imul(caller, 0x9e3779b1) + Math.imul(fn, 0x85ebca6b);
    place = Math.imul(place ^ (place >>> 16), 0xc2b2ae35);
    place = (place ^ (place >>> 13)) & mask;
    for (let node = places[place]; node && (this.caller[node] !== caller || this.fn[node] !== fn); node = places[place]) place = (place + 1) & mask;
    return place;
  }

  private grow(): void {
    const capacity = 2 * this.fn.length;
    for (const column of ["fn", "caller", "depth", "marked"] as const) this[column] = grownIntegers(this[column], capacity);
    for (const column of ["first", "second", "selfFirst", "selfSecond", "count"] as const) this[column] = grownFloats(this[column], capacity);
    this.places = new Int32Array(2 * capacity);
    for (let node = 1; node < this.length; node++) this.places[this.place(this.caller[node], this.fn[node])] = node;
  }

  // The call of a function by a node; 0 if there is none.
  find(caller: number, fn: number): number {
    return this.places[this.place(caller, fn)];
  }

  // Like `find`, but makes it.
  child(caller: number, fn: number): number {
    const found = this.find(caller, fn);
    if (found) return found;
    if (this.length === this.fn.length) this.grow();
    const node = this.length++;
    this.fn[node] = fn;
    this.caller[node] = caller;
    this.depth[node] = this.depth[caller] + 1;
    this.places[this.place(caller, fn)] = node;
    return node;
  }

  add(node: number, first: number, second: number): void {
    this.first[node] += first;
    this.second[node] += second;
  }

  addSelf(node: number, first: number, second: number): void {
    this.selfFirst[node] += first;
    this.selfSecond[node] += second;
  }

  // The functions from the root to a node.
  path(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at > 0; at = this.caller[at]) path.push(this.fn[at]);
    return path.reverse();
  }

  // The node at the end of a path; 0 if there is none.
  at(path: number[]): number {
    let node = 0;
    for (const fn of path) {
      node = this.find(node, fn);
      if (!node) return 0;
    }
    return node;
  }
}
