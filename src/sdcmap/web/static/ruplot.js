// The R-U map as a plot: points, frontier, anchors and labels, with hover, zoom and selection.
import { base, el, get, later, losing, short, svg } from "./api.js";
import { color } from "./chart.js";
import { SHAPES } from "./dots.js";
import { clamp, hue, keyEntry, Picture, text } from "./picture.js";
import { rowsOf, rowsOfCurve } from "./points.js";

/** @typedef {import("./points.js").Row} Row */
/** @typedef {import("./picture.js").Pair} Pair */

const NAMES = Object.keys(SHAPES);
const WIDTHS = [360, 560, 760, 960, 1200]; // of the plot, in pixels, for which the service places labels
const LABEL_CHARACTER_PX = 6.1; // width of a character of a label ...
const LABEL_LINE_PX = 14; // ... and height of a line
const POINTER_REACH_PX = 14; // largest distance from the pointer to a point
const MIN_ZOOM_SHARE = 1e-5; // smallest share of an axis that a zoom shows
const ZOOM_STEP = 1.25;

// A short name of a family of methods: of a long chain, the first and the last step.
export function brief(family) {
  const steps = family.split(" + ");
  return steps.length > 3 ? `${steps[0]} + ${steps.length - 2} more + ${steps.at(-1)}` : family;
}

const isFinitePoint = (row) => Number.isFinite(row.risk) && Number.isFinite(row.utility);

export class Plot extends Picture {
  /** @type {Api.Map | null} */
  map = null;
  by = "release";
  coloring = "family"; // or "era", the generations of a search
  /** @type {Row[]} */
  rows = [];
  /** @type {Row[]} */
  means = [];
  /** @type {Row[]} the points of the curves of a parameter */
  traced = [];
  /** @type {Row[]} those that are drawn */
  list = [];
  /** @type {Row[]} those on the frontier, from left to right */
  front = [];
  /** @type {string[]} */
  families = [];
  /** @type {Set<string>} */
  hidden = new Set();
  /** @type {Row | null} */
  chosen = null;
  /** @type {{ risk?: number, utility?: number, words: string }[]} lines at a risk or a utility, with their texts */
  guides = [];
  /** @type {Api.PageLabel[]} */
  labels = [];
  askedLabels = "";
  /** @type {Map<string, () => void>} */
  waiting = new Map();
  work = { points: 0, labels: 0 };
  across = new Float64Array();
  up = new Float64Array();
  group = new Uint8Array();

  /** @type {(row: Row) => void} */
  onpick = () => {};
  /** @type {((rows: Row[], part: { x: Pair, y: Pair }) => void) | null} */
  onbrush = null;
  onmove = () => {};
  query = () => new URLSearchParams(); // of the axes

  constructor(node, options = {}) {
    super(node);
    Object.assign(this, options);
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    this.key = el("ul", { class: "key" });
    this.all = this.button("Show all", "Show all", () => this.lookAt(null));
    this.all.disabled = true;
    this.askLabels = later(120, () => this.placeLabels().catch(() => {})); // the plot works without labels
    node.append(this.tip);
    node.after(this.key);
    node.before(
      el(
        "div",
        { class: "zoomers" },
        this.button("Zoom in", "+", () => this.zoom(1 / ZOOM_STEP ** 2)),
        this.button("Zoom out", "−", () => this.zoom(ZOOM_STEP ** 2)),
        this.all,
      ),
    );
    node.tabIndex = 0;
    node.setAttribute("role", "group");
    node.setAttribute("aria-label", "The map. Plus and minus zoom, arrows move, 0 shows all.");
    this.listen();
  }

  button(words, sign, act) {
    const facts = { type: "button", class: "second", "aria-label": words, title: words, onclick: act };
    return el("button", facts, sign);
  }

  // ---- content ------------------------------------------------------------------------------------------------
  /** @param {Api.Map} map */
  set(map, { by: asked = this.by, coloring = this.coloring } = {}) {
    const by = asked in map.axes ? asked : map.layer; // on other axes there may be no curves
    const { x, y, is_log: isLog } = map.axes[by];
    const isSame = this.map && by === this.by && String(map.labels) === String(this.map.labels) && isLog === this.isLog;
    const fits = isSame && x[0] >= this.x[0] && x[1] <= this.x[1] && y[0] >= this.y[0] && y[1] <= this.y[1];
    if (!fits) Object.assign(this, { x, y }); // keep the axes while a growing map fits
    if (!isSame) this.seen = null;
    Object.assign(this, {
      map,
      by,
      isLog,
      coloring: coloring === "era" && map.eras.length ? "era" : "family",
      labels: [],
    });
    this.rows = rowsOf(map);
    this.means = rowsOf(map, map.means);
    this.traced = map.curves.flatMap((curve, line) => rowsOfCurve(this.means, curve, line));
    this.families = [...new Set(this.means.filter((row) => !row.anchor).map((row) => row.family))].sort();
    this.redraw();
  }

  get shownMap() {
    return /** @type {Api.Map} */ (this.map);
  }

  isReady() {
    return this.map !== null;
  }

  groupOf(row) {
    if (this.by === "curve") return row.line ?? this.shownMap.curves.length;
    return this.coloring === "era" ? (row.era ?? this.shownMap.eras.length) : this.families.indexOf(row.family);
  }

  anchors() {
    const whole = this.means.find((row) => row.anchor),
      nothing = this.shownMap.nothing;
    const ends = whole ? [{ name: "unmasked file", risk: whole.risk, utility: whole.utility }] : [];
    if (!nothing) return ends;
    return [...ends, { name: "release nothing", risk: nothing[0] ?? Infinity, utility: nothing[1] ?? Infinity }];
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------
  // Means of methods that are on no curve.
  loose() {
    const traced = new Set(this.traced.map((row) => row.method));
    return this.means.filter((row) => !traced.has(row.method));
  }

  redraw() {
    const layers = { release: this.rows, mean: this.means, curve: [...this.traced, ...this.loose()] };
    const rows = layers[this.by];
    this.list = rows.filter((row) => !row.anchor && !this.hidden.has(row.family));
    this.across = Float64Array.from(this.list, (row) => row.utility);
    this.up = Float64Array.from(this.list, (row) => row.risk);
    this.group = Uint8Array.from(this.list, (row) => this.groupOf(row));
    this.front = (this.by === "curve" ? [] : this.list)
      .filter((row) => row.frontier && isFinitePoint(row))
      .sort((a, b) => a.utility - b.utility || a.risk - b.risk);
    if (!super.redraw()) return false;
    const utility = this.shownMap.labels[1];
    const words = `Map of ${this.list.length} points: ${utility} across, ${this.riskTitle()} up. The table holds the same.`;
    this.canvas.setAttribute("aria-label", words);
    this.drawKey();
    this.drawLabels();
    this.askLabels();
    return true;
  }

  // The title of the risk axis, as on a picture: "risk: SmallCells (share of records)", or "risk of each attacker".
  riskTitle() {
    const { title } = this.shownMap.axes[this.by];
    return title.charAt(0).toLowerCase() + title.slice(1);
  }

  titles() {
    const { labels, signs } = this.shownMap,
      { left, right, top, bottom } = this.frame();
    const title = (words, label, sign, room) => {
      const better = sign > 0 ? "lower is better" : "higher is better";
      const withoutUnit = label.replace(/ \([^()]*\)$/, "");
      const fitting = [`${words}, ${better}`, `${label}, ${better}`, label, withoutUnit];
      const cut = `${label.slice(0, Math.max(8, room / 6.6 - 1))}…`;
      return fitting.find((line) => 6.6 * line.length < room) || cut;
    };
    const risk = this.riskTitle();
    return [
      title(`${losing(this.map)}: ${labels[1]}`, labels[1], signs[1], right - left),
      title(risk, risk.replace(/^risk: /, ""), signs[0], bottom - top),
    ];
  }

  draw() {
    this.work.points += 1;
    super.draw();
    const { floor } = this.shownMap,
      { left, right } = this.frame();
    const at = floor && this.sy.at(floor.risk);
    if (at !== null && this.isInside([left, at]))
      this.back.append(svg("line", { class: "floor", x1: left, x2: right, y1: at, y2: at }));
  }

  /** @param {CanvasRenderingContext2D} pen */
  paint(pen) {
    if (this.by === "mean") this.drawBands(pen);
    this.stamp(pen, false);
    if (this.by === "curve") this.drawCurves(pen);
    else this.drawFrontier(pen);
    this.stamp(pen, true);
    this.drawAnchors(pen);
  }

  // Color and shape of a group; methods beside the curves are gray.
  style(group) {
    if (this.by !== "curve") return { shape: NAMES[group % NAMES.length], fill: hue(group) };
    const curve = this.shownMap.curves[group];
    if (!curve) return { shape: NAMES[0], fill: color("--plot-gray") };
    return { shape: NAMES[curve.shape % NAMES.length], fill: hue(curve.color) };
  }

  look(row, many) {
    const look = this.style(this.groupOf(row));
    if (row.outside || row.worse) return { ...look, fill: color("--plot-gray"), size: many ? 4 : 6, opacity: 0.3 };
    if (row.frontier) return { ...look, size: many ? 8 : 9, rim: color("--card") };
    return { ...look, size: many ? 5 : 7.5, opacity: many ? 0.4 : 0.6 };
  }

  // Draw the points that are, or are not, on the frontier. Points outside the plot are arrows at its edge.
  stamp(pen, frontier) {
    const { list, across, up, group, sx, sy, ratio } = this,
      { left, right, top, bottom } = this.frame();
    const many = list.length > 1500 && this.by === "release";
    const looks = [],
      own = [];
    this.dots.clear();
    for (let i = 0; i < list.length; i += 1) {
      const row = list[i];
      if (row.frontier !== frontier) continue;
      let px = sx.at(across[i]),
        py = sy.at(up[i]),
        stamp;
      if (px >= left - 4 && px <= right + 4 && py >= top - 4 && py <= bottom + 4) {
        const look = 2 * group[i] + (row.outside || row.worse ? 1 : 0);
        stamp = looks[look] ||= this.dots.of(this.look(row, many));
      } else {
        if (this.seen && isFinitePoint(row)) continue;
        const edge = py < top ? "up" : py > bottom ? "down" : px > right ? "right" : "left";
        stamp = this.dots.of({ ...this.look(row, many), edge });
        [px, py] = [clamp(px, left + 4, right - 4), clamp(py, top + 4, bottom - 4)];
      }
      this.dots.lay(stamp, px * ratio, py * ratio);
      if (this.coloring === "era" && row.era === 0) own.push([px, py]);
    }
    this.dots.onto(pen);
    Object.assign(pen, { strokeStyle: color("--ink"), lineWidth: 1.4 });
    for (const [px, py] of own) {
      pen.beginPath();
      pen.arc(px, py, 6, 0, 7);
      pen.stroke();
    }
  }

  drawFrontier(pen) {
    const { signs } = this.shownMap;
    pen.beginPath();
    this.front.forEach((row, i) => {
      const [x, y] = this.pixel(row);
      if (!i) return pen.moveTo(x, y);
      const [x0, y0] = this.pixel(this.front[i - 1]);
      if (signs[0] * signs[1] > 0) pen.lineTo(x, y0);
      else pen.lineTo(x0, y);
      pen.lineTo(x, y);
    });
    Object.assign(pen, { strokeStyle: color("--ink"), lineWidth: 1.4 });
    pen.stroke();
  }

  // A line through the methods that differ in one parameter, in its order, with the errors of the means.
  drawCurves(pen) {
    this.shownMap.curves.forEach(({ color: number, dash, risk_se, utility_se }, line) => {
      const rows = this.traced.filter((row) => row.line === line && !this.hidden.has(row.family) && isFinitePoint(row));
      Object.assign(pen, { strokeStyle: hue(number), lineWidth: 1.8 });
      pen.setLineDash(dash[1] ? dash : []);
      pen.beginPath();
      for (const row of rows) pen.lineTo(...this.pixel(row));
      pen.stroke();
      pen.setLineDash([]);
      pen.lineWidth = 1.2;
      for (const { risk, utility, index = 0 } of rows.filter(({ count = 0 }) => count > 1)) {
        const [up, across] = [risk_se[index], utility_se[index]].map((se) => 1.96 * (se ?? 0));
        pen.beginPath();
        pen.moveTo(...this.at(utility, risk - up));
        pen.lineTo(...this.at(utility, risk + up));
        pen.moveTo(...this.at(utility - across, risk));
        pen.lineTo(...this.at(utility + across, risk));
        pen.stroke();
      }
    });
  }

  // Range of single releases (thin) and standard error of the mean (thick); with many methods, of undominated ones only.
  drawBands(pen) {
    const line = (width, stroke, x1, y1, x2, y2) => {
      if (![x1, y1, x2, y2].every((value) => Number.isFinite(value))) return;
      Object.assign(pen, { strokeStyle: stroke, lineWidth: width });
      pen.beginPath();
      pen.moveTo(...this.at(x1, y1));
      pen.lineTo(...this.at(x2, y2));
      pen.stroke();
    };
    const { means } = this.shownMap,
      gray = color("--plot-gray"),
      ink = color("--ink");
    this.means.forEach(({ risk, utility, frontier, count = 0 }, i) => {
      if (!this.list.includes(this.means[i]) || (!frontier && this.list.length > 40) || count < 2) return;
      line(0.8, gray, utility, means.risk_low[i], utility, means.risk_high[i]);
      line(0.8, gray, means.utility_low[i], risk, means.utility_high[i], risk);
      const [up, across] = [means.risk_se[i], means.utility_se[i]].map((se) => 1.96 * (se ?? NaN));
      line(2.4, ink, utility, risk - up, utility, risk + up);
      line(2.4, ink, utility - across, risk, utility + across, risk);
    });
  }

  // The position of an anchor, and the direction of its arrow if it is outside the plot.
  anchorAt(anchor) {
    const { left, right, top, bottom } = this.frame(),
      [x, y] = this.pixel(anchor);
    const edge = !(y >= top) ? "up" : y > bottom ? "down" : !(x <= right) ? "right" : x < left ? "left" : "";
    const across = Number.isFinite(x) ? clamp(x, left + 5, right - 5) : right - 5;
    const up = Number.isFinite(y) ? clamp(y, top + 5, bottom - 5) : top + 5;
    return { edge, at: edge ? [across, up] : [x, y] };
  }

  drawAnchors(pen) {
    const ink = color("--ink");
    this.dots.clear();
    for (const anchor of this.anchors()) {
      const { edge, at } = this.anchorAt(anchor);
      if (edge && this.seen) continue;
      const shape = anchor.name === "unmasked file" ? "circle" : "square";
      const stamp = this.dots.of({ shape, fill: edge ? ink : color("--card"), rim: ink, size: 10, edge });
      this.dots.lay(stamp, at[0] * this.ratio, at[1] * this.ratio);
    }
    this.dots.onto(pen);
  }

  drawKey() {
    const { eras, curves } = this.shownMap,
      isCurve = this.by === "curve";
    const groups = isCurve
      ? [...curves.map((curve) => curve.name), ...(this.loose().some((row) => !row.anchor) ? ["other methods"] : [])]
      : this.coloring === "era"
        ? eras
        : this.families;
    const numbers = ({ risk, utility }) => `risk ${short(risk)}, ${losing(this.map)} ${short(utility)}`;
    const parameters = [...new Set(curves.map((curve) => curve.parameter))].join(", ");
    const words = [
      ...(isCurve ? [`numbers at points: ${parameters}`, "bars: mean ± 1.96 standard errors"] : ["line: frontier"]),
      "○ unmasked file",
      "□ release nothing",
      ...(this.coloring === "era" && !isCurve ? ["ring: your plan's own"] : []),
      ...(this.by === "mean" ? ["thin: 95 % of releases", "thick: ± error of the mean"] : []),
      ...this.anchors()
        .filter((anchor) => this.anchorAt(anchor).edge)
        .map((anchor) => `${anchor.name}: beyond the picture, ${numbers(anchor)}`),
    ];
    this.key.replaceChildren(
      ...groups.map((name, i) => {
        const { shape, fill } = this.style(i);
        return keyEntry(SHAPES[shape], fill, brief(name));
      }),
      ...words.map((fact) => el("li", {}, fact)),
    );
  }

  // ---- labels -------------------------------------------------------------------------------------------------------
  // Python computes their positions, for the next smaller of a few widths and for the visible part.
  async placeLabels() {
    const { left, right, top, bottom } = this.frame(),
      part = this.seen;
    const shrunk = (WIDTHS.findLast((width) => width <= this.width) ?? this.width) - this.width;
    const asked = new URLSearchParams(this.query());
    asked.set("by", this.by);
    asked.set("width", String(Math.round(right - left + shrunk)));
    asked.set("height", String(Math.round(bottom - top)));
    if (part) asked.set("part", [...part.x, ...part.y].join());
    this.work.labels += 1;
    this.askedLabels = asked.toString();
    const { labels } = await get(`${base}/map/labels?${asked}`);
    if (part !== this.seen || asked.toString() !== this.askedLabels) return; // labels of another size or part
    this.labels = labels;
    this.drawLabels();
  }

  // Texts of limits and of the choice are always shown; labels that would overlap them, or each other, are left out.
  drawLabels() {
    if (!this.box) return;
    /** @type {number[][]} */
    const taken = [];
    /** @type {Element[]} */
    const parts = [];
    const { left, right, top, bottom } = this.box;
    const boxOf = (words, x, y, align) => {
      const width = LABEL_CHARACTER_PX * words.length,
        start = x - { start: 0, middle: width / 2, end: width }[align];
      return [start, y - LABEL_LINE_PX / 2, start + width, y + LABEL_LINE_PX / 2];
    };
    const isFree = (/** @type {number[]} */ [x1, y1, x2, y2]) =>
      taken.every(([a1, b1, a2, b2]) => x1 > a2 + 2 || x2 < a1 - 2 || y1 > b2 || y2 < b1);
    const write = (words, kind, [x, y], align) => {
      const box = boxOf(words, x, y, align);
      if (!isFree(box)) return false;
      taken.push(box);
      parts.push(text(words, { class: `label ${kind}`, x, y: y + 4, "text-anchor": align }));
      return true;
    };
    for (const { risk, utility, words } of this.guides) {
      const y = this.sy.at(risk ?? NaN),
        x = this.sx.at(utility ?? NaN);
      if (this.isInside([left, y]))
        [y - 10, y + 10].some((at) => at > top && write(words, "line", [right - 4, at], "end"));
      if (this.isInside([x, top])) {
        const isLeft = x + LABEL_CHARACTER_PX * words.length + 6 > right;
        const [start, align] = isLeft ? [x - 5, "end"] : [x + 5, "start"];
        [20, 36, 52].some((down) => write(words, "line", [start, top + down], align));
      }
    }
    const chosen = this.chosen;
    if (chosen && isFinitePoint(chosen) && this.isInside(this.pixel(chosen))) {
      const [x, y] = this.pixel(chosen),
        words = `chosen: ${chosen.short}`;
      const side = x + 14 + LABEL_CHARACTER_PX * words.length > right ? -1 : 1;
      const near = [-14, 14, 0, -28, 28].filter((off) => y + off > top && y + off < bottom);
      near.some((off) => write(words, "name", [x + 14 * side, y + off], side > 0 ? "start" : "end"));
    }
    const hidden = new Set(this.means.filter((row) => this.hidden.has(row.family)).map((row) => row.short));
    for (const { text: words, kind, utility, risk, across, down, align, leader } of this.labels) {
      const [x, y] = this.at(utility, risk);
      if (hidden.has(words) || words === chosen?.short || !this.isInside([x, y], 1)) continue;
      const isWritten = write(
        words,
        kind,
        [x + across, y + down],
        { left: "start", center: "middle", right: "end" }[align],
      );
      if (isWritten && leader)
        parts.push(svg("line", { class: "leader", x1: x, y1: y, x2: x + leader[0], y2: y + leader[1] }));
    }
    this.texts.replaceChildren(...parts);
  }

  // ---- numbers and pixels ---------------------------------------------------------------------------------------------
  pixel(row) {
    return this.at(row.utility, row.risk);
  }

  nearest([x, y]) {
    const { list, across, up, sx, sy } = this;
    /** @type {Row | null} */
    let best = null;
    let least = POINTER_REACH_PX;
    for (let i = 0; i < list.length; i += 1) {
      const distance = Math.hypot(sx.at(across[i]) - x, sy.at(up[i]) - y);
      if (distance < least || (distance === least && best === null)) [best, least] = [list[i], distance];
    }
    return best;
  }

  // ---- pointer and keyboard -------------------------------------------------------------------------------------------------------
  listen() {
    const { node } = this;
    const isWholeAndAway = (event) => !this.seen && event.deltaY > 0; // all is seen: the page scrolls on
    node.addEventListener(
      "wheel",
      (event) => {
        if (!this.box || isWholeAndAway(event)) return;
        event.preventDefault();
        this.zoom(ZOOM_STEP ** (event.deltaY < 0 ? -1 : 1), this.place(event));
      },
      { passive: false },
    );
    const acts = {
      "+": () => this.zoom(1 / ZOOM_STEP),
      "=": () => this.zoom(1 / ZOOM_STEP),
      "-": () => this.zoom(ZOOM_STEP),
      0: () => this.lookAt(null),
      ArrowLeft: () => this.pan(-0.1, 0),
      ArrowRight: () => this.pan(0.1, 0),
      ArrowUp: () => this.pan(0, 0.1),
      ArrowDown: () => this.pan(0, -0.1),
    };
    node.addEventListener("keydown", (event) => {
      const act = acts[event.key],
        isTaken = event.ctrlKey || event.metaKey || event.altKey;
      if (!act || isTaken || (event.key.startsWith("Arrow") && !this.seen)) return;
      event.preventDefault();
      act();
    });
    node.addEventListener("pointerleave", () => (this.tip.hidden = true));
    node.addEventListener("pointermove", (event) => {
      if (!this.box || event.buttons) return void (this.tip.hidden = true);
      this.frameOnce("hover", () => this.hover(event));
    });
    /** @type {PointerEvent | null} no `click`: a line that is dragged is drawn under the pointer */
    let down = null;
    node.addEventListener(
      "pointerdown",
      (event) => {
        down = event;
        const isMouse = event.button === 0 && event.pointerType !== "touch";
        const isGrip = /** @type {Element} */ (event.target).closest(".grip");
        if (this.box && this.onbrush && isMouse && !isGrip) this.brush(event);
      },
      true,
    );
    node.addEventListener(
      "pointerup",
      (event) => {
        if (!this.box || !down || Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) >= 4) return;
        const row = this.nearest(this.place(event));
        if (row) this.onpick(row);
      },
      true,
    );
  }

  // Run at most one call per frame, the latest.
  frameOnce(what, act) {
    if (!this.waiting.has(what)) requestAnimationFrame(() => this.flush(what));
    this.waiting.set(what, act);
  }

  flush(what) {
    const act = this.waiting.get(what);
    this.waiting.delete(what);
    act?.();
  }

  brush(event) {
    const [x0, y0] = this.place(event),
      { left, right, top, bottom } = this.frame();
    if (!this.isInside([x0, y0])) return;
    const shape = svg("rect", { class: "brush" });
    /** @type {number[] | null} */
    let ends = null;
    const move = (moved) => {
      const [x, y] = this.place(moved),
        [x1, y1] = [clamp(x, left, right), clamp(y, top, bottom)];
      if (!ends && Math.hypot(x1 - x0, y1 - y0) < 4) return;
      ends = [Math.min(x0, x1), Math.max(x0, x1), Math.min(y0, y1), Math.max(y0, y1)];
      const facts = { x: ends[0], y: ends[2], width: ends[1] - ends[0], height: ends[3] - ends[2] };
      for (const [name, value] of Object.entries(facts)) shape.setAttribute(name, String(value));
      if (!shape.isConnected) this.texts.append(shape);
    };
    this.node.focus({ preventScroll: true });
    this.drag(event, move, () => {
      shape.remove();
      if (!ends) return;
      const [x1, x2, y1, y2] = ends;
      const rows = this.list.filter((row) => {
        const [x, y] = this.pixel(row);
        return x >= x1 && x <= x2 && y >= y1 && y <= y2;
      });
      this.onbrush?.(rows, { x: [this.sx.back(x1), this.sx.back(x2)], y: [this.sy.back(y2), this.sy.back(y1)] });
    });
  }

  // ---- zoom -----------------------------------------------------------------------------------------------------------
  // Scale the visible part by `times` around a pixel; by default around the center.
  zoom(times, pixel) {
    const { left, right, top, bottom } = this.frame(),
      [px, py] = pixel ?? [(left + right) / 2, (top + bottom) / 2];
    const around = ([low, high], middle, full) => {
      const whole = full[1] - full[0],
        span = clamp(times * (high - low), MIN_ZOOM_SHARE * whole, whole);
      return this.shifted(middle - ((middle - low) / (high - low)) * span, span, full);
    };
    const { x, y } = this.seen || this;
    const up = this.fromLog(around(this.toLog(y), this.toLog([this.sy.back(py)])[0], this.toLog(this.y)));
    this.lookAt({ x: around(x, this.sx.back(px), this.x), y: up });
  }

  // On a logarithmic axis, zoom and move in logarithms.
  toLog(values) {
    return this.isLog ? values.map(Math.log) : values;
  }

  fromLog(values) {
    return this.isLog ? values.map(Math.exp) : values;
  }

  pan(across, up) {
    const { x, y } = this.seen || this;
    const move = ([low, high], share, full) => this.shifted(low + share * (high - low), high - low, full);
    this.lookAt({ x: move(x, across, this.x), y: this.fromLog(move(this.toLog(y), up, this.toLog(this.y))) });
  }

  /** @returns {Pair} */
  shifted(low, span, full) {
    const start = clamp(low, full[0], full[1] - span);
    return [start, start + span];
  }

  // Show this part of the axes, {x: [low, high], y: [low, high]}; null: all.
  lookAt(part) {
    const spans = (axis, of) => of[axis][1] - of[axis][0];
    const whole = !part || ["x", "y"].every((axis) => spans(axis, part) >= (1 - 1e-9) * spans(axis, this));
    this.seen = whole ? null : part;
    this.all.disabled = whole;
    this.tip.hidden = true;
    if (!this.box) return;
    this.scale(); // at once: the next turn of the wheel counts from here
    this.frameOnce("zoom", () => {
      this.draw();
      this.drawLabels();
      this.after();
      this.onmove();
      this.askLabels();
    });
  }

  // ---- details of a point -----------------------------------------------------------------------------------------------
  hover(event) {
    const spot = this.place(event),
      row = this.nearest(spot);
    const isNear = (/** @type {number[]} */ [x, y]) => Math.hypot(x - spot[0], y - spot[1]) < POINTER_REACH_PX;
    const anchor = row ? null : this.anchors().find((one) => isNear(this.anchorAt(one).at));
    this.tip.hidden = !row && !anchor;
    if (!row && !anchor) return;
    const { name, risk, utility } = /** @type {Row} */ (row ?? anchor);
    const facts = { ...(row ? this.origin(row) : {}), risk: short(risk), [losing(this.map)]: short(utility) };
    const said = Object.entries({ ...facts, ...(row ? this.standing(row) : {}) });
    this.tip.replaceChildren(
      el("strong", {}, name),
      el("dl", {}, ...said.flatMap(([fact, value]) => [el("dt", {}, fact), el("dd", {}, value)])),
    );
    const [x, y] = row ? this.pixel(row) : spot,
      { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${x + 14 + width > this.width ? Math.max(0, x - 14 - width) : x + 14}px`;
    this.tip.style.top = `${clamp(y - height / 2, 0, Math.max(0, this.height - height))}px`;
  }

  /**
   * Which release, or how many.
   * @param {Row} row
   * @returns {Record<string, string>}
   */
  origin({ count, replicate = 0, id = "", line }) {
    const curve = this.by === "curve" && line !== undefined ? this.shownMap.curves[line] : null;
    if (curve) return { line: curve.name, releases: String(count) };
    return this.by === "release" ? { draw: String(replicate + 1), id } : { releases: String(count) };
  }

  /**
   * How it stands to the frontier, a search and the limits.
   * @param {Row} row
   * @returns {Record<string, string>}
   */
  standing({ membership, frontier, era, outside, worse }) {
    const { eras } = this.shownMap,
      isShare = this.by !== "release" && typeof membership === "number";
    return {
      ...(isShare
        ? { "on the frontier in": `${Math.round(100 * membership)} %` }
        : frontier
          ? { frontier: "on it" }
          : {}),
      ...(eras.length && era !== null ? { origin: eras[era] } : {}),
      ...(outside ? { "outside its limit": outside } : {}),
      ...(worse ? { "not useful": "worse than not masking" } : {}),
    };
  }
}
