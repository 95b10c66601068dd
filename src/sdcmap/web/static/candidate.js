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
import { idOf, named, offer, wordsOf } from "./candidates.js";
import { lazily, picture, relations, values } from "./masked.js";
import { Sorted } from "./sorting.js";
import { inWords } from "./values.js";

const query = new URLSearchParams(location.search);
const BOXES = ["first", "second", "third"];
const PLACES = ["id", "other", "third"]; // of the candidates in the address

// ---- one candidate ------------------------------------------------------------------------------------------------
// A table whose rows have names, so that those of candidates side by side are compared.
function rowsNamed(table, names) {
  all("tbody tr", table).forEach((row, place) => names[place] && (row.dataset.row = names[place]));
  return table;
}

function measures({ measures: scored }) {
  const both = ["risk", "utility"].flatMap((axis) => scored[axis].map((measure) => ({ ...measure, axis })));
  const name = ({ name, axis, unit, better }) =>
    el("span", {}, name, el("span", { class: "hint" }, ` ${axis}, ${unit}, ${better} is better`));
  const heads = ["this release", "mean of its method", "± error", "95 % of releases (from 40 draws)", "unmasked"];
  const table = tableOf(
    [["measure", "words"], ...heads.map((head) => [head, "n"])],
    both.map((one) => [name(one), one.own, one.mean, one.error, one.spread, one.original]),
  );
  return region(
    "Measures",
    rowsNamed(
      table,
      both.map((one) => `measure ${one.name}`),
    ),
  );
}

function parameters({ spec }) {
  const rows = Object.entries(spec).filter(([name]) => name !== "type");
  const cells = rows.map(([name, value]) => [name, inWords(value)]);
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
  const place = el("div", {}, quiet("Making the candidate again …"));
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
    await picture(charts, spec, `${name} before and after masking; the table below holds the numbers.`);
  if (!tables.length) place.append(quiet("This candidate changes no value: it is the file as it is."));
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
    "Confidentiality plot: neighbors of each released record and how far it was moved; the list below holds the unsafe ones.";
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
      isMade ? release(candidate) : el("p", { class: "bad" }, `${candidate.status}: ${candidate.reason}`),
      parameters(candidate),
      el("h3", {}, "Measures"),
      measures(candidate),
    );
    if (isMade) {
      await changes(card, candidate.id);
      card.append(lazily("Correlations and tables, before and after", (place) => relations(place, candidate.id)));
      await records(card, candidate.id);
    }
  } catch (error) {
    card.append(alarm(error));
  }
  card.dataset.ready = "true";
}

// To the release of this one, with a reason that is noted in the study.
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

// Of candidates side by side, what is not the same in all of them is marked.
function mark() {
  const cards = all("#candidates .card");
  if (cards.length < 2) return;
  const named_ = cards.map((card) => new Map(all("tr[data-row]", card).map((row) => [row.dataset.row, row])));
  for (const name of new Set(named_.flatMap((rows) => [...rows.keys()]))) {
    const rows = named_.map((of) => of.get(name));
    const isSame = new Set(rows.map((row) => row?.children[1]?.textContent)).size === 1;
    for (const row of rows) row?.classList.toggle("differs", !isSame);
  }
}

// ---- the table of all ---------------------------------------------------------------------------------------------
/** @type {Set<string>} */
const pinned = new Set([...PLACES.map((place) => query.get(place)), ...pins.get()].filter(Boolean));
const goTo = (ids) => location.assign(page("candidate", Object.fromEntries(ids.map((id, at) => [PLACES[at], id]))));

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
  const sorted = new Sorted(byId("table"), columns, { by: 3, empty: "No candidate has these words." });
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

// What the parameters of all methods have to do with risk and loss.
async function matters(place) {
  /** @type {Api.ParameterCharts} */
  const charts = await get(`${base}/parameters`);
  place.replaceChildren();
  if (charts.reason) return place.append(quiet(charts.reason));
  const drawn = {
    coordinates:
      "Parallel coordinates: a line a method, from its risk and loss to its parameters; the frontier in color.",
    importance: "How much each parameter matters for risk and for loss.",
  };
  for (const [name, words] of Object.entries(drawn)) {
    await picture(place, charts[name], words);
    place.append(hint(words));
  }
}

async function begin() {
  /** @type {Api.Map | null} */
  const map = await get(`${base}/map`).catch(() => null);
  const candidates = map ? named(map) : [];
  offer(byId("ids"), candidates);
  let id = query.get("id");
  if (!id && map?.rule) id = (await post(`${base}/choices`, {}).catch(() => ({}))).candidate;
  id ||= candidates.find((row) => row.frontier)?.id ?? null;
  const wanted = [id, query.get("other"), query.get("third")].filter((one) => one !== null);
  BOXES.forEach((box, at) => (byId(box).value = wanted[at] ? wordsOf(wanted[at], candidates) : ""));
  if (!wanted.length) {
    const start = el("a", { href: page("sweep") }, "start the sweep");
    byId("candidates").append(el("p", {}, "No candidate has been scored yet: ", start, "."));
  }
  if (map) table(candidates, map);
  byId("matters").append(lazily("What matters: parameters against risk and loss", matters));
  byId("pick").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = BOXES.map((box) => byId(box).value).filter((words) => words.trim());
    goTo(typed.map((words) => idOf(words, candidates)));
  });
  await Promise.all(wanted.map(show));
  mark();
}
begin();
