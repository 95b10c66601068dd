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
  return rows.method.map((method, i) => ({
    method,
    name: rows.name[i],
    id: rows.id?.[i],
    replicate: rows.replicate?.[i],
    ...Object.fromEntries(Object.keys(TITLES).map((name) => [name, far(rows[name][i])])),
    distance: rows.distance[i] ?? Infinity,
  }));
}

export class Plane extends Picture {
  /** @type {Row[]} */
  rows = [];
  /** @type {Record<string, number | null> | null} before any release */
  prior = null;
  isSafe = (/** @type {Row} */ _row) => true;

  constructor(node, across, up) {
    super(node);
    Object.assign(this, { tall: 0.8 });
    this.across = across;
    this.up = up;
  }

  /** @param {Row[]} rows @param {Record<string, number | null> | null} prior @param {(row: Row) => boolean} isSafe */
  set(rows, prior, isSafe, guests = {}) {
    Object.assign(this, { rows, prior, isSafe });
    const ends = (name) => {
      const low = Math.min(
        0,
        ...[...rows.map((row) => row[name]), guests[name], prior?.[name]].filter(Number.isFinite),
      );
      return [1.05 * (low || -1), 0];
    };
    Object.assign(this, { x: ends(this.across), y: ends(this.up) });
    const words = `${rows.length} points: ${TITLES[this.across]} across, ${TITLES[this.up]} up. The table holds the same.`;
    this.canvas.setAttribute("aria-label", words);
    this.redraw();
  }

  titles() {
    return [this.across, this.up].map((name) => (this.width < 420 ? name.toUpperCase() : TITLES[name]));
  }

  isReady() {
    return this.rows.length > 0;
  }

  pixel(row) {
    return this.at(clamp(row[this.across], ...this.x), clamp(row[this.up], ...this.y));
  }

  paint(pen) {
    const size = this.rows.length > 1500 ? 5 : 8;
    const looks = [true, false].map((isSafe) =>
      this.dots.of({ shape: isSafe ? "circle" : "diamond", fill: hue(isSafe ? 0 : 1), size, opacity: 0.85 }),
    );
    const lay = (look, [x, y]) => this.dots.lay(look, x * this.ratio, y * this.ratio);
    this.dots.clear();
    for (const row of this.rows) lay(looks[this.isSafe(row) ? 0 : 1], this.pixel(row));
    if (this.prior) {
      const at = this.at(this.prior[this.across], this.prior[this.up]);
      const look = this.dots.of({ shape: "triangle-up", fill: color("--ink"), size: 11 });
      if (this.isInside(at)) lay(look, at);
    }
    this.dots.onto(pen);
  }

  ringOf(row) {
    const isDrawn = row && Number.isFinite(row[this.across]) && Number.isFinite(row[this.up]);
    return isDrawn ? [this.ring(this.pixel(row))] : [];
  }

  // The line from the choice to (0, 0), where society would know everything.
  way(row) {
    if (!row || !Number.isFinite(row.distance)) return [];
    const [[x1, y1], [x2, y2]] = [this.pixel(row), this.at(0, 0)];
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

export function drawKey(list, prior) {
  list.replaceChildren(
    keyEntry(SHAPES.circle, hue(0), "safe"),
    keyEntry(SHAPES.diamond, hue(1), "not safe"),
    el("li", {}, "ring: the choice"),
    ...(prior ? [el("li", {}, "▲ before any release")] : []),
  );
}
