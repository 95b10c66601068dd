import { base, byId, complain, draw, el, fill, get, later, losing, page, post, short, svg, tried } from "./api.js";
import { keep, kept } from "./address.js";
import { Limits } from "./limits.js";
import { breaks, choose } from "./rules.js";
import { brief, Plot } from "./ruplot.js";
import { Selection } from "./selection.js";
import { word } from "./words.js";

const LEVER = 1000;
const OWN = { Threshold: { risk: 0 }, Linear: { slope: 1 } }; // rules that a lever sets, with their defaults
const state = {
  map: null,
  own: null,
  rule: { type: "Threshold", risk: null, slope: null },
  limits: null,
  picked: kept.point,
};
const selection = new Selection(byId("selected"), byId("selected-head"), {
  onzoom: (part) => plot.look_at(part),
  onchange: () => {
    table();
    noted();
  },
});
const plot = new Plot(byId("plot"), {
  onpick: pick,
  onbrush: (rows, part) => selection.add(rows, part),
  onmove: () => noted(),
});
const limits = new Limits(byId("limits"), hold);
plot.after = overlay;
window.workbench = { state, plot, selection, choose, breaks }; // what the tests look at

// ---- the rule -----------------------------------------------------------------------------------------------------
const threshold = () => state.rule.type === "Threshold";
const lever = () => (threshold() ? "risk" : "slope");
const axes = () => ({ risk: byId("risk").value ? [byId("risk").value] : [], utility: byId("utility").value });
const onOwnAxes = () => !axes().risk.length && axes().utility === state.axis;
const query = () => {
  const asked = new URLSearchParams(
    onOwnAxes() ? {} : { ...(axes().risk.length ? { risk: axes().risk[0] } : {}), utility: axes().utility },
  );
  if (state.limits) asked.append("limits", JSON.stringify(state.limits));
  return asked.size ? `?${asked}` : "";
};

// The rule as the service takes it; null while nobody has set one.
function ruleNow() {
  const { type } = state.rule;
  if (!(type in OWN)) return state.own;
  if (state.rule[lever()] === null) return null;
  return { ...(state.own?.type === type ? state.own : {}), type, [lever()]: state.rule[lever()] };
}
const isOwn = () =>
  state.own && onOwnAxes() && !state.limits && JSON.stringify(ruleNow()) === JSON.stringify(state.own);

// What was tried on this page goes along to the choice, and is there when one comes back.
function remember() {
  tried.set(
    ruleNow() && !isOwn()
      ? { rule: ruleNow(), ...(state.limits ? { limits: state.limits } : {}), ...(onOwnAxes() ? {} : axes()) }
      : null,
  );
}

// All that one sees stands in the address, so that it can be sent and comes back with the page.
const noted = later(
  150,
  () =>
    state.map &&
    keep({
      risk: axes().risk,
      utility: onOwnAxes() ? "" : axes().utility,
      by: byId("by").value,
      colour: plot.told === "era" ? "era" : "",
      rows: byId("rows").value,
      rule: isOwn() ? "" : state.rule.type,
      at: isOwn() || !(state.rule.type in OWN) ? "" : (state.rule[lever()] ?? ""),
      limit: state.limits ? limits.texts(state.limits) : [],
      see: plot.seen ? [...plot.seen.x, ...plot.seen.y].map((end) => Number(end.toPrecision(6))).join() : "",
      point: state.picked ?? "",
      hide: [...plot.hidden],
      selected: selection.ids,
    }),
);

// ---- levers -----------------------------------------------------------------------------------------------------
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
  if (value !== null && !Number.isFinite(value)) return;
  const rounded = value === null ? null : Number(value.toPrecision(6));
  state.rule[lever()] = threshold() || value === null ? rounded : Math.max(0, rounded);
  if (from !== "lever") byId("lever").value = value === null ? LEVER / 2 : String(Math.round(leverOf()));
  if (from !== "number") byId("lever-number").value = value === null ? "" : short(rounded);
  byId("lever").setAttribute("aria-valuetext", value === null ? "not set" : short(rounded));
  overlay();
  confirm();
}

// ---- limits by measure ---------------------------------------------------------------------------------------------
const held = () => state.limits ?? state.map.held;

function hold(next) {
  state.limits = next;
  if (state.map.limits.length) return again(); // the axis is a share of limits: it moves with them
  apply();
  plot.frameOnce("limits", () => plot.picture());
  overlay();
  confirm();
}
const again = later(200, () => load().catch((error) => complain(error, byId("choice"))));

// Which rows are within the limits; those outside are drawn faint.
function apply() {
  const first = breaks(state.map, held());
  for (const rows of [plot.rows, plot.means])
    for (const row of rows) Object.assign(row, { outside: first(row), within: !first(row) });
}

// ---- what moves -------------------------------------------------------------------------------------------------
// A limit on the axis as a line to drag; one that is not seen is told.
function limitLine(frame, risk, kind, words, move, turn) {
  const [low, high] = (plot.seen || plot).y;
  const at = Math.min(frame.bottom, Math.max(frame.top, plot.sy.at(risk)));
  const over = state.map.signs[0] > 0 ? [frame.top, at] : [at, frame.bottom];
  const shade = svg("rect", {
    class: "shade",
    x: frame.left,
    y: over[0],
    width: frame.right - frame.left,
    height: Math.max(0, over[1] - over[0]),
  });
  if (risk < low || risk > high) {
    const text = svg("text", {
      class: "region off",
      x: frame.left + 8,
      y: (risk > high ? frame.top + 16 : frame.bottom - 8) + 16 * turn * (risk > high ? 1 : -1),
    });
    text.textContent = `${risk > high ? "▲" : "▼"} ${words}, ${short(risk)}, lies ${risk > high ? "above" : "below"} the picture`;
    return [shade, text];
  }
  const line = { x1: frame.left, x2: frame.right, y1: at, y2: at };
  const inside = (value) => Math.min(high, Math.max(low, value));
  return [
    shade,
    svg("line", { class: `limit ${kind}`, ...line }),
    svg("circle", { class: "knob", cx: frame.right, cy: at, r: 6 }),
    plot.grip(line, `grip ${kind}`, (_, value) => plot.frameOnce("drag", () => move(inside(value))), dropped),
  ];
}

function dropped() {
  plot.flush("drag");
  overlay();
}

const sign = () => (state.map.signs[0] > 0 ? "≤" : "≥");

function limitLines(frame) {
  const own = state.map.risk.length === 1 && !state.map.limits.length ? state.map.risk[0] : null;
  const lines = [];
  if (threshold() && state.rule.risk !== null)
    lines.push({
      risk: () => state.rule.risk,
      words: "the limit",
      text: `limit: risk ${sign()} ${short(state.rule.risk)}`,
      kind: "",
      move: (value) => set(value),
    });
  if (own !== null && held()[own] !== undefined)
    lines.push({
      risk: () => held()[own],
      words: `the limit of ${own}`,
      text: `${own} ${sign()} ${short(held()[own])}`,
      kind: "held",
      move: (value) => limits.set(own, value),
    });
  plot.guides = lines.map(({ risk, text }) => ({ risk, text, kind: "line" }));
  return lines.flatMap(({ risk, words, kind, move }, turn) => limitLine(frame, risk(), kind, words, move, turn));
}

function slopeLine(frame, best) {
  if (!best || state.rule.slope === null) return [];
  const across = (utility) => ({
    utility,
    risk: (best.turned + state.rule.slope * (best.loss - state.map.signs[1] * utility)) / state.map.signs[0],
  });
  const [[x1, y1], [x2, y2]] = (plot.seen || plot).x.map((utility) => plot.pixel(across(utility)));
  const clip = svg("clipPath", { id: "inside-frame" });
  clip.append(
    svg("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top }),
  );
  const line = { x1, y1, x2, y2, "clip-path": "url(#inside-frame)" };
  return [
    clip,
    svg("line", { class: "tangent", ...line }),
    plot.grip(
      line,
      "grip turn",
      (utility, risk, first) => {
        first.best ||= best; // turned about the point that was chosen when the drag began
        const run = state.map.signs[1] * utility - first.best.loss;
        const rise = first.best.turned - state.map.signs[0] * risk;
        if (Math.abs(run) > 1e-12) plot.frameOnce("drag", () => set(Math.max(0, rise / run)));
      },
      dropped,
    ),
  ];
}

function overlay() {
  if (!plot.box || !state.map) return;
  const frame = plot.frame();
  const rule = ruleNow();
  const follows = rule && Object.keys(rule).every((name) => ["type", "risk", "slope"].includes(name)); // else the server's word alone
  const confirmed = plot.rows.find((row) => row.id === state.choice?.candidate) ?? null;
  const best = (state.best = rule && (follows ? choose(state.map, rule, plot.rows, plot.means) : confirmed));
  const ring = (row, kind, r) =>
    row && Number.isFinite(row.risk) && Number.isFinite(row.utility)
      ? [svg("circle", { class: kind, cx: plot.pixel(row)[0], cy: plot.pixel(row)[1], r })]
      : [];
  const picked = plot.rows.find((row) => row.id === state.picked);
  const seen = (row) =>
    row &&
    plot.pixel(row)[0] >= frame.left - 1 &&
    plot.pixel(row)[0] <= frame.right + 1 &&
    plot.pixel(row)[1] >= frame.top - 1 &&
    plot.pixel(row)[1] <= frame.bottom + 1;
  const line = [...limitLines(frame), ...(state.rule.type === "Linear" ? slopeLine(frame, best) : [])];
  const chosen = selection
    .rows(plot.rows)
    .filter(seen)
    .flatMap((row) => ring(row, "selected", 7));
  plot.lay([
    ...line,
    ...chosen,
    ...(seen(best) ? ring(best, "ring", 9) : []),
    ...(seen(picked) ? ring(picked, "picked", 12) : []),
  ]);
  plot.chosen = best;
  plot.drawLabels();
  plot.settle();
  if (!rule) nothingSet();
  else if (follows && state.confirmed !== (best?.id ?? NOTHING)) sketch(best);
}

// ---- the choice -------------------------------------------------------------------------------------------------
const link = (id, words = id) => el("a", { href: page("candidate", { id }) }, words);
const numbers = (row) => `risk ${short(row.risk)}, ${losing(state.map)} ${short(row.utility)}`;

function head() {
  byId("choice-head").textContent = isOwn() ? "The choice" : ruleNow() ? "What this rule would choose" : "No rule yet";
}

function nothingSet() {
  head();
  state.confirmed = state.choice = null;
  const why = state.own ? "The plan's rule speaks of other axes." : "The plan states no rule, so nothing is chosen.";
  byId("choice").replaceChildren(
    el(
      "p",
      {},
      `${why} Set a limit to see what it would choose, or `,
      el("a", { href: page("plan") }, "fix a rule in the plan"),
      ".",
    ),
  );
  document.body.dataset.confirmed = "no rule";
}

const NOTHING = "nothing"; // passes, says the server too

function sketch(best) {
  head();
  state.confirmed = null;
  byId("choice").replaceChildren(
    best
      ? el("div", { class: "verdict" }, el("strong", {}, best.name), el("p", {}, numbers(best)))
      : el("div", { class: "verdict" }, el("strong", {}, "Release nothing")),
  );
}

const confirm = later(200, async () => {
  remember();
  noted();
  const asked = { rule: isOwn() ? null : ruleNow(), limits: state.limits, ...(onOwnAxes() ? {} : axes()) };
  const key = () => JSON.stringify([ruleNow(), axes(), state.limits]);
  const before = key();
  if (!ruleNow()) return;
  let choice;
  try {
    choice = await post(`${base}/choices`, asked);
  } catch (error) {
    return complain(error, byId("choice"));
  }
  if (key() !== before) return;
  head();
  state.confirmed = choice.candidate ?? NOTHING;
  state.choice = choice;
  const runners = choice.runners_up.map(({ name, reason }) => el("li", {}, `${name}: ${reason}`));
  const next = isOwn()
    ? null
    : el(
        "p",
        {},
        el("a", { href: page("choose") }, "Choose and release with this rule"),
        el("span", { class: "hint" }, state.own ? " in place of the plan's" : " which the plan does not state"),
      );
  byId("choice").replaceChildren(
    el(
      "div",
      { class: "verdict" },
      el("p", {}, choice.reason),
      choice.candidate ? el("p", {}, link(choice.candidate, "Open this candidate")) : deadEnd(),
    ),
    ...[next].filter(Boolean),
    ...(runners.length ? [el("h3", {}, "Runners-up"), el("ul", {}, ...runners)] : []),
  );
  document.body.dataset.confirmed = choice.candidate || "nothing";
  overlay();
});

const deadEnd = () =>
  el(
    "p",
    {},
    "What to do: ",
    el("a", { href: page("plan") }, "plan stronger methods"),
    ", ",
    el("a", { href: page("sweep") }, "search for a release"),
    ", or state another limit.",
  );

function pick(row) {
  state.picked = row.id ?? plot.rows.find((point) => point.method === row.method).id;
  point();
  overlay();
  noted();
}

// The point that was picked, in the numbers of these axes.
function point() {
  if (!state.picked) return;
  const row = plot.rows.find((one) => one.id === state.picked);
  if (!row)
    return byId("point").replaceChildren(
      el("p", { class: "quiet" }, "The point that was picked has no value on these axes."),
    );
  byId("point").replaceChildren(
    el("p", {}, el("strong", {}, row.name)),
    el("p", {}, `${draw(row)} · ${numbers(row)}${row.frontier ? " · on the frontier" : ""}`),
    ...(row.outside ? [el("p", { class: "bad" }, `outside the limit of ${row.outside}`)] : []),
    el(
      "p",
      {},
      link(row.id, "Open"),
      ...(state.best?.id
        ? [" · ", el("a", { href: page("candidate", { id: row.id, other: state.best.id }) }, "Beside the choice")]
        : []),
    ),
  );
}

function table() {
  const all = byId("rows").value === "all";
  const mean = byId("by").value === "mean";
  const sorted = plot
    .shown()
    .filter((row) => all || row.frontier)
    .sort((a, b) => a.loss - b.loss || a.turned - b.turned);
  const rows = [];
  for (const row of sorted) {
    // releases with the same two numbers share a row
    const last = rows.at(-1);
    if (last && last.risk === row.risk && last.utility === row.utility) last.more += 1;
    else if (rows.length < 200) rows.push({ ...row, more: 0 });
    else break;
  }
  const share = (row) =>
    row.membership === null || row.membership === undefined ? "" : `${Math.round(100 * row.membership)} %`;
  const cells = rows.map((row) => [
    ...(mean ? [] : [selection.box(row)]),
    el(
      "span",
      {},
      el(
        "button",
        {
          type: "button",
          class: "head link",
          "aria-label": `${row.name}${mean ? "" : `, ${draw(row)}`}: show it`,
          onclick: () => pick(row),
        },
        row.name,
      ),
      row.more ? el("span", { class: "hint" }, ` and ${row.more} more at this point`) : "",
    ),
    ...(mean ? [share(row)] : [String(row.replicate + 1)]),
    short(row.risk),
    short(row.utility),
  ]);
  fill(
    byId("table"),
    [
      ...(mean ? [] : [el("span", { class: "hidden" }, "select")]),
      ["method", "words"],
      [mean ? word("frontier", "on the frontier") : word("draw"), "n"],
      [word("risk"), "n"],
      [word(losing(state.map)), "n"],
    ],
    cells,
    "No point yet.",
  );
}

// ---- the map ----------------------------------------------------------------------------------------------------
function options(box, names, chosen) {
  box.replaceChildren(...names.map(([value, words]) => el("option", { value, selected: value === chosen }, words)));
}

// What can be chosen, as the plan says it: its own axis comes first.
function settle(map) {
  state.own = map.rule && { ...OWN[map.rule.type], ...map.rule };
  state.axis = map.utility;
  const named = (axis) => map.measures.filter((measure) => measure.axis === axis).map(({ name }) => [name, name]);
  options(byId("risk"), [["", `the plan's: ${map.labels[0]}`], ...named("risk")], "");
  options(byId("utility"), named("utility"), map.utility);
  const other = state.own && !(state.own.type in OWN);
  if (other) byId("rule").append(el("option", { value: state.own.type }, `the plan's rule, ${state.own.type}`));
  const carried = kept.asks ? kept.asked(OWN) : tried.get();
  const rule = carried?.rule || state.own;
  if (rule) Object.assign(state.rule, rule);
  state.limits = carried?.limits ?? null;
  byId("rule").value = state.rule.type;
  if (map.expectation) byId("by").value = "mean";
  if (kept.by) byId("by").value = kept.by;
  if (kept.rows) byId("rows").value = kept.rows;
  byId("colour-field").hidden = !map.eras.length;
  byId("colour").value = kept.colour || "family";
  for (const family of kept.hide) plot.hidden.add(family);
  return carried;
}

async function load() {
  let map = await get(`${base}/map${state.map ? query() : ""}`);
  if (!state.map) {
    const carried = settle(map);
    if (carried?.utility) {
      byId("utility").value = carried.utility;
      byId("risk").value = carried.risk[0] || "";
    }
    if (query()) map = await get(`${base}/map${query()}`);
    await show(map);
    if (kept.see) plot.look_at(kept.see);
    selection.restore(kept.selected, plot.rows);
  } else await show(map);
  const exported = new URLSearchParams(query());
  exported.set("by", byId("by").value);
  for (const form of ["png", "svg", "csv"]) byId(form).href = `${base}/map.${form}?${exported}`;
  level();
}

async function show(map) {
  state.map = map;
  await plot.set(map, {
    by: byId("by").value,
    limit: threshold() ? state.rule.risk : null,
    colour: byId("colour").value,
  });
  limits.show(map, held(), state.limits !== null);
  apply();
  if (Object.keys(held()).length) plot.picture();
  byId("silent").hidden = !map.silent.length;
  byId("silent").replaceChildren(el("ul", {}, ...map.silent.map((sentence) => el("li", {}, sentence))));
  families();
  table();
  point();
}

function level() {
  const none = !(state.rule.type in OWN);
  byId("levers").hidden = none;
  byId("lever-label").textContent = threshold() ? "Risk limit" : "Slope: risk that one unit of loss is worth";
  if (none) {
    overlay();
    confirm();
  } else set(state.rule[lever()]);
}

function families() {
  const known = [...byId("families").querySelectorAll("input")].map((box) => box.value).join();
  if (known === plot.families.join()) return;
  byId("families").replaceChildren(
    ...plot.families.map((family) =>
      el(
        "label",
        {},
        el("input", {
          type: "checkbox",
          value: family,
          checked: !plot.hidden.has(family),
          onchange: async (event) => {
            if (event.target.checked) plot.hidden.delete(family);
            else plot.hidden.add(family);
            await plot.redraw();
            table();
            noted();
          },
        }),
        brief(family),
      ),
    ),
  );
}

// On other axes a limit means nothing: that of the plan comes back with the plan's axes.
async function otherAxes() {
  const own = onOwnAxes() && state.own ? state.own : {};
  Object.assign(state.rule, { risk: own.risk ?? null, slope: own.slope ?? null });
  await load().catch((error) => complain(error, byId("choice")));
}
byId("risk").addEventListener("change", otherAxes);
byId("utility").addEventListener("change", otherAxes);
byId("by").addEventListener("change", () => show(state.map).then(noted));
byId("colour").addEventListener("change", () => show(state.map).then(noted));
byId("rows").addEventListener("change", () => {
  table();
  noted();
});
byId("rule").addEventListener("change", () => {
  state.rule.type = byId("rule").value;
  level();
});
byId("lever").addEventListener("input", (event) => set(fromLever(Number(event.target.value)), { from: "lever" }));
byId("lever-number").addEventListener("change", (event) =>
  set(event.target.value.trim() === "" ? null : Number(event.target.value), { from: "number" }),
);

load()
  .then(async function follow() {
    const { state: sweeping } = await get(`${base}/sweep`);
    if (!sweeping.startsWith("running")) return;
    setTimeout(async () => {
      await show(await get(`${base}/map${query()}`));
      follow();
    }, 2500);
  })
  .catch((error) => complain(error, byId("choice")));
