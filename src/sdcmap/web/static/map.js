import { base, byId, complain, el, fill, get, later, post, root, short, study, svg } from "./api.js";
import { choose } from "./rules.js";
import { Plot, familyOf } from "./ruplot.js";

const LEVER = 1000;
const state = { map: null, rule: { type: "Threshold", risk: 0, slope: 1 }, picked: null };
const plot = new Plot(byId("plot"), { onpick: pick });
plot.after = overlay;
window.workbench = { state, plot, choose };  // what the tests look at

// ---- levers -----------------------------------------------------------------------------------------------------
const threshold = () => byId("rule").value === "Threshold";
const slopes = () => {
  const span = (plot.y[1] - plot.y[0]) / (plot.x[1] - plot.x[0] || 1);
  return [span / 100, span * 100];
};

function leverOf() {
  if (threshold()) return (LEVER * (state.rule.risk - plot.y[0])) / (plot.y[1] - plot.y[0]);
  const [low, high] = slopes();
  return (LEVER * Math.log(Math.max(state.rule.slope, low) / low)) / Math.log(high / low);
}

function fromLever(value) {
  if (threshold()) return plot.y[0] + (value / LEVER) * (plot.y[1] - plot.y[0]);
  const [low, high] = slopes();
  return low * Math.exp((value / LEVER) * Math.log(high / low));
}

function set(value, { from = "" } = {}) {
  if (!Number.isFinite(value)) return;
  const rounded = Number(value.toPrecision(6));
  state.rule[threshold() ? "risk" : "slope"] = threshold() ? rounded : Math.max(0, rounded);
  if (from !== "lever") byId("lever").value = String(Math.round(leverOf()));
  if (from !== "number") byId("lever-number").value = short(rounded);
  byId("lever").setAttribute("aria-valuetext", short(rounded));
  overlay();
  confirm();
}

const ruleNow = () => (threshold() ? { type: "Threshold", risk: state.rule.risk } : { type: "Linear", slope: state.rule.slope });
const axes = () => ({ risk: [byId("risk").value], utility: byId("utility").value });

// ---- what moves -------------------------------------------------------------------------------------------------
function overlay() {
  if (!plot.view || !state.map) return;
  const frame = plot.frame();
  const best = (state.best = choose(state.map, ruleNow(), plot.rows));
  const parts = [];
  if (threshold()) {
    const y = plot.pixel({ utility: plot.x[0], risk: state.rule.risk })[1];
    const inside = Math.min(frame.bottom, Math.max(frame.top, y));
    const over = state.map.signs[0] > 0 ? [frame.top, inside] : [inside, frame.bottom];
    parts.push(svg("rect", { class: "shade", x: frame.left, y: over[0], width: frame.right - frame.left, height: Math.max(0, over[1] - over[0]) }));
    parts.push(svg("line", { class: "limit", x1: frame.left, x2: frame.right, y1: inside, y2: inside }));
    parts.push(svg("circle", { class: "knob", cx: frame.right, cy: inside, r: 6 }));
    parts.push(plot.grip({ x1: frame.left, x2: frame.right, y1: inside, y2: inside }, "grip", (_, risk) => set(risk), overlay));
  } else if (best) {
    const across = (utility) => ({ utility, risk: (best.turned + state.rule.slope * (best.loss - state.map.signs[1] * utility)) / state.map.signs[0] });
    const [[x1, y1], [x2, y2]] = plot.x.map((utility) => plot.pixel(across(utility)));
    const id = "inside-frame";
    const clip = svg("clipPath", { id });
    clip.append(svg("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top }));
    const line = { x1, y1, x2, y2, "clip-path": `url(#${id})` };
    parts.push(clip, svg("line", { class: "tangent", ...line }));
    parts.push(plot.grip(line, "grip turn", (utility, risk, first) => {
      first.best ||= best;  // turned about the point that was chosen when the drag began
      const run = state.map.signs[1] * utility - first.best.loss;
      const rise = first.best.turned - state.map.signs[0] * risk;
      if (Math.abs(run) > 1e-12) set(Math.max(0, rise / run));
    }, overlay));
  }
  if (best) parts.push(svg("circle", { class: "ring", cx: plot.pixel(best)[0], cy: plot.pixel(best)[1], r: 9 }));
  if (state.picked) parts.push(svg("circle", { class: "picked", cx: plot.pixel(state.picked)[0], cy: plot.pixel(state.picked)[1], r: 12 }));
  plot.lay(parts);
  if (!state.confirmed || state.confirmed !== best?.id) sketch(best);
}

// ---- the choice -------------------------------------------------------------------------------------------------
const link = (id, words = id) => el("a", { href: `${root}/studies/${encodeURIComponent(study)}/candidate?id=${encodeURIComponent(id)}` }, words);

function sketch(best) {
  state.confirmed = null;
  byId("choice").replaceChildren(best
    ? el("div", { class: "verdict" }, el("strong", {}, best.name), el("p", {}, `risk ${short(best.risk)}, utility ${short(best.utility)}`))
    : el("div", { class: "verdict" }, el("strong", {}, "Release nothing")));
}

const confirm = later(200, async () => {
  const asked = { rule: ruleNow(), ...axes() };
  let choice;
  try {
    choice = await post(`${base}/choices`, asked);
  } catch (error) {
    return complain(error, byId("choice"));
  }
  if (JSON.stringify({ rule: ruleNow(), ...axes() }) !== JSON.stringify(asked)) return;
  state.confirmed = choice.candidate;
  state.choice = choice;
  const runners = choice.runners_up.map((words) => el("li", {}, words));
  byId("choice").replaceChildren(
    el("div", { class: "verdict" }, el("p", {}, choice.reason), choice.candidate ? el("p", {}, link(choice.candidate, "Open this candidate")) : null),
    ...(runners.length ? [el("h3", {}, "Runners-up"), el("ul", {}, ...runners)] : []),
  );
  document.body.dataset.confirmed = choice.candidate || "nothing";
});

function pick(row) {
  state.picked = row.id ? row : plot.rows.find((point) => point.method === row.method);
  const point = state.picked;
  byId("point").replaceChildren(
    el("p", {}, el("strong", {}, point.name)),
    el("p", {}, `draw ${point.replicate} · risk ${short(point.risk)} · utility ${short(point.utility)}${point.frontier ? " · on the frontier" : ""}`),
    el("p", {}, link(point.id, "Open"), " · ", el("a", { href: `${root}/studies/${encodeURIComponent(study)}/candidate?id=${encodeURIComponent(point.id)}&other=${encodeURIComponent(state.best?.id || "")}` }, "Beside the choice")),
  );
  overlay();
}

function table() {
  const all = byId("rows").value === "all";
  const mean = byId("by").value === "mean";
  const sorted = plot.shown().filter((row) => all || row.frontier).sort((a, b) => a.loss - b.loss || a.turned - b.turned);
  const rows = [];
  for (const row of sorted) {  // releases with the same two numbers share a row
    const last = rows.at(-1);
    if (last && last.risk === row.risk && last.utility === row.utility) last.more += 1;
    else if (rows.length < 200) rows.push({ ...row, more: 0 });
    else break;
  }
  const share = (row) => (row.membership === null || row.membership === undefined ? "" : `${Math.round(100 * row.membership)} %`);
  const cells = rows.map((row) => [
    el("button", { type: "button", class: "second", "aria-label": `Show ${row.name}${mean ? "" : `, draw ${row.replicate}`}`, onclick: () => pick(row) }, "○"),
    el("span", {}, row.name, row.more ? el("span", { class: "hint" }, ` and ${row.more} more at this point`) : ""), ...(mean ? [share(row)] : [String(row.replicate)]), short(row.risk), short(row.utility)]);
  fill(byId("table"), [el("span", { class: "hidden" }, "show"), ["method", "words"], [mean ? "on the frontier" : "draw", "n"], ["risk", "n"], ["utility", "n"]], cells, "No point yet.");
}

// ---- the map ----------------------------------------------------------------------------------------------------
function options(box, names, chosen) {
  box.replaceChildren(...names.map((name) => el("option", { value: name, selected: name === chosen }, name)));
}

async function load(query = "") {
  const map = await get(`${base}/map${query}`);
  const first = !state.map;
  state.map = map;
  options(byId("risk"), map.measures.filter((m) => m.axis === "risk").map((m) => m.name), map.risk[0]);
  options(byId("utility"), map.measures.filter((m) => m.axis === "utility").map((m) => m.name), map.utility);
  if (first && map.expectation) byId("by").value = "mean";
  if (first && map.rule?.type === "Linear") byId("rule").value = "Linear";
  await plot.set(map, { by: byId("by").value });
  families();
  table();
  if (first || query) {
    const middle = (plot.y[0] + plot.y[1]) / 2;
    state.rule.risk = map.rule?.type === "Threshold" && !query ? map.rule.risk || 0 : middle;
    state.rule.slope = map.rule?.type === "Linear" && !query ? map.rule.slope ?? 1 : (plot.y[1] - plot.y[0]) / (plot.x[1] - plot.x[0] || 1);
  }
  lever();
  const exported = new URLSearchParams({ by: byId("by").value, ...(query ? { risk: byId("risk").value, utility: byId("utility").value } : {}) });
  for (const form of ["png", "svg", "csv"]) byId(form).href = `${base}/map.${form}?${exported}`;
}

function lever() {
  byId("lever-label").textContent = threshold() ? "Risk limit" : "Slope: risk that one unit of loss is worth";
  set(threshold() ? state.rule.risk : state.rule.slope);
}

function families() {
  const known = [...byId("families").querySelectorAll("input")].map((box) => box.value).join();
  if (known === plot.families.join()) return;
  byId("families").replaceChildren(...plot.families.map((family) => el("label", {}, el("input", {
    type: "checkbox", value: family, checked: true,
    onchange: async (event) => {
      if (event.target.checked) plot.hidden.delete(family); else plot.hidden.add(family);
      await plot.redraw();
      table();
    },
  }), family)));
}

const again = () => load(`?${new URLSearchParams({ risk: byId("risk").value, utility: byId("utility").value })}`).catch((error) => complain(error, byId("choice")));
byId("risk").addEventListener("change", again);
byId("utility").addEventListener("change", again);
byId("by").addEventListener("change", async () => { await plot.set(state.map, { by: byId("by").value }); table(); });
byId("rows").addEventListener("change", table);
byId("rule").addEventListener("change", lever);
byId("lever").addEventListener("input", (event) => set(fromLever(Number(event.target.value)), { from: "lever" }));
byId("lever-number").addEventListener("change", (event) => set(Number(event.target.value), { from: "number" }));

load().then(async function follow() {
  const { state: sweeping } = await get(`${base}/sweep`);
  if (!sweeping.startsWith("running")) return;
  setTimeout(async () => {
    const query = byId("risk").value !== state.map.risk[0] ? `?${new URLSearchParams(axes())}` : "";
    state.map = await get(`${base}/map${query}`);
    await plot.set(state.map, { by: byId("by").value });
    table();
    follow();
  }, 2500);
}).catch((error) => complain(error, byId("choice")));
