// Elements of the page. Names from a file are only ever used as text.

export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (!found) throw new Error(`missing element: ${id}`);
  return found as E;
}

export function element<T extends keyof HTMLElementTagNameMap>(tag: T, classes = "", text?: string): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

// The element at which something happened.
export const target = (event: Event): Element | null => (event.target instanceof Element ? event.target : null);

// Whether a key press belongs to a field or to the browser.
export function isTyped(event: KeyboardEvent): boolean {
  return !!target(event)?.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey;
}

// The value of a colour of the style, in the current theme.
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The JSON that a page holds in a script that is never run.
export const embedded = <T>(): T => JSON.parse(byId("data").textContent ?? "null") as T;
