// All keys of the explorer.

import { KeysDialog, type Keys } from "../dialog";
import { CHART_KEYS, keysOf } from "../profile/keys";
import type { ViewData } from "../view";

const KEYS: Keys = [
  [["j", "k"], "next and previous input"],
  [["v", "V"], "next and previous view"],
  [["l"], "next lake"],
  [["r"], "recordings, where they are allowed"],
  [["f"], "find inputs"],
  [["\\"], "hide or show the inputs"],
  [["H"], "this help"],
];

function keysOfView(data: ViewData | null): Keys {
  if (!data) return [];
  if (data.kind === "tokio") return [[["?"], "the keys of a Tokio trace"]];
  return [...keysOf(data), ...(data.kind === "report" && data.time ? CHART_KEYS : [])];
}

export const Help = ({ data, onClose }: { data: ViewData | null; onClose: () => void }) => (
  <KeysDialog keys={[...KEYS, ...keysOfView(data)]} onClose={onClose}>
    The address holds all that is selected: copy it to lead somebody to what you see.
  </KeysDialog>
);
