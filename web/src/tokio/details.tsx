// What is selected, in full.

import type { ComponentChildren } from "preact";
import { grouped, times } from "../numbers";
import { useShown } from "./context";
import type { SampledStack } from "./moments";
import { around, clock } from "../ranges";
import { columnsBetween, laneSum } from "./rows";

// At most this many rows of a list are shown.
const MOST = 12;

const moment = (ns: number): string => clock(ns, 1e6);

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function TaskLink({ task }: { task: number }) {
  const { select } = useShown();
  return <button type="button" class="link" onClick={() => select({ kind: "task", task })}>task {task}</button>;
}

function PollLink({ poll, children }: { poll: number; children: ComponentChildren }) {
  const { jump } = useShown();
  return <button type="button" class="link" onClick={() => jump(poll)}>{children}</button>;
}

function More({ of }: { of: number }) {
  return of > MOST ? <p class="hint">{grouped(MOST)} of {grouped(of)} shown</p> : null;
}

// Who woke the task of a poll, with the way to the poll that did.
function Woken({ poll }: { poll: number }) {
  const { moments } = useShown();
  const { polls, counts } = moments.program;
  const wokenNs = polls.woken_ns[poll], waker = polls.waker[poll];
  if (wokenNs < 0) return <Fact name="Woken">{counts.wakes[0] ? "no wake of this task is known before the poll" : "the trace has no wakes"}</Fact>;
  const by = waker > 0 ? moments.pollOfTaskAt(waker, wokenNs) : null;
  return (
    <Fact name="Woken">
      {times(Math.max(0, polls.start_ns[poll] - wokenNs))} before, at {moment(wokenNs)}, {waker > 0 ? <>by <TaskLink task={waker} /></> : "from outside any task"}
      {by !== null && <> in <PollLink poll={by}>its poll of {times(polls.duration_ns[by])}</PollLink></>}
    </Fact>
  );
}

function Wakes({ poll }: { poll: number }) {
  const { moments } = useShown();
  const { wakes } = moments.program;
  const made = moments.wakesIn(poll);
  if (!made.length) return null;
  return (
    <>
      <h3>Wakes made in this poll</h3>
      <ul class="list">
        {made.slice(0, MOST).map((wake) => {
          const next = moments.pollOfTask(wakes.woken[wake], wakes.time_ns[wake]);
          return (
            <li key={wake}>
              {moment(wakes.time_ns[wake])} <TaskLink task={wakes.woken[wake]} />
              {next !== null && <> → <PollLink poll={next}>its next poll here</PollLink></>}
            </li>
          );
        })}
      </ul>
      <More of={made.length} />
    </>
  );
}

function StackOf({ sampled: { stack, onCpu, offCpu } }: { sampled: SampledStack }) {
  const { moments } = useShown();
  const counts = [onCpu && `${grouped(onCpu)} on CPU`, offCpu && `${grouped(offCpu)} off CPU`].filter(Boolean).join(", ");
  return (
    <details open>
      <summary>{counts}</summary>
      <ol class="stack">{stack ? stack.functions.map((text, depth) => <li key={depth}>{moments.program.texts[text]}</li>) : <li>(a rare stack)</li>}</ol>
    </details>
  );
}

function PollDetails({ poll }: { poll: number }) {
  const { moments } = useShown();
  const { polls, lanes } = moments.program;
  const stacks = moments.stacksIn(poll), of = moments.pollsOf(polls.task[poll]);
  const at = of.indexOf(poll);
  return (
    <>
      <h3>Poll of {times(polls.duration_ns[poll])}</h3>
      <dl class="details">
        <Fact name="Task"><TaskLink task={polls.task[poll]} /></Fact>
        <Fact name="Spawned at"><code>{moments.place(poll) || "(unknown)"}</code></Fact>
        <Fact name="Worker">{lanes[polls.lane[poll]].worker}</Fact>
        <Fact name="From">{moment(polls.start_ns[poll])} to {moments.isOpen(poll) ? "the end of the trace, and still running" : moment(moments.endNs(poll))}</Fact>
        <Woken poll={poll} />
      </dl>
      <p class="bar">
        {at > 0 && <PollLink poll={of[at - 1]}>← earlier poll of the task</PollLink>}
        {at + 1 < of.length && <PollLink poll={of[at + 1]}>later poll of the task →</PollLink>}
      </p>
      <Wakes poll={poll} />
      <h3>Stack samples</h3>
      {stacks.length ? stacks.slice(0, MOST).map((sampled, row) => <StackOf key={row} sampled={sampled} />) : <p class="hint">No sample was taken in this poll.</p>}
      <More of={stacks.length} />
    </>
  );
}

function TaskDetails({ task: number }: { task: number }) {
  const { moments } = useShown();
  const { polls, places } = moments.program;
  const task = moments.task(number), of = [...moments.pollsOf(number)].sort((one, other) => polls.duration_ns[other] - polls.duration_ns[one]);
  const place = task ? places[task.place] : of.length ? moments.place(of[0]) : "";
  return (
    <>
      <h3>Task {number}</h3>
      <dl class="details">
        <Fact name="Spawned at"><code>{place || "(unknown)"}</code></Fact>
        {task && <Fact name="Lives">{task.spawned_ns === null ? "from before the trace" : `from ${moment(task.spawned_ns)}`} {task.ended_ns === null ? "and is alive at the end" : `to ${moment(task.ended_ns)}`}</Fact>}
        {task && <Fact name="Polls">{grouped(task.polls)}, {times(task.busy_ns)} in all, the longest {times(task.longest_ns)}</Fact>}
      </dl>
      <h3>Its longest polls in this page</h3>
      {of.length ? <ul class="list">{of.slice(0, MOST).map((poll) => <li key={poll}><PollLink poll={poll}>{times(polls.duration_ns[poll])} at {moment(polls.start_ns[poll])}</PollLink></li>)}</ul> : <p class="hint">None of its polls is here one by one.</p>}
      <More of={of.length} />
    </>
  );
}

function SpanDetails({ name, startNs }: { name: string; startNs: number }) {
  const { moments, whole, zoom } = useShown();
  const { spans, texts } = moments.program;
  const span = spans.start_ns.findIndex((start, span) => start === startNs && texts[spans.name[span]] === name);
  if (span < 0) return <p class="hint">This span is not in the page.</p>;
  return (
    <>
      <h3>Span <code>{name}</code></h3>
      <dl class="details">
        <Fact name="Duration">{times(spans.duration_ns[span])}</Fact>
        <Fact name="Begins">{moment(startNs)}</Fact>
        {spans.fields[span] >= 0 && <Fact name="Fields"><code>{texts[spans.fields[span]]}</code></Fact>}
      </dl>
      <button type="button" onClick={() => zoom(around(startNs, spans.duration_ns[span], whole))}>Zoom to it</button>
    </>
  );
}

function ColumnDetails({ worker, atNs }: { worker: number; atNs: number }) {
  const { moments } = useShown();
  const { program, longestNs } = moments, lane = moments.laneOf(worker);
  if (lane < 0) return <p class="hint">This worker is not in the page.</p>;
  const places = columnsBetween(program, atNs, atNs), sum = laneSum(program, lane, longestNs[lane], places);
  const longest = program.lanes[lane].longest[places[0]] ?? -1;
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  return (
    <>
      <h3>Worker {worker} around {moment(atNs)}</h3>
      <dl class="details">
        <Fact name="Over">{times(program.grid.column_ns)}</Fact>
        <Fact name="Busy">{percent(sum.busy)} in polls, of which {grouped(sum.polls)} begin here</Fact>
        <Fact name="Parked">{percent(sum.parked)}; waiting for a CPU {percent(sum.waited)}</Fact>
        <Fact name="Queue">at most {grouped(sum.queue)}</Fact>
        {longest >= 0 && <Fact name="Longest"><PollLink poll={longest}>poll of {times(program.polls.duration_ns[longest])}</PollLink></Fact>}
      </dl>
    </>
  );
}

function FlagDetails({ flag }: { flag: number }) {
  const { moments } = useShown();
  const found = moments.program.flags[flag];
  if (!found) return <p class="hint">This flag is not in the page.</p>;
  const poll = flagPoll(moments, flag);
  return (
    <>
      <h3>{found.check} ({found.severity})</h3>
      <p class="evidence">{found.evidence}</p>
      {found.time_ns === null && <p class="hint">It is about the whole trace, not about a moment.</p>}
      {poll !== null && <PollDetails poll={poll} />}
      {poll === null && found.task !== null && <TaskDetails task={found.task} />}
      {poll === null && found.task === null && found.worker !== null && found.time_ns !== null && <ColumnDetails worker={found.worker} atNs={found.time_ns} />}
    </>
  );
}

// The poll that a flag is about.
export function flagPoll(moments: ReturnType<typeof useShown>["moments"], flag: number): number | null {
  const { time_ns, worker, task } = moments.program.flags[flag];
  if (time_ns === null) return null;
  if (worker !== null) {
    const lane = moments.laneOf(worker);
    const found = moments.pollsBetween(lane, time_ns, time_ns).filter((poll) => task === null || moments.program.polls.task[poll] === task);
    if (found.length) return found[found.length - 1];
  }
  return task === null ? null : moments.pollOfTaskAt(task, time_ns);
}

function Selected() {
  const { moments, selection } = useShown();
  switch (selection?.kind) {
    case "poll": {
      const poll = moments.pollAt(selection.worker, selection.startNs);
      return poll === null ? <p class="hint">This poll is not in the page one by one.</p> : <PollDetails poll={poll} />;
    }
    case "task": return <TaskDetails task={selection.task} />;
    case "span": return <SpanDetails name={selection.name} startNs={selection.startNs} />;
    case "column": return <ColumnDetails worker={selection.worker} atNs={selection.atNs} />;
    case "flag": return <FlagDetails flag={selection.flag} />;
    default: return <p class="hint">Click a poll, a span or a flag. Keys: <kbd>n</kbd> next flag, <kbd>?</kbd> all keys.</p>;
  }
}

export function Details() {
  return (
    <section aria-labelledby="details-title" id="details" aria-live="polite">
      <div class="bar"><h2 id="details-title">Selected</h2></div>
      <Selected />
    </section>
  );
}
