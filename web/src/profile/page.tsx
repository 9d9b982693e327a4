// A profile, a diff or a heap: its views, computed from the selection.

import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { FlameChart } from "../chart/chart";
import type { AskChart } from "../chart/data";
import { byId, element, isTyped } from "../elements";
import { onFragment, showView, viewOf } from "../fragment";
import { THEMED } from "../theme";
import type { PageData } from "./data";
import { Flame } from "./flame";
import { fromFragment, keyOf, toFragment, type Mode, type Named, type Selected } from "./link";
import { FlameSection, TableSection, TimeSections, wordsOf } from "./markup";
import { Model, type Weights } from "./model";
import { TopTable } from "./table";
import { Times } from "./times";
import { SMALL } from "./tree";

// How long a path may be in a question: the server takes 16 KiB.
const MOST_PATH = 14_000;

// Shows all calls below the one at the end of a path, by the names of its functions.
export type Deepen = (path: string[]) => void;

class Page {
  readonly model: Model;
  readonly flame: Flame;
  readonly table: TopTable;
  readonly times: Times | null;
  // The range of the flame chart: "all" for all time, `null` if it is not open.
  chart: Selected["chart"] = null;
  // Whether there is somebody who gets flame charts.
  canChart = false;
  // Gets a page with all calls below the one at the end of a path, where there is somebody who has them.
  deepen: Deepen | null = null;
  // Called when the selected time, or the range of the flame chart, is another.
  onTime = (): void => {};
  // The weight of the whole selection.
  all = 0;
  private weights: Weights;
  // By dimension, what chooses its value.
  private readonly selects: HTMLSelectElement[] = [];
  private readonly ended = new AbortController();

  constructor(data: PageData) {
    this.model = new Model(data);
    this.flame = new Flame(this.model, (fn) => this.choose(fn));
    this.table = new TopTable(this.model, (fn) => this.choose(fn));
    this.times = data.time && new Times(this.model, data.time, () => {
      this.refresh();
      this.remember(false);
    });
    this.weights = this.model.weigh();
  }

  // Computes everything anew, and zooms to the call at the end of a path.
  refresh(zoom: number[] = []): void {
    const { model, flame } = this;
    this.weights = model.weigh();
    this.all = model.isFiltered() ? Array.from(this.weights.self[0]).reduce((sum, weight) => sum + weight, 0) : model.data.all;
    flame.all = this.all;
    this.table.rows = model.topRows(this.weights);
    flame.build(this.weights);
    flame.zoomTo(zoom);
    flame.draw();
    this.drawTable();
    const part = !model.isFiltered() || model.isDiff ? "" : ` Showing ${model.amount(this.all)} of ${model.amount(model.data.all)} ${model.valueKind}; the numbers leave out the smallest calls.`;
    byId("chosen").textContent = part;
    this.sayDeeper();
    this.onTime();
  }

  // The names of the zoomed path, if its calls have more below them than the page does.
  private get deeper(): string[] | null {
    const { flame, model } = this;
    if (!this.deepen || flame.mode !== "calls" || !flame.zoomed || !flame.isCut) return null;
    const names = flame.zoomPath.map((fn) => model.fnName(fn));
    return encodeURIComponent(names.join("&under=")).length <= MOST_PATH ? names : null;
  }

  sayDeeper(): void {
    byId("deeper").hidden = this.deeper === null;
  }

  private goDeeper(): void {
    const { deeper } = this;
    if (deeper) this.deepen?.(deeper);
  }

  drawTable(): void {
    this.table.draw(this.flame.query, this.flame.focus, this.all);
  }

  setMode(mode: Mode): void {
    this.pressMode(mode);
    this.flame.build(this.weights);
    this.flame.draw();
    this.sayDeeper();
    this.remember(true);
  }

  // Whether the roots are at the bottom, and whether each side of a diff has a picture of its own.
  private setShape(isUpward: boolean, isSplit: boolean): void {
    this.pressShape(isUpward, isSplit);
    this.flame.draw();
    this.remember(true);
  }

  private pressShape(isUpward: boolean, isSplit: boolean): void {
    const { flame } = this;
    flame.isUpward = isUpward;
    flame.setSplit(isSplit);
    byId("upward").setAttribute("aria-pressed", String(isUpward));
    byId("split").setAttribute("aria-pressed", String(flame.isSplit));
    if (this.model.isDiff) byId("sides").textContent = flame.isSplit ? "left: before, right: after, in one scale" : "box width: mean of both sides";
  }

  private pressMode(mode: Mode): void {
    this.flame.mode = mode;
    for (const button of document.querySelectorAll<HTMLElement>("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    byId<HTMLButtonElement>("sandwich").disabled = this.flame.focus === null;
  }

  choose(fn: number): void {
    if (fn === SMALL) return;
    this.flame.focus = fn;
    this.setMode("sandwich");
    this.drawTable();
    byId("status").textContent = `${this.model.fnName(fn)}: ${this.model.isHeap ? "holders above, contents below" : "callers above, callees below"}`;
  }

  // Writes what is selected into the address.
  private remember(isStep: boolean): void {
    const { model, flame, table } = this, { focus } = flame;
    const chosen = model.data.dimensions.flatMap((dimension, place): [string, string][] => {
      const value = model.chosen.values[place];
      return value === null ? [] : [[keyOf(dimension), dimension.values[value]]];
    });
    const selected = {
      mode: flame.mode,
      focus: focus === null ? null : { name: model.fnName(focus), file: model.fnFile(focus) },
      isUpward: flame.isUpward,
      isSplit: flame.isSplit,
      zoom: flame.zoomPath,
      query: flame.query,
      sort: table.sort === table.firstSort ? null : table.sort,
      range: this.times?.rangeNs ?? null,
      chart: this.chart,
      values: new Map(chosen),
    };
    showView(toFragment(selected), isStep);
  }

  // Shows what the address selects.
  private open(): void {
    const { model, flame, table } = this;
    const { mode, focus, isUpward, isSplit, zoom, query, sort, range, chart, values } = fromFragment(viewOf(location.hash));
    const isColumn = sort !== null && !!document.querySelector(`th button[data-sort="${sort}"]`);
    table.sort = isColumn ? sort : table.firstSort;
    flame.focus = focus && this.find(focus);
    byId<HTMLInputElement>("search").value = flame.query = query;
    model.data.dimensions.forEach((dimension, place) => {
      const wanted = values.get(keyOf(dimension));
      const value = wanted === undefined ? -1 : dimension.values.indexOf(wanted);
      model.chosen.values[place] = value < 0 ? null : value;
      this.selects[place].value = value < 0 ? "" : String(value);
    });
    this.times?.markTime(range);
    this.chart = this.times && chart;
    const isThere = mode === "sandwich" ? flame.focus !== null : mode !== "map" || model.isHeap;
    this.pressMode(isThere ? mode : "calls");
    this.pressShape(isUpward, isSplit);
    this.refresh(zoom);
  }

  // Opens the flame chart at a range, or closes it.
  showChart(chart: Selected["chart"]): void {
    const isStep = (chart === null) !== (this.chart === null);
    this.chart = chart;
    this.remember(isStep);
    this.onTime();
  }

  // Shows the callers and callees of a function of another view, if the page has it.
  chooseNamed(named: Named): void {
    const fn = this.find(named);
    if (fn !== null) this.choose(fn);
  }

  // Selects time, as a drag in the timeline does.
  selectTime(range: [number, number] | null): void {
    this.times?.markTime(range);
    this.refresh();
    this.remember(false);
  }

  // The function of a name and a file; `null` if the page has none.
  private find({ name, file }: Named): number | null {
    const { model } = this;
    const found = model.data.names.findIndex((other, fn) => other === name && model.fnFile(fn) === file);
    return found < 0 ? null : found;
  }

  private startDimensions(): void {
    this.model.data.dimensions.forEach((dimension, place) => {
      const select = element("select");
      select.setAttribute("aria-label", dimension.name);
      select.append(new Option(`all ${dimension.name}`, ""));
      dimension.values.forEach((text, number) => select.append(new Option(text, String(number))));
      select.addEventListener("change", () => {
        this.model.chosen.values[place] = select.value === "" ? null : Number(select.value);
        this.refresh();
        this.remember(true);
      });
      this.selects.push(select);
      byId("dimensions").append(select);
    });
  }

  private onKey(event: KeyboardEvent): void {
    if (isTyped(event)) return;
    if (event.key === "/") byId("search").focus();
    else if (event.key === "i") this.setMode(this.flame.mode === "inverted" ? "calls" : "inverted");
    else if (event.key === "c") this.setMode("calls");
    else if (event.key === "m" && this.model.isHeap) this.setMode("map");
    else if (event.key === "u") this.setShape(!this.flame.isUpward, this.flame.isSplit);
    else if (event.key === "s") this.setShape(this.flame.isUpward, !this.flame.isSplit);
    else if (event.key === "t" && this.canChart) this.showChart(this.chart ? null : "all");
    else if (event.key === "d") this.goDeeper();
    else if (event.key === "n" || event.key === "N") this.flame.stepHit(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  start(): void {
    const { signal } = this.ended;
    addEventListener(THEMED, () => {
      this.times?.repaint();
      this.flame.draw();
    }, { signal });
    const redraw = () => {
      this.drawTable();
      this.remember(false);
    };
    this.flame.start(redraw);
    this.flame.onZoom = () => (this.sayDeeper(), this.remember(true));
    byId("deeper").addEventListener("click", () => this.goDeeper());
    this.table.start(redraw);
    this.times?.start();
    this.startDimensions();
    for (const button of document.querySelectorAll<HTMLElement>("[data-mode]")) button.addEventListener("click", () => this.setMode(button.dataset.mode as Mode));
    byId("upward").addEventListener("click", () => this.setShape(!this.flame.isUpward, this.flame.isSplit));
    byId("split").addEventListener("click", () => this.setShape(this.flame.isUpward, !this.flame.isSplit));
    addEventListener("keydown", (event) => this.onKey(event), { signal });
    // The height of the picture changes its area too, but only its width asks for another picture.
    let width = 0;
    const resized = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width !== width && width) this.flame.draw();
      width = contentRect.width;
    });
    resized.observe(byId("extent"));
    signal.addEventListener("abort", () => (resized.disconnect(), this.flame.stop()));
    signal.addEventListener("abort", onFragment(() => this.open()));
    this.open();
  }

  stop(): void {
    this.ended.abort();
  }
}

// The flame chart, which is open or a button.
function ChartSection({ page, ask }: { page: Page; ask: AskChart }) {
  const [, setCount] = useState(0);
  useLayoutEffect(() => {
    page.onTime = () => setCount((count) => count + 1);
    return () => void (page.onTime = () => {});
  }, [page]);
  const { chart, times } = page, { time } = page.model.data;
  if (!time || !times) return null;
  const whole: [number, number] = [time.start_ns, time.start_ns + time.slice_ns * time.slices];
  return (
    <section aria-labelledby="chart-title">
      <div class="bar">
        <h2 id="chart-title">Flame chart</h2>
        <span class="hint">{chart ? "drag selects time, click zooms, Ctrl and wheel zoom, Shift and wheel move" : "what each thread did, in the order of time"}</span>
        {chart && chart !== "all" && <button type="button" id="chart-all" onClick={() => page.showChart("all")}>All time</button>}
        <button type="button" id="chart-open" aria-pressed={chart !== null} onClick={() => page.showChart(chart ? null : "all")}>In order of time</button>
      </div>
      {chart && (
        <FlameChart ask={ask} whole={whole} range={chart === "all" ? null : chart} show={(range) => page.showChart(range ?? "all")}
          selected={times.rangeNs} select={(range) => page.selectTime(range)} choose={(named) => page.chooseNamed(named)} />
      )}
    </section>
  );
}

// Who gets flame charts: a server, or else the page itself, which has one.
function useAsk(data: PageData, asked: AskChart | undefined): AskChart | undefined {
  return useMemo(() => {
    if (asked || data.kind !== "report" || !data.chart) return asked;
    const { chart } = data;
    return () => Promise.resolve(chart);
  }, [data, asked]);
}

export function ProfilePage({ data, ask: asked, deepen }: { data: PageData; ask?: AskChart; deepen?: Deepen }) {
  const [page, setPage] = useState<Page | null>(null), ask = useAsk(data, asked);
  useLayoutEffect(() => {
    const page = new Page(data);
    page.start();
    setPage(page);
    // For the console, and for tests that drive the page.
    Object.assign(globalThis, { borehole: page });
    return () => page.stop();
  }, [data]);
  useLayoutEffect(() => {
    if (page) page.canChart = ask !== undefined && data.time !== null;
  }, [page, ask]);
  useLayoutEffect(() => {
    if (!page) return;
    page.deepen = deepen ?? null;
    page.sayDeeper();
  }, [page, deepen]);
  const words = wordsOf(data);
  return (
    <>
      <dl class="facts">{data.facts.map(([label, value]) => <div key={label}><dt>{label}</dt><dd>{value}</dd></div>)}</dl>
      <ul class="notes">{data.notes.map((note) => <li key={note}>{note}</li>)}</ul>
      <TimeSections data={data} />
      {page && ask && <ChartSection page={page} ask={ask} />}
      <div class={data.kind === "diff" ? "work" : "work beside"}>
        <FlameSection data={data} words={words} />
        <TableSection data={data} words={words} />
      </div>
    </>
  );
}
