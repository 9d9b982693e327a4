// What changed between two heaps.

import { grouped } from "../numbers";
import { Answered, useAnswer } from "./answers";
import { changes, type InputEntry } from "./server";

interface HeapChangesProps {
  before: InputEntry;
  after: InputEntry;
  grown: number;
  // Shows a node of the heap after.
  open: (input: InputEntry, panel: string) => void;
}

export function HeapChanges({ before, after, grown, open }: HeapChangesProps) {
  const got = useAnswer(`${before.id}\n${after.id}`, grown, (signal) => changes(before.id, after.id, signal));
  return (
    <section id="changes" aria-labelledby="changes-title">
      <div class="bar"><h2 id="changes-title">What changed</h2>{got !== null && typeof got !== "string" && <span class="hint">{grouped(got.all_rows)} changes: new findings, then what holds more or less, then classes</span>}</div>
      <Answered got={got} leads={(cell, column) => (column === "node" && /^n\d+$/.test(String(cell)) ? () => open(after, `heap_ask:node:${String(cell).slice(1)}`) : null)} />
    </section>
  );
}
