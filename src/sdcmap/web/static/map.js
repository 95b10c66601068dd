import {
  base,
  button,
  byId,
  complain,
  draw,
  el,
  fill,
  get,
  later,
  losing,
  page,
  quiet,
  short,
  svg,
  tried,
} from "./api.js";
import { saveToAddress, savedView } from "./address.js";
import { candidateLink, showChoice } from "./choices.js";
import { Levers } from "./levers.js";
import { Limits } from "./limits.js";
import { clamp, text } from "./picture.js";
import { firstExceeded } from "./points.js";
import { brief, Plot } from "./ruplot.js";
import { Selection } from "./selection.js";
import { word } from "./words.js";

/** @typedef {import("./points.js").Row} Row */

const SLIDER_STEPS = 1000;
const CURVE_PIECES = 60; // of a line of equal cost on a logarithmic axis
const RULES = {
  // rules with one number
  Threshold: { lever: "risk", label: "Risk limit", default: 0 },
  Linear: { lever: "slope", label: "Slope: risk that one unit of loss is worth", default: 1 },
  IdealPoint: { lever: "weight", label: "Weight of risk, from 0 to 1", default: 0.5 },
};
const state = {
  /** @type {Api.Map | null} */
  map: null,
  /** @type {Record<string, any> | null} the plan's rule */
  own: null,
  ownUtility: "",
  /** @type {Record<string, any>} the rule that is set, with the numbers of all levers */
  rule: { type: "Threshold", risk: null, slope: null, weight: null },
  /** @type {Record<string, number> | null} limits by measure; null: the plan's */
  limits: null,
  /** @type {Row | null | undefined} what is chosen; null: nothing, undefined: not known yet */
  best: undefined,
  /** @type {Api.ChosenCandidate | null} the service's answer, where it is of what is set now */
  choice: null,
  /** @type {string | null} */
  picked: savedView.point,
};
const selection = new Selection(byId("selected"), byId("selected-head"), {
  onzoom: (part) => plot.lookAt(part),
  onchange: () => {
    table();
    saveView();
  },
});
const plot = new Plot(byId("plot"), {
  onpick: pick,
  onbrush: (rows, part) => selection.add(rows, part),
  onmove: () => saveView(),
  query: axesQuery,
});
const limits = new Limits(byId("limits"), hold);
const levers = new Levers(() => ({ rule: ruleNow(), limits: limitsNow(), axes: axes() }), {
  body: () => ({ rule: isOwn() ? null : ruleNow(), limits: state.limits, ...(onOwnAxes() ? {} : axes()) }),
  onchoice: confirmChoice,
  onproblem: (error) => complain(error, byId("choice")),
});
plot.after = overlay;
window.workbench = { state, plot, selection, levers }; // for the tests

// ---- the rule -----------------------------------------------------------------------------------------------------
const shownMap = () => /** @type {Api.Map} */ (state.map);
const limitsNow = () => state.limits ?? state.map?.measure_limits ?? {};
const isLevered = () => state.rule.type in RULES;
const lever = () => RULES[state.rule.type].lever;
const value = () => state.rule[lever()];
// Further attackers can be added to one that is selected.
const axes = () => ({
  risk: byId("risk").value ? [...new Set([byId("risk").value, ...furtherRisks()])] : [],
  utility: byId("utility").value,
});
const furtherBoxes = () => /** @type {HTMLInputElement[]} */ ([...byId("other-risks").querySelectorAll("input")]);
const furtherRisks = () => furtherBoxes().flatMap((box) => (box.checked ? [box.value] : []));
const onOwnAxes = () => !axes().risk.length && axes().utility === state.ownUtility;

function axesQuery() {
  if (onOwnAxes()) return new URLSearchParams();
  const { risk, utility } = axes();
  return new URLSearchParams([...risk.map((name) => ["risk", name]), ["utility", utility]]);
}

function query() {
  const asked = axesQuery();
  if (state.limits) asked.append("limits", JSON.stringify(state.limits));
  return asked.size ? `?${asked}` : "";
}

// The rule as the service expects it; null while none is set.
function ruleNow() {
  const { type } = state.rule;
  if (!isLevered()) return state.own;
  if (value() === null) return null;
  return { ...(state.own?.type === type ? state.own : {}), type, [lever()]: value() };
}
const isOwn = () =>
  state.own && onOwnAxes() && !state.limits && JSON.stringify(ruleNow()) === JSON.stringify(state.own);

// The whole view is stored in the address, so that it can be shared and survives a reload. A rule that was tried here is
// also passed to the page "Choose and release".
const saveView = later(150, () => {
  if (!state.map) return;
  const part = plot.seen && [...plot.seen.x, ...plot.seen.y].map((end) => Number(end.toPrecision(6)));
  saveToAddress({
    risk: axes().risk,
    utility: onOwnAxes() ? "" : axes().utility,
    by: byId("by").value,
    color: plot.coloring === "era" ? "era" : "",
    rows: byId("rows").value,
    rule: isOwn() ? "" : state.rule.type,
    at: isOwn() || !isLevered() ? "" : (value() ?? ""),
    limits: state.limits ? JSON.stringify(state.limits) : "",
    see: part?.join() ?? "",
    point: state.picked ?? "",
    hide: [...plot.hidden],
    selected: selection.ids,
  });
  const isTried = ruleNow() && !isOwn();
  const trial = { rule: ruleNow(), ...(state.limits ? { limits: state.limits } : {}), ...(onOwnAxes() ? {} : axes()) };
  tried.set(isTried ? trial : null);
});

// ---- levers -----------------------------------------------------------------------------------------------------
// The ends of the slider, and whether its scale is logarithmic.
function scaleOf() {
  const [[low, high], [left, right]] = [plot.y, plot.x];
  const span = (high - low) / (right - left || 1);
  if (state.rule.type === "Linear") return { low: Math.log(span / 100), high: Math.log(span * 100), isLog: true };
  if (state.rule.type === "IdealPoint") return { low: 0, high: 1 };
  return plot.isLog ? { low: Math.log(low), high: Math.log(high), isLog: true } : { low, high };
}

function leverOf(number) {
  const { low, high, isLog } = scaleOf();
  const at = isLog ? Math.log(Math.max(number, Math.exp(low))) : number;
  return String(Math.round((SLIDER_STEPS * (at - low)) / (high - low)));
}

function fromLever(position) {
  const { low, high, isLog } = scaleOf();
  const at = low + (position / SLIDER_STEPS) * (high - low);
  return isLog ? Math.exp(at) : at;
}

/** @param {number | null} number */
function set(number, from = "") {
  if (number !== null && !Number.isFinite(number)) return;
  const least = state.rule.type === "Threshold" ? -Infinity : 0,
    most = state.rule.type === "IdealPoint" ? 1 : Infinity;
  const rounded = number === null ? null : clamp(Number(number.toPrecision(6)), least, most);
  state.rule[lever()] = rounded;
  if (from !== "lever") byId("lever").value = rounded === null ? String(SLIDER_STEPS / 2) : leverOf(rounded);
  if (from !== "number") byId("lever-number").value = rounded === null ? "" : short(rounded);
  byId("lever").setAttribute("aria-valuetext", rounded === null ? "not set" : short(rounded));
  follow(["rule", lever()]);
}

// A slider was moved: look up the choice at once, and let the service confirm it when the slider rests.
/** @param {import("./levers.js").LeverName} moved */
function follow(moved) {
  const id = levers.at(moved);
  state.best = id === undefined ? undefined : (plot.rows.find((row) => row.id === id) ?? null);
  state.choice = null;
  overlay();
  sketch();
  levers.ask();
  saveView();
}

// ---- limits by measure ---------------------------------------------------------------------------------------------
function hold(next, measure) {
  state.limits = next;
  if (shownMap().limits.length) return again(); // the risk axis is a share of limits, so the whole map changes
  applyLimits();
  plot.frameOnce("limits", () => plot.draw());
  follow(["limits", measure]);
}
const again = later(200, () => load().catch((error) => complain(error, byId("choice"))));

// Points that exceed a limit are drawn faint.
function applyLimits() {
  const outside = firstExceeded(shownMap(), limitsNow());
  for (const row of [...plot.rows, ...plot.means, ...plot.traced]) row.outside = outside(row);
}

// ---- what moves -------------------------------------------------------------------------------------------------
// A limit on the risk axis, as a line that can be dragged; a text if it is outside the visible range.
function limitLine({ risk, kind, words, move }, turn) {
  const { left, right, top, bottom } = plot.frame();
  const [low, high] = (plot.seen || plot).y;
  const at = clamp(plot.sy.at(risk), top, bottom);
  const [from, to] = shownMap().signs[0] > 0 ? [top, at] : [at, bottom];
  const shade = svg("rect", { class: "shade", x: left, y: from, width: right - left, height: Math.max(0, to - from) });
  if (risk < low || risk > high) {
    const isAbove = risk > high,
      y = isAbove ? top + 16 + 16 * turn : bottom - 8 - 16 * turn;
    const note = `${isAbove ? "▲" : "▼"} ${words}, ${short(risk)}, is ${isAbove ? "above" : "below"} the visible range`;
    return [shade, text(note, { class: "region off", x: left + 8, y })];
  }
  const line = { x1: left, x2: right, y1: at, y2: at };
  const drag = (_, value_) => plot.frameOnce("drag", () => move(clamp(value_, low, high)));
  return [
    shade,
    svg("line", { class: `limit ${kind}`, ...line }),
    svg("circle", { class: "knob", cx: right, cy: at, r: 6 }),
    plot.grip(line, `grip ${kind}`, drag, dropped),
  ];
}

// A limit on the utility axis, as an upright line that can be dragged; a text if it is outside the visible range.
function utilityLimitLine({ utility, words, move }) {
  const { left, right, top, bottom } = plot.frame();
  const [low, high] = (plot.seen || plot).x;
  const at = clamp(plot.sx.at(utility), left, right);
  const [from, to] = shownMap().signs[1] > 0 ? [at, right] : [left, at];
  const shade = svg("rect", { class: "shade", x: from, y: top, width: Math.max(0, to - from), height: bottom - top });
  if (utility < low || utility > high) {
    const isRight = utility > high;
    const side = isRight ? "right of" : "left of";
    const note = `${isRight ? "▶" : "◀"} ${words}, ${short(utility)}, is ${side} the visible range`;
    const place = isRight ? { x: right - 8, "text-anchor": "end" } : { x: left + 8 };
    return [shade, text(note, { class: "region off", y: (top + bottom) / 2, ...place })];
  }
  const line = { x1: at, x2: at, y1: top, y2: bottom };
  const drag = (value_) => plot.frameOnce("drag", () => move(clamp(value_, low, high)));
  return [
    shade,
    svg("line", { class: "limit held of-utility", ...line }),
    svg("circle", { class: "knob", cx: at, cy: top, r: 6 }),
    plot.grip(line, "grip side", drag, dropped),
  ];
}

function dropped() {
  plot.flush("drag");
  overlay();
}

function limitLines() {
  const { risk, utility, limits: scales, signs } = shownMap(),
    [sign, across] = signs.map((one) => (one > 0 ? "≤" : "≥"));
  const own = risk.length === 1 && !scales.length ? risk[0] : "";
  const lines = [];
  if (state.rule.type === "Threshold" && value() !== null)
    lines.push({ risk: value(), kind: "", words: "the limit", text: "limit: risk", move: (number) => set(number) });
  if (own && limitsNow()[own] !== undefined)
    lines.push({
      risk: limitsNow()[own],
      kind: "held",
      words: `the limit of ${own}`,
      text: own,
      move: (number) => limits.set(own, number),
    });
  const upright = [];
  if (limitsNow()[utility] !== undefined)
    upright.push({
      utility: limitsNow()[utility],
      words: `the limit of ${utility}`,
      text: utility,
      move: (number) => limits.set(utility, number),
    });
  plot.guides = [
    ...lines.map((line) => ({ risk: line.risk, words: `${line.text} ${sign} ${short(line.risk)}` })),
    ...upright.map((line) => ({ utility: line.utility, words: `${line.text} ${across} ${short(line.utility)}` })),
  ];
  return [...lines.flatMap(limitLine), ...upright.flatMap(utilityLimitLine)];
}

// The line of points that are as good as the choice by a linear rule: risk + slope * loss is constant along it.
function slopeLine() {
  const best = state.best;
  if (state.rule.type !== "Linear" || !best || value() === null) return [];
  const { left, right, top, bottom } = plot.frame(),
    [up, across] = shownMap().signs;
  // On a logarithmic axis it is a curve, drawn in short pieces.
  const [low, high] = (plot.seen || plot).x,
    pieces = plot.isLog ? CURVE_PIECES : 1;
  const ends = Array.from({ length: pieces + 1 }, (_, i) => {
    const utility = low + (i / pieces) * (high - low);
    return plot.at(utility, best.risk + up * value() * (best.loss - across * utility));
  });
  const clip = svg("clipPath", { id: "inside-frame" });
  clip.append(svg("rect", { x: left, y: top, width: right - left, height: bottom - top }));
  const lines = ends.slice(1).flatMap(([x2, y2], i) => {
    const [x1, y1] = ends[i];
    return Number.isFinite(y1 + y2) ? [{ x1, y1, x2, y2, "clip-path": "url(#inside-frame)" }] : [];
  });
  const turn = (utility, risk, first) => {
    first.best ||= best; // rotate around the point that was chosen when the drag began
    const run = across * utility - first.best.loss,
      rise = up * (first.best.risk - risk);
    if (Math.abs(run) > 1e-12) plot.frameOnce("drag", () => set(Math.max(0, rise / run)));
  };
  const drawn = lines.map((line) => svg("line", { class: "tangent", ...line }));
  return [clip, ...drawn, ...lines.map((line) => plot.grip(line, "grip turn", turn, dropped))];
}

function overlay() {
  if (!plot.box || !state.map) return;
  const isSeen = (row) => row && plot.isInside(plot.pixel(row), 1);
  const rings = (rows, kind, r) => rows.filter(isSeen).map((row) => plot.ring(plot.pixel(row), kind, r));
  plot.lay([
    ...limitLines(),
    ...slopeLine(),
    ...rings(selection.rows(plot.rows), "selected", 7),
    ...rings([state.best && decisive(state.best)], "ring", 9),
    ...rings([plot.rows.find((row) => row.id === state.picked)], "picked", 12),
  ]);
  plot.chosen = state.best ?? null;
  plot.drawLabels();
}

// ---- the choice -------------------------------------------------------------------------------------------------
const numbers = (row) => `risk ${short(row.risk)}, ${losing(state.map)} ${short(row.utility)}`;

// Where methods are compared, the numbers of a candidate are those of its method, pooled over its draws.
/** @param {Row} row @returns {Row} */
const decisive = (row) => (state.map?.expectation && plot.means.find((mean) => mean.method === row.method)) || row;

// Show the candidate before the service has confirmed it with a reason.
function sketch() {
  const rule = ruleNow(),
    best = state.best;
  byId("choice-head").textContent = isOwn() ? "The choice" : rule ? "What this rule would choose" : "No rule yet";
  if (!rule) return nothingSet();
  const name = best === undefined ? "Computing …" : best === null ? "Release nothing" : best.name;
  byId("choice").replaceChildren(
    el("div", { class: "verdict" }, el("strong", {}, name), best ? el("p", {}, numbers(decisive(best))) : null),
  );
}

function nothingSet() {
  const why = state.own ? "The plan's rule uses other axes." : "The plan has no rule, so nothing is chosen.";
  const link = el("a", { href: page("plan") }, "add a rule to the plan");
  byId("choice").replaceChildren(el("p", {}, `${why} Set a limit to see what it would choose, or `, link, "."));
  document.body.dataset.confirmed = "no rule";
}

/** @param {Api.ChosenCandidate} choice */
function confirmChoice(choice) {
  state.choice = choice;
  state.best = plot.rows.find((row) => row.id === choice.candidate) ?? null;
  sketch();
  const origin = state.own ? " instead of the plan's rule" : ", which is not in the plan";
  const release = el("a", { href: page("choose") }, "Choose and release with this rule");
  const next = isOwn() ? [] : [el("p", {}, release, el("span", { class: "hint" }, origin))];
  showChoice(byId("choice"), choice, "state another limit", ...next);
  document.body.dataset.confirmed = choice.candidate || "nothing";
  overlay();
}

function pick(row) {
  state.picked = row.id ?? plot.rows.find((one) => one.method === row.method)?.id ?? null;
  point();
  overlay();
  saveView();
}

// The selected point, with its values on these axes.
function point() {
  if (!state.picked) return;
  const row = plot.rows.find((one) => one.id === state.picked),
    node = byId("point");
  if (!row) return node.replaceChildren(quiet("The selected point has no value on these axes."));
  const other = state.best?.id,
    beside = other && page("candidate", { id: row.id, other });
  node.replaceChildren(
    el("p", {}, el("strong", {}, row.name)),
    el("p", {}, `${draw(row)} · ${numbers(row)}${row.frontier ? " · on the frontier" : ""}`),
    state.map?.expectation ? el("p", {}, `pooled over the draws, which decides: ${numbers(decisive(row))}`) : "",
    row.worse
      ? el("p", { class: "bad" }, "worse than not masking: more risk and less utility than the unmasked file")
      : "",
    row.outside ? el("p", { class: "bad" }, `exceeds the limit of ${row.outside}`) : "",
    el(
      "p",
      {},
      candidateLink(row.id, "Open"),
      ...(beside ? [" · ", el("a", { href: beside }, "Compare with the choice")] : []),
    ),
  );
}

function table() {
  const isAll = byId("rows").value === "all",
    isMean = plot.by !== "release",
    [up] = shownMap().signs;
  // A method is on the curve of each attacker; the table lists it once.
  const listed =
    plot.by === "curve" ? plot.means.filter((row) => !row.anchor && !plot.hidden.has(row.family)) : plot.list;
  const sorted = listed
    .filter((row) => isAll || row.frontier)
    .sort((a, b) => a.loss - b.loss || up * (a.risk - b.risk));
  /** @type {(Row & { more: number })[]} */
  const rows = [];
  for (const row of sorted) {
    // releases with equal risk and utility share a row
    const last = rows.at(-1);
    if (last && last.risk === row.risk && last.utility === row.utility) last.more += 1;
    else if (rows.length < 200) rows.push({ ...row, more: 0 });
    else break;
  }
  const share = (/** @type {Row} */ { membership }) =>
    typeof membership === "number" ? `${Math.round(100 * membership)} %` : "";
  const opener = (row) => {
    const words = `${row.name}${isMean ? "" : `, ${draw(row)}`}: show it`;
    return button(row.name, () => pick(row), { class: "head link", "aria-label": words });
  };
  const cells = rows.map((row) => [
    ...(isMean ? [] : [selection.box(row)]),
    el("span", {}, opener(row), row.more ? el("span", { class: "hint" }, ` and ${row.more} more at this point`) : ""),
    isMean ? share(row) : String((row.replicate ?? 0) + 1),
    short(row.risk),
    short(row.utility),
  ]);
  const heads = [
    ...(isMean ? [] : [el("span", { class: "hidden" }, "select")]),
    ["method", "words"],
    [isMean ? word("frontier", "on the frontier") : word("draw"), "n"],
    [word("risk"), "n"],
    [word(losing(state.map)), "n"],
  ];
  fill(byId("table"), heads, cells, "No point yet.");
}

// ---- the map ----------------------------------------------------------------------------------------------------
// Fill the controls from the plan; its own axis comes first.
/** @param {Api.Map} map */
function settle(map) {
  const own = map.rule && RULES[map.rule.type];
  state.own = map.rule && { ...(own ? { [own.lever]: own.default } : {}), ...map.rule };
  state.ownUtility = map.utility;
  const options = (axis, chosen = "") =>
    map.measures
      .filter((one) => one.axis === axis)
      .map(({ name, title, description }) =>
        el("option", { value: name, title: `${description} ${name}`, selected: name === chosen }, title),
      );
  byId("risk").replaceChildren(
    el("option", { value: "", selected: true }, `the plan's: ${map.labels[0]}`),
    ...options("risk"),
    ...options("utility"), // two users against each other
  );
  const risks = map.measures.filter((one) => one.axis === "risk");
  byId("other-risks").replaceChildren(
    ...risks.map(({ name, title, description }) => {
      const box = el("input", { type: "checkbox", value: name });
      box.addEventListener("change", otherAxes);
      return el("label", { title: `${description} ${name}` }, box, title);
    }),
  );
  byId("utility").replaceChildren(...options("utility", map.utility));
  if (state.own && !own)
    byId("rule").append(el("option", { value: state.own.type }, `the plan's rule, ${state.own.type}`));
  const carried = savedView.asks ? savedView.asked(RULES) : tried.get();
  Object.assign(state.rule, carried?.rule || state.own);
  state.limits = carried?.limits ?? null;
  byId("rule").value = state.rule.type;
  byId("by").value = savedView.by || map.layer;
  byId("rows").value = savedView.rows || "frontier";
  byId("color-field").hidden = !map.eras.length;
  byId("color").value = savedView.color || "family";
  for (const family of savedView.hide) plot.hidden.add(family);
  return carried;
}

async function load() {
  /** @type {Api.Map} */
  let map = await get(`${base}/map${state.map ? query() : ""}`);
  const isFirst = !state.map;
  if (isFirst) {
    const carried = settle(map);
    if (carried?.utility) {
      byId("utility").value = carried.utility;
      byId("risk").value = carried.risk[0] || "";
      for (const box of furtherBoxes()) box.checked = carried.risk.slice(1).includes(box.value);
    }
    if (query()) map = await get(`${base}/map${query()}`);
  }
  show(map);
  if (isFirst) {
    if (savedView.see) plot.lookAt(savedView.see);
    selection.restore(savedView.selected, plot.rows);
  }
  const exported = new URLSearchParams(query());
  exported.set("by", byId("by").value);
  for (const form of ["png", "svg", "csv"]) byId(form).href = `${base}/map.${form}?${exported}`;
  byId("all-measures").href = `${base}/map.svg?by=all`;
  level();
}

/** @param {Api.Map} map */
function show(map) {
  state.map = map;
  plot.set(map, { by: byId("by").value, coloring: byId("color").value });
  byId("by").value = plot.by;
  byId("by-curve").disabled = !map.curves.length;
  for (const box of furtherBoxes()) box.disabled = !byId("risk").value || byId("risk").value === box.value;
  limits.show(map, limitsNow(), state.limits !== null);
  applyLimits();
  if (plot.box && Object.keys(limitsNow()).length) plot.draw();
  byId("empty-axes").hidden = !map.empty_axes.length;
  byId("empty-axes").replaceChildren(el("ul", {}, ...map.empty_axes.map((sentence) => el("li", {}, sentence))));
  families();
  table();
  point();
}

// Show a slider if the rule has one number.
function level() {
  byId("levers").hidden = !isLevered();
  if (!isLevered()) return follow(["rule", ""]);
  byId("lever-label").textContent = RULES[state.rule.type].label;
  set(value());
}

function families() {
  const node = byId("families");
  if (node.dataset.families === plot.families.join()) return;
  node.dataset.families = plot.families.join();
  const box = (family) => {
    const checkbox = el("input", { type: "checkbox", value: family, checked: !plot.hidden.has(family) });
    checkbox.addEventListener("change", () => {
      if (checkbox.checked) plot.hidden.delete(family);
      else plot.hidden.add(family);
      plot.redraw();
      table();
      saveView();
    });
    return el("label", {}, checkbox, brief(family));
  };
  node.replaceChildren(...plot.families.map(box));
}

// A limit does not apply to other axes; the plan's limit is restored with the plan's axes.
function otherAxes() {
  const own = onOwnAxes() && state.own ? state.own : {};
  for (const rule of Object.values(RULES)) state.rule[rule.lever] = own[rule.lever] ?? null;
  load().catch((error) => complain(error, byId("choice")));
}

function showAgain() {
  show(shownMap());
  saveView();
}

for (const id of ["risk", "utility"]) byId(id).addEventListener("change", otherAxes);
for (const id of ["by", "color"]) byId(id).addEventListener("change", showAgain);
byId("rows").addEventListener("change", () => {
  table();
  saveView();
});
byId("rule").addEventListener("change", () => {
  state.rule.type = byId("rule").value;
  level();
});
byId("lever").addEventListener("input", () => set(fromLever(Number(byId("lever").value)), "lever"));
byId("lever-number").addEventListener("change", () => {
  const typed = byId("lever-number").value.trim();
  set(typed === "" ? null : Number(typed), "number");
});

load()
  .then(async function followSweep() {
    const { state: sweeping } = await get(`${base}/sweep`);
    if (!sweeping.startsWith("running")) return;
    setTimeout(async () => {
      show(await get(`${base}/map${query()}`));
      level();
      followSweep();
    }, 2500);
  })
  .catch((error) => complain(error, byId("choice")));
