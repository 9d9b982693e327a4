// How numbers are written. `borehole-text` has the same rules.

type Units = [name: string, size: number][];

const BYTES: Units = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
const TIMES: Units = [["h", 3600e9], ["min", 60e9], ["s", 1e9], ["ms", 1e6], ["us", 1e3]];

export const grouped = (number: number): string => Math.round(number).toLocaleString("en-US");

export function digits(number: number): string {
  const size = Math.abs(number);
  return number.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

export const percentOf = (part: number, whole: number): string =>
  whole !== 0 ? ((part / Math.abs(whole)) * 100).toFixed(1) + "%" : "0.0%";

// A place in time, in seconds or minutes.
export function seconds(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 60e9) return `${Math.floor(ns / 60e9)}:${String(Math.floor((size % 60e9) / 1e9)).padStart(2, "0")} min`;
  return size >= 1e9 ? `${(ns / 1e9).toFixed(2)} s` : `${(ns / 1e6).toFixed(0)} ms`;
}

// Three digits in the first unit that is not larger than the number.
function scaled(number: number, units: Units): string {
  const [name, unit] = units.find(([, unit]) => number >= unit) ?? units[units.length - 1];
  const size = number / unit;
  return `${size.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)} ${name}`;
}

export const bytes = (number: number): string => (number < 1024 ? `${number} B` : scaled(number, BYTES));

export function times(ns: number): string {
  if (ns < 1e3) return ns === 0 ? "0 s" : `${ns} ns`;
  return scaled(ns, TIMES);
}

// A hash that spreads texts evenly between 0 and 1.
export function spread(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) / 4294967296;
}
