// The resources of the server. Answers are asked for again only when they have changed: the browser keeps them by their tags.

import type { AskChart, ChartData } from "../chart/data";
import type { ViewData } from "../view";

export interface InputEntry {
  id: string;
  name: string;
  path: string;
  kind: "profile" | "heap" | "tokio" | "database" | "unreadable";
  format: string;
  bytes: number;
  modified: string;
  host: string | null;
  service: string | null;
  process: string | null;
  start: string | null;
  error: string | null;
}

// The answer to a question about an input.
export interface Answer {
  title: string;
  unit: string;
  total: number;
  columns: string[];
  rows: (string | number)[][];
  all_rows: number;
  coverage: string;
  notes: string[];
}

// The inputs, and what else the server does.
export interface Listed {
  inputs: InputEntry[];
  left_out: number;
  may: { upload: boolean; record: boolean };
  lakes: string[];
}

export interface Recording {
  id: number;
  input: string;
  seconds: number;
  rate: number;
  running: boolean;
  message: string;
}

const API = "/api/v1";

async function ask<T>(path: string, signal?: AbortSignal, order: RequestInit = {}): Promise<T> {
  const answer = await fetch(API + path, { ...order, signal, headers: { accept: "application/json" } });
  if (answer.ok) return (await answer.json()) as T;
  const body = (await answer.json().catch(() => null)) as { error?: { message?: string; help?: string } } | null;
  const { message, help } = body?.error ?? {};
  throw new Error([message ?? `the server answered ${answer.status}`, help].filter(Boolean).join("; "));
}

export async function listed(): Promise<Listed> {
  const [inputs, { lakes }] = await Promise.all([ask<Omit<Listed, "lakes">>("/inputs"), ask<{ lakes: string[] }>("/lakes")]);
  return { ...inputs, lakes };
}

// The part of a place that is about a lake, as the words of a question.
export function wordsOfLake(place: URLSearchParams): URLSearchParams {
  const words = new URLSearchParams({ lake: place.get("lake") ?? "" });
  for (const [key, text] of place) if (key.startsWith("lake.") && key !== "lake.view" && text) words.append(key.slice(5), text);
  return words;
}

function only(words: URLSearchParams, keys: string[]): URLSearchParams {
  return new URLSearchParams([...words].filter(([key]) => keys.includes(key)));
}

const LAKE_CHOICE = ["lake", "service", "host", "label", "focus", "value", "since", "until"];

function ofLake(place: URLSearchParams): string | null {
  const words = wordsOfLake(place), view = place.get("lake.view") ?? "flame";
  if (view === "flame") return `/lakes/page?${only(words, LAKE_CHOICE)}`;
  if (view !== "diff" || !words.has("before") || !words.has("after")) return null;
  return `/lakes/comparison?${only(words, [...LAKE_CHOICE, "before", "after"])}`;
}

// All samples of a trace, rather than what its programs did: the server takes any selection for that.
const ALL_SAMPLES = String(Number.MIN_SAFE_INTEGER);

// The address of the data of a place: an input, two to compare, or a selection of a lake.
export function resource(place: URLSearchParams): string | null {
  if (place.has("lake")) return ofLake(place);
  const [input, before, after] = ["input", "before", "after"].map((key) => place.get(key));
  const value = place.get("value"), asked = new URLSearchParams(value ? { value } : {});
  if (before && after) return `/diff?${new URLSearchParams([["before", before], ["after", after], ...asked])}`;
  if (place.get("panel") === "samples") asked.set("from", ALL_SAMPLES);
  for (const name of place.getAll("under")) asked.append("under", name);
  return input ? `/inputs/${encodeURIComponent(input)}/page?${asked}` : null;
}

// The address of what is known of the heap of a place before its page is.
export function outline(place: URLSearchParams): string | null {
  const input = place.get("input");
  return input ? `/inputs/${encodeURIComponent(input)}/outline` : null;
}

export const page = (resource: string, signal: AbortSignal): Promise<ViewData> => ask<ViewData>(resource, signal);

export const answer = (input: string, view: string, words: URLSearchParams, signal: AbortSignal): Promise<Answer> =>
  ask<Answer>(`/inputs/${encodeURIComponent(input)}/${view}?${words}`, signal);

// What changed between two inputs.
export const changes = (before: string, after: string, signal: AbortSignal): Promise<Answer> =>
  ask<Answer>(`/changes?${new URLSearchParams({ before, after, limit: "200" })}`, signal);

// The answer to a question about a lake.
export const lakeAnswer = (view: string, words: URLSearchParams, signal: AbortSignal): Promise<Answer> => ask<Answer>(`/lakes/${view}?${words}`, signal);

export const recordings = async (signal?: AbortSignal): Promise<Recording[]> => (await ask<{ recordings: Recording[] }>("/recordings", signal)).recordings;

export const record = async (seconds: number, rate: number): Promise<Recording> =>
  (await ask<{ recording: Recording }>(`/recordings?${new URLSearchParams({ seconds: String(seconds), rate: String(rate) })}`, undefined, { method: "POST" })).recording;

export const stop = async (id: number): Promise<void> => void (await ask(`/recordings/${id}`, undefined, { method: "DELETE" }));

// Gives a file to the server, and gets its input.
export const upload = async (file: File): Promise<InputEntry> =>
  (await ask<{ input: InputEntry }>(`/inputs?${new URLSearchParams({ name: file.name })}`, undefined, { method: "POST", body: file })).input;

// Asks for flame charts of an input.
export const charts = (input: string, value: string | null): AskChart => (range, columns, signal) => {
  const asked = new URLSearchParams({ columns: String(columns) });
  if (value) asked.set("value", value);
  if (range) asked.set("from", String(range[0])), asked.set("to", String(range[1]));
  return ask<ChartData>(`/inputs/${encodeURIComponent(input)}/lanes?${asked}`, signal);
};

// Calls back when the list has changed, or an input has grown.
export function watch(onInputs: () => void, onInput: (id: string) => void): () => void {
  const events = new EventSource(`${API}/events`);
  events.addEventListener("inputs", onInputs);
  events.addEventListener("input", (event) => onInput((JSON.parse((event as MessageEvent<string>).data) as { id: string }).id));
  return () => events.close();
}
