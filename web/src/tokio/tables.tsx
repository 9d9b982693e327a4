// The tables below the timeline: tasks, places, spans, stacks, allocations, other events.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, grouped, times } from "../numbers";
import { useShown, type Shown } from "./context";
import type { BlockingRow, EventRow, Limited, PlaceRow, SiteRow, SpanRow, Stack, Task } from "./data";
import { around } from "../ranges";

const MOST_ROWS = 100;

interface Column<T> {
  name: string;
  // What rows are sorted by.
  key: (row: T) => number;
  text: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  rows: T[];
  // How many rows there are, in the page or not.
  all: number;
  columns: Column<T>[];
  name: string;
  label: (row: T) => ComponentChildren;
  onOpen?: (row: T) => void;
}

function Table<T>({ rows, all, columns, name, label, onOpen }: TableProps<T>) {
  const [sort, setSort] = useState<number | null>(null);
  const sorted = useMemo(() => (sort === null ? rows : [...rows].sort((one, other) => columns[sort].key(other) - columns[sort].key(one))), [rows, sort]);
  return (
    <>
      <div class="rows">
        <table>
          <thead>
            <tr>
              {columns.map((column, place) => (
                <th key={column.name} scope="col" aria-sort={sort === place ? "descending" : undefined}><button type="button" onClick={() => setSort(place)}>{column.name}</button></th>
              ))}
              <th scope="col">{name}</th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, MOST_ROWS).map((row, place) => (
              <tr key={place}>
                {columns.map((column) => <td key={column.name}>{column.text(row)}</td>)}
                <td>{onOpen ? <button type="button" onClick={() => onOpen(row)}>{label(row)}</button> : label(row)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">{grouped(Math.min(sorted.length, MOST_ROWS))} of {grouped(Math.max(all, sorted.length))} shown</p>
    </>
  );
}

const count = <T,>(name: string, key: (row: T) => number): Column<T> => ({ name, key, text: (row) => grouped(key(row)) });
const time = <T,>(name: string, key: (row: T) => number): Column<T> => ({ name, key, text: (row) => times(key(row)) });

const found = <T,>({ rows }: Limited<T>, { search }: Shown, text: (row: T) => string): T[] => (search ? rows.filter((row) => search.text(text(row))) : rows);

function Tasks({ shown }: { shown: Shown }) {
  const { program } = shown.moments;
  const rows = useMemo(() => (shown.search ? program.tasks.filter((task) => shown.search?.task(task.task, task.place)) : program.tasks), [program, shown.search]);
  return (
    <Table<Task> rows={rows} all={program.counts.tasks[0]} name="Task" onOpen={({ task }) => shown.select({ kind: "task", task })}
      columns={[
        { name: "Alive", key: (task) => (task.ended_ns === null ? 1 : 0), text: (task) => (task.ended_ns === null ? "yes" : "") },
        count<Task>("Polls", (task) => task.polls), time<Task>("In polls", (task) => task.busy_ns), time<Task>("Longest", (task) => task.longest_ns),
      ]}
      label={({ task, place }) => <>{task} <small>{program.places[place]}</small></>} />
  );
}

function Places({ shown }: { shown: Shown }) {
  const { places } = shown.moments.program.report.polls;
  return (
    <Table<PlaceRow> rows={found(places, shown, (row) => row.spawned_at)} all={places.distinct} name="Spawned at"
      columns={[
        count<PlaceRow>("Polls", (row) => row.durations.count), time<PlaceRow>("Total", (row) => row.durations.sum_ns), time<PlaceRow>("p50", (row) => row.durations.p50_ns),
        time<PlaceRow>("p99", (row) => row.durations.p99_ns), time<PlaceRow>("Max", (row) => row.durations.max_ns),
      ]}
      label={(row) => row.spawned_at} />
  );
}

function SpanNames({ shown }: { shown: Shown }) {
  const { program } = shown.moments;
  const open = (startNs: number, name: string, length: number) => shown.select({ kind: "span", name, startNs }, around(startNs, length, shown.whole));
  return (
    <Table<SpanRow> rows={found(program.report.spans, shown, (row) => row.name)} all={program.report.spans.distinct} name="Span"
      columns={[
        count<SpanRow>("Spans", (row) => row.durations.count), time<SpanRow>("p50", (row) => row.durations.p50_ns), time<SpanRow>("p99", (row) => row.durations.p99_ns),
        time<SpanRow>("Max", (row) => row.durations.max_ns), time<SpanRow>("Entered", (row) => row.busy_ns),
      ]}
      onOpen={(row) => {
        // The longest one of the name.
        const { spans, texts } = program;
        const span = spans.name.reduce((best, name, span) => (texts[name] === row.name && (best < 0 || spans.duration_ns[span] > spans.duration_ns[best]) ? span : best), -1);
        if (span >= 0) open(spans.start_ns[span], row.name, spans.duration_ns[span]);
      }}
      label={(row) => row.name} />
  );
}

const inward = (callers: string[]): string => callers.join(" ← ");

function OffCpu({ shown }: { shown: Shown }) {
  const { blocking } = shown.moments.program.report;
  return (
    <>
      <p class="hint">{grouped(blocking.in_polls)} of {grouped(blocking.samples)} off-CPU samples were taken during polls, which were blocked.</p>
      <Table<BlockingRow> rows={found(blocking.stacks, shown, (row) => row.leaf + inward(row.callers))} all={blocking.stacks.distinct} name="Blocked in"
        columns={[count<BlockingRow>("Samples", (row) => row.count)]}
        label={(row) => <>{row.call} <small>{inward([row.leaf, ...row.callers])}</small></>} />
    </>
  );
}

function Allocations({ shown }: { shown: Shown }) {
  const { allocations } = shown.moments.program.report;
  if (!allocations) return null;
  return (
    <>
      <p class="hint">Sampled allocations that were not freed: {grouped(allocations.outstanding)}, {bytes(allocations.outstanding_bytes)}.{allocations.dropped > 0 && ` ${grouped(allocations.dropped)} events were dropped.`}</p>
      <Table<SiteRow> rows={found(allocations.sites, shown, (row) => inward(row.callers))} all={allocations.sites.distinct} name="Allocated in"
        columns={[{ name: "Bytes", key: (row) => row.bytes, text: (row) => bytes(row.bytes) }, count<SiteRow>("Allocations", (row) => row.count)]}
        label={(row) => <>{row.callers[0] ?? "(no stack)"} <small>{inward(row.callers)}</small></>} />
    </>
  );
}

function Stacks({ shown }: { shown: Shown }) {
  const { program } = shown.moments;
  const names = (functions: number[]) => functions.map((text) => program.texts[text]);
  const rows = program.stacks.filter((stack) => !shown.search || names(stack.functions).some(shown.search.text));
  return (
    <>
      <p class="hint">Samples of all threads. As a flame graph: <code>borehole report --kind all … -o samples.html</code></p>
      <Table<Stack> rows={rows} all={program.stacks.length} name="Stack, leaf first"
        columns={[count<Stack>("On CPU", (stack) => stack.on_cpu), count<Stack>("Off CPU", (stack) => stack.off_cpu)]}
        label={({ functions }) => <>{names(functions)[0] ?? "(no stack)"} <small>{inward(names(functions))}</small></>} />
    </>
  );
}

function Events({ shown }: { shown: Shown }) {
  const { other_events } = shown.moments.program.report;
  const fields = (row: EventRow) => row.fields.map(({ name, unit, p50, p99, max }) => `${name}${unit ? ` (${unit})` : ""}: p50 ${p50}, p99 ${p99}, max ${max}`);
  return (
    <Table<EventRow> rows={found(other_events, shown, (row) => row.name)} all={other_events.distinct} name="Event"
      columns={[count<EventRow>("Events", (row) => row.count)]}
      label={(row) => <>{row.name} <small>{fields(row).join("; ")}</small></>} />
  );
}

type Tab = [id: string, name: string, view: (props: { shown: Shown }) => ComponentChildren, isThere: boolean];

// The tables that have something in them.
function tabsOf({ moments: { program } }: Shown): Tab[] {
  const { report, tasks, stacks } = program;
  const tabs: Tab[] = [
    ["tasks", "Tasks", Tasks, tasks.length > 0],
    ["places", "Polls by place", Places, report.polls.places.rows.length > 0],
    ["spans", "Spans", SpanNames, report.spans.rows.length > 0],
    ["off-cpu", "Off CPU", OffCpu, report.blocking.samples > 0],
    ["stacks", "Stacks", Stacks, stacks.length > 0],
    ["allocations", "Allocations", Allocations, report.allocations !== null],
    ["events", "Events", Events, report.other_events.rows.length > 0],
  ];
  return tabs.filter(([, , , isThere]) => isThere);
}

export function Tables() {
  const shown = useShown();
  const tabs = tabsOf(shown);
  const [chosen, setChosen] = useState("");
  const tab = tabs.find(([id]) => id === chosen) ?? tabs[0];
  if (!tab) return null;
  const [open, , View] = tab;
  return (
    <section aria-label="Tables" id="tables">
      <div class="bar" role="group" aria-label="Table">
        {tabs.map(([id, name]) => <button key={id} type="button" data-tab={id} aria-pressed={id === open} onClick={() => setChosen(id)}>{name}</button>)}
      </div>
      <View key={open} shown={shown} />
    </section>
  );
}
