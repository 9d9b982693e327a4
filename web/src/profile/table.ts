// The top table.

import { byId, element, target } from "../elements";
import { bytes, grouped, percentOf } from "../numbers";
import type { TopRow } from "./data";
import { matching, type Model } from "./model";

const MOST_ROWS = 200;

export class TopTable {
  rows: TopRow[] = [];
  sort: number;
  // The column that it is sorted by at first.
  readonly firstSort: number;

  constructor(private readonly model: Model, private readonly choose: (fn: number) => void) {
    this.sort = this.firstSort = model.isDiff ? 8 : 1;
  }

  private sortKey(row: TopRow): number {
    if (!this.model.isDiff) return row[this.sort];
    if (this.sort === 8) return (row[7] === 1 ? 1e9 : 0) + Math.abs(row[2] - row[1]) + Math.abs(row[4] - row[3]) * 1e-6;
    if (this.sort === 9) return Math.abs(row[2] - row[1]);
    if (this.sort === 10) return Math.abs(row[4] - row[3]);
    return row[this.sort];
  }

  // `all` is the weight of the whole selection.
  draw(query: string, focus: number | null, all: number): void {
    const { model } = this;
    const matches = matching(model, query);
    const rows = this.rows.filter((row) => !matches || matches[row[0]]);
    rows.sort((one, other) => this.sortKey(other) - this.sortKey(one) || other[2] - one[2] || one[0] - other[0]);
    const made = rows.slice(0, MOST_ROWS).map((row) => {
      const line = element("tr", row[0] === focus ? "chosen" : "");
      line.append(...(model.isDiff ? this.diffCells(row) : this.cells(row, all)), this.nameCell(row[0]));
      return line;
    });
    byId("top-rows").replaceChildren(...made);
    byId("top-count").textContent = this.countText(rows.length, matches !== null);
    for (const button of document.querySelectorAll<HTMLElement>("th button")) {
      const head = button.closest("th");
      if (Number(button.dataset.sort) === this.sort) head?.setAttribute("aria-sort", "descending");
      else head?.removeAttribute("aria-sort");
    }
  }

  private countText(found: number, isSearched: boolean): string {
    const { model } = this;
    const all = model.isDiff || !model.isFiltered() ? model.data.distinct : this.rows.length;
    const isCut = isSearched && !model.isFiltered() && this.rows.length < model.data.distinct;
    const among = isCut ? `, of the ${grouped(this.rows.length)} in the table` : "";
    return `${grouped(Math.min(found, MOST_ROWS))} of ${grouped(isSearched ? found : all)} ${model.isHeap ? "classes" : "functions"} shown${among}`;
  }

  private nameCell(fn: number): HTMLElement {
    const cell = element("td"), name = this.model.fnName(fn), file = this.model.fnFile(fn);
    const button = element("button", "", name);
    button.type = "button";
    button.dataset.fn = String(fn);
    button.title = name + (file ? ` (${file})` : "");
    // The file distinguishes functions of one name.
    if (file) button.append(" ", element("small", "", file));
    cell.append(button);
    return cell;
  }

  private cells([, self, total, count]: TopRow, all: number): HTMLElement[] {
    const { model } = this, { data } = model;
    // In a heap: retained size, then shallow size, which is the only one of an outline.
    const texts = data.kind === "heap" && data.is_outline ? [bytes(self), percentOf(self, all), grouped(count)] : model.isHeap
      ? [bytes(self), percentOf(self, all), bytes(total), grouped(count)]
      : [model.amount(self), percentOf(self, all), model.amount(total), percentOf(total, all)];
    return texts.map((text) => element("td", "", text));
  }

  private diffCells([, selfBefore, selfAfter, before, after, selfMarked, totalMarked]: TopRow): HTMLElement[] {
    const { model } = this;
    const value = (number: number) => element("td", "", model.value(number));
    const change = (from: number, to: number, mark: number) =>
      element("td", mark ? (to > from ? "more" : "less") : "", model.changeText(from, to) + (mark ? " *" : ""));
    return [
      value(selfBefore), value(selfAfter), change(selfBefore, selfAfter, selfMarked),
      value(before), value(after), change(before, after, totalMarked),
    ];
  }

  start(redraw: () => void): void {
    byId("top-rows").addEventListener("click", (event) => {
      const button = target(event)?.closest("button");
      if (button) this.choose(Number(button.dataset.fn));
    });
    for (const button of document.querySelectorAll<HTMLElement>("th button")) {
      button.addEventListener("click", () => {
        this.sort = Number(button.dataset.sort);
        redraw();
      });
    }
  }
}
