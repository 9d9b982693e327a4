// What a Tokio program did: the view of a trace.

import "./tokio.css";
import { useCallback, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { byId, isTyped } from "../elements";
import { onFragment, showView, viewOf, withView } from "../fragment";
import { grouped, times } from "../numbers";
import { THEMED } from "../theme";
import { ShownContext, useLatest, type Shown } from "./context";
import type { Kept, Program, TokioData } from "./data";
import { Details } from "./details";
import { Flags, flagRange } from "./flags";
import { Help } from "./help";
import { WHOLE, fromFragment, toFragment, type View } from "./link";
import { Moments } from "./moments";
import { around, clock, within, type Range } from "../ranges";
import { wholeOf } from "./rows";
import { searchIn } from "./search";
import { Tables } from "./tables";
import { Timeline, keyedRange } from "./timeline";

// The view, which the fragment of the address holds. A new selection is a step that the browser can go back from.
function useView(): [View, (view: View, isStep: boolean) => void] {
  const [view, setView] = useState(() => fromFragment(viewOf(location.hash)));
  useLayoutEffect(() => onFragment(() => setView(fromFragment(viewOf(location.hash)))), []);
  const show = useCallback((view: View, isStep: boolean) => {
    setView(view);
    showView(toFragment(view), isStep);
  }, []);
  return [view, show];
}

function useShownProgram(programs: Program[], view: View, show: (view: View, isStep: boolean) => void, query: string): Shown {
  const program = programs[view.program] ?? programs[0];
  const moments = useMemo(() => new Moments(program), [program]);
  const search = useMemo(() => searchIn(program, query), [program, query]);
  const whole: Range = useMemo(() => wholeOf(program), [program]);
  const range = view.range ? within(view.range, whole) : whole;
  const { polls, lanes } = program;
  return {
    moments, whole, range, search, selection: view.selection,
    zoom: (range) => show({ ...view, range }, false),
    select: (selection, range) => show({ ...view, selection, range: range ?? view.range }, true),
    jump: (poll) => show({
      ...view,
      selection: { kind: "poll", worker: lanes[polls.lane[poll]].worker, startNs: polls.start_ns[poll] },
      range: around(polls.start_ns[poll], polls.duration_ns[poll], whole),
    }, true),
    link: (selection, range) => withView(location.hash, toFragment({ ...view, selection, range })),
  };
}

// The flag after or before the selected one.
function flagBeside({ moments, selection }: Shown, step: 1 | -1): number | null {
  const count = moments.program.flags.length;
  if (!count) return null;
  const at = selection?.kind === "flag" ? selection.flag + step : step > 0 ? 0 : count - 1;
  return (at + count) % count;
}

function onKey(event: KeyboardEvent, shown: Shown, help: () => void): boolean {
  if (event.key === "?") return help(), true;
  if (event.key === "/") return byId("search").focus(), true;
  if (event.key === "n" || event.key === "p") {
    const flag = flagBeside(shown, event.key === "n" ? 1 : -1);
    if (flag !== null) shown.select({ kind: "flag", flag }, flagRange({ ...shown, range: shown.whole }, flag));
    return true;
  }
  if (event.key === "Escape") return shown.selection ? shown.select(null) : shown.zoom(null), true;
  const range = keyedRange(event.key, shown);
  if (range === undefined) return false;
  shown.zoom(range);
  return true;
}

function keptText([all, kept]: Kept, what: string): string | null {
  return kept < all ? `${grouped(kept)} of ${grouped(all)} ${what}` : null;
}

// The numbers of the whole program; those that are not known are left out.
function Facts({ program: { end_ns, counts, report } }: { program: Program }) {
  const { polls: { durations, longest: { rows: [longest] } }, delays, tasks } = report;
  const facts: [name: string, text: string | false][] = [
    ["Time", times(end_ns)],
    ["Events", grouped(report.events)],
    ["Lost events", report.lost_events > 0 && grouped(report.lost_events)],
    ["Workers", grouped(counts.workers[0])],
    ["Polls", grouped(counts.polls[0])],
    ["p99 poll", durations.count > 0 && times(durations.p99_ns)],
    ["Longest poll", longest !== undefined && times(longest.duration_ns) + (longest.is_open ? "+" : "")],
    ["p99 wait for a poll", delays.durations.count > 0 && times(delays.durations.p99_ns)],
    ["Tasks", grouped(tasks.spawned + tasks.older)],
    ["Alive at the end", grouped(tasks.alive + tasks.older_alive)],
    ["Spans", counts.spans[0] > 0 && grouped(counts.spans[0])],
  ];
  return <dl class="facts">{facts.map(([name, text]) => text && <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}</dl>;
}

// What of the trace is only there as sums.
function Aggregated({ program: { counts, grid } }: { program: Program }) {
  const cut = [keptText(counts.polls, "polls"), keptText(counts.spans, "spans"), keptText(counts.tasks, "tasks"), keptText(counts.samples, "samples"), keptText(counts.workers, "workers")].filter((text) => text !== null);
  if (!cut.length) return null;
  return <p class="hint" id="aggregated">One by one, the page has the longest: {cut.join(", ")}. The lanes count all polls, in columns of {times(grid.column_ns)}. Flags and tables count everything.</p>;
}

function Bar({ shown, programs, view, show, query, setQuery, help }: { shown: Shown; programs: Program[]; view: View; show: (view: View, isStep: boolean) => void; query: string; setQuery: (query: string) => void; help: () => void }) {
  const { range, whole, zoom } = shown;
  const length = range[1] - range[0];
  const step = (key: string) => zoom(keyedRange(key, shown) ?? null);
  return (
    <div class="bar tools" role="toolbar" aria-label="Range and search">
      {programs.length > 1 && (
        <select id="program" aria-label="Program" value={view.program} onChange={(event) => show({ ...WHOLE, program: Number(event.currentTarget.value) }, true)}>
          {programs.map((program, place) => <option key={place} value={place}>{program.report.input ?? `Program ${place + 1}`}</option>)}
        </select>
      )}
      <input type="search" id="search" value={query} placeholder="Search places, names, task 12" aria-label="Search places, names, flags, tasks and workers" onInput={(event) => setQuery(event.currentTarget.value)} />
      <button type="button" onClick={() => step("+")} aria-label="Zoom in">+</button>
      <button type="button" onClick={() => step("-")} aria-label="Zoom out">−</button>
      <button type="button" onClick={() => step("ArrowLeft")} aria-label="Earlier">←</button>
      <button type="button" onClick={() => step("ArrowRight")} aria-label="Later">→</button>
      <button type="button" id="all-time" onClick={() => zoom(null)} disabled={range[0] <= whole[0] && range[1] >= whole[1]}>All time</button>
      <span id="range" class="hint" data-from={range[0]} data-to={range[1]}>{clock(range[0], length)} to {clock(range[1], length)} ({times(Math.round(length))})</span>
      <button type="button" id="help-button" onClick={help} aria-label="Help">?</button>
    </div>
  );
}

export function TokioPage({ data: { programs } }: { data: TokioData }) {
  const [view, show] = useView();
  const [query, setQuery] = useState(""), [hasHelp, setHelp] = useState(false), [, setTheme] = useState(0);
  const shown = useShownProgram(programs, view, show, query);
  // The canvas takes its colours from the theme.
  useLayoutEffect(() => {
    const repaint = () => setTheme((count) => count + 1);
    addEventListener(THEMED, repaint);
    return () => removeEventListener(THEMED, repaint);
  }, []);
  const press = useLatest((event: KeyboardEvent) => {
    if (!isTyped(event) && !hasHelp && onKey(event, shown, () => setHelp(true))) event.preventDefault();
  });
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => press.current(event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  const { program } = shown.moments;
  return (
    <ShownContext.Provider value={shown}>
      <Bar {...{ shown, programs, view, show, query, setQuery }} help={() => setHelp(true)} />
      <Facts program={program} />
      <Aggregated program={program} />
      <div class="work beside">
        <div>{program.lanes.length > 0 || program.spans.name.length > 0 || program.queue.length > 0 ? <Timeline /> : <section><p class="hint">The trace has no polls, parks, spans or queues, so there is no timeline.</p></section>}</div>
        <div class="side"><Flags /><Details /></div>
      </div>
      <Tables />
      {hasHelp && <Help onClose={() => setHelp(false)} />}
    </ShownContext.Provider>
  );
}
