import { expect, test } from "vitest";
import { cellText } from "../src/explorer/answers";
import { facetsOf, trendLines } from "../src/explorer/lake";
import { asked, found, isUnasked, lastOf, questionsOf, selected } from "../src/explorer/panel";
import { resource, wordsOfLake } from "../src/explorer/server";
import { placeOf, viewOf } from "../src/fragment";

test("the selection of a lake is in the address, and each view asks with the words that it knows", () => {
  const place = placeOf("#lake=%2Fdata%2Flake&lake.service=shop&lake.label=version%3D2&lake.sql=SELECT+1&zoom=1");
  expect(String(wordsOfLake(place))).toBe("lake=%2Fdata%2Flake&service=shop&label=version%3D2&sql=SELECT+1");
  expect(resource(place)).toBe("/lakes/page?lake=%2Fdata%2Flake&service=shop&label=version%3D2");
  place.set("lake.view", "diff");
  expect(resource(place)).toBeNull();
  place.set("lake.before", "1d..");
  place.set("lake.after", "version=2");
  expect(resource(place)).toBe("/lakes/comparison?lake=%2Fdata%2Flake&service=shop&label=version%3D2&before=1d..&after=version%3D2");
  expect(String(viewOf("#lake=x&lake.view=top&zoom=1"))).toBe("zoom=1");
});

test("the calls below a path are a place of their own", () => {
  const place = placeOf("#input=a1&under=main&under=f%3Cint%2C+int%3E&zoom=1");
  expect(resource(place)).toBe("/inputs/a1/page?under=main&under=f%3Cint%2C+int%3E");
  expect(String(viewOf("#input=a1&under=main&zoom=1"))).toBe("zoom=1");
});

test("a lake offers the values that its inputs have, without absent ones", () => {
  const facets = facetsOf(["value", "what"], [["web1", "host"], ["web2", "host"], ["", "label"], ["1.4", "label"], ["heap/bytes", "value"]]);
  expect([facets.get("host"), facets.get("label"), facets.get("value"), facets.get("service")]).toEqual([["web1", "web2"], ["version=1.4"], ["samples", "heap/bytes"], undefined]);
});

test("a trend is drawn from shares, which may be texts", () => {
  const { most, self, total, times } = trendLines(["samples", "self_percent", "time", "total_percent"], [[30, "0.0", "a", "12.5"], [4, 3, "b", 40]]);
  expect([most, self, total, times]).toEqual([40, [0, 3], [12.5, 40], ["a", "b"]]);
});

test("what is selected in a picture is asked about in the views beside it", () => {
  const words = (fragment: string) => String(selected(new URLSearchParams(fragment)));
  expect(words("t=10-20&by.label.route=%2Fa%3Db&zoom=1")).toBe("from=10&to=20&label=route%3D%2Fa%3Db");
  expect(words("by.thread=thread+7+of+42+worker+of+3")).toBe("thread=7&process=42");
  expect(words("by.thread=thread+100.1&by.interpreter=interpreter+0")).toBe("thread=100.1&interpreter=0");
  expect(words("by.thread=thread+7+of+mine")).toBe("thread=7");
  expect(words("t=20-10")).toBe("");
  const kept = ["by.thread=thread+7", "by.label.route=x", "by.thread=12+others", "by.label.route=(none)", "by.label.route=xx…"];
  expect(kept.map((fragment) => isUnasked(new URLSearchParams(fragment)))).toEqual([false, false, true, true, true]);
  expect(kept.slice(2).map(words)).toEqual(["", "", ""]);
});

test("views that need a word are found in the address with it", () => {
  const questions = questionsOf("heap");
  const node = found(questions, "heap_ask:node:7"), text = found(questions, "heap_ask:text:a:b");
  expect([node?.[0].name, node?.[1], text?.[0].name, text?.[1]]).toEqual(["Node", "7", "Text", "a:b"]);
  expect(found(questions, "tokio_flags")).toBeNull();
  expect(asked(text![0], "a:b")).toBe("heap_ask:text:a:b");
});

test("numbers of answers are in their unit", () => {
  expect(cellText(2048, "growth bytes", "bytes")).toBe("2.00 KiB");
  expect(cellText(-2048, "growth bytes", "bytes")).toBe("-2.00 KiB");
  expect([cellText(12.34, "self %", "bytes"), cellText(1500, "objects", "bytes"), cellText(1500, "weight", "nanoseconds")]).toEqual(["12.3%", "1,500", "1.50 us"]);
});

test("the last seconds of a live table are in the address, as far as they can be chosen", () => {
  expect(["last=5", "last=7", "", "last=x"].map((text) => lastOf(new URLSearchParams(text)))).toEqual([5, null, null, null]);
});
