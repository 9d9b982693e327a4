import { expect, test } from "vitest";
import { fromFragment, toFragment, type Selected } from "../src/profile/link";

const NOTHING: Selected = { mode: "calls", focus: null, isUpward: false, isSplit: false, zoom: [], query: "", sort: null, range: null, chart: null, values: new Map() };

test("a link holds everything that is selected, whatever the names are", () => {
  const selected: Selected = {
    mode: "sandwich", focus: { name: "a&function=b#%é\u{202e}", file: "/srv/x y.rs" }, isUpward: true, isSplit: true, zoom: [0, 12, 3], query: "a=b&c", sort: 2,
    range: [-5, 1_000_000_007], chart: [0, 77], values: new Map([["threads", "main & others"], ["by.x", ""]]),
  };
  expect(fromFragment(new URLSearchParams(String(toFragment(selected))))).toEqual(selected);
  expect(String(toFragment(NOTHING))).toBe("");
});

test("what a link says that makes no sense is left out", () => {
  for (const fragment of ["", "view=sandwich", "view=x&zoom=1..2&sort=-1&t=9-1", "zoom=1e3&t=1-2-3&sort=999"]) {
    expect(fromFragment(new URLSearchParams(fragment))).toEqual(NOTHING);
  }
});
