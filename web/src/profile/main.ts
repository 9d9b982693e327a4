// The page of a profile, a diff or a heap: its views, computed from the selection.

import "../page.css";
import { byId, element, embedded, isTyped } from "../elements";
import { startTheme } from "../theme";
import type { PageData } from "./data";
import { Flame, type Mode } from "./flame";
import { Model, SMALL, type Weights } from "./model";
import { TopTable } from "./table";
import { Times } from "./times";

class Page {
  readonly model = new Model(embedded<PageData>());
  readonly flame = new Flame(this.model, (fn) => this.choose(fn));
  readonly table = new TopTable(this.model, (fn) => this.choose(fn));
  readonly times = this.model.data.time && new Times(this.model, this.model.data.time, () => this.refresh());
  // The weight of the whole selection.
  all = 0;
  private weights: Weights = this.model.weigh();

  refresh(): void {
    const { model, flame } = this;
    this.weights = model.weigh();
    this.all = model.isFiltered() ? Array.from(this.weights.self[0]).reduce((sum, weight) => sum + weight, 0) : model.data.all;
    flame.all = this.all;
    this.table.rows = model.topRows(this.weights);
    flame.build(this.weights);
    flame.draw();
    this.drawTable();
    const part = !model.isFiltered() || model.isDiff ? "" : ` Showing ${model.amount(this.all)} of ${model.amount(model.data.all)} ${model.valueKind}; the numbers leave out the smallest calls.`;
    byId("chosen").textContent = part;
  }

  drawTable(): void {
    this.table.draw(this.flame.query, this.flame.focus, this.all);
  }

  setMode(mode: Mode): void {
    this.flame.mode = mode;
    for (const button of document.querySelectorAll<HTMLElement>("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    byId<HTMLButtonElement>("sandwich").disabled = this.flame.focus === null;
    this.flame.build(this.weights);
    this.flame.draw();
  }

  choose(fn: number): void {
    if (fn === SMALL) return;
    this.flame.focus = fn;
    this.setMode("sandwich");
    this.drawTable();
    byId("status").textContent = `${this.model.fnName(fn)}: ${this.model.isHeap ? "holders above, contents below" : "callers above, callees below"}`;
  }

  private startDimensions(): void {
    this.model.data.dimensions.forEach((dimension, place) => {
      const select = element("select");
      select.setAttribute("aria-label", dimension.name);
      select.append(new Option(`all ${dimension.name}`, ""));
      dimension.values.forEach((text, number) => select.append(new Option(text, String(number))));
      select.dataset.dimension = dimension.name;
      select.addEventListener("change", () => {
        this.model.chosen.values[place] = select.value === "" ? null : Number(select.value);
        this.refresh();
      });
      byId("dimensions").append(select);
    });
  }

  private onKey(event: KeyboardEvent): void {
    if (isTyped(event)) return;
    if (event.key === "/") byId("search").focus();
    else if (event.key === "i") this.setMode(this.flame.mode === "inverted" ? "calls" : "inverted");
    else if (event.key === "c") this.setMode("calls");
    else return;
    event.preventDefault();
  }

  start(): void {
    document.documentElement.classList.remove("no-script");
    startTheme(() => this.times?.repaint());
    this.flame.start(() => this.drawTable());
    this.table.start(() => this.drawTable());
    this.times?.start();
    this.startDimensions();
    for (const button of document.querySelectorAll<HTMLElement>("[data-mode]")) button.addEventListener("click", () => this.setMode(button.dataset.mode as Mode));
    addEventListener("keydown", (event) => this.onKey(event));
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth !== width) this.flame.draw();
      width = innerWidth;
    });
    this.refresh();
  }
}

const page = new Page();
page.start();
// For the console, and for tests that drive the page.
Object.assign(globalThis, { borehole: page });
