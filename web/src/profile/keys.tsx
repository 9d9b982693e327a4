// The keys of the page of a profile, a diff or a heap.

import { KeysDialog, type Keys } from "../dialog";
import type { PageData } from "./data";

export const keysOf = ({ kind, time }: PageData): Keys => [
  [["/"], "search"],
  [["n", "N"], "next and previous match"],
  [["c", "i"], kind === "heap" ? "from the roots, and by shallow size" : "from the roots, and inverted"],
  ...(kind === "heap" ? ([[["m"], "tree map"]] as Keys) : []),
  ...(kind === "diff" ? ([[["s"], "both sides beside each other"]] as Keys) : []),
  [["u"], "the roots at the bottom"],
  [["←", "↑", "↓", "→"], kind === "heap" ? "to the block beside, in the picture" : "to the call beside, in the picture"],
  [["Enter"], "zoom"],
  [["Esc"], "zoom out"],
  ...(kind === "report" ? ([[["d"], "smaller calls below the zoomed one, where a server has them"]] as Keys) : []),
  [["Space"], kind === "heap" ? "holders and contents of the class" : "callers and callees of the function"],
  ...(time ? ([[["←", "→"], "select time, in the timeline; Shift extends"]] as Keys) : []),
];

// The keys of a flame chart, where there is one.
export const CHART_KEYS: Keys = [
  [["t"], "flame chart, in the order of time"],
  [["+", "-", "0"], "zoom in, zoom out, all time, in the flame chart"],
];

export const Help = ({ data, onClose }: { data: PageData; onClose: () => void }) => (
  <KeysDialog keys={[...keysOf(data), ...(data.kind === "report" && data.chart ? CHART_KEYS : []), [["?"], "this help"]]} onClose={onClose}>
    The address holds all that is selected: copy it to lead somebody to what you see.
  </KeysDialog>
);
