// What the parts of the page share: the program that is shown, and how they move to a moment.

import { createContext } from "preact";
import { useContext, useRef } from "preact/hooks";
import type { Moments } from "./moments";
import type { Selection } from "./link";
import type { Range } from "../ranges";
import type { Search } from "./search";

export interface Shown {
  moments: Moments;
  whole: Range;
  range: Range;
  selection: Selection | null;
  search: Search | null;
  // Shows a range.
  zoom(range: Range | null): void;
  // Selects something, and shows a range if one is given.
  select(selection: Selection | null, range?: Range): void;
  // Selects a poll, and shows it.
  jump(poll: number): void;
  // The fragment of a link to a selection in a range.
  link(selection: Selection, range: Range): string;
}

export const ShownContext = createContext<Shown | null>(null);

export function useShown(): Shown {
  const shown = useContext(ShownContext);
  if (!shown) throw new Error("missing program");
  return shown;
}

// The latest of a value, for listeners that outlive a drawing.
export function useLatest<T>(value: T): { current: T } {
  const latest = useRef(value);
  latest.current = value;
  return latest;
}
