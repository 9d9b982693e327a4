import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path));

// The explorer asks its own server. A page that holds its data has nothing to do with it.
const mayAsk = (path: string): boolean => path === "explorer/server.ts";

test("no source has a way to make markup of names, or to reach the network", () => {
  expect(sources.length).toBeGreaterThan(10);
  const ways = ["dangerouslySetInnerHTML", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "XMLHttpRequest", "WebSocket", "import(", "http:", "https:"];
  const asking = ["fetch(", "EventSource"];
  for (const path of sources) {
    const text = readFileSync(`src/${path}`, "utf8");
    expect([path, [...ways, ...(mayAsk(path) ? [] : asking)].filter((way) => text.includes(way))]).toEqual([path, []]);
  }
});

test("what a browser loads is at most 300 KB", () => {
  for (const bundle of ["explorer", "page"]) {
    const parts = ["js", "css"].map((ending) => gzipSync(readFileSync(`../crates/web/src/assets/${bundle}.${ending}`)).length);
    expect([bundle, parts.reduce((sum, part) => sum + part) <= 300_000]).toEqual([bundle, true]);
  }
});
