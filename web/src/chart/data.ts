// A flame chart: what each lane did over time. See `chart.rs` of `borehole-web`.

// The calls of a lane. Times count from the start of the chart.
export interface ChartLane {
  name: string;
  process: number | null;
  depth: number[];
  start: number[];
  end: number[];
  fn: number[];
}

export interface ChartData {
  start_ns: number;
  end_ns: number;
  // Calls that are shorter are part of a neighbour.
  grain_ns: number;
  other_lanes: number;
  left_out: number;
  names: string[];
  files: number[];
  file_names: string[];
  lanes: ChartLane[];
}

// Gets the chart of a range; of all time without one.
export type AskChart = (range: [fromNs: number, toNs: number] | null, columns: number, signal: AbortSignal) => Promise<ChartData>;

export const fileOf = ({ files, file_names }: Pick<ChartData, "files" | "file_names">, fn: number): string => (files[fn] < 0 ? "" : file_names[files[fn]]);
