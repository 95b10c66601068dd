import { base, byId, complain, el, fill, get, losing, page, picked, pins, post, short, whole } from "./api.js";
import { idOf, named, offer, wordsOf } from "./candidates.js";
import { drawChart } from "./chart.js";
import { lazily, relations, values } from "./masked.js";
import { Sorted } from "./sorting.js";

const query = new URLSearchParams(location.search);

function measures(candidate) {
  const rows = ["risk", "utility"].flatMap((axis) =>
    candidate.measures[axis].map((measure) => [
      el(
        "span",
        {},
        measure.name,
        el("span", { class: "hint" }, ` ${axis}, ${measure.unit}, ${measure.better} is better`),
      ),
      measure.own,
      measure.mean,
      measure.error,
      measure.spread,
      measure.original,
    ]),
  );
  const table = el("table");
  fill(
    table,
    [
      ["measure", "words"],
      ["this release", "n"],
      ["mean of its method", "n"],
      ["± error", "n"],
      ["95 % of releases (from 40 draws)", "n"],
      ["unmasked", "n"],
    ],
    rows,
  );
  name(
    table,
    ["risk", "utility"].flatMap((axis) => candidate.measures[axis].map((measure) => `measure ${measure.name}`)),
  );
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Measures" }, table);
}

function parameters(candidate) {
  const table = el("table");
  const rows = Object.entries(candidate.spec)
    .filter(([name]) => name !== "type")
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]);
  fill(table, ["parameter", "value"], rows, "No parameter differs from its default.");
  name(
    table,
    rows.map(([parameter]) => `parameter ${parameter}`),
  );
  return el("div", { class: "narrow" }, table);
}

async function changes(card, id) {
  const place = el("div", {}, el("p", { class: "quiet" }, "Making the candidate again …"));
  card.append(place);
  const changed = await get(`${base}/candidates/${id}/changes`);
  const charts = el("div", { class: "columns" });
  const tables = el("div", { class: "columns" });
  place.replaceChildren(el("h3", {}, "Before and after"), charts, tables);
  for (const [name, spec] of Object.entries(changed.charts)) {
    const chart = el("div", { class: "chart" });
    charts.append(chart);
    await drawChart(chart, spec, `${name} before and after masking; the table below holds the numbers.`);
  }
  for (const part of changed.tables) {
    const table = el("table");
    fill(
      table,
      part.head.map((head, place_) => (place_ ? [head, "n"] : head)),
      part.rows,
    );
    table.prepend(el("caption", {}, part.name));
    tables.append(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": part.name }, table));
  }
  if (!changed.tables.length)
    place.append(el("p", { class: "quiet" }, "This candidate changes no value: it is the file as it is."));
}

async function records(card, id) {
  const place = el(
    "div",
    {},
    el("h3", {}, "Confidentiality plot"),
    el("p", { class: "quiet" }, "Counting neighbours …"),
  );
  card.append(place);
  const plotted = await get(`${base}/candidates/${id}/records`);
  place.lastChild.remove();
  if (!plotted.chart) return place.append(el("p", { class: "quiet" }, plotted.reason));
  const chart = el("div", { class: "chart" });
  place.append(chart);
  const one = el("div", { class: "record", tabindex: "-1", "aria-live": "polite" });
  const open = (row) => values(one, id, row).catch((error) => complain(error, one));
  const view = await drawChart(
    chart,
    plotted.chart,
    "Confidentiality plot: neighbours of each released record and how far it was moved; the list below holds the unsafe ones.",
  );
  view.addEventListener("click", (event, item) => item?.datum?.row !== undefined && open(item.datum.row));
  const table = el("table");
  const button = (row) =>
    el(
      "button",
      { type: "button", class: "head", "aria-label": `Values of record ${row + 1}`, onclick: () => open(row) },
      whole(row + 1),
    );
  const rows = plotted.rows.row.map((row, i) => [
    button(row),
    short(plotted.rows.neighbours[i]),
    short(plotted.rows.perturbation[i]),
  ]);
  fill(
    table,
    [
      ["row of the masked file", "n"],
      ["neighbours", "n"],
      ["perturbation", "n"],
    ],
    rows,
  );
  const left = plotted.counts.left_out
    ? `${whole(plotted.counts.left_out)} records of size 0 have no relative distance and are left out. `
    : "";
  const more = plotted.unsafe > rows.length ? `The first ${whole(rows.length)}:` : "";
  place.append(
    el(
      "h3",
      {},
      plotted.unsafe === 1
        ? "1 unsafe record"
        : `${whole(plotted.unsafe)} unsafe records of ${whole(plotted.counts.records)}`,
    ),
    el("p", { class: "words" }, plotted.words),
    el("p", { class: "hint words" }, `${left}${more}`),
  );
  if (rows.length)
    place.append(
      el("p", { class: "hint" }, "Click a point or a record to see its values before and after."),
      el("div", { class: "wide tall narrow", tabindex: "0", role: "region", "aria-label": "Unsafe records" }, table),
    );
  place.append(one);
}

// ---- the table of all ---------------------------------------------------------------------------------------------
const pinned = new Set([query.get("id"), query.get("other"), query.get("third"), ...pins.get()].filter(Boolean));

function table(candidates, map) {
  byId("all").hidden = !map;
  if (!map) return;
  const pin = (row) =>
    el("input", {
      type: "checkbox",
      "aria-label": `Compare ${row.words}`,
      checked: pinned.has(row.id),
      onchange: (event) => {
        if (event.target.checked) pinned.add(row.id);
        else pinned.delete(row.id);
        pins.set([...pinned]);
        compare();
      },
    });
  const columns = [
    { title: "compare", value: (row) => (pinned.has(row.id) ? 0 : 1), cell: pin },
    {
      title: "candidate",
      kind: "words",
      value: (row) => row.words,
      cell: (row) => el("a", { href: page("candidate", { id: row.id }) }, row.words),
    },
    { title: "risk", kind: "n", value: (row) => row.risk, cell: (row) => short(row.risk) },
    { title: losing(map), kind: "n", value: (row) => row.utility, cell: (row) => short(row.utility) },
    { title: "on the frontier", value: (row) => (row.frontier ? 0 : 1), cell: (row) => (row.frontier ? "yes" : "") },
    ...(map.limits.length
      ? [
          {
            title: "within all limits",
            value: (row) => (row.within ? 0 : 1),
            cell: (row) => (row.within ? "yes" : "no"),
          },
        ]
      : []),
  ];
  const sorted = new Sorted(byId("table"), columns, { by: 3, empty: "No candidate has these words." });
  const refresh = () => {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = candidates.filter(
      (row) =>
        (!byId("frontier-only").checked || row.frontier) &&
        words.every((word) => row.words.toLowerCase().includes(word)),
    );
    sorted.set(shown);
    byId("counted").textContent =
      `${whole(shown.length)} of ${whole(candidates.length)} candidates${sorted.left ? `, the first ${whole(shown.length - sorted.left)} shown` : ""}`;
  };
  byId("filter").addEventListener("input", refresh);
  byId("frontier-only").addEventListener("change", refresh);
  byId("unpin").addEventListener("click", () => {
    pinned.clear();
    pins.set(null);
    refresh();
    compare();
  });
  byId("compare").addEventListener("click", () =>
    location.assign(
      page("candidate", Object.fromEntries([...pinned].map((id, at) => [["id", "other", "third"][at], id]))),
    ),
  );
  refresh();
  compare();
}

function compare() {
  const count = pinned.size;
  byId("unpin").hidden = !count;
  byId("compare").disabled = count < 2 || count > 3;
  byId("compare").textContent = count > 3 ? "Compare (at most three)" : `Compare ${count || ""}`.trim();
}

// Of candidates side by side, what is not the same in all of them is marked.
function mark() {
  const cards = [...document.querySelectorAll("#candidates .card")];
  if (cards.length < 2) return;
  const cells = cards.map(
    (card) => new Map([...card.querySelectorAll("tr[data-row]")].map((row) => [row.dataset.row, row])),
  );
  for (const name of new Set(cells.flatMap((rows) => [...rows.keys()]))) {
    const rows = cells.map((of) => of.get(name));
    const same =
      new Set(
        rows.map(
          (row) =>
            row &&
            [...row.cells]
              .slice(1, 2)
              .map((cell) => cell.textContent)
              .join(),
        ),
      ).size === 1;
    for (const row of rows) row?.classList.toggle("differs", !same);
  }
}

function name(table, names) {
  [...table.querySelectorAll("tbody tr")].forEach((row, place) => names[place] && (row.dataset.row = names[place]));
}

async function show(id) {
  const card = el("section", { class: "card", "aria-label": `Candidate ${id}` });
  byId("candidates").append(card);
  try {
    const candidate = await get(`${base}/candidates/${encodeURIComponent(id)}`);
    const state =
      candidate.status === "ok" ? "" : el("p", { class: "bad" }, `${candidate.status}: ${candidate.reason}`);
    card.append(
      el("h2", {}, candidate.name),
      el("p", { class: "quiet" }, `id ${candidate.id}`),
      state,
      candidate.status === "ok" ? release(candidate) : "",
      parameters(candidate),
      el("h3", {}, "Measures"),
      measures(candidate),
    );
    if (candidate.status === "ok") {
      await changes(card, candidate.id);
      card.append(lazily("Correlations and tables, before and after", (place) => relations(place, candidate.id)));
      await records(card, candidate.id);
    }
  } catch (error) {
    const alarm = el("div", { class: "alarm", role: "alert" });
    card.append(alarm);
    complain(error, alarm);
  }
  card.dataset.ready = "true";
}

// To the release of this one, with a reason that is noted in the study.
function release(candidate) {
  const box = el("input", { id: `why-${candidate.id}`, required: true, maxlength: "2000", autocomplete: "off" });
  const form = el(
    "form",
    { class: "bar release" },
    el("div", { class: "grow" }, el("label", { for: box.id }, "Why this one"), box),
    el("button", { type: "submit" }, "Release this one …"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    picked.set({ id: candidate.id, reason: box.value.trim() });
    location.assign(page("choose"));
  });
  return form;
}

// What the parameters of all methods have to do with risk and loss.
async function matters(place) {
  const charts = await get(`${base}/parameters`);
  place.replaceChildren();
  if (charts.reason) return place.append(el("p", { class: "quiet" }, charts.reason));
  const drawn = [
    [
      "coordinates",
      "Parallel coordinates: a line a method, from its risk and loss to its parameters; the frontier in colour.",
    ],
    ["importance", "How much each parameter matters for risk and for loss."],
  ];
  for (const [name, words] of drawn) {
    const chart = el("div", { class: "chart" });
    place.append(chart, el("p", { class: "hint" }, words));
    await drawChart(chart, charts[name], words);
  }
}

async function begin() {
  const map = await get(`${base}/map`).catch(() => null);
  const candidates = map ? named(map) : [];
  offer(byId("ids"), candidates);
  let id = query.get("id");
  if (!id && map?.rule) id = (await post(`${base}/choices`, {}).catch(() => ({}))).candidate;
  id ||= candidates.find((row) => row.frontier)?.id;
  const wanted = [id, query.get("other"), query.get("third")].filter(Boolean);
  for (const [box, at] of [
    ["first", 0],
    ["second", 1],
    ["third", 2],
  ])
    byId(box).value = wanted[at] ? wordsOf(wanted[at], candidates) : "";
  if (!wanted.length)
    byId("candidates").append(
      el("p", {}, "No candidate has been scored yet: ", el("a", { href: page("sweep") }, "start the sweep"), "."),
    );
  table(candidates, map);
  byId("matters").append(lazily("What matters: parameters against risk and loss", matters));
  byId("pick").addEventListener("submit", (event) => {
    event.preventDefault();
    const picked = ["first", "second", "third"]
      .map((box) => byId(box).value)
      .filter((text) => text.trim())
      .map((text) => idOf(text, candidates));
    location.assign(
      page("candidate", Object.fromEntries(picked.map((one, at) => [["id", "other", "third"][at], one]))),
    );
  });
  await Promise.all(wanted.map(show));
  mark();
}
begin();
