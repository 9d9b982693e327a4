// What is selected as parts of the page's address, so that a link leads to it.

import type { Dimension } from "./data";

export type Mode = "calls" | "inverted" | "sandwich" | "map";

// A function, identified by its name and file: other pages of the program number it otherwise.
export interface Named {
  name: string;
  file: string;
}

export interface Selected {
  mode: Mode;
  focus: Named | null;
  // The roots are at the bottom.
  isUpward: boolean;
  // In a diff: each side has a picture of its own.
  isSplit: boolean;
  // The functions from the root to the zoomed call, by number.
  zoom: number[];
  query: string;
  // The column that the table is sorted by; `null` for the first one.
  sort: number | null;
  range: [fromNs: number, toNs: number] | null;
  // The range of the flame chart: "all" for all time, `null` if it is not open.
  chart: [fromNs: number, toNs: number] | "all" | null;
  // The chosen value of each dimension that has one, by its key.
  values: Map<string, string>;
}

const BY = "by.";

// How the address calls a dimension. A label may have any name, even that of another dimension.
export const keyOf = ({ kind, name }: Dimension): string => (kind === "label" ? `label.${name}` : kind);

export function toFragment({ mode, focus, isUpward, isSplit, zoom, query, sort, range, chart, values }: Selected): URLSearchParams {
  const parts = new URLSearchParams();
  if (mode !== "calls") parts.set("view", mode);
  if (focus) parts.set("function", focus.name);
  if (focus?.file) parts.set("file", focus.file);
  if (isUpward) parts.set("roots", "below");
  if (isSplit) parts.set("sides", "both");
  if (zoom.length) parts.set("zoom", zoom.join("."));
  if (query) parts.set("search", query);
  if (sort !== null) parts.set("sort", String(sort));
  if (range) parts.set("t", range.join("-"));
  if (chart) parts.set("chart", chart === "all" ? chart : chart.map(Math.round).join("-"));
  for (const [dimension, value] of values) parts.set(BY + dimension, value);
  return parts;
}

function rangeOf(text: string | null): [fromNs: number, toNs: number] | null {
  const range = /^(-?\d{1,16})-(-?\d{1,16})$/.exec(text ?? "");
  const [from, to] = range ? [Number(range[1]), Number(range[2])] : [0, 0];
  return from < to ? [from, to] : null;
}

// What is not understood is left out.
export function fromFragment(parts: URLSearchParams): Selected {
  const name = parts.get("function"), view = parts.get("view");
  const focus = name === null ? null : { name, file: parts.get("file") ?? "" };
  const isKnown = view === "inverted" || view === "map" || (view === "sandwich" && focus !== null);
  const zoom = parts.get("zoom") ?? "", sort = parts.get("sort") ?? "";
  return {
    mode: isKnown ? view : "calls",
    focus,
    isUpward: parts.get("roots") === "below",
    isSplit: parts.get("sides") === "both",
    zoom: /^\d{1,9}(\.\d{1,9})*$/.test(zoom) ? zoom.split(".").map(Number) : [],
    query: parts.get("search") ?? "",
    sort: /^\d{1,2}$/.test(sort) ? Number(sort) : null,
    range: rangeOf(parts.get("t")),
    chart: parts.get("chart") === "all" ? "all" : rangeOf(parts.get("chart")),
    values: new Map([...parts].filter(([key]) => key.startsWith(BY)).map(([key, value]) => [key.slice(BY.length), value])),
  };
}
