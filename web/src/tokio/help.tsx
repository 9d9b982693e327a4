// All keys.

import { useEffect, useRef } from "preact/hooks";

const KEYS: [keys: string[], what: string][] = [
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

export function Help({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} id="help" aria-labelledby="help-title" onClose={onClose} onKeyDown={(event) => event.key === "Escape" && dialog.current?.close()}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([keys, what]) => <div key={what}><dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{what}</dd></div>)}
      </dl>
      <p class="hint">Drag in the timeline to zoom into a range. Click a poll, a span or a flag to see what belongs to it. The address of the page holds the range and the selection: copy it to lead somebody to the moment.</p>
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
