// The red flags, each a link to its moment.

import { useShown, type Shown } from "./context";
import { flagPoll } from "./details";
import type { Severity } from "./data";
import { around, clock, type Range } from "../ranges";

// Severity is said in a sign too, not in colour alone.
const SIGNS: Record<Severity, string> = { critical: "‼", warning: "!", info: "i" };

// The range to show for a flag: its poll, or a thousandth of the trace around its time.
export function flagRange({ moments, whole, range }: Pick<Shown, "moments" | "whole" | "range">, flag: number): Range {
  const { time_ns } = moments.program.flags[flag];
  if (time_ns === null) return range;
  const poll = flagPoll(moments, flag);
  if (poll !== null) return around(moments.program.polls.start_ns[poll], moments.program.polls.duration_ns[poll], whole);
  return around(time_ns, (whole[1] - whole[0]) / 1000, whole);
}

export function Flags() {
  const shown = useShown();
  const { moments, selection, search, link, whole } = shown;
  const { flags } = moments.program;
  const rows = flags.map((_, flag) => flag).filter((flag) => !search || search.text(`${flags[flag].check} ${flags[flag].evidence}`));
  return (
    <section aria-labelledby="flags-title" id="flags">
      <div class="bar"><h2 id="flags-title">Red flags</h2><span class="hint">{rows.length} of {flags.length}</span></div>
      {!flags.length && <p class="hint">No check found anything.</p>}
      <ol class="flags">
        {rows.map((flag) => {
          const { severity, check, evidence, time_ns } = flags[flag];
          const isChosen = selection?.kind === "flag" && selection.flag === flag;
          return (
            <li key={flag}>
              <a href={link({ kind: "flag", flag }, flagRange({ ...shown, range: whole }, flag))} class={isChosen ? "chosen" : ""} aria-current={isChosen ? "true" : undefined}>
                <span class={`sign ${severity}`} title={severity}><span aria-hidden="true">{SIGNS[severity]}</span><span class="aside">{severity}</span></span>
                <span><b>{check}</b> {time_ns !== null && <small>at {clock(time_ns, 1e8)}</small>}<br />{evidence}</span>
              </a>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
