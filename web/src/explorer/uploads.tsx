// Files given to the server: dropped on the page, or chosen.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { upload, type InputEntry } from "./server";

interface UploadsProps {
  // Called with the last file that was taken.
  onTaken: (input: InputEntry) => void;
}

export function Uploads({ onTaken }: UploadsProps) {
  const [said, setSaid] = useState<{ text: string; isFault: boolean } | null>(null), [isOver, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const take = async (files: File[]) => {
    for (const file of files) {
      setSaid({ text: `Sending ${file.name} …`, isFault: false });
      try {
        const input = await upload(file);
        if (input.error) return setSaid({ text: `${file.name}: ${input.error}`, isFault: true });
        onTaken(input);
      } catch (error) {
        return setSaid({ text: `${file.name}: ${(error as Error).message}`, isFault: true });
      }
    }
    setSaid(null);
  };
  // One after the other: what is said about a file stays until the next one.
  const queue = useRef<Promise<void>>(Promise.resolve());
  const latest = useRef((_files: File[]) => {});
  latest.current = (files) => void (queue.current = queue.current.then(() => take(files)));
  // A file that is dropped as soon as the button is seen is taken.
  useLayoutEffect(() => {
    const ended = new AbortController(), { signal } = ended;
    const isOfFiles = (event: DragEvent) => !!event.dataTransfer?.types.includes("Files");
    addEventListener("dragover", (event) => isOfFiles(event) && (event.preventDefault(), setOver(true)), { signal });
    addEventListener("dragleave", (event) => event.relatedTarget === null && setOver(false), { signal });
    addEventListener("drop", (event) => {
      if (!isOfFiles(event)) return;
      event.preventDefault();
      setOver(false);
      latest.current([...(event.dataTransfer?.files ?? [])]);
    }, { signal });
    return () => ended.abort();
  }, []);
  return (
    <>
      <button type="button" id="upload" onClick={() => chooser.current?.click()}>Add files</button>
      <input ref={chooser} id="files" type="file" multiple hidden aria-label="Files to add" onChange={(event) => (latest.current([...(event.currentTarget.files ?? [])]), void (event.currentTarget.value = ""))} />
      {said && <p class={said.isFault ? "error" : "hint"} role={said.isFault ? "alert" : "status"}>{said.text}</p>}
      {isOver && <div class="drop" aria-hidden="true">Drop profiles and heaps to add them</div>}
    </>
  );
}
