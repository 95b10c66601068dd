// Limits by measure: one slider per measure of risk or utility, in its own unit, with the distribution of the candidates above it.
import { button, el, short, svg } from "./api.js";

/** @typedef {Record<string, number>} Stated measure: limit */

const SLIDER_STEPS = 1000;
const HISTOGRAM_BINS = 60;

export class Limits {
  /** @type {Stated} */
  stated = {};
  /** @type {Stated} */
  plan = {};
  /** @type {Map<string, ReturnType<Limits["lever"]>>} */
  levers = new Map();

  /**
   * @param {HTMLElement} node
   * @param {(limits: Stated | null, measure: string) => void} onchange called with null if they are the plan's
   */
  constructor(node, onchange) {
    this.node = node;
    this.onchange = onchange;
    const back = () => this.change({ ...this.plan }, "");
    this.back = button("Back to the plan's limits", back);
  }

  /** @param {Api.Map} map @param {Stated} stated @param {boolean} isChanged by hand */
  show(map, stated, isChanged) {
    this.stated = { ...stated };
    if (!isChanged) this.plan = { ...map.measure_limits };
    const axes = ["risk", "utility"];
    const measures = axes.flatMap((axis) => map.measures.filter((one) => one.axis === axis));
    if (String([...this.levers.keys()]) !== String(measures.map((one) => one.name))) {
      this.levers = new Map(measures.map((one) => [one.name, this.lever(one, map.points.levels[one.name])]));
      this.node.replaceChildren(...[...this.levers.values()].map((one) => one.row), this.back);
    }
    this.follow();
  }

  /** @param {Api.MapMeasure} measure @param {(number | null)[]} levels */
  lever({ name, title, description, unit, direction }, levels) {
    const values = levels.filter((value) => value !== null && Math.abs(value) < 1e300);
    const [low, high] = endsOf(/** @type {number[]} */ (values));
    const range = el("input", { type: "range", min: 0, max: SLIDER_STEPS, "aria-label": `Limit of ${name}` });
    const number = el("input", {
      type: "text",
      inputmode: "decimal",
      size: 8,
      "aria-label": `Limit of ${name} as a number`,
    });
    const isStated = el("input", { type: "checkbox" });
    const fromRange = () => low + (Number(range.value) / SLIDER_STEPS) * (high - low);
    range.addEventListener("input", () => this.set(name, fromRange()));
    number.addEventListener("change", () => this.set(name, number.value.trim() === "" ? null : Number(number.value)));
    isStated.addEventListener("change", () => this.set(name, isStated.checked ? fromRange() : null));
    const details = ` ${name}: ${unit}, at ${direction === "lower" ? "most" : "least"}`;
    const row = el(
      "div",
      { class: "held-limit" },
      el("label", { title: description }, isStated, title, el("small", { class: "hint" }, details)),
      el("div", { class: "grow" }, spread(values, low, high), range),
      number,
    );
    return { row, range, number, isStated, low, high };
  }

  set(name, value) {
    if (value !== null && !(Number.isFinite(value) && value > 0)) return this.follow();
    const next = { ...this.stated };
    if (value === null) delete next[name];
    else next[name] = Number(value.toPrecision(6));
    this.change(next, name);
  }

  change(next, measure) {
    this.stated = next;
    this.follow();
    this.onchange(this.isPlan() ? null : next, measure);
  }

  isPlan() {
    return JSON.stringify(this.stated) === JSON.stringify(this.plan);
  }

  follow() {
    for (const [name, { range, number, isStated, low, high }] of this.levers) {
      const limit = this.stated[name];
      isStated.checked = limit !== undefined;
      number.value = limit === undefined ? "" : short(limit);
      const at = String(Math.round((SLIDER_STEPS * ((limit ?? high) - low)) / (high - low)));
      if (range.value !== at) range.value = at;
      range.setAttribute("aria-valuetext", limit === undefined ? "no limit" : short(limit));
    }
    this.back.hidden = this.isPlan();
  }
}

/** @param {number[]} values */
function endsOf(values) {
  let low = 0;
  let high = values.length ? 1e-9 : 1;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// The distribution of the candidates along the slider.
function spread(values, low, high) {
  const counts = new Array(HISTOGRAM_BINS).fill(0);
  for (const value of values)
    counts[Math.min(HISTOGRAM_BINS - 1, Math.floor((HISTOGRAM_BINS * (value - low)) / (high - low)))] += 1;
  const most = Math.max(...counts, 1);
  const chart = svg("svg", {
    viewBox: `0 0 ${HISTOGRAM_BINS} 12`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    class: "spread",
  });
  counts.forEach((count, x) => {
    const height = 12 * Math.sqrt(count / most);
    if (count) chart.append(svg("rect", { x, width: 0.9, y: 12 - height, height }));
  });
  return chart;
}
