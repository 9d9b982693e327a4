// The explorer: the inputs of a server at the left, and the view of one, or of two compared, beside them.

import "../page.css";
import "./explorer.css";
import { render, type ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { byId, isTyped } from "../elements";
import { goTo, onFragment, placeOf, viewNow } from "../fragment";
import { ThemeButton } from "../theme";
import { InputView, aboutOf, type ViewData } from "../view";
import { HeapChanges } from "./changes";
import { Help } from "./help";
import { LAKE_VIEWS, Lake } from "./lake";
import { List, grouped, nameOf } from "./list";
import { Panel, asked, found, questionsOf } from "./panel";
import { Recordings } from "./recordings";
import { charts, listed as ask, outline, page, resource, watch, type InputEntry, type Listed } from "./server";
import { Uploads } from "./uploads";

const NOTHING: Listed = { inputs: [], left_out: 0, may: { upload: false, record: false }, lakes: [] };

function useListed(onGrown: (id: string) => void): [listed: Listed | null, fault: string | null, read: () => void] {
  const [listed, setListed] = useState<Listed | null>(null), [fault, setFault] = useState<string | null>(null);
  const read = useCallback(() => {
    ask().then((listed) => (setListed(listed), setFault(null)), (error: Error) => setFault(error.message));
  }, []);
  useEffect(() => {
    read();
    return watch(read, (id) => (read(), onGrown(id)));
  }, []);
  return [listed, fault, read];
}

// What the address says is shown.
function usePlace(): URLSearchParams {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useLayoutEffect(() => onFragment(() => setPlace((before) => {
    const place = placeOf(location.hash);
    return String(place) === String(before) ? before : place;
  })), []);
  return place;
}

type Shown = { of: string; data: ViewData } | { of: string; error: string };

// The data of a place; `null` while they are on their way. `soon` has something to show until they are there. `grown` counts how
// often the input has grown.
function useShown(of: string | null, soon: string | null, grown: number): Shown | null {
  const [shown, setShown] = useState<Shown | null>(null);
  useEffect(() => {
    if (!of) return setShown(null);
    const ended = new AbortController();
    page(of, ended.signal).then((data) => setShown({ of, data }), (error: Error) => ended.signal.aborted || setShown({ of, error: error.message }));
    return () => ended.abort();
  }, [of, grown]);
  useEffect(() => {
    if (!of || !soon) return;
    const ended = new AbortController();
    page(soon, ended.signal).then((data) => setShown((shown) => (ended.signal.aborted || shown?.of === of ? shown : { of, data })), () => {});
    return () => ended.abort();
  }, [of, soon]);
  return shown?.of === of ? shown : null;
}

function ValueSelect({ data, place }: { data: ViewData; place: URLSearchParams }) {
  if (data.kind !== "report" || data.value_types.length < 2) return null;
  const choose = (value: string) => {
    const next = new URLSearchParams(place);
    next.set("value", value);
    goTo(next);
  };
  const names = data.value_types.map(({ kind, unit }) => `${kind}/${unit}`);
  return (
    <select id="value" aria-label="Value type" value={`${data.value_kind}/${data.value_unit}`} onChange={(event) => choose(event.currentTarget.value)}>
      {names.map((name) => <option key={name} value={name}>{name}</option>)}
    </select>
  );
}

function CopyLink() {
  const [isDone, setDone] = useState(false);
  const copy = () => void navigator.clipboard.writeText(location.href).then(() => (setDone(true), setTimeout(() => setDone(false), 1500)));
  return <button type="button" id="copy" onClick={copy}>{isDone ? "Copied" : "Copy link"}</button>;
}

// The views of a place: what the address has for each, and its name. The first one is shown if the address names none.
type Views = { of: "panel" | "lake.view"; all: [key: string, name: string][]; chosen: string } | null;

function viewsOf(place: URLSearchParams, input: InputEntry | undefined): Views {
  if (place.has("lake")) return { of: "lake.view", all: LAKE_VIEWS, chosen: place.get("lake.view") ?? LAKE_VIEWS[0][0] };
  if (!input) return null;
  const { kind } = input, questions = questionsOf(kind), panel = place.get("panel");
  const isHeap = kind === "heap" || kind === "database";
  const pictures: [string, string][] = kind === "tokio" ? [["", "Trace"], ["samples", "Flame graph"]] : [["", isHeap ? "Memory" : "Flame graph"]];
  const chosen = panel === null || panel === "samples" ? panel ?? "" : asked((found(questions, panel) ?? [questions[0]])[0], "");
  return { of: "panel", all: [...pictures, ...questions.map((question): [string, string] => [asked(question, ""), question.name])], chosen };
}

// Goes to a view of a place. What is selected in a picture stays selected.
function showView(place: URLSearchParams, of: string, view: string): void {
  const next = new URLSearchParams(place);
  if (view === "") next.delete(of);
  else next.set(of, view);
  next.delete("last");
  // Tables are of all calls, and what is zoomed below some is another path in the picture of all.
  const state = viewNow();
  if (next.has("under")) state.delete("zoom");
  next.delete("under");
  goTo(next, state);
}

const ViewButtons = ({ views: { of, all, chosen }, place }: { views: NonNullable<Views>; place: URLSearchParams }) => (
  <div id="views" class="bar" role="group" aria-label="View of the input">
    {all.map(([key, name]) => <button key={key} type="button" aria-pressed={key === chosen} onClick={() => showView(place, of, key)}>{name}</button>)}
  </div>
);

const Head = ({ title, about, views, place, children }: { title: string; about: string; views: Views; place: URLSearchParams; children?: ComponentChildren }) => (
  <header>
    <div><h1>{title}</h1><p>{about}</p></div>
    {children}
    <CopyLink />
    {views && <ViewButtons {...{ views, place }} />}
  </header>
);

const isHeap = (input: InputEntry | undefined): boolean => input?.kind === "heap" || input?.kind === "database";

// A place with the calls below those of a path.
function below(place: URLSearchParams, path: string[]): URLSearchParams {
  const next = new URLSearchParams(place);
  next.delete("under");
  for (const name of path) next.append("under", name);
  return next;
}

interface MainProps {
  place: URLSearchParams;
  listed: Listed;
  shown: Shown | null;
  grown: number;
}

function Main({ place, listed: { inputs, may }, shown, grown }: MainProps) {
  const value = place.get("value"), of = (key: string) => inputs.find((input) => input.id === place.get(key));
  const input = of("input"), [before, after] = [of("before"), of("after")];
  const asks = useMemo(() => (input ? charts(input.id, value) : undefined), [input?.id, value, shown]);
  const under = place.getAll("under");
  const deepen = useCallback((path: string[]) => goTo(below(placeOf(location.hash), path)), []);
  const panel = place.get("panel"), views = viewsOf(place, input);
  const open = ({ id }: InputEntry, panel: string) => goTo(new URLSearchParams({ input: id, panel }));
  if (place.has("recordings") && may.record) return <><Head title="Recordings" about="What runs now, sampled" {...{ views, place }} /><main><Recordings inputs={inputs} open={(input) => open(input, "top")} /></main></>;
  if (place.has("lake")) {
    const lake = place.get("lake") ?? "";
    return (
      <>
        <Head title={nameOf(lake)} about={lake} {...{ views, place }} />
        <main><Lake {...{ place }} go={(place) => goTo(place)}><Picture shown={shown} isOfLake /></Lake></main>
      </>
    );
  }
  if (before && after && isHeap(before) && isHeap(after)) return <><Head title={`${before.name} → ${after.name}`} about="What changed between two heaps" {...{ views, place }} /><main><HeapChanges {...{ before, after, grown, open }} /></main></>;
  if (!resource(place)) return <p class="hint empty">Choose an input. With one open, ± beside another compares the two.</p>;
  if (!shown || "error" in shown) return <Picture shown={shown} />;
  const { data } = shown;
  const hasPanel = input && panel !== null && panel !== "samples";
  return (
    <>
      <Head title={data.title} about={aboutOf(data)} {...{ views, place }}>{under.length > 0 && <button type="button" id="all-calls" title={under.join(" → ")} onClick={() => goTo(below(place, []))}>All calls</button>}<ValueSelect data={data} place={place} /></Head>
      {hasPanel ? <main><Panel {...{ input, value, panel, data, grown }} show={(panel) => showView(place, "panel", panel)} /></main> : <main key={shown.of}><InputView data={data} ask={asks} deepen={deepen} /></main>}
    </>
  );
}

// The picture of a place, or why there is none.
function Picture({ shown, isOfLake = false }: { shown: Shown | null; isOfLake?: boolean }) {
  const data = useMemo(() => (shown && "data" in shown ? (isOfLake ? ofLake(shown.data) : shown.data) : null), [shown, isOfLake]);
  if (!shown) return <p class="hint empty" role="status">Reading …</p>;
  return "error" in shown ? <p class="error empty" role="alert">{shown.error}</p> : data && <InputView key={shown.of} data={data} />;
}

// What a lake adds up has no times, whatever its profiles were recorded with.
const ofLake = (data: ViewData): ViewData => (data.kind === "tokio" ? data : { ...data, notes: data.notes.filter((note) => !note.startsWith("This profile has no timestamps")) });

// What a place shows apart from its panel: the list, or the input, is another.
const isPaired = (place: URLSearchParams, inputs: InputEntry[]): boolean => ["before", "after"].every((key) => isHeap(inputs.find((input) => input.id === place.get(key))));

// As `explorer.css` has it.
const isNarrow = (): boolean => matchMedia("(max-width: 760px)").matches;

function Explorer() {
  const place = usePlace();
  const [grown, setGrown] = useState(0), [query, setQuery] = useState(""), [hasHelp, setHelp] = useState(false), [isOpen, setOpen] = useState(() => !isNarrow() || !location.hash);
  const [got, fault, read] = useListed((id) => {
    if (["input", "before", "after"].some((key) => placeOf(location.hash).get(key) === id)) setGrown((count) => count + 1);
  });
  const listed = got ?? NOTHING, { inputs, lakes, may } = listed;
  // Heaps are compared in a table, which asks for itself; so nothing is asked before the kinds of two inputs are known.
  const isWaiting = place.has("before") && (got === null || isPaired(place, inputs));
  const soon = isHeap(inputs.find((input) => input.id === place.get("input"))) ? outline(place) : null;
  const shown = useShown(isWaiting ? null : resource(place), soon, grown);
  // The view of a trace has keys of its own, and help on them.
  const isTrace = shown !== null && "data" in shown && shown.data.kind === "tokio" && !place.has("panel");
  // On a narrow screen, the list makes room for what was chosen in it.
  const choose = (place: URLSearchParams) => (isNarrow() && setOpen(false), goTo(place));
  const open = (id: string) => choose(new URLSearchParams({ input: id }));
  const openLake = (lake: string) => choose(new URLSearchParams({ lake }));
  const compare = (id: string) => choose(new URLSearchParams({ before: place.get("input") ?? place.get("before") ?? "", after: id }));
  const record = () => choose(new URLSearchParams({ recordings: "" }));
  const step = <T,>(all: T[], at: number, by: number): T | undefined => all[at < 0 ? 0 : at + by];
  const keys: Record<string, () => void> = {
    f: () => (setOpen(true), byId("find").focus()),
    "\\": () => setOpen((isOpen) => !isOpen),
    H: () => setHelp(true),
  };
  const move = (by: number) => () => {
    const all = grouped(inputs, query).flatMap((group) => group.inputs).filter((input) => input.kind !== "unreadable");
    const next = step(all, all.findIndex((input) => input.id === place.get("input")), by);
    if (next) open(next.id);
  };
  const turn = (by: number) => () => {
    const views = viewsOf(place, inputs.find((input) => input.id === place.get("input")));
    const next = views && step(views.all, views.all.findIndex(([key]) => key === views.chosen), by);
    if (views && next) showView(place, views.of, next[0]);
  };
  Object.assign(keys, { j: move(1), k: move(-1), v: turn(1), V: turn(-1) });
  if (!isTrace) keys["?"] = keys.H;
  if (lakes.length) keys.l = () => openLake(lakes[(lakes.indexOf(place.get("lake") ?? "") + 1) % lakes.length]);
  if (may.record) keys.r = record;
  // A key that is pressed as soon as the list is seen is heard.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (isTyped(event) || hasHelp || !Object.hasOwn(keys, event.key)) return;
      keys[event.key]();
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });
  return (
    <div class={isOpen ? "explorer" : "explorer closed"}>
      <aside>
        <div class="bar top">
          <button type="button" id="toggle" aria-expanded={isOpen} aria-controls="inputs" aria-label="Inputs" onClick={() => setOpen(!isOpen)}>☰</button>
          <strong>Borehole</strong>
          <ThemeButton />
          <button type="button" id="explorer-help" aria-label="Keys of the explorer" onClick={() => setHelp(true)}>?</button>
        </div>
        {isOpen && (may.record || may.upload) && (
          <div class="bar">
            {may.record && <button type="button" id="record" aria-pressed={place.has("recordings")} onClick={record}>Record</button>}
            {may.upload && <Uploads onTaken={({ id }) => (read(), open(id))} />}
          </div>
        )}
        {isOpen && (fault ? <p class="error" role="alert">{fault}</p> : got === null ? <p class="hint" role="status">Reading …</p> : <List {...{ inputs, lakes, query, setQuery, place, open, openLake, compare }} leftOut={listed.left_out} />)}
      </aside>
      <div class="view"><Main {...{ place, listed, shown, grown }} /></div>
      {hasHelp && <Help data={shown && "data" in shown ? shown.data : null} onClose={() => setHelp(false)} />}
    </div>
  );
}

const app = byId("app");
app.replaceChildren();
render(<Explorer />, app);
