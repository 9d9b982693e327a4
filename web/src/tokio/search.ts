// What a search finds: texts in places, names and flags, and `task 12` or `worker 3`.

import type { Program } from "./data";

export interface Search {
  // Whether a text matches.
  text: (text: string) => boolean;
  poll: (poll: number) => boolean;
  span: (span: number) => boolean;
  task: (task: number, place: number) => boolean;
}

export function searchIn({ polls, lanes, places, texts, spans }: Program, query: string): Search | null {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const text = (text: string) => text.toLowerCase().includes(wanted);
  const named = /^(task|worker)\s+(\d+)$/.exec(wanted);
  const number = named ? Number(named[2]) : null;
  const isPlace = places.map(text), isText = texts.map(text);
  return {
    text,
    poll: (poll) =>
      named ? number === (named[1] === "task" ? polls.task[poll] : lanes[polls.lane[poll]]?.worker) : isPlace[polls.place[poll]],
    span: (span) => isText[spans.name[span]] || (spans.fields[span] >= 0 && isText[spans.fields[span]]),
    task: (task, place) => (named?.[1] === "task" ? task === number : isPlace[place]),
  };
}
