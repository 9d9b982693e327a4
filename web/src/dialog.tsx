// The dialog that lists keys.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export type Keys = [keys: string[], what: string][];

export function KeysDialog({ keys, children, onClose }: { keys: Keys; children: ComponentChildren; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} id="help" aria-labelledby="help-title" onClose={onClose} onKeyDown={(event) => event.key === "Escape" && dialog.current?.close()}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {keys.map(([keys, what]) => <div key={what}><dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{what}</dd></div>)}
      </dl>
      <p class="hint">{children}</p>
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
