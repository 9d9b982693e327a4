// The timeline and the heat map. A range selected in one is selected in both, and the rest of the page shows only that time.

const strips = [];

// The slices of the timeline that overlap a time range.
function slicesOf(startNs, endNs) {
  const { start_ns, slice_ns, slices } = data.time;
  const place = (ns) => Math.min(slices - 1, Math.max(0, Math.floor((ns - start_ns) / slice_ns)));
  return [place(startNs), place(Math.max(startNs, endNs - 1))];
}

const sliceStart = (slice) => data.time.start_ns + slice * data.time.slice_ns;

function setRange(range) {
  chosen.range = range;
  for (const strip of strips) strip.mark();
  byId("all-time").hidden = !range;
  byId("range").textContent = range
    ? `${seconds(sliceStart(range[0]))} to ${seconds(sliceStart(range[1] + 1))}`
    : `${seconds(sliceStart(0))} to ${seconds(sliceStart(data.time.slices))}`;
  refresh();
}

// Makes a strip selectable with mouse, touch and keys. `startNs` to `endNs` is the time it shows.
function selectable(strip, startNs, endNs) {
  const mark = element("div", "range");
  mark.hidden = true;
  strip.append(mark);
  const span = endNs - startNs;
  let from = null;
  const timeAt = (event) => {
    const box = strip.getBoundingClientRect();
    return startNs + (Math.min(Math.max(event.clientX - box.left, 0), box.width - 0.01) / box.width) * span;
  };
  strip.addEventListener("pointerdown", (event) => {
    from = timeAt(event);
    strip.setPointerCapture?.(event.pointerId);
    setRange(slicesOf(from, from));
  });
  strip.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = timeAt(event);
    setRange(slicesOf(Math.min(from, to), Math.max(from, to)));
  });
  for (const end of ["pointerup", "pointercancel"]) strip.addEventListener(end, () => (from = null));
  strip.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") setRange(null);
    else if (step) {
      const last = data.time.slices - 1, [start, end] = chosen.range || (step > 0 ? [-1, -1] : [last + 1, last + 1]);
      const within = (slice) => Math.min(last, Math.max(0, slice));
      setRange(event.shiftKey ? [within(start), within(Math.max(start, end + step))] : [within(start + step), within(end + step)]);
    } else return;
    event.preventDefault();
  });
  strips.push({
    mark() {
      mark.hidden = !chosen.range;
      if (!chosen.range) return;
      const part = (slice) => Math.min(1, Math.max(0, (sliceStart(slice) - startNs) / span));
      const left = part(chosen.range[0]);
      mark.style.left = `${left * 100}%`;
      mark.style.width = `${(part(chosen.range[1] + 1) - left) * 100}%`;
    },
  });
}

function canvasOf(strip, width, height) {
  const canvas = strip.querySelector("canvas");
  canvas.width = width;
  canvas.height = height;
  return canvas.getContext("2d");
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// One row per thread, if threads are known; higher bars are more samples.
function paintTimeline() {
  const strip = byId("timeline");
  const threads = data.dimensions.findIndex((dimension) => dimension.kind === "thread");
  const lanes = threads < 0 ? 1 : Math.min(data.dimensions[threads].values.length, 12);
  const { slices } = data.time;
  const sums = Array.from({ length: lanes }, () => new Float64Array(slices));
  for (let i = 0; i < cells.call.length; i++) {
    if (cells.slice[i] < 0) continue;
    const lane = threads < 0 ? 0 : data.situations[cells.situation[i]][threads];
    if (lane < lanes) sums[lane][cells.slice[i]] += cells.values[i];
  }
  const most = sums.reduce((most, lane) => lane.reduce((most, sum) => Math.max(most, sum), most), 1);
  const laneHeight = lanes === 1 ? 100 : Math.max(14, Math.min(36, Math.floor(150 / lanes)));
  strip.style.height = `${laneHeight * lanes}px`;
  const scale = 4, paint = canvasOf(strip, slices * scale, laneHeight * lanes * 2);
  paint.fillStyle = colour("--bar");
  sums.forEach((lane, row) => lane.forEach((sum, slice) => {
    const height = Math.ceil((sum / most) * (laneHeight * 2 - 4));
    if (sum > 0) paint.fillRect(slice * scale, (row + 1) * laneHeight * 2 - height, scale - 0.6, height);
  }));
}

// One column per second, from bottom to top; darker cells are more samples.
function paintHeat() {
  const { rows, samples } = data.heat;
  const columns = samples.length / rows;
  const cell = Math.max(1, Math.floor(1600 / columns));
  const paint = canvasOf(byId("heat"), columns * cell, rows * 4);
  const most = samples.reduce((most, count) => Math.max(most, count), 1);
  paint.fillStyle = colour("--small");
  paint.fillRect(0, 0, columns * cell, rows * 4);
  const heat = colour("--heat");
  samples.forEach((count, place) => {
    if (!count) return;
    paint.fillStyle = `rgb(${heat} / ${(0.08 + 0.92 * (count / most) ** 1.5).toFixed(3)})`;
    paint.fillRect(Math.floor(place / rows) * cell, (rows - 1 - (place % rows)) * 4, cell, 4);
  });
}

function repaintTimes() {
  if (!data.time) return;
  paintTimeline();
  if (data.heat) paintHeat();
}

function startTimes() {
  if (!data.time) return;
  selectable(byId("timeline"), sliceStart(0), sliceStart(data.time.slices));
  if (data.heat) {
    const { start_ns, column_ns, rows, samples } = data.heat;
    selectable(byId("heat"), start_ns, start_ns + (samples.length / rows) * column_ns);
  }
  byId("all-time").addEventListener("click", () => setRange(null));
  repaintTimes();
}
