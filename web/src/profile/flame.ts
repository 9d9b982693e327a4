// The flame graph: a box for each call, as wide as its weight, beside its caller. In a diff, it may be two graphs of one scale.

import { byId } from "../elements";
import { bytes, grouped, percentOf } from "../numbers";
import { coloursOf, inking } from "./colours";
import { layOut, levelsOf, type Layout } from "./layout";
import type { Mode } from "./link";
import { blockAt, layMap, paintMap, type Block, type MapLook } from "./map";
import { matching, type Model, type Weights } from "./model";
import { listNear } from "./near";
import { ROW, type Colours, type Part, type Spot } from "./paint";
import { Pane, type Look } from "./pane";
import { hideTip, showTip } from "./tip";
import { CallTree, SMALL } from "./tree";

// Levels whose boxes all have fewer pixels are left out.
const NARROWEST = 0.35;
const FEWEST_ROWS = 2;
// The least height of a tree map.
const MAP_LEAST = 260;

export class Flame {
  mode: Mode = "calls";
  focus: number | null = null;
  query = "";
  // The roots are at the bottom.
  isUpward = false;
  // In a diff: each side has a picture of its own.
  isSplit = false;
  // A node of the tree; 0 for all of it.
  zoomed = 0;
  tree = new CallTree();
  callers: CallTree | null = null;
  active: Spot | null = null;
  // The weight of the whole selection.
  all = 0;
  // Called when another call is zoomed.
  onZoom = (): void => {};
  // One, or one for each side.
  panes: Pane[] = [];
  private marked: number | null = null;
  private rows = 0;
  private callerRows = 0;
  private hits: Uint8Array | null = null;
  // The blocks of the tree map, while it is shown.
  private blocks: Block[] = [];
  private colours!: Colours;
  private readonly inkOf: Look["inkOf"];
  private frame = 0;

  constructor(private readonly model: Model, private readonly choose: (fn: number) => void) {
    this.inkOf = inking(model);
  }

  build(weights: Weights): void {
    const { model } = this;
    this.callers = null;
    if (this.mode === "inverted") this.tree = model.invertedTree(weights);
    else if (this.mode === "sandwich" && this.focus !== null) ({ callees: this.tree, callers: this.callers } = model.sandwich(weights, this.focus));
    else this.tree = model.callTree(weights);
    this.zoomed = 0;
    this.active = null;
    this.lay();
  }

  // Lays out the trees in each pane.
  private lay(): void {
    const trees = this.callers ? [this.tree, this.callers] : [this.tree];
    const canvases = [byId<HTMLCanvasElement>("boxes"), byId<HTMLCanvasElement>("boxes-after")];
    canvases[1].hidden = !this.isSplit;
    this.panes = (this.isSplit ? canvases : canvases.slice(0, 1)).map((canvas, side) => {
      const pane = new Pane(canvas);
      pane.parts = trees.map((tree, place) => ({ tree, layout: this.layoutOf(tree, side), row: 0, step: place ? -1 : 1, from: place, hits: null }));
      return pane;
    });
    this.search();
  }

  private layoutOf(tree: CallTree, side: number): Layout {
    const wide = this.model.wide(tree);
    if (!this.isSplit) return layOut(tree, wide, wide, wide[0]);
    return layOut(tree, (side ? tree.second : tree.first).subarray(0, tree.length), wide, Math.max(tree.first[0], tree.second[0]));
  }

  // Counts the boxes before each one that match the query.
  private search(): void {
    this.hits = matching(this.model, this.query);
    for (const part of this.panes.flatMap((pane) => pane.parts)) part.hits = this.hits && countHits(part, this.hits);
    this.sayMatches();
  }

  // Says how many calls match, and the share of the weight whose path has one of them.
  private sayMatches(): void {
    const { hits, tree, model } = this;
    if (!hits) return void (byId("matches").textContent = "");
    const wide = model.wide(tree), functions = new Set<number>(), within = new Uint8Array(tree.length);
    let calls = 0, weight = 0;
    for (let node = 1; node < tree.length; node++) {
      const isHit = hits[tree.fn[node]] === 1, isInside = within[tree.caller[node]] === 1;
      within[node] = isHit || isInside ? 1 : 0;
      if (!isHit) continue;
      calls++;
      functions.add(tree.fn[node]);
      if (!isInside) weight += wide[node];
    }
    const [one, many] = model.isHeap ? ["block", "blocks"] : ["call", "calls"];
    byId("matches").textContent = `${grouped(calls)} ${calls === 1 ? one : many} of ${grouped(functions.size)} ${functions.size === 1 ? "name" : "names"}, ${percentOf(weight, wide[0])} matched`;
  }

  // Makes the next or previous match the active call.
  stepHit(step: 1 | -1): void {
    const { layout, tree } = this.panes[0].parts[0], { hits } = this;
    if (!hits) return;
    const boxes = layout.levels[levelsOf(layout)];
    const at = this.active?.part === 0 ? layout.box[this.active.node] : step > 0 ? -1 : boxes;
    for (let box = at + step; box >= 0 && box < boxes; box += step) {
      const node = layout.node[box];
      if (hits[tree.fn[node]] && this.isInZoom(node)) return this.setActive({ part: 0, node });
    }
  }

  private isInZoom(node: number): boolean {
    for (let at = node; at > 0; at = this.tree.caller[at]) if (at === this.zoomed) return true;
    return !this.zoomed;
  }

  // Places the panes, and draws them. `isMoved` moves from the last window to the new one.
  draw(isMoved = false): void {
    const area = byId("flame"), extent = byId("extent");
    const width = Math.max(extent.clientWidth, 200);
    this.colours = coloursOf(this.model.isDiff);
    byId("zoom-out").hidden = !this.zoomed;
    if (this.mode === "map") return this.drawMap(width);
    const each = this.isSplit ? (width - ROW / 2) / 2 : width;
    const windows = this.windows();
    this.panes.forEach((pane, side) => {
      pane.width = each;
      pane.moveTo(windows[side], isMoved);
    });
    const rowsOf = (place: number) => Math.max(0, ...this.panes.map((pane) => (pane.parts[place] ? pane.rowsOf(pane.parts[place], NARROWEST) : 0)));
    this.callerRows = this.callers ? Math.max(0, rowsOf(1) - 1) : 0;
    this.rows = this.callerRows + rowsOf(0);
    for (const part of this.panes.flatMap((pane) => pane.parts)) this.place(part);
    byId("nothing").hidden = this.rows > 0;
    extent.style.height = `${Math.max(this.rows, FEWEST_ROWS) * ROW}px`;
    const height = Math.min(area.clientHeight, Math.max(this.rows, FEWEST_ROWS) * ROW);
    for (const pane of this.panes) pane.fit(each, height);
    if (this.grows && !isMoved) area.scrollTop = area.scrollHeight;
    this.paint();
  }

  private drawMap(width: number): void {
    const { tree, panes: [pane] } = this, height = Math.max(MAP_LEAST, Math.round(innerHeight * 0.6));
    this.blocks = layMap(tree, pane.parts[0].layout, this.model.wide(tree), this.zoomed, width, height);
    byId("nothing").hidden = this.blocks.length > 0;
    byId("extent").style.height = `${height}px`;
    pane.fit(width, height);
    this.paint();
  }

  // Whether rows go up from the roots.
  private get grows(): boolean {
    return this.isUpward && !this.callers;
  }

  private place(part: Part): void {
    if (part.from) part.row = this.callerRows;
    else [part.row, part.step] = this.grows ? [this.rows - 1, -1] : [this.callerRows, 1];
  }

  // What each pane shows: the zoomed call, with one scale for all.
  private windows(): [number, number][] {
    const { zoomed } = this;
    if (!zoomed) return this.panes.map(() => [0, 1]);
    const sides = this.panes.map(({ parts: [{ layout }] }) => (layout.box[zoomed] < 0 ? [1, 1] : [layout.left[layout.box[zoomed]], layout.right[layout.box[zoomed]]]));
    const wide = Math.max(...sides.map(([left, right]) => right - left));
    return sides.map(([left]) => [left, left + wide]);
  }

  private paint(): void {
    cancelAnimationFrame(this.frame);
    const { scrollTop } = byId("flame"), [{ width, height }] = this.panes;
    if (this.mode === "map") {
      const { colours, inkOf, marked, hits } = this, nameOf: MapLook["nameOf"] = (tree, node) => this.nodeName(tree, node);
      return this.panes[0].with((paint) => paintMap(paint, this.tree, this.blocks, { colours, inkOf, nameOf, marked, hits, active: this.active?.node ?? null }, width, height));
    }
    const look: Look = {
      colours: this.colours,
      nameOf: (tree, node) => this.nodeName(tree, node),
      marked: this.mode === "sandwich" && this.marked === null ? this.focus : this.marked,
      active: this.active,
      palerAbove: this.zoomed ? this.tree.depth[this.zoomed] - 1 : 0,
      inkOf: this.inkOf,
    };
    const moving = this.panes.map((pane) => pane.draw(look, scrollTop));
    if (moving.includes(true)) this.repaint();
  }

  // Paints before the next frame of the screen.
  repaint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  private nodeName(tree: CallTree, node: number): string {
    const fn = tree.fn[node];
    return this.model.isHeap && fn === SMALL && tree.count[node] ? `${grouped(tree.count[node])} others` : this.model.fnName(fn);
  }

  // A node in words: its name, its file, and its numbers.
  private words(tree: CallTree, node: number): [name: string, file: string, numbers: string] {
    const { model } = this, [first, second] = [tree.first[node], tree.second[node]];
    const name = this.nodeName(tree, node), file = model.fnFile(tree.fn[node]);
    if (model.isDiff) {
      const noise = tree.marked[node] ? "" : ", not significant";
      return [name, file, `${model.value(first)} before, ${model.value(second)} after, ${model.changeText(first, second)}${noise}`];
    }
    const whole = this.mode === "sandwich" ? this.all : this.tree.first[0];
    if (model.isHeap) {
      const many = tree.count[node] > 1 && tree.fn[node] !== SMALL ? `; ${grouped(tree.count[node])} grouped` : "";
      return [name, file, `${bytes(first)}, ${percentOf(first, whole)}; shallow ${bytes(tree.selfFirst[node])}${many}`];
    }
    return [name, file, `${model.amount(first)} ${model.valueKind}, ${percentOf(first, whole)}; self ${model.amount(tree.selfFirst[node])}`];
  }

  text({ part, node }: Spot): string {
    const [name, file, numbers] = this.words(this.treeOf(part), node);
    return `${name}${file ? ` in ${file}` : ""}: ${numbers}`;
  }

  private treeOf(part: number): CallTree {
    return part && this.callers ? this.callers : this.tree;
  }

  setActive(spot: Spot | null): void {
    this.active = spot;
    const area = byId("flame");
    if (spot) {
      area.setAttribute("aria-activedescendant", listNear(this.treeOf(spot.part), spot.node, (node) => this.text({ part: spot.part, node })));
      byId("status").textContent = this.text(spot);
      this.reveal(spot);
    } else area.removeAttribute("aria-activedescendant");
    this.repaint();
  }

  // Scrolls so that the row of a node is in view.
  private reveal(spot: Spot): void {
    if (this.mode === "map") return;
    const area = byId("flame"), place = this.panes[0].placeOf(spot) ?? this.panes[this.panes.length - 1].placeOf(spot);
    if (!place) return;
    if (place[1] < 0) area.scrollTop += place[1];
    else if (place[1] + ROW > area.clientHeight) area.scrollTop += place[1] + ROW - area.clientHeight;
  }

  private zoom(node: number): void {
    if (!node || this.tree.fn[node] === SMALL) return;
    this.zoomed = node === this.zoomed ? 0 : node;
    this.draw(true);
    byId("status").textContent = this.zoomed ? this.text({ part: 0, node: this.zoomed }) : "";
    this.setActive(this.zoomed ? { part: 0, node: this.zoomed } : null);
    this.onZoom();
  }

  // The functions from the root to the zoomed call.
  get zoomPath(): number[] {
    return this.tree.path(this.zoomed);
  }

  // Whether calls below the zoomed one are too small for the page.
  get isCut(): boolean {
    const { tree, zoomed } = this, within = new Uint8Array(tree.length);
    for (let node = zoomed || 1; node < tree.length; node++) {
      within[node] = node === zoomed || within[tree.caller[node]] ? 1 : 0;
      if (within[node] && tree.fn[node] === SMALL) return true;
    }
    return false;
  }

  // Zooms to the call at the end of a path, if there is one. It is drawn later.
  zoomTo(path: number[]): void {
    this.zoomed = this.tree.at(path);
  }

  // The boxes that are wide enough to be seen, in view or not: for the console, and for tests.
  boxes(): { name: string; text: string; spot: Spot; place: [number, number, number, number] }[] {
    const pane = this.panes[0];
    return pane.parts.flatMap(({ layout, tree, from }, part) => Array.from(layout.node.subarray(layout.levels[Math.min(from, levelsOf(layout))], layout.levels[levelsOf(layout)]), (node) => {
      const spot = { part, node }, place = pane.placeOf(spot);
      return place && place[2] >= 1 && place[0] < pane.width && place[0] + place[2] > 0 ? [{ name: this.nodeName(tree, node), text: this.text(spot), spot, place }] : [];
    }).flat());
  }

  private onKey(event: KeyboardEvent): void {
    const { active, panes: [pane] } = this;
    if (event.key.startsWith("Arrow")) this.setActive(active ? neighbour(pane, active, event.key) : this.firstSpot());
    else if (event.key === "Enter" && active?.part === 0) this.zoom(active.node);
    else if (event.key === " " || event.key === "Enter") this.choose(active ? this.treeOf(active.part).fn[active.node] : SMALL);
    else if (event.key === "Escape" || event.key === "Backspace") this.zoom(this.tree.caller[this.zoomed] || this.zoomed);
    else return;
    event.preventDefault();
  }

  private firstSpot(): Spot | null {
    const { layout } = this.panes[0].parts[0];
    return levelsOf(layout) ? { part: 0, node: this.zoomed || layout.node[0] } : null;
  }

  private onMove(event: MouseEvent): void {
    const spot = this.under(event), fn = spot ? this.treeOf(spot.part).fn[spot.node] : null;
    const marked = fn === SMALL ? null : fn;
    if (spot) {
      byId("status").textContent = this.text(spot);
      showTip(event, this.words(this.treeOf(spot.part), spot.node));
    } else hideTip();
    byId("flame").classList.toggle("over", spot !== null);
    if (marked === this.marked) return;
    this.marked = marked;
    this.repaint();
  }

  private under(event: MouseEvent): Spot | null {
    const pane = this.panes.find(({ canvas }) => canvas === event.target);
    if (!pane || this.mode !== "map") return pane?.spotAt(event) ?? null;
    const { left, top } = pane.canvas.getBoundingClientRect(), block = blockAt(this.blocks, event.clientX - left, event.clientY - top);
    return block && { part: 0, node: block.node };
  }

  private onClick(event: MouseEvent): void {
    const spot = this.under(event);
    if (!spot) return;
    const fn = this.treeOf(spot.part).fn[spot.node];
    if (this.mode === "sandwich" && fn !== SMALL) this.choose(fn);
    else this.zoom(spot.node);
  }

  start(onSearch: () => void): void {
    const area = byId("flame");
    area.addEventListener("click", (event) => this.onClick(event));
    area.addEventListener("dblclick", (event) => {
      const spot = this.under(event);
      if (spot) this.choose(this.treeOf(spot.part).fn[spot.node]);
    });
    area.addEventListener("mousemove", (event) => this.onMove(event));
    area.addEventListener("mouseleave", (event) => this.onMove(event));
    area.addEventListener("scroll", () => (hideTip(), this.repaint()));
    area.addEventListener("keydown", (event) => this.onKey(event));
    byId("zoom-out").addEventListener("click", () => this.zoom(this.zoomed));
    const search = byId<HTMLInputElement>("search");
    search.addEventListener("input", () => {
      this.query = search.value;
      this.search();
      this.repaint();
      onSearch();
    });
    search.addEventListener("keydown", (event) => event.key === "Enter" && this.stepHit(event.shiftKey ? -1 : 1));
  }

  // Searches for what an address or the console says.
  find(query: string): void {
    this.query = query;
    this.search();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  // One picture of both sides, or one of each. It is drawn later.
  setSplit(isSplit: boolean): void {
    this.isSplit = isSplit && this.model.isDiff;
    this.lay();
  }
}

function countHits({ tree, layout }: Part, hits: Uint8Array): Uint32Array {
  const boxes = layout.levels[levelsOf(layout)], counted = new Uint32Array(boxes + 1);
  for (let box = 0; box < boxes; box++) counted[box + 1] = counted[box] + (hits[tree.fn[layout.node[box]]] === 1 ? 1 : 0);
  return counted;
}

// The call beside one: the widest callee, the caller, or the one at the left or right.
function neighbour({ parts }: Pane, at: Spot, key: string): Spot {
  const { tree, layout, step } = parts[at.part], box = layout.box[at.node], level = tree.depth[at.node] - 1;
  const [first, end] = [layout.levels[level], layout.levels[level + 1]];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = box + (key === "ArrowLeft" ? -1 : 1);
    return next >= first && next < end ? { part: at.part, node: layout.node[next] } : at;
  }
  const isDeeper = (key === "ArrowDown") === step > 0;
  if (isDeeper) {
    const below = widestBelow(tree, layout, at.node);
    return below ? { part: at.part, node: below } : at;
  }
  const caller = tree.caller[at.node];
  if (caller > 0 && !(at.part && tree.depth[caller] === 1)) return { part: at.part, node: caller };
  const other = parts[1 - at.part];
  if (!other) return at;
  // Between the callers and the callees of a function is the function itself.
  if (at.part) return { part: 0, node: other.layout.node[0] };
  const above = widestBelow(other.tree, other.layout, other.layout.node[0]);
  return above ? { part: 1, node: above } : at;
}

function widestBelow({ caller, depth }: CallTree, layout: Layout, node: number): number {
  const level = depth[node];
  if (level >= levelsOf(layout)) return 0;
  let widest = 0, most = 0;
  for (let box = layout.levels[level]; box < layout.levels[level + 1]; box++) {
    const at = layout.node[box], wide = layout.right[box] - layout.left[box];
    if (caller[at] === node && wide > most) [widest, most] = [at, wide];
  }
  return widest;
}
