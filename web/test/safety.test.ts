import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";

const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path));

test("no source has a way to make markup of names, or to reach the network", () => {
  expect(sources.length).toBeGreaterThan(10);
  const ways = ["dangerouslySetInnerHTML", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "http:", "https:"];
  for (const path of sources) {
    const text = readFileSync(`src/${path}`, "utf8");
    expect([path, ways.filter((way) => text.includes(way))]).toEqual([path, []]);
  }
});
