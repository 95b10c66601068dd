// Trottini's two planes: global risk with its limits and regions, global utility with the way to (0, 0).
import { el, svg } from "./api.js";
import { colour, theme } from "./chart.js";
import { Layered } from "./layered.js";
import { hue, reach } from "./ruplot.js";

export const TITLES = {
  iek: "Intruder's estimated knowledge, IEK",
  rdh: "Risk of discredit harm, RDH",
  sek: "Society's estimated knowledge, SEK",
  dus: "Data utility for society, DUS",
};
const WORDS = { A: "discredit harm alone", B: "both harms", C: "disclosure harm alone", D: "neither: safe" };
const far = (value) => (value === null ? -Infinity : value);

export function rowsOf(found) {
  const { rows } = found;
  return rows.method.map((method, i) => {
    const [iek, rdh, sek, dus] = ["iek", "rdh", "sek", "dus"].map((name) => far(rows[name][i]));
    return {
      method,
      name: rows.name[i],
      id: rows.id?.[i],
      replicate: rows.replicate?.[i],
      iek,
      rdh,
      sek,
      dus,
      distance: rows.distance[i] ?? Infinity,
    };
  });
}

// The one thing of the criterion that is computed here, to follow a limit without asking: kernels/decision/global_criterion.py.
export const region = (row, limits) => "DCAB"[(row.iek > limits.agency_limit) + 2 * (row.rdh > limits.intruder_limit)];

// The safe row whose utility is nearest to (0, 0): the server sends rows by preference, and its `choose` is the judge.
export const nearest = (rows, limits) => rows.find((row) => region(row, limits) === "D") ?? null;

export class Plane extends Layered {
  constructor(node, across, up) {
    super(node);
    Object.assign(this, { across, up, rows: [] });
  }

  async set(rows, prior, isSafe, limits = []) {
    Object.assign(this, { rows, prior, isSafe });
    const ends = (name, limit) => [
      reach([...rows.map((row) => row[name]), limit ?? NaN].filter(Number.isFinite), [prior?.[name]])[0],
      0,
    ];
    this.x = ends(this.across, limits[0]);
    this.y = ends(this.up, limits[1]);
    await this.redraw();
  }

  table() {
    const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
    return this.rows.map((row) => ({
      x: clamp(row[this.across], this.x),
      y: clamp(row[this.up], this.y),
      s: this.isSafe(row) ? "safe" : "not safe",
    }));
  }

  spec() {
    const axis = (domain, title) => ({
      type: "quantitative",
      scale: { domain, nice: false, zero: false },
      axis: { title, grid: true, gridOpacity: 0.5, tickCount: 5, format: "~g" },
    });
    const title = (name) => (this.width < 420 ? name.toUpperCase() : TITLES[name]);
    const states = ["safe", "not safe"];
    const prior =
      this.prior && this.prior[this.across] >= this.x[0] && this.prior[this.up] >= this.y[0]
        ? [{ x: this.prior[this.across], y: this.prior[this.up] }]
        : [];
    return {
      width: this.width - 8,
      height: Math.round(Math.min(430, Math.max(280, 0.8 * this.width))),
      autosize: { type: "fit", contains: "padding" },
      config: theme(),
      encoding: {
        x: { field: "x", ...axis(this.x, title(this.across)) },
        y: { field: "y", ...axis(this.y, title(this.up)) },
      },
      layer: [
        {
          data: { name: "dots", values: this.table() },
          mark: { type: "point", filled: true, size: this.rows.length > 1500 ? 18 : 52, strokeWidth: 0, opacity: 0.85 },
          encoding: {
            color: { field: "s", type: "nominal", legend: null, scale: { domain: states, range: [hue(0), hue(1)] } },
            shape: {
              field: "s",
              type: "nominal",
              legend: null,
              scale: { domain: states, range: ["circle", "diamond"] },
            },
          },
        },
        {
          data: { values: prior },
          mark: { type: "point", shape: "triangle-up", size: 130, filled: true, color: colour("--ink") },
        },
      ],
    };
  }

  async redraw() {
    if (!this.rows.length) return;
    const words = `${this.rows.length} points: ${TITLES[this.across]} across, ${TITLES[this.up]} up. The table holds the same.`;
    if (await this.show(() => this.spec(), words)) this.after?.();
  }

  // Colours anew, once a frame at the most.
  recolour() {
    if (this.waiting || !this.view) return;
    this.waiting = true;
    requestAnimationFrame(async () => {
      this.waiting = false;
      await this.view.data("dots", this.table()).runAsync();
    });
  }

  ring(row) {
    if (!row || !Number.isFinite(row[this.across]) || !Number.isFinite(row[this.up])) return [];
    const [cx, cy] = this.at(row[this.across], row[this.up]);
    return [svg("circle", { class: "ring", cx, cy, r: 9 })];
  }

  // The way from the choice to (0, 0), where society would know everything.
  way(row) {
    if (!row || !Number.isFinite(row.distance)) return [];
    const [[x1, y1], [x2, y2]] = [this.at(row[this.across], row[this.up]), this.at(0, 0)];
    return [svg("line", { class: "way", x1, y1, x2, y2 })];
  }

  // Both limits as lines to drag, and the letters of the regions.
  limits({ agency_limit, intruder_limit }, set, done) {
    const frame = this.frame();
    const inside = (value, low, high) => Math.min(high, Math.max(low, value));
    const [a, b] = this.at(agency_limit, intruder_limit);
    const [x, y] = [inside(a, frame.left, frame.right), inside(b, frame.top, frame.bottom)];
    const across = { x1: frame.left, x2: frame.right, y1: y, y2: y };
    const up = { x1: x, x2: x, y1: frame.top, y2: frame.bottom };
    const shade = (x1, x2, y1, y2, more = "") =>
      svg("rect", { class: `shade ${more}`, x: x1, y: y1, width: Math.max(0, x2 - x1), height: Math.max(0, y2 - y1) });
    const letter = (name, x1, x2, y1, y2) => {
      if (x2 - x1 < 26 || y2 - y1 < 24) return [];
      const made = svg("text", { class: "region", x: x1 + 7, y: y1 + 17 });
      made.textContent = x2 - x1 > 170 ? `${name}: ${WORDS[name]}` : name;
      return [made];
    };
    return [
      shade(frame.left, x, frame.top, y),
      shade(x, frame.right, y, frame.bottom),
      shade(x, frame.right, frame.top, y, "both"),
      ...letter("A", frame.left, x, frame.top, y),
      ...letter("B", x, frame.right, frame.top, y),
      ...letter("C", x, frame.right, y, frame.bottom),
      ...letter("D", frame.left, x, y, frame.bottom),
      svg("line", { class: "limit", ...across }),
      svg("line", { class: "limit", ...up }),
      svg("circle", { class: "knob", cx: frame.right, cy: y, r: 6 }),
      svg("circle", { class: "knob", cx: x, cy: frame.top, r: 6 }),
      this.grip(across, "grip", (_, value) => set({ intruder_limit: value }), done),
      this.grip(up, "grip side", (value) => set({ agency_limit: value }), done),
    ];
  }
}

export function drawKey(list, prior) {
  const mark = (d, fill) => {
    const made = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
    made.append(svg("path", { d, fill }));
    return made;
  };
  list.replaceChildren(
    el("li", {}, mark("M5 1a4 4 0 1 1 0 8a4 4 0 1 1 0-8", hue(0)), "safe"),
    el("li", {}, mark("M5 .5L9.5 5L5 9.5L.5 5z", hue(1)), "not safe"),
    el("li", {}, "ring: the choice"),
    ...(prior ? [el("li", {}, "▲ before any release")] : []),
  );
}
