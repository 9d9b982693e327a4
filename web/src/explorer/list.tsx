// The inputs, grouped by where they come from.

import { bytes, grouped as count } from "../numbers";
import type { InputEntry } from "./server";

export interface Group {
  name: string;
  inputs: InputEntry[];
}

// The host and service of an input, or else its folder.
function groupOf({ host, service, path }: InputEntry): string {
  const known = [service, host && `on ${host}`].filter(Boolean);
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
  return known.length ? known.join(" ") : folder || "Inputs";
}

// Newest first, by the time of their samples or else of the file.
const timeOf = ({ start, modified }: InputEntry): string => start ?? modified;

export function grouped(inputs: InputEntry[], query: string): Group[] {
  const wanted = query.trim().toLowerCase();
  const groups = new Map<string, InputEntry[]>();
  for (const input of inputs) {
    const text = [input.path, input.format, input.kind, input.host, input.service, input.process].join(" ").toLowerCase();
    if (!text.includes(wanted)) continue;
    const name = groupOf(input), group = groups.get(name);
    if (group) group.push(input);
    else groups.set(name, [input]);
  }
  const ordered = [...groups].sort(([one], [other]) => one.localeCompare(other));
  return ordered.map(([name, inputs]) => ({ name, inputs: inputs.sort((one, other) => timeOf(other).localeCompare(timeOf(one)) || one.path.localeCompare(other.path)) }));
}

interface ListProps {
  inputs: InputEntry[];
  // How many older files are not in the list.
  leftOut: number;
  lakes: string[];
  query: string;
  setQuery: (query: string) => void;
  place: URLSearchParams;
  open: (id: string) => void;
  openLake: (lake: string) => void;
  compare: (id: string) => void;
}

export function List({ inputs: all, leftOut, lakes, query, setQuery, place, open, openLake, compare }: ListProps) {
  const groups = grouped(all, query), found = lakes.filter((lake) => lake.toLowerCase().includes(query.trim().toLowerCase()));
  return (
    <nav id="inputs" aria-label="Inputs">
      <input type="search" id="find" value={query} placeholder="Find inputs" aria-label="Find inputs" onInput={(event) => setQuery(event.currentTarget.value)} />
      {found.length > 0 && (
        <details open>
          <summary>Lakes <small>{found.length}</small></summary>
          <ul>
            {found.map((lake) => (
              <li key={lake} class={place.get("lake") === lake ? "chosen" : ""}>
                <button type="button" class="input lake" title={lake} aria-current={place.get("lake") === lake ? "true" : undefined} onClick={() => openLake(lake)}>
                  <span>{nameOf(lake)}</span><small>{lake}</small>
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
      {!groups.length && !found.length && <p class="hint">{all.length ? "No input matches." : "There are no profiles or heaps here yet. They appear as soon as they are written."}</p>}
      {groups.map(({ name, inputs }) => (
        <details key={name} open>
          <summary>{name} <small>{inputs.length}</small></summary>
          <ul>{inputs.map((input) => <Row key={input.id} {...{ input, inputs: all, place, open, compare }} />)}</ul>
        </details>
      ))}
      {leftOut > 0 && <p class="hint">{count(leftOut)} older files are not listed.</p>}
    </nav>
  );
}

// The last part of the path of a lake.
export const nameOf = (lake: string): string => lake.split("/").filter(Boolean).pop() ?? lake;

const isOfHeap = (kind: InputEntry["kind"]): boolean => kind === "heap" || kind === "database";
const isComparable = (one: InputEntry, kind: InputEntry["kind"]): boolean => ![one.kind, kind].includes("unreadable") && isOfHeap(one.kind) === isOfHeap(kind);

function Row({ input, inputs, place, open, compare }: Pick<ListProps, "inputs" | "place" | "open" | "compare"> & { input: InputEntry }) {
  const { id, name, path, kind, format, error } = input;
  const chosen = inputs.find(({ id }) => id === (place.get("input") ?? place.get("before")));
  const mark = place.get("before") === id ? "before" : place.get("after") === id ? "after" : "";
  const about = error ?? [format, bytes(input.bytes), timeOf(input).slice(0, 16).replace("T", " ")].filter(Boolean).join(" · ");
  return (
    <li class={place.get("input") === id || mark ? "chosen" : ""}>
      <button type="button" class="input" disabled={kind === "unreadable"} title={error ?? path} aria-current={place.get("input") === id ? "true" : undefined} onClick={() => open(id)}>
        <span>{name}{mark && <em> {mark}</em>}</span>
        <small>{about}</small>
      </button>
      {chosen && chosen.id !== id && isComparable(chosen, kind) && (
        <button type="button" class="compare" title="Compare: the open input is the side before" aria-label={`Compare with ${name}`} onClick={() => compare(id)}>±</button>
      )}
    </li>
  );
}
