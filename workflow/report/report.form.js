"use strict";

// The form. Comparisons near the requested one vote for the methods that are not beaten there. The weight of a vote
// is 1 / (product of the factors between their rows, columns and epsilons).
const FAR = 4; // maximum factor of rows, columns or epsilon, up or down: beyond it, nothing counts as recorded
const NEIGHBOURS = 3; // data sets that vote, each by its nearest question
const MOST = 3; // maximum number of methods named

function factor(a, b) {
  return Math.max(a / b, b / a);
}

function nearest(questions, asked) {
  const measured = questions
    .filter((q) => q.task === asked.task && q.adjacency === asked.adjacency)
    .map((q) => {
      const factors = ["rows", "columns", "epsilon"].map((key) => factor(q[key], asked[key]));
      const weight = 1 / factors.reduce((product, each) => product * each, 1);
      return { ...q, weight, far: Math.max(...factors) > FAR, methods: q.methods.map(named) };
    });
  measured.sort((a, b) => b.weight - a.weight || b.methods.length - a.methods.length);
  const found = measured.filter((q, k) => measured.findIndex((other) => other.data === q.data) === k);
  return found.slice(0, NEIGHBOURS).filter((q, k) => k === 0 || !q.far);
}

function named([title, mechanism, standing, kept, low, high, lacks]) {
  return { title, mechanism, best: standing === "not beaten", kept, low, high, lacks };
}

function choose(questions, asked) {
  const near = nearest(questions, asked);
  const methods = new Map();
  for (const { weight, methods: own } of near) {
    for (const m of own) {
      const sum = methods.get(m.title) || { ...m, votes: 0, wins: 0, of: 0, total: 0, weights: 0 };
      methods.set(m.title, {
        ...sum,
        votes: sum.votes + weight * m.best,
        wins: sum.wins + m.best,
        of: sum.of + 1,
        total: sum.total + weight * m.kept,
        weights: sum.weights + weight,
        low: Math.min(sum.low, m.low),
        high: Math.max(sum.high, m.high),
      });
    }
  }
  const found = [...methods.values()].filter((m) => m.wins).map((m) => ({ ...m, kept: m.total / m.weights }));
  found.sort((a, b) => b.votes - a.votes || b.kept - a.kept);
  return { near, methods: found.slice(0, MOST), all: near.reduce((sum, { weight }) => sum + weight, 0) };
}

// The method with intervals replaces any that cannot be released.
const WITH_INTERVALS = { classes: "noise_aware_logistic", numbers: "noise_aware_log_cosh" };

// Releases whose noise has a norm's law spend no delta.
const PURE = ["knorm_objective_perturbation"];

// What the release lacks of the first method, as a comment.
function lacking(first) {
  if (!first) return "";
  if (first.lacks === null) return `# "${first.title}" cannot be released; this one can, with intervals\n`;
  return first.lacks && `# a release of "${first.title}" lacks its ${first.lacks}\n`;
}

function lines(asked, first) {
  const method = first && first.lacks !== null ? first.mechanism : WITH_INTERVALS[asked.task];
  const delta = `1.0e-${Math.max(6, Math.ceil(Math.log10(asked.rows)) + 2)}`;
  return `# config/releases/my_model.yaml of a study: cp -r "$DP_HOME/workflow/template" ../my_study
title: "What is learnt"
data: my_rows                  # of config/datasets.yaml, with public bounds
rows: ${asked.rows}
unit: one row is one person
book: /secure/my_rows.book     # keeps what is spent
budget: {epsilon: ${asked.epsilon}, delta: ${delta}}
epsilon: ${asked.epsilon}
${PURE.includes(method) ? "law: pure" : `delta: ${delta}`}
${lacking(first)}method: ${method}
premise: chosen without these rows

python "$DP_HOME/scripts/tools/release.py" preview my_model   # for your eyes only
snakemake -s "$DP_HOME/Snakefile" --cores 1 -- releases/my_model/model.json`;
}

function element(tag, content, look) {
  const made = document.createElement(tag);
  if (look) made.className = look;
  made.append(...[content].flat());
  return made;
}

const share = (value) => `${(100 * value).toFixed(0)}\u00a0%`;
// One data set's interval, or the range of several data sets' intervals.
function range(m) {
  const ends = `${share(m.low)} to ${share(m.high)}`;
  return m.of === 1 ? `95\u00a0% interval ${ends}` : `range over ${m.of} data sets, with their intervals: ${ends}`;
}

const few = (value) => String(Number(value.toPrecision(2)));

function row(cells, tag = "td") {
  return element("tr", cells.map((text) => element(tag, text)));
}

function answer(form, output, questions) {
  const asked = Object.fromEntries(new FormData(form));
  for (const key of ["rows", "columns", "epsilon"]) asked[key] = Number(asked[key]);
  if (!(asked.rows >= 1 && asked.columns >= 1 && asked.epsilon > 0)) {
    output.replaceChildren("Rows, columns and epsilon are numbers above 0.");
    return;
  }
  const { near, methods, all } = choose(questions, asked);
  if (!near.length) {
    output.replaceChildren("No comparison was recorded for this task and these neighbours.");
    return;
  }
  const parts = [];
  if (near[0].far) {
    const apart = ["rows", "columns", "epsilon"].filter((key) => factor(near[0][key], asked[key]) > FAR)
      .map((key) => {
        const more = near[0][key] > asked[key], times = `${few(factor(near[0][key], asked[key]))} times`;
        return key === "epsilon" ? `an epsilon ${times} ${more ? "larger" : "smaller"}`
          : `${times} ${more ? "more" : "fewer"} ${key}`;
      });
    parts.push(element("p", [element("strong", "Far from every recorded comparison. "),
      `The nearest has ${apart.join(" and ")}. What follows is a guess.`], "notice"));
  }
  const list = methods.map((m) => element("li", [element("b", m.title),
    ` keeps about ${share(m.kept)} of what can be learnt without privacy (${range(m)});`
    + ` not beaten in ${m.wins} of ${m.of} comparisons near yours: ${few(m.votes)} of ${few(all)} votes`]));
  if (methods.length) parts.push(element("p", "Ranked by votes, then by what they keep. A comparison near yours has a vote"
    + " for each method that is not beaten there; its weight is 1 over the product of the factors between its rows, columns"
    + " and epsilon and yours.", "note"));
  parts.push(methods.length ? element("ol", list) : element("p", "No method is recommended: on average, none beats a constant prediction there. More rows or a larger epsilon are needed."));
  const table = document.createElement("table");
  const head = document.createElement("thead");
  head.append(row(["recorded on", "rows", "columns", "epsilon", "weight", "not beaten there, and what they keep"], "th"));
  for (const cell of head.rows[0].cells) cell.scope = "col";
  table.append(head, element("tbody", near.map((q) => row([q.data, q.rows.toLocaleString("en"), String(q.columns),
    String(q.epsilon), few(q.weight), q.methods.filter((m) => m.best).map((m) => `${m.title} ${share(m.kept)}`).join("; ") || "no gain over a constant"]))));
  const scroll = element("div", table, "scroll");
  Object.assign(scroll, { tabIndex: 0, role: "group", ariaLabel: "Comparisons near yours" });
  const code = element("pre", lines(asked, methods[0]));
  code.tabIndex = 0;
  parts.push(scroll, element("details", [element("summary", "The lines that make a model of it"),
    element("p", "Ask `release.py forecast my_model` first: it opens no rows.", "note"), code]));
  output.replaceChildren(...parts);
}

const form = document.getElementById("choose");
if (form) {
  const questions = JSON.parse(document.getElementById("questions").textContent);
  const output = document.getElementById("choice");
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => answer(form, output, questions));
  answer(form, output, questions);
}
