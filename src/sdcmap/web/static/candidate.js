import { base, byId, complain, el, fill, get, post, short, whole } from "./api.js";
import { drawChart } from "./chart.js";

const query = new URLSearchParams(location.search);

function measures(found) {
  const rows = ["risk", "utility"].flatMap((axis) => found.measures[axis].map((one) => [
    el("span", {}, one.name, el("span", { class: "hint" }, ` ${axis}, ${one.unit}, ${one.better} is better`)),
    one.own, one.mean, one.error, one.spread, one.original]));
  const table = el("table");
  fill(table, [["measure", "words"], ["this release", "n"], ["mean of its method", "n"], ["± error", "n"], ["95 % of releases (from 40 draws)", "n"], ["unmasked", "n"]], rows);
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Measures" }, table);
}

function parameters(found) {
  const table = el("table");
  const rows = Object.entries(found.spec).filter(([name]) => name !== "type").map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]);
  fill(table, ["parameter", "value"], rows, "No parameter differs from its default.");
  return el("div", { class: "narrow" }, table);
}

async function changes(card, id) {
  const place = el("div", {}, el("p", { class: "quiet" }, "Making the candidate again …"));
  card.append(place);
  const found = await get(`${base}/candidates/${id}/changes`);
  const charts = el("div", { class: "columns" });
  const tables = el("div", { class: "columns" });
  place.replaceChildren(el("h3", {}, "Before and after"), charts, tables);
  for (const [name, spec] of Object.entries(found.charts)) {
    const chart = el("div", { class: "chart" });
    charts.append(chart);
    await drawChart(chart, spec, `${name} before and after masking; the table below holds the numbers.`);
  }
  for (const one of found.tables) {
    const table = el("table");
    fill(table, one.head.map((head, place_) => (place_ ? [head, "n"] : head)), one.rows);
    table.prepend(el("caption", {}, one.name));
    tables.append(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": one.name }, table));
  }
  if (!found.tables.length) place.append(el("p", { class: "quiet" }, "Nothing was masked."));
}

async function records(card, id) {
  const place = el("div", {}, el("h3", {}, "Confidentiality plot"), el("p", { class: "quiet" }, "Counting neighbours …"));
  card.append(place);
  const found = await get(`${base}/candidates/${id}/records`);
  place.lastChild.remove();
  if (!found.chart) return place.append(el("p", { class: "quiet" }, found.reason));
  const chart = el("div", { class: "chart" });
  place.append(chart);
  await drawChart(chart, found.chart, "Confidentiality plot: neighbours of each released record and how far it was moved; the list below holds the unsafe ones.");
  const table = el("table");
  const rows = found.rows.row.map((row, i) => [whole(row), short(found.rows.neighbours[i]), short(found.rows.perturbation[i])]);
  fill(table, [["row of the masked file (from 0)", "n"], ["neighbours", "n"], ["perturbation", "n"]], rows);
  const left = found.counts.left_out ? `${whole(found.counts.left_out)} records of size 0 have no relative distance and are left out. ` : "";
  const more = found.unsafe > rows.length ? `The first ${whole(rows.length)}:` : "";
  place.append(el("h3", {}, found.unsafe === 1 ? "1 unsafe record" : `${whole(found.unsafe)} unsafe records of ${whole(found.counts.records)}`), el("p", { class: "hint words" }, `${found.rule} ${left}${more}`));
  if (rows.length) place.append(el("div", { class: "wide tall narrow", tabindex: "0", role: "region", "aria-label": "Unsafe records" }, table));
}

async function show(id) {
  const card = el("section", { class: "card", "aria-label": `Candidate ${id}` });
  byId("candidates").append(card);
  try {
    const found = await get(`${base}/candidates/${encodeURIComponent(id)}`);
    const state = found.status === "ok" ? "" : el("p", { class: "bad" }, `${found.status}: ${found.reason}`);
    card.append(el("h2", {}, found.method), el("p", { class: "quiet" }, `draw ${found.replicate} · ${found.id}`), state, parameters(found), el("h3", {}, "Measures"), measures(found));
    if (found.status === "ok") {
      await changes(card, found.id);
      await records(card, found.id);
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
  const rows = map ? map.points.id.map((id, i) => ({ id, method: map.methods[map.points.method[i]], draw: map.points.replicate[i], frontier: map.points.frontier[i] })) : [];
  byId("ids").replaceChildren(...rows.filter((row) => row.frontier).slice(0, 300).map((row) => el("option", { value: row.id }, `${row.method}, draw ${row.draw}`)));
  let id = query.get("id");
  if (!id && map?.rule) id = (await post(`${base}/choices`, {}).catch(() => ({}))).candidate;
  id ||= rows.find((row) => row.frontier)?.id;
  byId("one").value = id || "";
  byId("two").value = query.get("other") || "";
  const wanted = [id, query.get("other")].filter(Boolean);
  if (!wanted.length) byId("candidates").append(el("p", { class: "quiet" }, "No candidate has been scored yet: start the sweep."));
  await Promise.all(wanted.map(show));
}

byId("pick").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = new URLSearchParams({ id: byId("one").value.trim() });
  if (byId("two").value.trim()) asked.set("other", byId("two").value.trim());
  location.assign(`?${asked}`);
});
begin();
