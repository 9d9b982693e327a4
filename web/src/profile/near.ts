// The active call and the calls around it as elements, for screen readers: a picture tells them nothing.

import { byId, element } from "../elements";
import type { CallTree } from "./tree";

// At most this many siblings, and this many callees.
const MOST = 20;

function item(id: string, level: number, place: number, of: number, text: string): HTMLElement {
  const made = element("div", "", text);
  made.id = id;
  made.setAttribute("role", "treeitem");
  made.setAttribute("aria-level", String(level));
  made.setAttribute("aria-posinset", String(place + 1));
  made.setAttribute("aria-setsize", String(of));
  return made;
}

// The callees of a node, the first ones first.
function callees({ caller, first, second, length }: CallTree, node: number): number[] {
  const found: number[] = [];
  for (let at = node + 1; at < length; at++) if (caller[at] === node) found.push(at);
  return found.sort((one, other) => first[other] + second[other] - first[one] - second[one]);
}

// Lists the callers of a node, its siblings and its callees below the element with the id `near`, and says which element is the
// node's.
export function listNear(tree: CallTree, node: number, text: (node: number) => string): string {
  const items: HTMLElement[] = [], above: number[] = [];
  for (let at = tree.caller[node]; at > 0; at = tree.caller[at]) above.unshift(at);
  for (const at of above) items.push(item(`call-${at}`, tree.depth[at], 0, 1, text(at)));
  const beside = callees(tree, tree.caller[node]), own = beside.indexOf(node);
  const start = Math.max(0, Math.min(own - MOST / 2, beside.length - MOST));
  beside.slice(start, start + MOST).forEach((at, place) => {
    items.push(item(`call-${at}`, tree.depth[at], start + place, beside.length, text(at)));
    if (at !== node) return;
    const below = callees(tree, node);
    below.slice(0, MOST).forEach((at, place) => items.push(item(`call-${at}`, tree.depth[at], place, below.length, text(at))));
  });
  byId("near").replaceChildren(...items);
  return `call-${node}`;
}
