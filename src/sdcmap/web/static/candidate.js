import {
  alarm,
  all,
  base,
  button,
  byId,
  complain,
  el,
  get,
  hint,
  losing,
  page,
  picked,
  pins,
  post,
  quiet,
  region,
  short,
  tableOf,
  textBox,
  whole,
} from "./api.js";
import { idOf, listCandidates, offer, nameOf } from "./candidates.js";
import { analyses, lazily, picture, relations, values } from "./masked.js";
import { Sorted } from "./sorting.js";
import { toText } from "./values.js";

const query = new URLSearchParams(location.search);
const BOXES = ["first", "second", "third"];
const QUERY_NAMES = ["id", "other", "third"]; // of the candidates in the address

// ---- one candidate ------------------------------------------------------------------------------------------------
// Name the rows of a table, so that equal rows of several candidates can be compared.
function rowsNamed(table, names) {
  all("tbody tr", table).forEach((row, index) => names[index] && (row.dataset.row = names[index]));
  return table;
}

// The title of a measure, what it means, and its class in small print.
function measureName({ name, description, class_name, axis, unit, better }) {
  const details = `${class_name}: ${axis}, ${unit}, ${better} is better`;
  return el("span", {}, name, el("p", { class: "hint" }, description), el("small", { class: "hint" }, details));
}

function measures({ measures: scored }) {
  const both = ["risk", "utility"].flatMap((axis) => scored[axis].map((measure) => ({ ...measure, axis })));
  const heads = [
    "this release",
    "mean of its method",
    "standard error",
    "95 % of releases (from 40 draws)",
    "unmasked file",
  ];
  const table = tableOf(
    [["measure", "words"], ...heads.map((head) => [head, "n"])],
    both.map((one) => [measureName(one), one.release_value, one.mean, one.error, one.spread, one.original]),
  );
  return region(
    "Measures",
    rowsNamed(
      table,
      both.map((one) => `measure ${one.name}`),
    ),
  );
}

// What the method does, step by step.
function steps({ steps: list }) {
  const step = ({ label, description, class_name }) =>
    el(
      "li",
      {},
      el("strong", {}, `${label || class_name}. `),
      description,
      " ",
      el("small", { class: "hint" }, class_name),
    );
  return el("ul", { class: "plain" }, ...list.map(step));
}

function parameters({ spec }) {
  const rows = Object.entries(spec).filter(([name]) => name !== "type");
  const cells = rows.map(([name, value]) => [name, toText(value)]);
  const table = tableOf(["parameter", ["value", "words"]], cells, "No parameter differs from its default.");
  return el(
    "div",
    { class: "narrow" },
    rowsNamed(
      table,
      rows.map(([name]) => `parameter ${name}`),
    ),
  );
}

async function changes(card, id) {
  const place = el("div", {}, quiet("Creating the candidate again …"));
  card.append(place);
  /** @type {Api.Changes} */
  const changed = await get(`${base}/candidates/${id}/changes`);
  const charts = el("div", { class: "columns" });
  const tables = changed.tables.map((part) => {
    const table = tableOf(
      part.head.map((head, at) => (at ? [head, "n"] : head)),
      part.rows,
    );
    table.prepend(el("caption", {}, part.name));
    return region(part.name, table);
  });
  place.replaceChildren(el("h3", {}, "Before and after"), charts, el("div", { class: "columns" }, ...tables));
  for (const [name, spec] of Object.entries(changed.charts))
    await picture(charts, spec, `${name} before and after masking; the table below contains the numbers.`);
  if (!tables.length) place.append(quiet("This candidate changes no value: it is the unmasked file."));
}

async function records(card, id) {
  const place = el("div", {}, el("h3", {}, "Confidentiality plot"), quiet("Counting neighbors …"));
  card.append(place);
  /** @type {Api.Records} */
  const plotted = await get(`${base}/candidates/${id}/records`);
  place.lastChild?.remove();
  if (!plotted.chart) return place.append(quiet(plotted.reason));
  const record = el("div", { class: "record", tabindex: "-1", "aria-live": "polite" });
  const open = (row) => values(record, id, row).catch((error) => complain(error, record));
  const words =
    "Confidentiality plot: the neighbors and the perturbation of each released record; the list below contains the unsafe records.";
  const view = await picture(place, plotted.chart, words);
  view.addEventListener("click", (_, item) => item?.datum?.row !== undefined && open(item.datum.row));
  const { row: numbers, neighbors, perturbation } = /** @type {Record<string, number[]>} */ (plotted.rows);
  const opener = (row) =>
    button(whole(row + 1), () => open(row), { class: "head", "aria-label": `Values of record ${row + 1}` });
  const table = tableOf(
    ["row of the masked file", "neighbors", "perturbation"].map((head) => [head, "n"]),
    numbers.map((row, i) => [opener(row), short(neighbors[i]), short(perturbation[i])]),
  );
  const { left_out: left, records: count } = plotted.counts;
  const leftOut = left ? `${whole(left)} records of size 0 have no relative distance and are left out. ` : "";
  const more = plotted.unsafe > numbers.length ? `The first ${whole(numbers.length)}:` : "";
  place.append(
    el(
      "h3",
      {},
      plotted.unsafe === 1 ? "1 unsafe record" : `${whole(plotted.unsafe)} unsafe records of ${whole(count)}`,
    ),
    el("p", { class: "words" }, plotted.words),
    el("p", { class: "hint words" }, `${leftOut}${more}`),
  );
  if (numbers.length)
    place.append(
      hint("Click a point or a record to see its values before and after."),
      region("Unsafe records", table, "wide tall narrow"),
    );
  place.append(record);
}

async function show(id) {
  const card = el("section", { class: "card", "aria-label": `Candidate ${id}` });
  byId("candidates").append(card);
  try {
    /** @type {Api.CandidateFacts} */
    const candidate = await get(`${base}/candidates/${encodeURIComponent(id)}`);
    const isMade = candidate.status === "ok";
    card.append(
      el("h2", {}, candidate.name),
      quiet(`id ${candidate.id}`),
      steps(candidate),
      isMade ? release(candidate) : el("p", { class: "bad" }, `${candidate.status}: ${candidate.reason}`),
      parameters(candidate),
      el("h3", {}, "Measures"),
      measures(candidate),
    );
    if (isMade) {
      const place = el("div", {});
      card.append(el("h3", {}, "What users of the file will find"), place);
      await analyses(place, candidate.id);
      await changes(card, candidate.id);
      card.append(lazily("Correlations and tables, before and after", (place) => relations(place, candidate.id)));
      await records(card, candidate.id);
    }
  } catch (error) {
    card.append(alarm(error));
  }
  card.dataset.ready = "true";
}

// A form that leads to the release of this candidate; the study stores the reason.
function release({ id }) {
  const box = textBox({ id: `why-${id}`, required: true, maxlength: "2000", spellcheck: null });
  const form = el(
    "form",
    { class: "bar release" },
    el("div", { class: "grow" }, el("label", { for: box.id }, "Why this one"), box),
    el("button", { type: "submit" }, "Release this one …"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    picked.set({ id, reason: box.value.trim() });
    location.assign(page("choose"));
  });
  return form;
}

// Mark the rows that differ between the candidates shown side by side.
function mark() {
  const cards = all("#candidates .card");
  if (cards.length < 2) return;
  const rowsByCard = cards.map((card) => new Map(all("tr[data-row]", card).map((row) => [row.dataset.row, row])));
  for (const name of new Set(rowsByCard.flatMap((rows) => [...rows.keys()]))) {
    const rows = rowsByCard.map((of) => of.get(name));
    const isSame = new Set(rows.map((row) => row?.children[1]?.textContent)).size === 1;
    for (const row of rows) row?.classList.toggle("differs", !isSame);
  }
}

// ---- the table of all ---------------------------------------------------------------------------------------------
/** @type {Set<string>} */
const pinned = new Set([...QUERY_NAMES.map((name) => query.get(name)), ...pins.get()].filter(Boolean));
const goTo = (ids) =>
  location.assign(page("candidate", Object.fromEntries(ids.map((id, at) => [QUERY_NAMES[at], id]))));

/** @param {Api.Map} map */
function table(candidates, map) {
  byId("all").hidden = false;
  const pin = (row) => {
    const box = el("input", { type: "checkbox", "aria-label": `Compare ${row.words}`, checked: pinned.has(row.id) });
    box.addEventListener("change", () => {
      if (box.checked) pinned.add(row.id);
      else pinned.delete(row.id);
      pins.set([...pinned]);
      compare();
    });
    return box;
  };
  const link = (row) => el("a", { href: page("candidate", { id: row.id }) }, row.words);
  /** @type {import("./sorting.js").Column[]} */
  const columns = [
    { title: "compare", value: (row) => (pinned.has(row.id) ? 0 : 1), cell: pin },
    { title: "candidate", kind: "words", value: (row) => row.words, cell: link },
    { title: "risk", kind: "n", value: (row) => row.risk, cell: (row) => short(row.risk) },
    { title: losing(map), kind: "n", value: (row) => row.utility, cell: (row) => short(row.utility) },
    { title: "on the frontier", value: (row) => (row.frontier ? 0 : 1), cell: (row) => (row.frontier ? "yes" : "") },
  ];
  if (map.limits.length)
    columns.push({
      title: "within all limits",
      value: (row) => (row.within ? 0 : 1),
      cell: (row) => (row.within ? "yes" : "no"),
    });
  const sorted = new Sorted(byId("table"), columns, { by: 3, empty: "No candidate matches." });
  const refresh = () => {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const isAny = !byId("frontier-only").checked;
    const fits = (row) => (isAny || row.frontier) && words.every((word) => row.words.toLowerCase().includes(word));
    const shown = candidates.filter(fits);
    sorted.set(shown);
    const first = sorted.left ? `, the first ${whole(shown.length - sorted.left)} shown` : "";
    byId("counted").textContent = `${whole(shown.length)} of ${whole(candidates.length)} candidates${first}`;
  };
  byId("filter").addEventListener("input", refresh);
  byId("frontier-only").addEventListener("change", refresh);
  byId("unpin").addEventListener("click", () => {
    pinned.clear();
    pins.set(null);
    refresh();
    compare();
  });
  byId("compare").addEventListener("click", () => goTo([...pinned]));
  refresh();
  compare();
}

function compare() {
  const count = pinned.size;
  byId("unpin").hidden = !count;
  byId("compare").disabled = count < 2 || count > 3;
  byId("compare").textContent = count > 3 ? "Compare (at most three)" : `Compare ${count || ""}`.trim();
}

// How the parameters of all methods relate to risk and loss.
async function showParameters(place) {
  /** @type {Api.ParameterCharts} */
  const charts = await get(`${base}/parameters`);
  place.replaceChildren();
  if (charts.reason) return place.append(quiet(charts.reason));
  const drawn = {
    coordinates:
      "Parallel coordinates: one line per method, from its risk and loss to its parameters; the frontier is colored.",
    importance: "How much each parameter influences risk and loss.",
  };
  for (const [name, words] of Object.entries(drawn)) {
    await picture(place, charts[name], words);
    place.append(hint(words));
  }
}

async function begin() {
  /** @type {Api.Map | null} */
  const map = await get(`${base}/map`).catch(() => null);
  const candidates = map ? listCandidates(map) : [];
  offer(byId("ids"), candidates);
  let id = query.get("id");
  if (!id && map?.rule) id = (await post(`${base}/choices`, {}).catch(() => ({}))).candidate;
  id ||= candidates.find((row) => row.frontier)?.id ?? null;
  const wanted = [id, query.get("other"), query.get("third")].filter((one) => one !== null);
  BOXES.forEach((box, at) => (byId(box).value = wanted[at] ? nameOf(wanted[at], candidates) : ""));
  if (!wanted.length) {
    const start = el("a", { href: page("sweep") }, "start the sweep");
    byId("candidates").append(el("p", {}, "No candidate has been scored yet: ", start, "."));
  }
  if (map) table(candidates, map);
  byId("matters").append(lazily("What matters: influence of the parameters on risk and loss", showParameters));
  byId("pick").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = BOXES.map((box) => byId(box).value).filter((words) => words.trim());
    goTo(typed.map((words) => idOf(words, candidates)));
  });
  await Promise.all(wanted.map(show));
  mark();
}
begin();
