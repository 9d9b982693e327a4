// The colours of boxes, as the style has them in the current theme.

import { colour } from "../elements";
import { spread } from "../numbers";
import type { Model } from "./model";
import type { Colours } from "./paint";
import { SMALL, type CallTree } from "./tree";

const HUES = 40;
// How many strengths of red, and of blue.
const TINTS = 16;

const rgb = (name: string): number[] => colour(name).split(" ").map(Number);

const mixed = (one: number[], other: number[], part: number): string => `rgb(${one.map((value, place) => Math.round(value + (other[place] - value) * part)).join(" ")})`;

// Blue for less, the strongest first; then none; then red for more, the strongest last.
function tints(): string[] {
  const base = rgb("--base"), less = rgb("--less"), more = rgb("--more");
  return Array.from({ length: 2 * TINTS + 1 }, (_, ink) => mixed(base, ink < TINTS ? less : more, Math.abs(ink - TINTS) / TINTS));
}

function hues(): string[] {
  const [light, chroma] = [colour("--box-l"), colour("--box-c")];
  return Array.from({ length: HUES }, (_, ink) => `oklch(${light} ${chroma} ${Math.round((ink * 360) / HUES)})`);
}

export const coloursOf = (isDiff: boolean): Colours => ({
  inks: isDiff ? tints() : hues(),
  small: colour("--small"),
  text: colour("--box-ink"),
  soft: colour("--soft"),
  hit: colour("--hit"),
  mark: colour("--ink"),
  active: colour("--accent"),
});

// The ink of a changed call: the larger the changed part, the stronger the colour. None if the change is not significant.
function tintOf(before: number, after: number, isMarked: boolean): number {
  const part = (after - before) / (after + before || 1);
  return TINTS + (isMarked ? Math.sign(part) * Math.round(TINTS * Math.min(1, Math.max(0.14, Math.abs(part) * 2))) : 0);
}

// Chooses the inks of nodes.
export function inking(model: Model): (tree: CallTree, node: number) => number {
  if (model.isDiff) return ({ fn, first, second, marked }, node) => (fn[node] === SMALL ? -1 : tintOf(first[node], second[node], marked[node] === 1));
  const inks = hueInks(model.data.names, (fn) => model.fnFile(fn));
  return ({ fn }, node) => (fn[node] === SMALL ? -1 : inks[fn[node]]);
}

// By function, its ink. A name always has the same hue; names of one file have similar hues.
export const hueInks = (names: string[], fileOf: (fn: number) => string): Uint8Array =>
  Uint8Array.from(names, (name, fn) => {
    const file = fileOf(fn) || name.split(/::|\\|\.|;/)[0];
    return Math.floor((((spread(file) * 330 + spread(name) * 30 + 20) % 360) * HUES) / 360) % HUES;
  });
