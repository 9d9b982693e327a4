// Numbers and elements. Names from the profile are only ever used as text.

const byId = (id) => document.getElementById(id);

function element(tag, classes, text) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

const grouped = (number) => Math.round(number).toLocaleString("en-US");

function digits(number) {
  const size = Math.abs(number);
  return number.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

const percentOf = (part, whole) => (whole !== 0 ? ((part / Math.abs(whole)) * 100).toFixed(1) + "%" : "0.0%");

function seconds(ns) {
  const size = Math.abs(ns);
  if (size >= 60e9) return `${Math.floor(ns / 60e9)}:${String(Math.floor((size % 60e9) / 1e9)).padStart(2, "0")} min`;
  return size >= 1e9 ? `${(ns / 1e9).toFixed(2)} s` : `${(ns / 1e6).toFixed(0)} ms`;
}

// Three digits in the first unit that is not larger than the number.
function scaled(number, units) {
  const [name, unit] = units.find(([, unit]) => number >= unit);
  const size = number / unit;
  return `${size.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)} ${name}`;
}

function bytes(number) {
  return number < 1024 ? `${number} B` : scaled(number, [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]);
}

function times(ns) {
  if (ns < 1e3) return ns === 0 ? "0 s" : `${ns} ns`;
  return scaled(ns, [["h", 3600e9], ["min", 60e9], ["s", 1e9], ["ms", 1e6], ["us", 1e3]]);
}

// A value of a profile, in its unit.
function amount(number) {
  const size = Math.abs(number), unit = data.value_unit;
  const text = unit === "nanoseconds" ? times(size) : unit === "bytes" ? bytes(size) : unit === "count" || unit === "" ? grouped(size) : `${grouped(size)} ${unit}`;
  return number < 0 ? `-${text}` : text;
}

// A value of a diff, in its unit.
const value = (number) => digits(number * data.factor) + data.unit;

function changeText(before, after) {
  const change = after - before;
  return (change > 0 ? "+" : "") + value(change);
}

// A name always has the same hue; names of one file have similar hues.
function hue(fn) {
  const spread = (text) => {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return (hash >>> 0) / 4294967296;
  };
  const file = fnFile(fn) || fnName(fn).split(/::|\\|\.|;/)[0];
  return (spread(file) * 330 + spread(fnName(fn)) * 30 + 20) % 360;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

function startTheme() {
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(prefersDark.matches ? "dark" : "light");
  prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    repaintTimes();
  });
}
