// The views of an input that are answers of the server: tables, by label, and source files with their lines heated.

import { useEffect, useMemo, useState } from "preact/hooks";
import { fileOf } from "../chart/data";
import { goTo, placeOf, viewOf } from "../fragment";
import { percentOf } from "../numbers";
import { fromFragment, keyOf } from "../profile/link";
import type { ViewData } from "../view";
import { Answered, Notes, cellText, useAnswer, type Leads } from "./answers";
import { answer, type Answer, type InputEntry } from "./server";

// A view: its name at the server, its name here, and the word that it needs, with how to ask for it.
export interface Question {
  view: string;
  name: string;
  word?: [key: string, label: string];
}

const OVERVIEW: Question = { view: "overview", name: "Overview" };

const OF_PROFILES: Question[] = [
  { view: "top", name: "Live top" },
  { view: "by", name: "By label", word: ["by", "thread, process, or the key of a label"] },
  { view: "source", name: "Source", word: ["file", "File, as the profile names it"] },
  { view: "paths", name: "Heaviest paths" },
  { view: "callers", name: "Callers", word: ["function", "Function"] },
  { view: "callees", name: "Callees", word: ["function", "Function"] },
  OVERVIEW,
];

const OF_HEAPS: Question[] = [
  { view: "heap_findings", name: "Findings" },
  { view: "heap_classes", name: "Classes" },
  { view: "heap_ask", name: "Instances", word: ["class", "Class"] },
  { view: "heap_ask", name: "Node", word: ["node", "Number of a node"] },
  { view: "heap_ask", name: "Text", word: ["text", "Text to search for"] },
];

export function questionsOf(kind: InputEntry["kind"]): Question[] {
  if (kind === "heap" || kind === "database") return OF_HEAPS;
  return [{ view: kind === "tokio" ? "tokio_flags" : "findings", name: "Findings" }, ...OF_PROFILES];
}

// A question and its word as one text, for the address.
export const asked = ({ view, word }: Question, text: string): string => [view, ...(word ? [word[0], text] : [])].join(":");

export function found(questions: Question[], panel: string): [Question, string] | null {
  const [view, key, ...rest] = panel.split(":");
  const question = questions.find((question) => question.view === view && (question.word?.[0] ?? undefined) === key);
  return question ? [question, rest.join(":")] : null;
}

// At most this many words are suggested.
const MOST_WORDS = 500;

// The words that a question may need, as far as the view knows them, the most important first.
export function suggested(key: string, data: ViewData): string[] {
  if (data.kind === "tokio") return key === "by" ? ["thread", "process"] : [];
  const { dimensions, top, names } = data;
  const words = {
    by: () => ["thread", "process", ...dimensions.filter(({ kind }) => kind === "label").map(({ name }) => name)],
    file: () => [...weightOfFiles(data)].sort(([, one], [, other]) => other - one).map(([file]) => file),
    function: () => top.map(([fn]) => names[fn]),
    class: () => top.map(([fn]) => names[fn]),
  }[key];
  return [...new Set(words?.() ?? [])].slice(0, MOST_WORDS);
}

// By file, what its functions of the table do themselves.
function weightOfFiles(data: Exclude<ViewData, { kind: "tokio" }>): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [fn, self] of data.top) {
    const file = fileOf(data, fn);
    // What is between angle brackets has no lines.
    if (file && !file.startsWith("<")) sums.set(file, (sums.get(file) ?? 0) + self);
  }
  return sums;
}

// A value of a dimension as words of questions; `null` if the server cannot be asked for it: it is the rest of many values, or has
// no name, or a page has only the beginning of its name.
function wordsOf(dimension: string, value: string): [word: string, text: string][] | null {
  if (dimension.startsWith("label.")) return value === "(none)" || value.endsWith("…") ? null : [["label", `${dimension.slice("label.".length)}=${value}`]];
  // As `GroupValue::text` of `borehole-analysis` writes them.
  const [, thread, process] = (dimension === "thread" && /^thread (\S+)(?: of ([-#.\d]+))?(?: |$)/.exec(value)) || [];
  if (thread) return [["thread", thread], ...(process ? [["process", process] as [string, string]] : [])];
  const [, interpreter] = (dimension === "interpreter" && /^interpreter (\d+)$/.exec(value)) || [];
  return interpreter ? [["interpreter", interpreter]] : null;
}

// The part of a profile that is selected in the address, in the words of questions.
export function selected(view: URLSearchParams): URLSearchParams {
  const { range, values } = fromFragment(view), words = new URLSearchParams();
  if (range) words.set("from", String(range[0])), words.set("to", String(range[1]));
  for (const [dimension, value] of values) for (const [word, text] of wordsOf(dimension, value) ?? []) words.append(word, text);
  return words;
}

// Whether something is selected in the address that questions have no words for.
export const isUnasked = (view: URLSearchParams): boolean => [...fromFragment(view).values].some(([dimension, value]) => wordsOf(dimension, value) === null);

interface PanelProps {
  input: InputEntry;
  data: ViewData;
  value: string | null;
  panel: string;
  // Counts how often the input has grown.
  grown: number;
  show: (panel: string) => void;
}

export function Panel({ input, data, value, panel, grown, show }: PanelProps) {
  const questions = questionsOf(input.kind);
  const [question, word] = found(questions, panel) ?? [questions[0], ""];
  const [text, setText] = useState(word);
  useEffect(() => setText(word), [panel]);
  const words = useMemo(() => (question.word ? suggested(question.word[0], data) : []), [question, data]);
  return (
    <section id="panel" aria-labelledby="panel-title">
      <div class="bar"><h2 id="panel-title">{question.name}</h2></div>
      {question.word && (
        <form class="bar" onSubmit={(event) => (event.preventDefault(), show(asked(question, text)))}>
          <input type="search" id="word" list="words" value={text} placeholder={question.word[1]} aria-label={question.word[1]} onInput={(event) => setText(event.currentTarget.value)} />
          <datalist id="words">{words.map((word) => <option key={word} value={word} />)}</datalist>
          <button type="submit">Show</button>
        </form>
      )}
      {question.word && (!word || question.view === "by") && <Words {...{ words, chosen: word, data, isOfFiles: question.word[0] === "file" }} choose={(word) => show(asked(question, word))} />}
      {(!question.word || word) && <View key={asked(question, word)} {...{ input, data, value, question, word, grown, show }} />}
    </section>
  );
}

const FEW_WORDS = 24;

// The first words as buttons; files with their share.
function Words({ words, chosen, data, isOfFiles, choose }: { words: string[]; chosen: string; data: ViewData; isOfFiles: boolean; choose: (word: string) => void }) {
  const sums = isOfFiles && data.kind !== "tokio" ? weightOfFiles(data) : null;
  if (!words.length) return isOfFiles ? <p class="hint">This profile does not name source files.</p> : null;
  return (
    <div class="words">
      {words.slice(0, FEW_WORDS).map((word) => (
        <button key={word} type="button" title={word} aria-pressed={word === chosen} onClick={() => choose(word)}>{word}{sums && data.kind !== "tokio" && <small> {percentOf(sums.get(word) ?? 0, data.all)}</small>}</button>
      ))}
    </div>
  );
}

type ViewProps = Omit<PanelProps, "panel"> & { question: Question; word: string };

// The stretches of time that a live table can show.
const LIVE: [name: string, seconds: number | null][] = [["All time", null], ["Last 30 s", 30], ["Last 5 s", 5]];

// The words that choose samples by what is selected in a picture.
const SELECTED = ["from", "label", "thread", "interpreter"];

// How many of the last seconds the address asks for.
export function lastOf(place: URLSearchParams): number | null {
  const seconds = Number(place.get("last"));
  return LIVE.some(([, known]) => known === seconds) ? seconds : null;
}

function setLast(seconds: number | null): void {
  const place = placeOf(location.hash);
  if (seconds === null) place.delete("last");
  else place.set("last", String(seconds));
  goTo(place, viewOf(location.hash));
}

function View({ input, data, value, question: { view, word }, word: text, grown, show }: ViewProps) {
  const last = lastOf(placeOf(location.hash));
  const state = viewOf(location.hash), words = selected(state);
  if (value) words.set("value", value);
  if (word) words.set(word[0], text);
  const time = data.kind === "report" ? data.time : null;
  if (last !== null && time) words.set("from", String(Math.max(time.start_ns, time.start_ns + time.slice_ns * time.slices - last * 1e9))), words.delete("to");
  // The end of a growing input is not part of the question: the table before stays until the next one is there.
  const got = useAnswer([input.id, view, text, value, String(selected(state)), last].join("\n"), grown, (signal) => answer(input.id, view, words, signal));
  const isPart = SELECTED.some((word) => words.has(word));
  return (
    <>
      {view === "top" && time && (
        <p class="bar" role="group" aria-label="Time">
          {LIVE.map(([name, seconds]) => <button key={name} type="button" aria-pressed={seconds === last} onClick={() => setLast(seconds)}>{name}</button>)}
          <span class="hint" role="status">{grown ? "The input grows; the table follows." : "The table follows the input while it grows."}</span>
        </p>
      )}
      {isPart && last === null && <p class="hint">Of the samples that are selected in the picture.</p>}
      {isUnasked(state) && <p class="hint">The picture also selects a value without a name of its own, which does not count here.</p>}
      {view === "source" && got !== null && typeof got !== "string" ? <Source lines={got} /> : <Answered got={got} leads={leadsOf({ data, view, text, show })} />}
    </>
  );
}

// The question that the handle of a function or a node leads to; `null` if a cell is none.
export function questionOf(cell: string | number): string | null {
  const [, kind, number] = /^([fn])(\d{1,10})$/.exec(String(cell)) ?? [];
  if (!kind) return null;
  return kind === "f" ? `callers:function:${cell}` : `heap_ask:node:${number}`;
}

// Handles lead to questions, and values of a label to the picture of their samples.
function leadsOf({ data, view, text, show }: { data: ViewData; view: string; text: string; show: (panel: string) => void }): Leads {
  return (cell, column) => {
    const to = /^(id|node|largest)$/.test(column) ? questionOf(cell) : null;
    if (to) return () => show(to);
    if (view !== "by" || column !== "value" || data.kind === "tokio") return null;
    const dimension = data.dimensions.find(({ kind, name }) => (kind === "label" ? name === text : kind === text));
    if (!dimension?.values.includes(String(cell))) return null;
    return () => {
      const place = placeOf(location.hash), state = viewOf(location.hash);
      place.delete("panel");
      state.set(`by.${keyOf(dimension)}`, String(cell));
      goTo(place, state);
    };
  };
}

// The lines of a file, those that cost most in the strongest colour.
function Source({ lines: { title, columns, rows, unit, notes } }: { lines: Answer }) {
  const place = (name: string) => columns.indexOf(name);
  const [line, self, share, total, text] = ["line", "self", "self %", "total", "text"].map(place);
  const most = rows.reduce((most, row) => Math.max(most, Number(row[share])), 0) || 1;
  return (
    <>
      <p class="hint">{title}</p>
      <div class="rows source" tabIndex={0} role="region" aria-label="Lines">
        <table>
          <thead><tr>{["Line", "Self", "%", "Total", "Text"].map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={row[line]} class={at && Number(row[line]) !== Number(rows[at - 1][line]) + 1 ? "after-gap" : undefined}>
                <th scope="row">{row[line]}</th>
                {[[self, "self"], [share, "%"], [total, "total"]].map(([place, column]) => <td key={column}>{row[total] ? cellText(row[Number(place)], String(column), unit) : ""}</td>)}
                <td class="heated" style={{ "--part": `${Math.round((Number(row[share]) / most) * 70)}%` }}>{row[text]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Notes notes={notes} />
    </>
  );
}
