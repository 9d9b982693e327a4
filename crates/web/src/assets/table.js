// The top table. The page contains it for browsers without scripts; here it is redrawn.

const MOST_ROWS = 200;
const table = { sort: isDiff ? 8 : 1, rows: [] };

function sortKey(row) {
  if (!isDiff) return row[table.sort];
  if (table.sort === 8) return (row[7] === 1 ? 1e9 : 0) + Math.abs(row[2] - row[1]) + Math.abs(row[4] - row[3]) * 1e-6;
  if (table.sort === 9) return Math.abs(row[2] - row[1]);
  if (table.sort === 10) return Math.abs(row[4] - row[3]);
  return row[table.sort];
}

function drawTable() {
  const matches = matcher(flame.query);
  const rows = table.rows.filter((row) => !matches || matches(row[0]));
  rows.sort((one, other) => sortKey(other) - sortKey(one) || other[2] - one[2] || one[0] - other[0]);
  const body = byId("top-rows");
  body.textContent = "";
  for (const row of rows.slice(0, MOST_ROWS)) body.append(isDiff ? diffRow(row) : topRow(row));
  const all = isDiff || !isFiltered() ? data.distinct : table.rows.length;
  const known = matches ? rows.length : all;
  const isCut = matches && !isFiltered() && table.rows.length < data.distinct;
  const among = isCut ? `, of the ${grouped(table.rows.length)} in the table` : "";
  byId("top-count").textContent = `${grouped(Math.min(rows.length, MOST_ROWS))} of ${grouped(known)} ${isHeap ? "classes" : "functions"} shown${among}`;
  for (const button of document.querySelectorAll("th button")) {
    const head = button.closest("th");
    if (Number(button.dataset.sort) === table.sort) head.setAttribute("aria-sort", "descending");
    else head.removeAttribute("aria-sort");
  }
}

function nameCell(fn) {
  const cell = element("td");
  const button = element("button", "", fnName(fn));
  button.type = "button";
  button.dataset.fn = String(fn);
  const file = fnFile(fn);
  button.title = fnName(fn) + (file ? ` (${file})` : "");
  // The file distinguishes functions of one name.
  if (file) button.append(" ", element("small", "", file));
  cell.append(button);
  return cell;
}

function topRow([fn, self, total, count]) {
  const row = element("tr", fn === flame.focus ? "chosen" : "");
  if (isHeap) {
    // Retained size, then shallow size.
    for (const text of [bytes(self), percentOf(self, state.all), bytes(total), grouped(count)]) row.append(element("td", "", text));
    row.append(nameCell(fn));
    return row;
  }
  for (const text of [amount(self), percentOf(self, state.all), amount(total), percentOf(total, state.all)]) row.append(element("td", "", text));
  row.append(nameCell(fn));
  return row;
}

function diffRow([fn, selfBefore, selfAfter, before, after, selfMarked, totalMarked]) {
  const row = element("tr", fn === flame.focus ? "chosen" : "");
  const change = (from, to, isMarked) => {
    const cell = element("td", isMarked ? (to > from ? "more" : "less") : "");
    cell.append(changeText(from, to) + (isMarked ? " *" : ""));
    return cell;
  };
  row.append(element("td", "", value(selfBefore)), element("td", "", value(selfAfter)), change(selfBefore, selfAfter, selfMarked));
  row.append(element("td", "", value(before)), element("td", "", value(after)), change(before, after, totalMarked));
  row.append(nameCell(fn));
  return row;
}

function startTable() {
  byId("top-rows").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) chooseFunction(Number(button.dataset.fn));
  });
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      table.sort = Number(button.dataset.sort);
      drawTable();
    });
  }
}
