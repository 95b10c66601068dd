// Trottini's two planes: global risk with limits and regions, global utility with the distance to (0, 0).
import { el, svg } from "./api.js";
import { color } from "./chart.js";
import { SHAPES } from "./dots.js";
import { clamp, hue, keyEntry, Picture, text } from "./picture.js";

/** @typedef {{ id?: string, replicate?: number, method: string, name: string, distance: number } & Record<string, any>} Row */

export const TITLES = {
  iek: "Intruder's estimated knowledge, IEK",
  rdh: "Risk of discredit harm, RDH",
  sek: "Society's estimated knowledge, SEK",
  dus: "Data utility for society, DUS",
};
const WORDS = { A: "discredit harm alone", B: "both harms", C: "disclosure harm alone", D: "neither: safe" };

/** @returns {Row[]} */
export function rowsOf({ rows }) {
  const far = (value) => value ?? -Infinity;
  const numbers = Object.keys(rows).filter((name) => /^(iek|rdh|sek|dus)/.test(name)); // with "iek_end" and "iek 2"
  return rows.method.map((method, i) => ({
    method,
    name: rows.name[i],
    id: rows.id?.[i],
    replicate: rows.replicate?.[i],
    ...Object.fromEntries(numbers.map((name) => [name, far(rows[name][i])])),
    distance: rows.distance[i] ?? Infinity,
  }));
}

export class Plane extends Picture {
  /** @type {Row[]} */
  rows = [];
  /** @type {Record<string, number | null> | null} before any release */
  prior = null;
  isSafe = (/** @type {Row} */ _row) => true;
  /** @type {{ x: number, y: number }} above 0: the axis is logarithmic, and larger values count as 0 */
  floors = { x: 0, y: 0 };

  constructor(node, across, up) {
    super(node);
    Object.assign(this, { tall: 0.8 });
    this.roles = [across, up];
    this.across = across;
    this.up = up;
  }

  /** @param {number} number of the intruder or user, from 1; 0: the worst of all */
  showMember(number) {
    [this.across, this.up] = this.roles.map((role) => (number ? `${role} ${number}` : role));
  }

  /**
   * @param {Row[]} rows @param {Record<string, number | null> | null} prior @param {(row: Row) => boolean} isSafe
   * @param {Record<string, { low: number, high: number, floor: number }>} axes as Python chose them
   */
  set(rows, prior, isSafe, axes) {
    Object.assign(this, { rows, prior, isSafe });
    const [across, up] = [axes[this.across], axes[this.up]];
    Object.assign(this, { x: [across.low, across.high], y: [up.low, up.high] });
    this.floors = { x: across.floor, y: up.floor };
    const [x, y] = this.roles.map((role) => TITLES[role]);
    const words = `${rows.length} points: ${x} across, ${y} up. The table holds the same.`;
    this.canvas.setAttribute("aria-label", words);
    this.redraw();
  }

  // ---- values and coordinates: on a logarithmic axis a coordinate is -log10(-value), and 0 has a place of its own ------
  /** @param {"x" | "y"} axis @param {number} value */
  coordinate(axis, value) {
    const floor = this.floors[axis];
    return floor ? -Math.log10(Math.max(-value, floor)) : value;
  }

  /** @param {"x" | "y"} axis @param {number} coordinate */
  value(axis, coordinate) {
    const floor = this.floors[axis];
    if (!floor) return coordinate;
    return coordinate > -Math.log10(floor) - 1e-9 ? 0 : -(10 ** -coordinate);
  }

  /** @param {"x" | "y"} axis @param {number} value @returns {number} its place on the axis, from 0 to 1 */
  share(axis, value) {
    const [low, high] = this[axis];
    return (this.coordinate(axis, value) - low) / (high - low);
  }

  /** @param {"x" | "y"} axis @param {number} share */
  valueAt(axis, share) {
    const [low, high] = this[axis];
    return this.value(axis, low + share * (high - low));
  }

  at(x, y) {
    return super.at(this.coordinate("x", x), this.coordinate("y", y));
  }

  under(event) {
    const [x, y] = super.under(event);
    return /** @type {[number, number]} */ ([this.value("x", x), this.value("y", y)]);
  }

  scale() {
    super.scale();
    for (const axis of /** @type {("x" | "y")[]} */ (["x", "y"]))
      if (this.floors[axis]) this.marks[axis] = logTicks(this[axis], this.floors[axis]);
  }

  tickText(axis, value) {
    return this.floors[axis]
      ? String(Number(this.value(axis, value).toPrecision(2)))
      : value > 0
        ? ""
        : super.tickText(axis, value);
  }

  titles() {
    const name = (axis, role) =>
      (this.width < 420 ? role.toUpperCase() : TITLES[role]) + (this.floors[axis] ? " (log scale)" : "");
    return [name("x", this.roles[0]), name("y", this.roles[1])];
  }

  isReady() {
    return this.rows.length > 0;
  }

  /** @returns {[number, number]} the pixel of a row; one that lies outside is at the edge */
  pixel(row) {
    const [x, y] = [
      clamp(this.coordinate("x", row[this.across]), ...this.x),
      clamp(this.coordinate("y", row[this.up]), ...this.y),
    ];
    return super.at(x, y);
  }

  isBeyond(row) {
    return [this.share("x", row[this.across]), this.share("y", row[this.up])].some((share) => share < 0 || share > 1);
  }

  paint(pen) {
    const size = this.rows.length > 1500 ? 5 : 8;
    const looks = [true, false].map((isSafe) =>
      this.dots.of({ shape: isSafe ? "circle" : "diamond", fill: hue(isSafe ? 0 : 1), size, opacity: 0.85 }),
    );
    const lay = (look, [x, y]) => this.dots.lay(look, x * this.ratio, y * this.ratio);
    this.dots.clear();
    for (const row of this.rows) lay(looks[this.isSafe(row) ? 0 : 1], this.pixel(row));
    if (this.prior) lay(this.dots.of({ shape: "triangle-up", fill: color("--ink"), size: 11 }), this.pixel(this.prior));
    this.dots.onto(pen);
  }

  ringOf(row) {
    const isDrawn = row && Number.isFinite(row[this.across]) && Number.isFinite(row[this.up]);
    return isDrawn ? [this.ring(this.pixel(row))] : [];
  }

  // The line from the choice to (0, 0), where society would know everything.
  way(row) {
    if (!row || !Number.isFinite(row.distance)) return [];
    const [[x1, y1], [x2, y2]] = [this.pixel(row), this.pixel({ [this.across]: 0, [this.up]: 0 })];
    return [svg("line", { class: "way", x1, y1, x2, y2 })];
  }

  // Both limits as lines that can be dragged, and the letters of the regions.
  limits(agency, intruder, set, done) {
    const { left, right, top, bottom } = this.frame(),
      [a, b] = this.at(agency, intruder);
    const [x, y] = [clamp(a, left, right), clamp(b, top, bottom)];
    const across = { x1: left, x2: right, y1: y, y2: y },
      up = { x1: x, x2: x, y1: top, y2: bottom };
    const region = (name, shade, x1, x2, y1, y2) => {
      const [width, height] = [Math.max(0, x2 - x1), Math.max(0, y2 - y1)];
      const parts = shade ? [svg("rect", { class: shade, x: x1, y: y1, width, height })] : [];
      if (width < 26 || height < 24) return parts;
      return [
        ...parts,
        text(width > 170 ? `${name}: ${WORDS[name]}` : name, { class: "region", x: x1 + 7, y: y1 + 17 }),
      ];
    };
    return [
      ...region("A", "shade", left, x, top, y),
      ...region("B", "shade both", x, right, top, y),
      ...region("C", "shade", x, right, y, bottom),
      ...region("D", "", left, x, y, bottom),
      svg("line", { class: "limit", ...across }),
      svg("line", { class: "limit", ...up }),
      this.ring([right, y], "knob", 6),
      this.ring([x, top], "knob", 6),
      this.grip(across, "grip", (_, value) => set({ intruder_limit: value }), done),
      this.grip(up, "grip side", (value) => set({ agency_limit: value }), done),
    ];
  }
}

// Decades, and their halves and fifths where there are few, between the ends of a logarithmic axis; then 0.
function logTicks([low, high], floor) {
  const end = -Math.log10(floor),
    steps = end - low < 2 ? [5, 2, 1] : [1];
  const powers = Array.from({ length: 25 }, (_, i) => 12 - i);
  const places = powers.flatMap((power) => steps.map((step) => -Math.log10(step) - power));
  return [...places.filter((place) => place >= low && place < Math.min(high, end - 0.15)), end];
}

export function drawKey(list, prior, isBeyond = false) {
  list.replaceChildren(
    keyEntry(SHAPES.circle, hue(0), "safe"),
    keyEntry(SHAPES.diamond, hue(1), "not safe"),
    el("li", {}, "ring: the choice"),
    ...(prior ? [el("li", {}, isBeyond ? "▲ before any release; at an edge: outside" : "▲ before any release")] : []),
  );
}
