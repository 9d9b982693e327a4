// What a page of a profile, a diff or a heap holds: see `report.rs`, `diff.rs` and `heap.rs` of `borehole-web`.

import type { ChartData } from "../chart/data";

export interface Dimension {
  kind: "thread" | "interpreter" | "label";
  name: string;
  values: string[];
}

export interface Timespan {
  start_ns: number;
  slice_ns: number;
  slices: number;
}

export interface Heat {
  start_ns: number;
  column_ns: number;
  rows: number;
  samples: number[];
}

// Rows of the top table: the function, then numbers.
export type TopRow = number[];

interface ValueType {
  kind: string;
  unit: string;
}

interface Common {
  title: string;
  about: string;
  facts: [label: string, value: string][];
  notes: string[];
  all: number;
  distinct: number;
  names: string[];
  files: number[];
  file_names: string[];
  calls: { caller: number[]; fn: number[] };
  cells: { call: number[]; situation: number[]; slice: number[]; values: number[] };
  situations: number[][];
  dimensions: Dimension[];
  top: TopRow[];
  time: Timespan | null;
  heat: Heat | null;
}

export interface ReportData extends Common {
  kind: "report";
  value_kind: string;
  value_unit: string;
  // The types that a server can be asked for.
  value_types: ValueType[];
  // What each thread did over time, if the page holds it.
  chart: ChartData | null;
}

export interface DiffData extends Common {
  kind: "diff";
  factor: number;
  unit: string;
  self: [number[], number[]];
  marked: number[];
}

export interface HeapData extends Common {
  kind: "heap";
  // Sizes are shallow, because retained ones are not known yet.
  is_outline?: boolean;
  self: number[];
  counts: number[];
}

export type PageData = ReportData | DiffData | HeapData;
