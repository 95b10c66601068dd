// Limits by measure: a lever for each risk measure, in its own unit, below the candidates that it would let pass.
import { el, short, svg } from "./api.js";

const STEPS = 1000,
  BINS = 60;

export class Limits {
  constructor(node, onchange) {
    Object.assign(this, { node, onchange, held: {}, levers: new Map() });
  }

  // {measure: limit} as the service takes it in an address; none at all is one empty text.
  texts(limits) {
    const texts = Object.entries(limits).map(([measure, limit]) => `${limit} ${measure}`);
    return texts.length ? texts : [""];
  }

  show(map, held, changed) {
    this.held = { ...held };
    this.planned = { ...map.held };
    if (!changed) this.plan = { ...map.held };
    const risks = map.measures.filter((one) => one.axis === "risk");
    const known = risks.map((one) => one.name).join();
    if (this.known !== known) {
      this.known = known;
      this.levers = new Map(risks.map((one) => [one.name, this.lever(one, map.points.levels[one.name])]));
      const back = el(
        "button",
        { type: "button", class: "second", onclick: () => this.change({ ...this.plan }, true) },
        "Back to the plan's limits",
      );
      this.back = back;
      this.node.replaceChildren(...[...this.levers.values()].map((one) => one.row), back);
    }
    this.follow();
  }

  lever(measure, levels) {
    const values = levels.filter((value) => value !== null && Math.abs(value) < 1e300);
    const [low, high] = [Math.min(0, ...ends(values)), Math.max(...ends(values), 1e-9)];
    const range = el("input", {
      type: "range",
      min: 0,
      max: STEPS,
      "aria-label": `Limit of ${measure.name}`,
      oninput: () => this.set(measure.name, low + (Number(range.value) / STEPS) * (high - low)),
    });
    const number = el("input", {
      type: "text",
      inputmode: "decimal",
      size: 8,
      "aria-label": `Limit of ${measure.name} as a number`,
      onchange: () => this.set(measure.name, number.value.trim() === "" ? null : Number(number.value)),
    });
    const holds = el("input", {
      type: "checkbox",
      onchange: () => this.set(measure.name, holds.checked ? low + (Number(range.value) / STEPS) * (high - low) : null),
    });
    const words = el(
      "span",
      { class: "hint" },
      ` ${measure.unit}, at ${measure.direction === "lower" ? "most" : "least"}`,
    );
    const row = el(
      "div",
      { class: "held-limit" },
      el("label", {}, holds, measure.name, words),
      el("div", { class: "grow" }, spread(values, low, high), range),
      number,
    );
    return { row, range, number, holds, low, high };
  }

  set(name, value) {
    if (value !== null && !(Number.isFinite(value) && value > 0)) return this.follow();
    const next = { ...this.held };
    if (value === null) delete next[name];
    else next[name] = Number(value.toPrecision(6));
    this.change(next, JSON.stringify(next) === JSON.stringify(this.plan));
  }

  change(next, own) {
    this.held = next;
    this.follow();
    this.onchange(own ? null : next);
  }

  follow() {
    for (const [name, { range, number, holds, low, high }] of this.levers) {
      const limit = this.held[name];
      holds.checked = limit !== undefined;
      number.value = limit === undefined ? "" : short(limit);
      const at = String(Math.round((STEPS * ((limit ?? high) - low)) / (high - low)));
      if (range.value !== at) range.value = at;
      range.setAttribute("aria-valuetext", limit === undefined ? "not held" : short(limit));
    }
    if (this.back) this.back.hidden = JSON.stringify(this.held) === JSON.stringify(this.plan);
  }
}

function ends(values) {
  let low = Infinity,
    high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return values.length ? [low, high] : [0, 1];
}

// How the candidates lie along the lever.
function spread(values, low, high) {
  const counts = new Array(BINS).fill(0);
  for (const value of values) counts[Math.min(BINS - 1, Math.floor((BINS * (value - low)) / (high - low)))] += 1;
  const most = Math.max(...counts, 1),
    made = svg("svg", {
      viewBox: `0 0 ${BINS} 12`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
      class: "spread",
    });
  counts.forEach(
    (count, i) =>
      count &&
      made.append(
        svg("rect", { x: i, width: 0.9, y: 12 - 12 * Math.sqrt(count / most), height: 12 * Math.sqrt(count / most) }),
      ),
  );
  return made;
}
