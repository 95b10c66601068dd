import { base, byId, complain, el, fill, get, post, short, whole } from "./api.js";
import { drawChart } from "./chart.js";

const query = new URLSearchParams(location.search);

function measures(candidate) {
  const rows = ["risk", "utility"].flatMap((axis) => candidate.measures[axis].map((measure) => [
    el("span", {}, measure.name, el("span", { class: "hint" }, ` ${axis}, ${measure.unit}, ${measure.better} is better`)),
    measure.own, measure.mean, measure.error, measure.spread, measure.original]));
  const table = el("table");
  fill(table, [["measure", "words"], ["this release", "n"], ["mean of its method", "n"], ["± error", "n"], ["95 % of releases (from 40 draws)", "n"], ["unmasked", "n"]], rows);
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Measures" }, table);
}

function parameters(candidate) {
  const table = el("table");
  const rows = Object.entries(candidate.spec).filter(([name]) => name !== "type").map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]);
  fill(table, ["parameter", "value"], rows, "No parameter differs from its default.");
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
    fill(table, part.head.map((head, place_) => (place_ ? [head, "n"] : head)), part.rows);
    table.prepend(el("caption", {}, part.name));
    tables.append(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": part.name }, table));
  }
  if (!changed.tables.length) place.append(el("p", { class: "quiet" }, "Nothing was masked."));
}

async function records(card, id) {
  const place = el("div", {}, el("h3", {}, "Confidentiality plot"), el("p", { class: "quiet" }, "Counting neighbours …"));
  card.append(place);
  const plotted = await get(`${base}/candidates/${id}/records`);
  place.lastChild.remove();
  if (!plotted.chart) return place.append(el("p", { class: "quiet" }, plotted.reason));
  const chart = el("div", { class: "chart" });
  place.append(chart);
  await drawChart(chart, plotted.chart, "Confidentiality plot: neighbours of each released record and how far it was moved; the list below holds the unsafe ones.");
  const table = el("table");
  const rows = plotted.rows.row.map((row, i) => [whole(row), short(plotted.rows.neighbours[i]), short(plotted.rows.perturbation[i])]);
  fill(table, [["row of the masked file (from 0)", "n"], ["neighbours", "n"], ["perturbation", "n"]], rows);
  const left = plotted.counts.left_out ? `${whole(plotted.counts.left_out)} records of size 0 have no relative distance and are left out. ` : "";
  const more = plotted.unsafe > rows.length ? `The first ${whole(rows.length)}:` : "";
  place.append(el("h3", {}, plotted.unsafe === 1 ? "1 unsafe record" : `${whole(plotted.unsafe)} unsafe records of ${whole(plotted.counts.records)}`), el("p", { class: "hint words" }, `${plotted.rule} ${left}${more}`));
  if (rows.length) place.append(el("div", { class: "wide tall narrow", tabindex: "0", role: "region", "aria-label": "Unsafe records" }, table));
}

async function show(id) {
  const card = el("section", { class: "card", "aria-label": `Candidate ${id}` });
  byId("candidates").append(card);
  try {
    const candidate = await get(`${base}/candidates/${encodeURIComponent(id)}`);
    const state = candidate.status === "ok" ? "" : el("p", { class: "bad" }, `${candidate.status}: ${candidate.reason}`);
    card.append(el("h2", {}, candidate.name), el("p", { class: "quiet" }, `id ${candidate.id}`), state, parameters(candidate), el("h3", {}, "Measures"), measures(candidate));
    if (candidate.status === "ok") {
      await changes(card, candidate.id);
      await records(card, candidate.id);
    }
  } catch (error) {
    const alarm = el("div", { class: "alarm", role: "alert" });
    card.append(alarm);
    complain(error, alarm);
  }
  card.dataset.ready = "true";
}

async function begin() {
  const map = await get(`${base}/map`).catch(() => null);
  const rows = map ? map.points.id.map((id, i) => ({ id, name: map.names[map.points.method[i]], draw: map.points.replicate[i], frontier: map.points.frontier[i] })) : [];
  byId("ids").replaceChildren(...rows.filter((row) => row.frontier).slice(0, 300).map((row) => el("option", { value: row.id }, `${row.name}, draw ${row.draw}`)));
  let id = query.get("id");
  if (!id && map?.rule) id = (await post(`${base}/choices`, {}).catch(() => ({}))).candidate;
  id ||= rows.find((row) => row.frontier)?.id;
  byId("first").value = id || "";
  byId("second").value = query.get("other") || "";
  const wanted = [id, query.get("other")].filter(Boolean);
  if (!wanted.length) byId("candidates").append(el("p", { class: "quiet" }, "No candidate has been scored yet: start the sweep."));
  await Promise.all(wanted.map(show));
}

byId("pick").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = new URLSearchParams({ id: byId("first").value.trim() });
  if (byId("second").value.trim()) asked.set("other", byId("second").value.trim());
  location.assign(`?${asked}`);
});
begin();
