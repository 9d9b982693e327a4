// Ranges of time: zoomed, moved, and written.

export type Range = [fromNs: number, toNs: number];

// The shortest range that can be shown.
const SHORTEST_NS = 100;

// `range` within `whole`, with its length kept where it fits.
export function within([from, to]: Range, [first, last]: Range): Range {
  const length = Math.min(Math.max(to - from, SHORTEST_NS), Math.max(last - first, SHORTEST_NS));
  const start = Math.min(Math.max(from, first), Math.max(first, last - length));
  return [start, start + length];
}

// A range `factor` times as long, in which `anchorNs` stays at its place.
export function zoomed([from, to]: Range, factor: number, anchorNs: number, whole: Range): Range {
  const length = Math.max((to - from) * factor, SHORTEST_NS);
  const part = to > from ? (anchorNs - from) / (to - from) : 0.5;
  return within([anchorNs - part * length, anchorNs + (1 - part) * length], whole);
}

// A range moved by a part of its length.
export function moved([from, to]: Range, part: number, whole: Range): Range {
  const by = (to - from) * part;
  return within([from + by, to + by], whole);
}

// A range around a moment, long enough to see what is before and after.
export function around(startNs: number, durationNs: number, whole: Range): Range {
  const margin = Math.max(durationNs * 0.6, 20_000);
  return within([startNs - margin, startNs + durationNs + margin], whole);
}

// Where the marks of an axis are: at most `most` of them, at round times.
export function marks([from, to]: Range, most: number): number[] {
  const least = (to - from) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

// A moment in seconds, with as many digits as a range of `lengthNs` needs.
export function clock(ns: number, lengthNs: number): string {
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(1e9 / Math.max(lengthNs, 1))) + 2));
  return `${(ns / 1e9).toFixed(digits)} s`;
}
