// A lake: what is selected of it, and the views of that. Its flame graphs and comparisons are those of profiles.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { grouped, percentOf } from "../numbers";
import { Answered, ordered, useAnswer, type Got } from "./answers";
import { lakeAnswer, wordsOfLake } from "./server";

// The words that choose samples in every view, and how they are called.
const CHOICE: [word: string, label: string][] = [["service", "Service"], ["host", "Host"], ["label", "Version"], ["value", "Value type"]];
const TIMES: [word: string, label: string][] = [["since", "Since"], ["until", "Until"]];

export const LAKE_VIEWS: [view: string, name: string][] = [["flame", "Flame graph"], ["top", "Top"], ["trend", "Trend"], ["diff", "Compare"], ["query", "SQL"]];

// What can be chosen, as one statement: of each kind, the values that the inputs have.
const FACETS = `SELECT DISTINCT 'service' AS what, service AS value FROM sources UNION SELECT DISTINCT 'host', host FROM sources
UNION SELECT DISTINCT 'label', label(labels, 'version') FROM sources UNION SELECT DISTINCT 'value', kind || '/' || unit FROM measures ORDER BY 1, 2`;
const MOST_FACETS = "2000";
const MOST_ROWS = "200";

type Facets = Map<string, string[]>;

// The rows of the answer to `FACETS`, by kind.
export function facetsOf(columns: string[], rows: (string | number)[][]): Facets {
  const [what, value] = [columns.indexOf("what"), columns.indexOf("value")], facets: Facets = new Map([["value", ["samples"]]]);
  for (const row of rows) {
    const kind = String(row[what]), text = String(row[value] ?? "");
    if (text) facets.set(kind, [...(facets.get(kind) ?? []), kind === "label" ? `version=${text}` : text]);
  }
  return facets;
}

function useFacets(lake: string): Facets {
  const got = useAnswer(lake, 0, (signal) => lakeAnswer("query", new URLSearchParams({ lake, sql: FACETS, limit: MOST_FACETS }), signal));
  return got !== null && typeof got !== "string" ? facetsOf(got.columns, got.rows) : new Map();
}

interface LakeProps {
  place: URLSearchParams;
  go: (place: URLSearchParams) => void;
  // The picture of what is selected, where the view has one.
  children: ComponentChildren;
}

export function Lake({ place, go, children }: LakeProps) {
  const lake = place.get("lake") ?? "", view = place.get("lake.view") ?? "flame", facets = useFacets(lake);
  const set = (words: Record<string, string>) => {
    const next = new URLSearchParams(place);
    for (const [word, text] of Object.entries(words)) text ? next.set(`lake.${word}`, text) : next.delete(`lake.${word}`);
    go(next);
  };
  const parts = { place, set, facets };
  return (
    <>
      <section id="lake" aria-label="Selection">
        <div class="bar">
          {CHOICE.map(([word, label]) => <Choice key={word} {...{ word, label, ...parts }} />)}
          {TIMES.map(([word, label]) => <Word key={word} {...{ word, label, hint: "2026-11-22 or 7d", ...parts }} />)}
          <Word word="focus" label="Function matches" hint="regular expression" {...parts} />
        </div>
        {view === "trend" && <div class="bar"><Word word="function" label="Function" hint="full name" {...parts} /><Word word="step" label="Step" hint="1h" {...parts} /></div>}
        {view === "diff" && <div class="bar"><Word word="before" label="Before" hint="version=1.4 or 2d..1d" {...parts} /><Word word="after" label="After" hint="version=1.5 or 1d.." {...parts} /></div>}
        {view === "query" && <Statement {...parts} />}
      </section>
      {view === "flame" ? children : view === "diff" && place.has("lake.before") && place.has("lake.after") ? children : <LakeAnswer key={view} {...{ place, view, set }} />}
    </>
  );
}

interface WordProps {
  word: string;
  label: string;
  place: URLSearchParams;
  set: (words: Record<string, string>) => void;
  facets: Facets;
}

function Choice({ word, label, place, set, facets }: WordProps) {
  const chosen = place.get(`lake.${word}`) ?? "", values = facets.get(word) ?? [];
  const all = chosen && !values.includes(chosen) ? [chosen, ...values] : values;
  return (
    <label>{label}{" "}
      <select data-word={word} value={chosen} onChange={(event) => set({ [word]: event.currentTarget.value })}>
        <option value="">{word === "value" ? "default" : "all"}</option>
        {all.map((value) => <option key={value} value={value}>{word === "label" ? value.replace(/^version=/, "") : value}</option>)}
      </select>
    </label>
  );
}

// A word that is typed; it counts once it is left, or with Enter.
function Word({ word, label, hint, place, set, facets }: WordProps & { hint: string }) {
  const list = useId(), said = place.get(`lake.${word}`) ?? "";
  const sides = /^(before|after)$/.test(word) ? [...(facets.get("label") ?? []), ...["service", "host"].flatMap((key) => (facets.get(key) ?? []).map((value) => `${key}=${value}`))] : [];
  const take = (text: string) => text.trim() !== said && set({ [word]: text.trim() });
  return (
    <label>{label}{" "}
      <input key={said} data-word={word} defaultValue={said} placeholder={hint} list={sides.length ? list : undefined} onBlur={(event) => take(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && take(event.currentTarget.value)} />
      {sides.length > 0 && <datalist id={list}>{sides.map((side) => <option key={side} value={side} />)}</datalist>}
    </label>
  );
}

function Statement({ place, set }: Pick<WordProps, "place" | "set">) {
  const said = place.get("lake.sql") ?? "", [text, setText] = useState(said);
  useEffect(() => setText(said), [said]);
  const submit = () => set({ sql: text });
  return (
    <form onSubmit={(event) => (event.preventDefault(), submit())}>
      <textarea id="sql" rows={3} spellcheck={false} aria-label="SQL" value={text} placeholder="SELECT service, sum(value) AS samples FROM samples GROUP BY 1 ORDER BY 2 DESC" onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit()} />
      <div class="bar"><button type="submit">Run</button><span class="hint">Ctrl and Enter run it too. Statements can only read.</span></div>
    </form>
  );
}

// The word without which a view has no answer, and how to ask for it.
const NEEDED: Record<string, [word: string, hint: string]> = {
  trend: ["function", "Name a function, or choose one in Top."],
  query: ["sql", "Write a statement."],
  diff: ["after", "Say what to compare: a version, a host, or a time before and after."],
};

function LakeAnswer({ place, view, set }: Pick<WordProps, "place" | "set"> & { view: string }) {
  const [needed, hint] = NEEDED[view] ?? [];
  if (needed && !place.get(`lake.${needed}`)) return <p class="hint">{hint}</p>;
  return <Asked {...{ place, view, set }} />;
}

// The words of each view, beside those that choose samples.
const OWN: Record<string, string[]> = { top: [], trend: ["function", "step"], query: ["sql"], diff: ["before", "after"] };

function Asked({ place, view, set }: Pick<WordProps, "place" | "set"> & { view: string }) {
  const chosen = ["lake", ...(view === "query" ? [] : ["service", "host", "label", "focus", "value", "since", "until"]), ...(OWN[view] ?? [])];
  const words = new URLSearchParams([...wordsOfLake(place)].filter(([word]) => chosen.includes(word)));
  words.set("limit", MOST_ROWS);
  const answer = useAnswer(`${view}?${words}`, 0, (signal) => lakeAnswer(view, words, signal));
  const got = view === "query" ? answer : ordered(answer, ["time", "self", "self_percent", "total", "total_percent", "samples"], ["function"]);
  return (
    <section id="answer" aria-label="Answer">
      {view === "trend" && <Trend got={got} name={place.get("lake.function") ?? ""} />}
      <Answered got={got} leads={(cell, column) => (view === "top" && column === "function" ? () => set({ view: "trend", function: String(cell) }) : null)} />
    </section>
  );
}

// The picture of a trend: a line for self and one for total, in shares of all samples of each time.
export function trendLines(columns: string[], rows: (string | number)[][]): { most: number; self: number[]; total: number[]; times: string[] } {
  const column = (name: string) => rows.map((row) => Number(row[columns.indexOf(name)]) || 0);
  const [self, total] = [column("self_percent"), column("total_percent")];
  return { most: Math.max(1, ...total, ...self), self, total, times: rows.map((row) => String(row[columns.indexOf("time")])) };
}

const [WIDE, HIGH] = [1000, 180];

function Trend({ got, name }: { got: Got; name: string }) {
  if (got === null || typeof got === "string" || !got.rows.length) return null;
  const { most, self, total, times } = trendLines(got.columns, got.rows);
  const points = (values: number[]) => values.map((value, at) => `${values.length > 1 ? (at / (values.length - 1)) * WIDE : WIDE / 2},${HIGH - (value / most) * HIGH}`);
  const line = (values: number[], kind: string) => (
    <g class={kind}>
      <polyline points={points(values).join(" ")} />
      {points(values).map((point, at) => <path key={at} d={`M${point}h0`}><title>{`${times[at]}: ${kind} ${percentOf(values[at], 100)}`}</title></path>)}
    </g>
  );
  return (
    <figure class="trend">
      <figcaption><b>{name}</b> <span class="total">● total</span> <span class="self">● self</span> <span class="hint">up to {percentOf(most, 100)} of the samples of each time; {grouped(times.length)} times</span></figcaption>
      <svg viewBox={`-8 -8 ${WIDE + 16} ${HIGH + 16}`} preserveAspectRatio="none" role="img" aria-label={`Share of ${name} over time; the table below has the numbers`}>{line(total, "total")}{line(self, "self")}</svg>
      <div class="axis" aria-hidden="true"><span>{times[0]}</span><span>{times[times.length - 1]}</span></div>
    </figure>
  );
}
