// The range and the selection as parts of the page's address, so that a link leads to the moment.

export type Selection =
  | { kind: "poll"; worker: number; startNs: number }
  | { kind: "task"; task: number }
  | { kind: "span"; name: string; startNs: number }
  | { kind: "column"; worker: number; atNs: number }
  | { kind: "flag"; flag: number };

// What the page shows: a program, a range of its time, and what is selected.
export interface View {
  program: number;
  range: [fromNs: number, toNs: number] | null;
  selection: Selection | null;
}

export const WHOLE: View = { program: 0, range: null, selection: null };

export function toFragment({ program, range, selection }: View): URLSearchParams {
  const parts = new URLSearchParams();
  if (program) parts.set("program", String(program + 1));
  if (range) parts.set("t", range.map((ns) => String(Math.round(ns))).join("-"));
  if (selection) parts.set(...selected(selection));
  return parts;
}

function selected(selection: Selection): [string, string] {
  switch (selection.kind) {
    case "poll": return ["poll", `${selection.worker}@${selection.startNs}`];
    case "column": return ["at", `${selection.worker}@${Math.round(selection.atNs)}`];
    case "span": return ["span", `${selection.startNs}@${selection.name}`];
    case "task": return ["task", String(selection.task)];
    case "flag": return ["flag", String(selection.flag + 1)];
  }
}

// What is not understood is left out.
export function fromFragment(parts: URLSearchParams): View {
  const range = /^(-?\d+)-(-?\d+)$/.exec(parts.get("t") ?? "");
  const [from, to] = range ? [Number(range[1]), Number(range[2])] : [0, 0];
  const program = whole(parts.get("program"));
  return { program: program && program > 0 ? program - 1 : 0, range: from < to ? [from, to] : null, selection: selectionOf(parts) };
}

function selectionOf(parts: URLSearchParams): Selection | null {
  for (const kind of ["poll", "column"] as const) {
    const [worker, ns] = (parts.get(kind === "poll" ? "poll" : "at") ?? "").split("@").map(whole);
    if (worker != null && ns != null) return kind === "poll" ? { kind, worker, startNs: ns } : { kind, worker, atNs: ns };
  }
  const span = /^(-?\d+)@(.*)$/s.exec(parts.get("span") ?? "");
  if (span) return { kind: "span", name: span[2], startNs: Number(span[1]) };
  const task = whole(parts.get("task")), flag = whole(parts.get("flag"));
  if (task != null) return { kind: "task", task };
  return flag ? { kind: "flag", flag: flag - 1 } : null;
}

function whole(text: string | null | undefined): number | null {
  return text && /^-?\d{1,16}$/.test(text) ? Number(text) : null;
}
