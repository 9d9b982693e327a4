// The parts of the page of a profile, a diff or a heap. What is in them is drawn by `Flame`, `TopTable` and `Times`.

import type { PageData } from "./data";

// The words of a kind of page.
interface Words {
  title: string;
  views: Record<string, string>;
  search: string;
  // Of all boxes, for screen readers.
  label: string;
  // What a double click shows.
  both: string;
  keys: [invert: string, fromRoots: string];
  // For a selection without anything.
  nothing: string;
  rows: string;
  heads: [sort: number, text: string][];
  name: string;
}

const CALLS: Words = {
  title: "Calls",
  views: { calls: "From roots", inverted: "Inverted", sandwich: "Sandwich" },
  search: "Search functions and files",
  label: "Flame graph: arrow keys move between calls, Enter zooms, Escape zooms out, Space shows callers and callees",
  both: "callers and callees",
  keys: ["invert", "calls"],
  nothing: "No samples match the selection.",
  rows: "Functions",
  heads: [[1, "Self"], [1, "%"], [2, "Total"], [2, "%"]],
  name: "Function",
};

const HEAP: Words = {
  title: "Retained memory",
  views: { map: "Tree map", calls: "From roots", inverted: "By shallow size", sandwich: "One class or name" },
  search: "Search classes and names",
  label: "Retained memory: arrow keys move between blocks, Enter zooms, Escape zooms out, Space shows holders and contents",
  both: "holders and contents",
  keys: ["by shallow size", "from roots"],
  nothing: "No memory is retained.",
  rows: "Classes",
  heads: [[1, "Retained"], [1, "%"], [2, "Shallow"], [3, "Objects"]],
  name: "Class",
};

const OUTLINE: Words = {
  ...HEAP,
  title: "Memory by type and class",
  label: "Memory by type and class: arrow keys move between blocks, Enter zooms, Escape zooms out",
  nothing: "No memory is known.",
  heads: [[1, "Shallow"], [1, "%"], [3, "Objects"]],
};

const DIFF: Words = {
  ...CALLS,
  heads: [[1, "Self before"], [2, "after"], [9, "change"], [3, "Total before"], [4, "after"], [10, "change"]],
};

export const wordsOf = (data: PageData): Words => (data.kind === "heap" ? (data.is_outline ? OUTLINE : HEAP) : data.kind === "diff" ? DIFF : CALLS);

const MARKS = 5;

function Axis({ startNs, endNs }: { startNs: number; endNs: number }) {
  const marks = Array.from({ length: MARKS }, (_, mark) => startNs + ((endNs - startNs) * mark) / (MARKS - 1));
  return <div class="axis" aria-hidden="true">{marks.map((ns, mark) => <span key={mark}>{(ns / 1e9).toFixed(1)} s</span>)}</div>;
}

const LABEL = "arrow keys select time, shift extends, Escape clears";

export function TimeSections({ data: { time, heat, dimensions } }: { data: PageData }) {
  if (!time) return null;
  const threads = dimensions.find((dimension) => dimension.kind === "thread")?.values.length ?? 0;
  const lanes = threads ? `, one row per thread (${Math.min(threads, 12)} of ${threads})` : "";
  return (
    <div class={heat ? "times" : "times one"}>
      <section aria-labelledby="time-title">
        <div class="bar">
          <h2 id="time-title">Timeline</h2><span id="range" class="hint" role="status" />
          <button type="button" id="all-time" hidden>Show all time</button>
          <span class="hint">drag or use arrow keys (Shift extends){lanes}</span>
        </div>
        <div id="timeline" class="strip" tabindex={0} role="group" aria-label={`Timeline: ${LABEL}`}><canvas /></div>
        <Axis startNs={time.start_ns} endNs={time.start_ns + time.slice_ns * time.slices} />
      </section>
      {heat && (
        <section aria-labelledby="heat-title">
          <div class="bar">
            <h2 id="heat-title">Heat map</h2>
            <span class="hint">each column is {heat.column_ns / 1e9} s, from bottom to top; stronger colours are more samples</span>
          </div>
          <div id="heat" class="strip heat" tabindex={0} role="group" aria-label={`Heat map: ${LABEL}`}><canvas /></div>
          <Axis startNs={heat.start_ns} endNs={heat.start_ns + (heat.column_ns * heat.samples.length) / heat.rows} />
        </section>
      )}
    </div>
  );
}

const DiffKey = () => (
  <p class="key">
    <span><i class="more-key" />more</span><span><i class="less-key" />less</span><span><i class="same-key" />not significant</span>
    <span id="sides">box width: mean of both sides</span>
  </p>
);

export function FlameSection({ data, words }: { data: PageData; words: Words }) {
  const modes = data.kind === "heap" ? ["map", "calls", "inverted", "sandwich"] : ["calls", "inverted", "sandwich"];
  return (
    <section aria-labelledby="flame-title">
      <div class="bar">
        <h2 id="flame-title">{words.title}</h2>
        <span id="dimensions" class="bar" />
        <span class="bar" role="group" aria-label="View">
          {modes.map((mode) => (
            <button key={mode} type="button" data-mode={mode} id={mode === "sandwich" ? "sandwich" : undefined} aria-pressed="false">{words.views[mode]}</button>
          ))}
        </span>
        <button type="button" id="upward" aria-pressed="false" title="Callees above their callers">Roots below</button>
        <button type="button" id="split" aria-pressed="false" hidden={data.kind !== "diff"}>Side by side</button>
        <button type="button" id="zoom-out" hidden>Zoom out</button>
        <button type="button" id="deeper" title="Also those that are too small for the whole picture" hidden>Smaller calls</button>
        <input type="search" id="search" placeholder={words.search} aria-label={words.search} />
        <span id="matches" class="hint" role="status" />
      </div>
      {data.kind === "diff" && <DiffKey />}
      <div id="flame" class="flame" tabindex={0} role="tree" aria-label={words.label}>
        <div id="extent" class="extent" role="presentation"><canvas id="boxes" aria-hidden="true" /><canvas id="boxes-after" aria-hidden="true" hidden /></div>
        <p id="nothing" class="hint" hidden>{words.nothing}</p>
        <div id="near" class="unseen" role="group" />
      </div>
      <div id="tip" class="tip" aria-hidden="true" hidden />
      <p id="status" class="status" role="status" />
      <p class="hint">
        <kbd>/</kbd> search, <kbd>n</kbd> <kbd>N</kbd> next and previous match &nbsp; <kbd>u</kbd> roots at the bottom &nbsp; {data.kind === "diff" && <><kbd>s</kbd> side by side &nbsp; </>}{data.kind === "heap" && <><kbd>m</kbd> tree map &nbsp; </>}<kbd>i</kbd> {words.keys[0]} &nbsp; <kbd>c</kbd> {words.keys[1]} &nbsp; click zooms &nbsp; double click: {words.both} &nbsp;{" "}
        {["←", "↑", "↓", "→", "Enter", "Space", "Esc"].map((key) => <><kbd key={key}>{key}</kbd> </>)}
        <span id="chosen" role="status" />
      </p>
    </section>
  );
}

export function TableSection({ words }: { data: PageData; words: Words }) {
  return (
    <section aria-labelledby="top-title">
      <div class="bar"><h2 id="top-title">{words.rows}</h2><span id="top-count" class="hint" /></div>
      <div class="rows">
        <table>
          <thead>
            <tr>
              {words.heads.map(([sort, text], place) => <th key={place} scope="col"><button type="button" data-sort={sort}>{text}</button></th>)}
              <th scope="col">{words.name}</th>
            </tr>
          </thead>
          <tbody id="top-rows" />
        </table>
      </div>
    </section>
  );
}
