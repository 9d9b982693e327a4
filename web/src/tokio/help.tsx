// All keys.

import { KeysDialog, type Keys } from "../dialog";

const KEYS: Keys = [
  [["+", "-"], "zoom in and out; the wheel does too"],
  [["←", "→"], "earlier and later; Shift and the wheel do too"],
  [["0"], "all time"],
  [["n", "p"], "next and previous red flag"],
  [["↑", "↓"], "choose a worker, in the timeline"],
  [["[", "]"], "previous and next poll of that worker, in the timeline"],
  [["Enter"], "the longest poll of that worker in view, in the timeline"],
  [["/"], "search: places, names, flags, task 12, worker 3"],
  [["Esc"], "clear the selection, then the range"],
  [["?"], "this help"],
];

export const Help = ({ onClose }: { onClose: () => void }) => (
  <KeysDialog keys={KEYS} onClose={onClose}>
    Drag in the timeline to zoom into a range. Click a poll, a span or a flag to see what belongs to it. The address of the page holds the range and the selection: copy it to lead somebody to the moment.
  </KeysDialog>
);
