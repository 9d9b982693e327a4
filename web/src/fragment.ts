// The fragment of the page's address, which holds all that is selected: what is shown, and the state of its view.

// The keys that say what is shown, in the explorer; so do those that begin with "lake.". All others belong to the view of it.
const PLACE = ["input", "before", "after", "value", "under", "panel", "last", "lake", "recordings"];

const isOfPlace = (key: string): boolean => PLACE.includes(key) || key.startsWith("lake.");

// How long a state must stay before the address holds it: browsers refuse addresses that change with every turn of the wheel.
const QUIET_MS = 150;

const parts = (fragment: string): URLSearchParams => new URLSearchParams(fragment.replace(/^#/, ""));

function split(fragment: string): [place: URLSearchParams, view: URLSearchParams] {
  const [place, view] = [new URLSearchParams(), new URLSearchParams()];
  for (const [key, value] of parts(fragment)) (isOfPlace(key) ? place : view).append(key, value);
  return [place, view];
}

const joined = (place: URLSearchParams, view: URLSearchParams): string => `#${[place, view].map(String).filter(Boolean).join("&")}`;

export const placeOf = (fragment: string): URLSearchParams => split(fragment)[0];
export const viewOf = (fragment: string): URLSearchParams => split(fragment)[1];

// A fragment with another view of the same place.
export const withView = (fragment: string, view: URLSearchParams): string => joined(placeOf(fragment), view);

let waiting: { timer: ReturnType<typeof setTimeout>; write: () => void } | null = null;

// Puts the state of a view into the address. A step is one that the browser can go back from.
export function showView(view: URLSearchParams, isStep: boolean): void {
  if (waiting) clearTimeout(waiting.timer);
  if (isStep) {
    waiting?.write();
    waiting = null;
    const fragment = withView(location.hash, view);
    if (fragment !== (location.hash || "#")) history.pushState(null, "", fragment);
    return;
  }
  const write = () => {
    waiting = null;
    history.replaceState(null, "", withView(location.hash, view));
  };
  waiting = { write, timer: setTimeout(write, QUIET_MS) };
}

// The state of the view as it is now, which the address may not hold yet.
export function viewNow(): URLSearchParams {
  if (waiting) {
    clearTimeout(waiting.timer);
    waiting.write();
  }
  return viewOf(location.hash);
}

// Goes to another place, whose view begins anew, or as `view`.
export function goTo(place: URLSearchParams, view = new URLSearchParams()): void {
  if (waiting) clearTimeout(waiting.timer);
  waiting = null;
  location.hash = joined(place, view);
}

// Calls back when somebody follows a link, edits the address, or goes back or forward.
export function onFragment(call: () => void): () => void {
  const listen = () => {
    if (waiting) clearTimeout(waiting.timer);
    waiting = null;
    call();
  };
  for (const kind of ["hashchange", "popstate"]) addEventListener(kind, listen);
  return () => {
    for (const kind of ["hashchange", "popstate"]) removeEventListener(kind, listen);
  };
}
