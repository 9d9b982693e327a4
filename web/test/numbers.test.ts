import { expect, test } from "vitest";
import { bytes, digits, percentOf, seconds, times } from "../src/numbers";

test("numbers have three digits and a unit", () => {
  expect([0, 7, 1500, 99_960, 2_500_000, 3.2e9, 90e9].map(times)).toEqual(["0 s", "7 ns", "1.50 us", "100 us", "2.50 ms", "3.20 s", "1.50 min"]);
  expect([1023, 1024, 10 * 2 ** 20].map(bytes)).toEqual(["1023 B", "1.00 KiB", "10.0 MiB"]);
  expect([0.1234, 12.345, 123.45, -123.45].map(digits)).toEqual(["0.123", "12.35", "123.5", "-123.5"]);
  expect([percentOf(1, 3), percentOf(1, 0)]).toEqual(["33.3%", "0.0%"]);
  expect([seconds(5e6), seconds(1.5e9), seconds(61e9)]).toEqual(["5 ms", "1.50 s", "1:01 min"]);
});
