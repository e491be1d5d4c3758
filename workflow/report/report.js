// Tables: a click on a heading sorts; the field above keeps the rows that contain all its words.
function value(cell) {
  const text = cell.textContent.trim();
  if (text === "inf") return Infinity;
  // "0.2962 ± 0.0617" and "0.0656 [0.0635, 0.0676]" sort by their first number
  const number = /^-?[\d.]/.test(text) ? parseFloat(text) : NaN;
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

function compare(a, b) {
  // numbers before words; `sort` puts empty cells last
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
  count.setAttribute("aria-live", "polite");
  field.addEventListener("input", () =>
    filter(table, field.value.toLowerCase().split(/\s+/).filter(Boolean), count));
  filter(table, [], count);
  table.parentElement.before(line);
}

// Pointing at a printed number, or a tap on it, shows its details below the table.
for (const cell of document.querySelectorAll("button.cell")) {
  const says = cell.closest(".printed").querySelector(".says");
  const text = cell.title;
  cell.removeAttribute("title");
  for (const event of ["click", "focus", "mouseenter"]) cell.addEventListener(event, () => { says.textContent = text; });
}

// Anything in two clicks: the field above finds sources, claims, figures, lines of the ledger and cells by their
// words; a choice opens the parts that contain it.
function said(part, selector) {
  return part.querySelector(selector).textContent.replace(/\s+/g, " ").trim();
}

function things() {
  const found = [];
  const add = (row, what, shown) => found.push({ row, shown: `${what}: ${shown}`, text: `${what} ${shown}`.toLowerCase() });
  for (const card of document.querySelectorAll("article.card")) add(card, "source", said(card, "h3"));
  for (const line of document.querySelectorAll(".statements li")) {
    const parts = Array.from(line.childNodes, (part) => part.tagName === "DETAILS" ? "" : part.textContent);
    add(line, line.dataset.what, parts.join("").trim());
  }
  for (const figure of document.querySelectorAll("figure[id]:not([id^=headline-])")) add(figure, "figure", said(figure, "figcaption"));
  for (const line of document.querySelectorAll(".audited")) add(line, line.dataset.what, said(line, ".name"));
  return found;
}

function search(field, list) {
  const rows = things();
  for (const part of document.querySelectorAll("details.cells")) {
    const heads = Array.from(part.querySelectorAll("thead th"), (cell) => cell.textContent);
    const wanted = ["data set", "method", "training rows", "epsilon"].map((name) => heads.indexOf(name));
    const metric = heads.findIndex((name) => name === "error" || name === "R\u00b2");
    for (const row of part.querySelectorAll("tbody tr")) {
      const texts = wanted.map((k) => row.cells[k].textContent);
      const [data, method, size, epsilon] = texts;
      const shown = `${data}, ${method}, ${size} rows, epsilon ${epsilon}: ${heads[metric]} ${row.cells[metric].textContent}`;
      rows.push({ row, shown, text: `${part.dataset.of} ${shown}`.toLowerCase() });
    }
  }
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
    const found = words.length ? rows.filter((entry) => words.every((word) => entry.text.includes(word))) : [];
    list.hidden = !words.length;
    list.replaceChildren(...found.slice(0, 50).map((entry) => {
      const line = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = entry.shown;
      button.addEventListener("click", () => {
        list.hidden = true;
        for (const old of document.querySelectorAll(".chosen")) old.classList.remove("chosen");
        entry.row.classList.add("chosen");
        show(entry.row);
      });
      line.append(button);
      return line;
    }));
    const note = document.createElement("li");
    note.className = "note";
    note.textContent = ` ${found.length} of ${rows.length} entries${found.length > 50 ? ", the first 50" : ""}`;
    list.prepend(note);
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape") list.hidden = true; });
  document.addEventListener("click", (event) => { if (!list.parentElement.contains(event.target)) list.hidden = true; });
}

const box = document.createElement("div");
box.className = "search";
box.innerHTML = '<label>Find <input type="search" placeholder="paper, figure, claim, method"></label><ul class="found" aria-live="polite" hidden></ul>';
document.querySelector("header").insertBefore(box, document.getElementById("theme"));
search(box.querySelector("input"), box.querySelector("ul"));

// A figure's download is the shown picture, so the page needs no second copy.
for (const link of document.querySelectorAll("a.save")) {
  link.href = link.closest("figure").querySelector("img").src;
}

// Downloads of tables are compressed. Browsers that can decompress them save the plain table.
async function unpack(link) {
  const packed = Uint8Array.from(atob(link.href.split(",")[1]), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream, { headers: { "Content-Type": "text/csv" } }).blob();
}

for (const link of "DecompressionStream" in window ? document.querySelectorAll("a.csv") : []) {
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    const saved = document.createElement("a");
    saved.href = URL.createObjectURL(await unpack(link));
    saved.download = link.textContent;
    saved.click();
    setTimeout(() => URL.revokeObjectURL(saved.href), 10000);
  });
}

// The target of a link may be in a closed part of the page.
function show(target) {
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  // a link to an experiment also opens the experiment's own part
  const folded = target.querySelector(":scope > details");
  if (folded && target.classList.contains("experiment")) folded.open = true;
  target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
}

function open_target() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) show(target);
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
