// The flame graph: a box for each call, as wide as its weight, below its caller.

const ROW = 20;
const NARROWEST = 0.35;

const flame = { mode: "calls", focus: null, query: "", zoomed: null, root: null, callers: null, boxes: [], active: -1 };

function buildTrees(weights) {
  flame.callers = null;
  if (flame.mode === "inverted") flame.root = invertedTree(weights);
  else if (flame.mode === "sandwich" && flame.focus !== null) {
    const both = sandwich(weights, flame.focus);
    flame.root = both.callees;
    flame.callers = both.callers;
  } else flame.root = callTree(weights);
  flame.zoomed = null;
}

// Places the zoomed node with everything below it, and all its callers at full width.
function placeBoxes(root, zoomed, place) {
  const base = zoomed || root;
  const above = [];
  for (let at = base.caller; at && at.fn !== null; at = at.caller) above.push(at);
  for (const node of above) place(node, 0, 1, true);
  const open = base.fn === null ? [] : [[base, 0, 1]];
  const spreadBelow = (node, left, width) => {
    const all = [...node.below.values()];
    // If some weights are negative, the others exceed the weight of their caller.
    const weight = Math.max(wide(node), all.reduce((sum, next) => sum + wide(next), 0));
    const below = all.sort((one, other) => wide(other) - wide(one) || one.fn - other.fn);
    for (const next of below) {
      const share = weight > 0 ? (width * wide(next)) / weight : 0;
      open.push([next, left, share]);
      left += share;
    }
  };
  if (base.fn === null) spreadBelow(base, 0, 1);
  while (open.length) {
    const [node, left, width] = open.pop();
    if (place(node, left, width, false)) spreadBelow(node, left, width);
  }
}

function drawFlame() {
  const area = byId("boxes");
  const pixels = Math.max(area.clientWidth, 200);
  const matches = matcher(flame.query);
  // Boxes are added at once, without reading the layout in between: each read would lay out the page again.
  const boxes = document.createDocumentFragment();
  flame.boxes = [];
  const callerRows = flame.callers ? depthOf(flame.callers, pixels) : 0;
  let rows = 0;
  const put = (node, left, width, isAbove, row) => {
    if (width * pixels < NARROWEST) return false;
    rows = Math.max(rows, row + 1);
    boxes.append(makeBox(node, [left, width, width * pixels], isAbove, row, matches));
    return true;
  };
  if (flame.callers) {
    placeBoxes(flame.callers, null, (node, left, width, isAbove) =>
      node.depth === 1 ? width > 0 : put(node, left, width, isAbove, callerRows - node.depth + 1));
  }
  const offset = flame.callers ? callerRows : 0;
  placeBoxes(flame.root, flame.zoomed, (node, left, width, isAbove) => put(node, left, width, isAbove, offset + node.depth - 1));
  if (!flame.boxes.length) boxes.append(element("p", "hint", isHeap ? "No memory is retained." : "No samples match the selection."));
  area.replaceChildren(boxes);
  area.style.height = `${Math.max(rows, 2) * ROW}px`;
  byId("zoom-out").hidden = !flame.zoomed;
  setActive(-1);
  sayMatches(matches);
}

function depthOf(root, pixels) {
  let deepest = 0;
  placeBoxes(root, null, (node, left, width) => {
    const isSeen = width * pixels >= NARROWEST;
    if (isSeen) deepest = Math.max(deepest, node.depth - 1);
    return isSeen;
  });
  return deepest;
}

function makeBox(node, [left, width, pixels], isAbove, row, matches) {
  const box = element("div", "box", pixels > 26 ? boxName(node) : "");
  box.id = `box-${flame.boxes.length}`;
  box.setAttribute("role", "treeitem");
  box.setAttribute("aria-level", String(node.depth));
  box.setAttribute("aria-label", boxText(node));
  box.style.left = `${left * 100}%`;
  box.style.width = `calc(${width * 100}% - 1px)`;
  box.style.top = `${row * ROW}px`;
  if (node.fn === SMALL) box.classList.add("small");
  else if (isDiff) tint(box, node);
  else box.style.setProperty("--hue", hue(node.fn).toFixed(0));
  if (isAbove) box.classList.add("above");
  if (flame.mode === "sandwich" && node.fn === flame.focus) box.classList.add("self");
  if (matches) box.classList.add(matches(node.fn) ? "hit" : "miss");
  box.dataset.box = String(flame.boxes.length);
  flame.boxes.push({ node, box, left, width, row });
  return box;
}

// Red for more, blue for less; the larger the changed part, the stronger the colour. None if not significant.
function tint(box, node) {
  const part = (node.second - node.first) / (node.second + node.first || 1);
  const strength = node.marked ? Math.min(1, Math.max(0.14, Math.abs(part) * 2)) : 0;
  box.classList.add("diff");
  box.style.setProperty("--tint", `var(${part > 0 ? "--more" : "--less"})`);
  box.style.setProperty("--part", `${Math.round(strength * 100)}%`);
}

const boxName = (node) => (isHeap && node.fn === SMALL && node.count ? `${grouped(node.count)} others` : fnName(node.fn));

function boxText(node) {
  const name = fnName(node.fn), file = fnFile(node.fn);
  const where = file ? ` in ${file}` : "";
  if (isDiff) {
    const noise = node.marked ? "" : ", not significant";
    return `${name}${where}: ${value(node.first)} before, ${value(node.second)} after, ${changeText(node.first, node.second)}${noise}`;
  }
  const whole = shownTotal();
  if (isHeap) {
    const many = node.count > 1 && node.fn !== SMALL ? `; ${grouped(node.count)} grouped` : "";
    return `${boxName(node)}: ${bytes(node.first)}, ${percentOf(node.first, whole)}; shallow ${bytes(node.selfFirst)}${many}`;
  }
  return `${name}${where}: ${amount(node.first)} ${data.value_kind}, ${percentOf(node.first, whole)}; self ${amount(node.selfFirst)}`;
}

const shownTotal = () => (flame.mode === "sandwich" && state.weights ? state.all : flame.root.first);

function matcher(query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const known = new Map();
  return (fn) => {
    if (!known.has(fn)) known.set(fn, fn !== SMALL && (fnName(fn) + " " + fnFile(fn)).toLowerCase().includes(wanted));
    return known.get(fn);
  };
}

// Shows the share of the visible weight whose path has a matching function.
function sayMatches(matches) {
  if (!matches) return void (byId("matches").textContent = "");
  let found = 0;
  const open = [...flame.root.below.values()];
  while (open.length) {
    const node = open.pop();
    if (matches(node.fn)) found += wide(node);
    else open.push(...node.below.values());
  }
  byId("matches").textContent = `${percentOf(found, wide(flame.root))} matched`;
}

function setActive(place) {
  flame.boxes[flame.active]?.box.classList.remove("active");
  flame.active = place;
  const at = flame.boxes[place];
  if (!at) return byId("flame").removeAttribute("aria-activedescendant");
  at.box.classList.add("active");
  byId("flame").setAttribute("aria-activedescendant", at.box.id);
  at.box.scrollIntoView({ block: "nearest" });
  byId("status").textContent = boxText(at.node);
}

function zoom(node) {
  if (!node || node.fn === SMALL) return;
  flame.zoomed = node === flame.zoomed || node.fn === null ? null : node;
  drawFlame();
  byId("status").textContent = flame.zoomed ? boxText(flame.zoomed) : "";
  if (flame.zoomed) setActive(flame.boxes.findIndex((at) => at.node === flame.zoomed));
}

// The box nearest to the active one in the row above or below, or beside it.
function neighbour(key) {
  const at = flame.boxes[flame.active];
  if (!at) return flame.boxes.length ? flame.boxes.reduce((best, box, place) => (box.row < flame.boxes[best].row ? place : best), 0) : -1;
  const middle = at.left + at.width / 2;
  const rows = { ArrowUp: at.row - 1, ArrowDown: at.row + 1, ArrowLeft: at.row, ArrowRight: at.row };
  let best = flame.active, distance = Infinity;
  flame.boxes.forEach((box, place) => {
    if (box.row !== rows[key] || box === at) return;
    if ((key === "ArrowLeft" && box.left > at.left) || (key === "ArrowRight" && box.left < at.left)) return;
    const inside = key === "ArrowDown" && box.left >= at.left - 1e-9 && box.left + box.width <= at.left + at.width + 1e-9;
    const away = inside ? -box.width : Math.abs(box.left + box.width / 2 - middle);
    if (away < distance) [best, distance] = [place, away];
  });
  return best;
}

function startFlame() {
  const area = byId("flame");
  const under = (event) => flame.boxes[Number(event.target.closest?.(".box")?.dataset.box)];
  area.addEventListener("click", (event) => {
    const at = under(event);
    if (!at) return;
    if (flame.mode === "sandwich" && at.node.fn !== SMALL) chooseFunction(at.node.fn);
    else zoom(at.node);
  });
  area.addEventListener("dblclick", (event) => {
    const at = under(event);
    if (at && at.node.fn !== SMALL) chooseFunction(at.node.fn);
  });
  area.addEventListener("mousemove", (event) => {
    const at = under(event);
    if (at) byId("status").textContent = boxText(at.node);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) setActive(neighbour(event.key));
    else if (event.key === "Enter") zoom(flame.boxes[flame.active]?.node);
    else if (event.key === " ") chooseFunction(flame.boxes[flame.active]?.node.fn ?? SMALL);
    else if (event.key === "Escape" || event.key === "Backspace") zoom(flame.zoomed?.caller || flame.zoomed);
    else return;
    event.preventDefault();
  });
  byId("zoom-out").addEventListener("click", () => zoom(flame.zoomed));
  byId("search").addEventListener("input", (event) => {
    flame.query = event.target.value;
    drawFlame();
    drawTable();
  });
}
