// The views, computed from the selection.

const state = { weights: null, all: 0 };

function refresh() {
  state.weights = weigh();
  state.all = 0;
  for (const weight of state.weights.self[0]) state.all += weight;
  if (!isFiltered()) state.all = data.all;
  table.rows = topRows(state.weights);
  buildTrees(state.weights);
  drawFlame();
  drawTable();
  const part = !isFiltered() || isDiff ? "" : ` Showing ${amount(state.all)} of ${amount(data.all)} ${data.value_kind}; the numbers leave out the smallest calls.`;
  byId("chosen").textContent = part;
}

function setMode(mode) {
  flame.mode = mode;
  for (const button of document.querySelectorAll("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  byId("sandwich").disabled = flame.focus === null;
  buildTrees(state.weights);
  drawFlame();
}

function chooseFunction(fn) {
  if (fn === SMALL) return;
  flame.focus = fn;
  setMode("sandwich");
  drawTable();
  byId("status").textContent = `${fnName(fn)}: ${isHeap ? "holders above, contents below" : "callers above, callees below"}`;
}

function startDimensions() {
  data.dimensions.forEach((dimension, place) => {
    const select = element("select");
    select.setAttribute("aria-label", dimension.name);
    select.append(new Option(`all ${dimension.name}`, ""));
    dimension.values.forEach((text, number) => select.append(new Option(text, String(number))));
    select.dataset.dimension = dimension.name;
    select.addEventListener("change", () => {
      chosen.values[place] = select.value === "" ? null : Number(select.value);
      refresh();
    });
    byId("dimensions").append(select);
  });
}

function start() {
  document.documentElement.classList.remove("no-script");
  startTheme();
  startFlame();
  startTable();
  startTimes();
  startDimensions();
  for (const button of document.querySelectorAll("[data-mode]")) button.addEventListener("click", () => setMode(button.dataset.mode));
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") byId("search").focus();
    else if (event.key === "i") setMode(flame.mode === "inverted" ? "calls" : "inverted");
    else if (event.key === "c") setMode("calls");
    else return;
    event.preventDefault();
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) drawFlame();
    width = innerWidth;
  });
  refresh();
}

start();
