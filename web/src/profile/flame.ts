// The flame graph: a box for each call, as wide as its weight, below its caller.

import { byId, element, target } from "../elements";
import { bytes, grouped, percentOf } from "../numbers";
import { SMALL, isCall, matcher, type BoxNode, type CallNode, type Model, type Weights } from "./model";

const ROW = 20;
const NARROWEST = 0.35;

export type Mode = "calls" | "inverted" | "sandwich";

interface Box {
  node: BoxNode;
  box: HTMLElement;
  left: number;
  width: number;
  row: number;
}

// Draws a node if it is wide enough, and says whether it did.
type Put = (node: BoxNode, left: number, width: number, isAbove: boolean) => boolean;

export class Flame {
  mode: Mode = "calls";
  focus: number | null = null;
  query = "";
  zoomed: CallNode | null = null;
  root!: CallNode;
  callers: CallNode | null = null;
  boxes: Box[] = [];
  active = -1;
  // The weight of the whole selection.
  all = 0;

  constructor(private readonly model: Model, private readonly choose: (fn: number) => void) {}

  build(weights: Weights): void {
    const { model } = this;
    this.callers = null;
    if (this.mode === "inverted") this.root = model.invertedTree(weights);
    else if (this.mode === "sandwich" && this.focus !== null) {
      const both = model.sandwich(weights, this.focus);
      this.root = both.callees;
      this.callers = both.callers;
    } else this.root = model.callTree(weights);
    this.zoomed = null;
  }

  // Places the zoomed node with everything below it, and all its callers at full width.
  private place(root: CallNode, zoomed: CallNode | null, put: Put): void {
    const wide = (node: CallNode) => this.model.wide(node);
    const base = zoomed ?? root;
    for (let at = base.caller; at && isCall(at); at = at.caller) put(at, 0, 1, true);
    const open: [BoxNode, number, number][] = isCall(base) ? [[base, 0, 1]] : [];
    const spreadBelow = (node: CallNode, left: number, width: number) => {
      const below = [...node.below.values()].filter(isCall);
      // If some weights are negative, the others exceed the weight of their caller.
      const weight = Math.max(wide(node), below.reduce((sum, next) => sum + wide(next), 0));
      below.sort((one, other) => wide(other) - wide(one) || one.fn - other.fn);
      for (const next of below) {
        const share = weight > 0 ? (width * wide(next)) / weight : 0;
        open.push([next, left, share]);
        left += share;
      }
    };
    if (!isCall(base)) spreadBelow(base, 0, 1);
    for (let next = open.pop(); next; next = open.pop()) {
      const [node, left, width] = next;
      if (put(node, left, width, false)) spreadBelow(node, left, width);
    }
  }

  draw(): void {
    const area = byId("boxes");
    const pixels = Math.max(area.clientWidth, 200);
    const matches = matcher(this.model, this.query);
    // Boxes are added at once, without reading the layout in between: each read would lay out the page again.
    const boxes = document.createDocumentFragment();
    this.boxes = [];
    const callerRows = this.callers ? this.depthOf(this.callers, pixels) : 0;
    let rows = 0;
    const put = (node: BoxNode, left: number, width: number, isAbove: boolean, row: number) => {
      if (width * pixels < NARROWEST) return false;
      rows = Math.max(rows, row + 1);
      boxes.append(this.makeBox(node, [left, width, width * pixels], isAbove, row, matches));
      return true;
    };
    if (this.callers) {
      this.place(this.callers, null, (node, left, width, isAbove) =>
        node.depth === 1 ? width > 0 : put(node, left, width, isAbove, callerRows - node.depth + 1));
    }
    this.place(this.root, this.zoomed, (node, left, width, isAbove) => put(node, left, width, isAbove, callerRows + node.depth - 1));
    if (!this.boxes.length) boxes.append(element("p", "hint", this.model.isHeap ? "No memory is retained." : "No samples match the selection."));
    area.replaceChildren(boxes);
    area.style.height = `${Math.max(rows, 2) * ROW}px`;
    byId("zoom-out").hidden = !this.zoomed;
    this.setActive(-1);
    this.sayMatches(matches);
  }

  private depthOf(root: CallNode, pixels: number): number {
    let deepest = 0;
    this.place(root, null, (node, _left, width) => {
      const isSeen = width * pixels >= NARROWEST;
      if (isSeen) deepest = Math.max(deepest, node.depth - 1);
      return isSeen;
    });
    return deepest;
  }

  private makeBox(node: BoxNode, [left, width, pixels]: [number, number, number], isAbove: boolean, row: number, matches: ReturnType<typeof matcher>): HTMLElement {
    const box = element("div", "box", pixels > 26 ? this.boxName(node) : "");
    box.id = `box-${this.boxes.length}`;
    box.setAttribute("role", "treeitem");
    box.setAttribute("aria-level", String(node.depth));
    box.setAttribute("aria-label", this.boxText(node));
    box.style.left = `${left * 100}%`;
    box.style.width = `calc(${width * 100}% - 1px)`;
    box.style.top = `${row * ROW}px`;
    if (node.fn === SMALL) box.classList.add("small");
    else if (this.model.isDiff) tint(box, node);
    else box.style.setProperty("--hue", this.model.hue(node.fn).toFixed(0));
    if (isAbove) box.classList.add("above");
    if (this.mode === "sandwich" && node.fn === this.focus) box.classList.add("self");
    if (matches) box.classList.add(matches(node.fn) ? "hit" : "miss");
    box.dataset.box = String(this.boxes.length);
    this.boxes.push({ node, box, left, width, row });
    return box;
  }

  private boxName(node: BoxNode): string {
    return this.model.isHeap && node.fn === SMALL && node.count ? `${grouped(node.count)} others` : this.model.fnName(node.fn);
  }

  private boxText(node: BoxNode): string {
    const { model } = this;
    const name = model.fnName(node.fn), file = model.fnFile(node.fn);
    const where = file ? ` in ${file}` : "";
    if (model.isDiff) {
      const noise = node.marked ? "" : ", not significant";
      return `${name}${where}: ${model.value(node.first)} before, ${model.value(node.second)} after, ${model.changeText(node.first, node.second)}${noise}`;
    }
    const whole = this.mode === "sandwich" ? this.all : this.root.first;
    if (model.isHeap) {
      const many = node.count > 1 && node.fn !== SMALL ? `; ${grouped(node.count)} grouped` : "";
      return `${this.boxName(node)}: ${bytes(node.first)}, ${percentOf(node.first, whole)}; shallow ${bytes(node.selfFirst)}${many}`;
    }
    return `${name}${where}: ${model.amount(node.first)} ${model.valueKind}, ${percentOf(node.first, whole)}; self ${model.amount(node.selfFirst)}`;
  }

  // Shows the share of the visible weight whose path has a matching function.
  private sayMatches(matches: ReturnType<typeof matcher>): void {
    if (!matches) return void (byId("matches").textContent = "");
    let found = 0;
    const open = [...this.root.below.values()];
    for (let node = open.pop(); node; node = open.pop()) {
      if (isCall(node) && matches(node.fn)) found += this.model.wide(node);
      else open.push(...node.below.values());
    }
    byId("matches").textContent = `${percentOf(found, this.model.wide(this.root))} matched`;
  }

  private setActive(place: number): void {
    this.boxes[this.active]?.box.classList.remove("active");
    this.active = place;
    const at = this.boxes[place];
    if (!at) return byId("flame").removeAttribute("aria-activedescendant");
    at.box.classList.add("active");
    byId("flame").setAttribute("aria-activedescendant", at.box.id);
    at.box.scrollIntoView({ block: "nearest" });
    byId("status").textContent = this.boxText(at.node);
  }

  private zoom(node: CallNode | null | undefined): void {
    if (!node || node.fn === SMALL) return;
    this.zoomed = node === this.zoomed || !isCall(node) ? null : node;
    this.draw();
    const { zoomed } = this;
    byId("status").textContent = zoomed && isCall(zoomed) ? this.boxText(zoomed) : "";
    if (zoomed) this.setActive(this.boxes.findIndex((at) => at.node === zoomed));
  }

  // The box nearest to the active one in the row above or below, or beside it.
  private neighbour(key: string): number {
    const at = this.boxes[this.active];
    if (!at) return this.boxes.length ? this.boxes.reduce((best, box, place) => (box.row < this.boxes[best].row ? place : best), 0) : -1;
    const middle = at.left + at.width / 2;
    const row = at.row + (key === "ArrowUp" ? -1 : key === "ArrowDown" ? 1 : 0);
    let best = this.active, distance = Infinity;
    this.boxes.forEach((box, place) => {
      if (box.row !== row || box === at) return;
      if ((key === "ArrowLeft" && box.left > at.left) || (key === "ArrowRight" && box.left < at.left)) return;
      const inside = key === "ArrowDown" && box.left >= at.left - 1e-9 && box.left + box.width <= at.left + at.width + 1e-9;
      const away = inside ? -box.width : Math.abs(box.left + box.width / 2 - middle);
      if (away < distance) [best, distance] = [place, away];
    });
    return best;
  }

  private onKey(event: KeyboardEvent): void {
    const node = this.boxes[this.active]?.node;
    if (event.key.startsWith("Arrow")) this.setActive(this.neighbour(event.key));
    else if (event.key === "Enter") this.zoom(node);
    else if (event.key === " ") this.choose(node?.fn ?? SMALL);
    else if (event.key === "Escape" || event.key === "Backspace") this.zoom(this.zoomed?.caller ?? this.zoomed);
    else return;
    event.preventDefault();
  }

  start(onSearch: () => void): void {
    const area = byId("flame");
    const under = (event: Event): Box | undefined => this.boxes[Number(target(event)?.closest<HTMLElement>(".box")?.dataset.box)];
    area.addEventListener("click", (event) => {
      const at = under(event);
      if (!at) return;
      if (this.mode === "sandwich" && at.node.fn !== SMALL) this.choose(at.node.fn);
      else this.zoom(at.node);
    });
    area.addEventListener("dblclick", (event) => this.choose(under(event)?.node.fn ?? SMALL));
    area.addEventListener("mousemove", (event) => {
      const at = under(event);
      if (at) byId("status").textContent = this.boxText(at.node);
    });
    area.addEventListener("keydown", (event) => this.onKey(event));
    byId("zoom-out").addEventListener("click", () => this.zoom(this.zoomed));
    const search = byId<HTMLInputElement>("search");
    search.addEventListener("input", () => {
      this.query = search.value;
      this.draw();
      onSearch();
    });
  }
}

// Red for more, blue for less; the larger the changed part, the stronger the colour. None if not significant.
function tint(box: HTMLElement, node: CallNode): void {
  const part = (node.second - node.first) / (node.second + node.first || 1);
  const strength = node.marked ? Math.min(1, Math.max(0.14, Math.abs(part) * 2)) : 0;
  box.classList.add("diff");
  box.style.setProperty("--tint", `var(${part > 0 ? "--more" : "--less"})`);
  box.style.setProperty("--part", `${Math.round(strength * 100)}%`);
}
