// The R-U map as a plot.
import { el, svg } from "./api.js";
import { colour, theme } from "./chart.js";
import { Layered, isDark } from "./layered.js";
import { meansOf, rowsOf } from "./rules.js";

const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#56B4E9", "#7a7a7a"];  // Okabe and Ito
const DARK = ["#5EB8F0", "#FF8B45", "#34C79A", "#E59BC8", "#F0BC42", "#A5B0FF", "#B8B8B8"];
export const hue = (i) => (isDark() ? DARK : LIGHT)[i % LIGHT.length];
const SHAPES = ["circle", "square", "diamond", "triangle-up", "cross"];
export const familyOf = (method) => method.split("(")[0];

export function reach(values, more) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return [0, 1];
  let low = Math.min(...extent(known)), high = Math.max(...extent(known));
  const span = high - low || Math.abs(high) || 1;
  for (const value of more) {  // an anchor that would stretch the axis by more than half is left at the edge
    if (Number.isFinite(value) && value < low && low - value <= 0.5 * span) low = value;
    if (Number.isFinite(value) && value > high && value - high <= 0.5 * span) high = value;
  }
  const room = 0.05 * (high - low || Math.abs(high) || 1);
  return [low - room, high + room];
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  return [low, high];
}

export class Plot extends Layered {
  constructor(node, { onpick = () => {}, tall = 0.62 } = {}) {
    super(node);
    this.tall = tall;
    this.onpick = onpick;
    this.hidden = new Set();
    this.key = el("ul", { class: "key" });
    node.after(this.key);
    let down = null;
    node.addEventListener("pointerdown", (event) => (down = event), true);
    node.addEventListener("pointerup", (event) => {  // no `click`: a line that is dragged is drawn anew under the pointer
      if (down && Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) < 4) this.pick(event);
    }, true);
  }

  async set(map, { by = "release", limit = null } = {}) {
    const shape = JSON.stringify([map.labels, map.methods.map(familyOf), by]);
    const grown = this.view && shape === this.shape;
    Object.assign(this, { map, by, shape, rows: rowsOf(map), means: meansOf(map) });
    this.families = [...new Set(this.means.filter((row) => !row.anchor).map((row) => familyOf(row.method)))].sort();
    const shown = this.shown();
    this.x = reach(shown.map((row) => row.utility), this.anchors().map((anchor) => anchor.utility));
    this.y = reach(shown.map((row) => row.risk), [...this.anchors().map((anchor) => anchor.risk), limit ?? NaN]);
    const old = this.drawn || {};
    const fits = grown && ["x", "y"].every((axis) => this[axis][0] >= old[axis][0] && this[axis][1] <= old[axis][1]);
    if (fits) {
      Object.assign(this, old);
      await this.replace();
    } else await this.redraw();
  }

  // New points on the picture that is there.
  async replace() {
    this.view.data("dots", this.table()).data("front", this.frontier()).data("bands", this.bands());
    await this.view.runAsync();
    this.after?.();
  }

  shown() {
    const rows = this.by === "mean" ? this.means : this.rows;
    return rows.filter((row) => !row.anchor && !this.hidden.has(familyOf(row.method)));
  }

  anchors() {
    const whole = this.means.find((row) => row.anchor);
    const anchors = whole ? [{ what: "release everything", risk: whole.risk, utility: whole.utility }] : [];
    if (this.map.nothing) anchors.push({ what: "release nothing", risk: this.map.nothing[0], utility: this.map.nothing[1] });
    return anchors;
  }

  table() {
    const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
    return this.shown().map((row) => ({ x: clamp(row.utility, this.x), y: clamp(row.risk, this.y), f: familyOf(row.method), e: row.frontier ? 1 : 0 }));
  }

  frontier() {
    const rows = this.shown().filter((row) => row.frontier && Number.isFinite(row.risk) && Number.isFinite(row.utility));
    return rows.sort((a, b) => a.utility - b.utility || a.risk - b.risk).map((row) => ({ x: row.utility, y: row.risk }));
  }

  bands() {
    if (this.by !== "mean") return [];
    return this.shown().filter((row) => row.frontier).flatMap((row) => [
      ...(row.risk_low !== null && row.risk_low !== undefined ? [{ x: row.utility, x2: row.utility, y: row.risk_low, y2: row.risk_high }] : []),
      ...(row.utility_low !== null && row.utility_low !== undefined ? [{ x: row.utility_low, x2: row.utility_high, y: row.risk, y2: row.risk }] : []),
    ]);
  }

  spec() {
    const many = this.rows.length > 1500 && this.by !== "mean";
    const axis = (domain, title) => ({ type: "quantitative", scale: { domain, nice: false, zero: false }, axis: { title, grid: true, gridOpacity: 0.5, tickCount: 6, format: "~g" } });
    const fill = { field: "f", type: "nominal", legend: null, scale: { domain: this.families, range: this.families.map((_, i) => hue(i)) } };
    const shape = { field: "f", type: "nominal", legend: null, scale: { domain: this.families, range: this.families.map((_, i) => SHAPES[i % SHAPES.length]) } };
    const anchors = this.anchors().filter((a) => a.utility >= this.x[0] && a.utility <= this.x[1] && a.risk >= this.y[0] && a.risk <= this.y[1]);
    const [step] = [this.map.signs[1] * this.map.signs[0] > 0 ? "step-after" : "step-before"];
    return {
      width: this.width - 8, height: Math.round(Math.min(560, Math.max(320, this.tall * this.width))), autosize: { type: "fit", contains: "padding" }, config: theme(),
      encoding: { x: { field: "x", ...axis(this.x, this.map.labels[1]) }, y: { field: "y", ...axis(this.y, this.map.labels[0]) } },
      layer: [
        { data: { name: "bands", values: this.bands() }, mark: { type: "rule", color: colour("--plot-grey"), opacity: 0.7 }, encoding: { x2: { field: "x2" }, y2: { field: "y2" } } },
        { data: { name: "dots", values: this.table() }, mark: { type: "point", filled: true, size: many ? 18 : 46, strokeWidth: 0 }, encoding: { color: fill, shape, opacity: { field: "e", type: "quantitative", legend: null, scale: { domain: [0, 1], range: [many ? 0.35 : 0.6, 1] } } } },
        { data: { name: "front", values: this.frontier() }, mark: { type: "line", interpolate: step, color: colour("--ink"), strokeWidth: 1.4 } },
        { data: { values: anchors }, mark: { type: "point", shape: "triangle-up", size: 130, filled: true, color: colour("--ink") }, encoding: { x: { field: "utility", type: "quantitative" }, y: { field: "risk", type: "quantitative" } } },
      ],
    };
  }

  async redraw() {
    if (!this.map) return;
    const words = `Map of ${this.shown().length} points: ${this.map.labels[1]} across, ${this.map.labels[0]} up. The table holds the same.`;
    if (!(await this.show(() => this.spec(), words))) return;
    this.drawn = { x: this.x, y: this.y };
    this.drawKey();
    this.after?.();
  }

  drawKey() {
    const entry = (family, i) => {
      const mark = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
      const shape = SHAPES[i % SHAPES.length], fill = hue(i);
      const path = { circle: "M5 1a4 4 0 1 1 0 8a4 4 0 1 1 0-8", square: "M1.5 1.5h7v7h-7z", diamond: "M5 .5L9.5 5L5 9.5L.5 5z", "triangle-up": "M5 1l4.5 8h-9z", cross: "M3.5 1h3v2.5H9v3H6.5V9h-3V6.5H1v-3h2.5z" }[shape];
      mark.append(svg("path", { d: path, fill }));
      return el("li", {}, mark, family);
    };
    const beyond = this.anchors().filter((a) => !(a.utility >= this.x[0] && a.utility <= this.x[1] && a.risk >= this.y[0] && a.risk <= this.y[1]));
    this.key.replaceChildren(...this.families.map(entry), el("li", {}, "line: frontier · ▲ anchors"),
      ...beyond.map((a) => el("li", {}, `${a.what}: beyond the picture`)));
  }

  pixel(row) {
    return this.at(row.utility, row.risk);
  }

  pick(event) {
    if (!this.view) return;
    const box = this.canvas.querySelector("canvas").getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null, least = 14;
    for (const row of this.shown()) {
      const [a, b] = this.pixel(row);
      const distance = Math.hypot(a - x, b - y);
      if (distance < least) [best, least] = [row, distance];
    }
    if (best) this.onpick(best);
  }
}
