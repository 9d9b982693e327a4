// Answers of the server as tables.

import { useEffect, useState } from "preact/hooks";
import { bytes, grouped, times } from "../numbers";
import type { Answer } from "./server";

// What a question got: its answer, or why there is none; `null` while it is on its way.
export type Got = Answer | string | null;

// Asks again when `of` is another, and keeps the answer before in place when only `grown` is.
export function useAnswer(of: string, grown: number, ask: (signal: AbortSignal) => Promise<Answer>): Got {
  const [got, setGot] = useState<{ of: string; got: Got }>({ of, got: null });
  useEffect(() => {
    const ended = new AbortController();
    ask(ended.signal).then((got) => setGot({ of, got }), (error: Error) => ended.signal.aborted || setGot({ of, got: error.message }));
    return () => ended.abort();
  }, [of, grown]);
  return got.of === of ? got.got : null;
}

// An answer with its columns in an order: those that are named first, then others, then those that are named last.
export function ordered(got: Got, first: string[], last: string[]): Got {
  if (got === null || typeof got === "string") return got;
  const rank = (column: string) => (first.includes(column) ? first.indexOf(column) : last.includes(column) ? 1000 + last.indexOf(column) : 500);
  const places = got.columns.map((_, place) => place).sort((one, other) => rank(got.columns[one]) - rank(got.columns[other]) || one - other);
  const cell = (value: string | number, column: string) => (column.includes("percent") && value !== "" ? Number(value) : value);
  return { ...got, columns: places.map((place) => got.columns[place]), rows: got.rows.map((row) => places.map((place) => cell(row[place], got.columns[place]))) };
}

// Where a cell of a row leads to; `null` if nowhere.
export type Leads = (cell: string | number, column: string) => (() => void) | null;

export function Answered({ got, leads }: { got: Got; leads: Leads }) {
  if (got === null) return <p class="hint" role="status">Reading …</p>;
  if (typeof got === "string") return <p class="error" role="alert">{got}</p>;
  return (
    <>
      <p class="hint">{[got.title, got.coverage].filter(Boolean).join(". ")}</p>
      <Rows {...{ got, leads }} />
      <Notes notes={got.notes} />
    </>
  );
}

export const Notes = ({ notes }: { notes: string[] }) => <>{notes.map((note) => <p key={note} class="hint">{note}</p>)}</>;

export function Rows({ got: { columns, rows, unit }, leads }: { got: Answer; leads: Leads }) {
  return (
    <div class="rows" tabIndex={0} role="region" aria-label="Answer">
      <table>
        <thead><tr>{columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr></thead>
        <tbody>{rows.map((row, place) => <tr key={place}>{row.map((cell, column) => <td key={column}><Cell {...{ cell, column: columns[column], unit, leads }} /></td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

// A cell: shares have a bar, and what leads on is a button.
function Cell({ cell, column, unit, leads }: { cell: string | number; column: string; unit: string; leads: Leads }) {
  const text = cellText(cell, column, unit), go = leads(cell, column);
  if (go) return <button type="button" class="handle" onClick={go}>{text}</button>;
  if (typeof cell === "string") return <span class={cell.startsWith("  ") ? "indented" : undefined}>{text}</span>;
  if (!/%|percent/.test(column)) return <>{text}</>;
  return <span class="share"><i style={{ width: `${Math.min(100, Math.abs(cell))}%` }} />{text}</span>;
}

// Shares are in percent; other numbers of a table are in its unit, or are counts.
export function cellText(cell: string | number, column: string, unit: string): string {
  if (typeof cell === "string") return cell;
  if (/%|percent/.test(column)) return `${cell.toFixed(1)}%`;
  const isAmount = /^(self|total|amount|value|weight|before|after|change|growth|impact|retained|shallow)\b/i.test(column);
  const size = Math.abs(cell), sign = cell < 0 ? "-" : "";
  if (isAmount && unit === "nanoseconds") return sign + times(size);
  if (isAmount && (unit === "bytes" || column.endsWith("bytes"))) return sign + bytes(size);
  return sign + grouped(size);
}
