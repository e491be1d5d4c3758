"use strict";

// Tables: a click on a heading sorts, text in the field above keeps the rows that contain all its words.
function value(cell) {
  const text = cell.textContent.trim();
  if (text === "inf") return Infinity;
  // "0.2962 ± 0.0617" and "0.0656 [0.0635, 0.0676]" sort by their first number
  const number = /^-?[\d.]/.test(text) ? parseFloat(text) : NaN;
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

function compare(a, b) {
  // numbers before words, and nothing last
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

function sort(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => ({ row, key: value(row.cells[column]) }));
  const empty = (key) => key === "";
  rows.sort((a, b) => {
    if (empty(a.key) || empty(b.key)) return empty(a.key) - empty(b.key);
    return down ? compare(b.key, a.key) : compare(a.key, b.key);
  });
  body.append(...rows.map((entry) => entry.row));
}

function filter(table, words, count) {
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  count.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
}

for (const table of document.querySelectorAll("table.data")) {
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => sort(table, column));
    heading.replaceChildren(button);
  });
  if (table.tBodies[0].rows.length < 5) continue;
  const line = document.createElement("label");
  line.className = "filter";
  const field = document.createElement("input");
  field.type = "search";
  const count = document.createElement("span");
  count.className = "note";
  line.append("Rows with ", field, count);
  field.addEventListener("input", () =>
    filter(table, field.value.toLowerCase().split(/\s+/).filter(Boolean), count));
  filter(table, [], count);
  table.parentElement.before(line);
}

// Downloads of figures: the picture that is shown, not a second copy of it.
for (const link of document.querySelectorAll("a.save")) {
  link.href = link.closest("figure").querySelector("img").src;
}

// A row that a link names may stand in a closed part of the page.
function open_target() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", open_target);
open_target();

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
