// The R-U map as a plot: points on a canvas, axes and labels around them, and what the hand does: look, zoom, choose a part.
import { el, later, losing, short, svg } from "./api.js";
import { colour } from "./chart.js";
import { Dots, SHAPES } from "./dots.js";
import { isDark, Overlay } from "./overlay.js";
import { NEAR, place } from "./places.js";
import { meansOf, rowsOf } from "./rules.js";
import { linear, ticks, written } from "./scale.js";

const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#56B4E9", "#7a7a7a"]; // Okabe and Ito
const DARK = ["#5EB8F0", "#FF8B45", "#34C79A", "#E59BC8", "#F0BC42", "#A5B0FF", "#B8B8B8"];
export const hue = (i) => (isDark() ? DARK : LIGHT)[i % LIGHT.length];
const NAMES = Object.keys(SHAPES);
const FONT = { character: 6.1, line: 14 };
const ALONG = [0.98, 0.02, 0.85, 0.15, 0.7, 0.3, 0.5]; // where on a line its text may stand
const REACH = 14; // pixels from the pointer to a point that is meant
const DEEPEST = 1e-5; // share of an axis that a zoom can show
const STEP = 1.25;

export function reach(values, more) {
  let [low, high] = extent(values);
  if (low > high) return [0, 1];
  const span = high - low || Math.abs(high) || 1;
  for (const value of more) {
    // an anchor that would stretch the axis by more than half is left at the edge
    if (Number.isFinite(value) && value < low && low - value <= 0.5 * span) low = value;
    if (Number.isFinite(value) && value > high && value - high <= 0.5 * span) high = value;
  }
  const room = 0.05 * (high - low || Math.abs(high) || 1);
  return [low - room, high + room];
}

function extent(values) {
  let low = Infinity,
    high = -Infinity;
  for (const value of values)
    if (Number.isFinite(value)) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return [low, high];
}

// A class of methods in few words: of a long chain, its first steps.
export function brief(family) {
  const steps = family.split(" then ");
  return steps.length > 3 ? `${steps.slice(0, 2).join(" then ")} then ${steps.length - 2} more` : family;
}

const isFinitePoint = (row) => Number.isFinite(row.risk) && Number.isFinite(row.utility);

export class Plot extends Overlay {
  constructor(node, { onpick = () => {}, onbrush = null, onmove = () => {}, tall = 0.62 } = {}) {
    const back = svg("svg", { "aria-hidden": "true" }),
      canvas = el("canvas", { role: "img" }),
      texts = svg("svg", { "aria-hidden": "true", class: "texts" });
    super(node, el("div", { class: "picture" }, back, canvas, texts));
    Object.assign(this, {
      back,
      canvas,
      texts,
      onpick,
      onbrush,
      onmove,
      tall,
      hidden: new Set(),
      waiting: new Map(),
      labels: [],
      guides: [],
      chosen: null,
      seen: null,
      work: { points: 0, labels: 0 },
    });
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    this.key = el("ul", { class: "key" });
    node.append(this.tip);
    node.after(this.key);
    node.before(this.tools());
    node.tabIndex = 0;
    node.setAttribute("role", "group");
    node.setAttribute("aria-label", "The map. Plus and minus zoom, arrows move, 0 shows all.");
    this.settle = later(120, () => {
      this.placeLabels();
      this.drawLabels();
    });
    this.listen();
  }

  // ---- what is shown ----------------------------------------------------------------------------------------------
  async set(map, { by = this.by || "release", limit = null, colour: told = this.told || "family" } = {}) {
    const axes = JSON.stringify([map.labels, by]);
    const kept = axes === this.axes ? this.drawn : null;
    Object.assign(this, {
      map,
      by,
      axes,
      told: told === "era" && map.eras.length ? "era" : "family",
      rows: rowsOf(map),
      means: meansOf(map),
    });
    this.families = [...new Set(this.means.filter((row) => !row.anchor).map((row) => row.family))].sort();
    const shown = this.shown(),
      anchors = this.anchors();
    const [x, y] = [
      reach(
        shown.map((row) => row.utility),
        anchors.map((a) => a.utility),
      ),
      reach(
        shown.map((row) => row.risk),
        [...anchors.map((a) => a.risk), limit ?? NaN],
      ),
    ];
    const fits =
      kept &&
      [
        [x, kept.x],
        [y, kept.y],
      ].every(([now, old]) => now[0] >= old[0] && now[1] <= old[1]);
    Object.assign(this, fits ? kept : { x, y }); // a map that grows does not jump while it fits
    if (!kept) this.seen = null;
    await this.redraw();
  }

  groups() {
    return this.told === "era" ? this.map.eras : this.families;
  }

  groupOf(row) {
    return this.told === "era" ? (row.era ?? this.map.eras.length) : this.families.indexOf(row.family);
  }

  shown() {
    const rows = this.by === "mean" ? this.means : this.rows;
    return rows.filter((row) => !row.anchor && !this.hidden.has(row.family));
  }

  anchors() {
    const whole = this.means.find((row) => row.anchor);
    const anchors = whole ? [{ name: "release everything", risk: whole.risk, utility: whole.utility }] : [];
    if (this.map.nothing)
      anchors.push({
        name: "release nothing",
        risk: this.map.nothing[0] ?? Infinity,
        utility: this.map.nothing[1] ?? Infinity,
      });
    return anchors;
  }

  frontier() {
    return this.list
      .filter((row) => row.frontier && isFinitePoint(row))
      .sort((a, b) => a.utility - b.utility || a.risk - b.risk);
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------
  async redraw() {
    if (!this.map) return;
    this.list = this.shown();
    this.across = Float64Array.from(this.list, (row) => row.utility);
    this.up = Float64Array.from(this.list, (row) => row.risk);
    this.group = Uint8Array.from(this.list, (row) => this.groupOf(row));
    this.front = this.frontier();
    this.canvas.setAttribute(
      "aria-label",
      `Map of ${this.list.length} points: ${this.map.labels[1]} across, ${this.map.labels[0]} up. The table holds the same.`,
    );
    this.lay_out();
    this.drawn = { x: this.x, y: this.y };
    this.drawKey();
    this.picture();
    this.placeLabels();
    this.drawLabels();
    this.after?.();
  }

  lay_out() {
    this.width = this.node.clientWidth;
    this.height = Math.round(Math.min(560, Math.max(320, this.tall * this.width)));
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    Object.assign(this.canvas, { width: this.width * this.ratio, height: this.height * this.ratio });
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.dots = new Dots(this.canvas.width, this.canvas.height, this.ratio);
    this.scale();
  }

  // What is seen of the axes, and where: the margin on the left is as wide as its numbers.
  scale() {
    const { x, y } = this.seen || this;
    this.marks = { x: ticks(...x, Math.max(3, this.width / 110)), y: ticks(...y, Math.max(3, this.height / 70)) };
    const widest = Math.max(...this.marks.y.map((value) => written(value).length), 3);
    this.box = { left: Math.min(30 + 7 * widest, 120), top: 10, right: this.width - 14, bottom: this.height - 44 };
    this.sx = linear(x, [this.box.left, this.box.right]);
    this.sy = linear(y, [this.box.bottom, this.box.top]);
  }

  // Axes and points.
  picture() {
    this.work.points += 1;
    this.drawAxes();
    const pen = this.canvas.getContext("2d"),
      { ratio, box } = this;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.save();
    pen.scale(ratio, ratio);
    pen.beginPath();
    pen.rect(box.left - 5, box.top - 5, box.right - box.left + 10, box.bottom - box.top + 10);
    pen.clip();
    this.drawBands(pen);
    this.stamp(pen, false);
    this.drawFrontier(pen);
    this.stamp(pen, true);
    this.drawAnchors(pen);
    pen.restore();
  }

  drawAxes() {
    const { box, marks, map } = this,
      parts = [];
    const text = (words, facts) => {
      const made = svg("text", facts);
      made.textContent = words;
      return made;
    };
    for (const value of marks.x) {
      const at = this.sx.at(value);
      parts.push(
        svg("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }),
        text(written(value), { x: at, y: box.bottom + 16, "text-anchor": "middle" }),
      );
    }
    for (const value of marks.y) {
      const at = this.sy.at(value);
      parts.push(
        svg("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }),
        text(written(value), { x: box.left - 7, y: at + 4, "text-anchor": "end" }),
      );
    }
    const better = (sign) => (sign > 0 ? "lower is better" : "higher is better");
    const title = (word, label, sign, room) =>
      [`${word}: ${label}, ${better(sign)}`, `${label}, ${better(sign)}`, label].find(
        (words) => 6.6 * words.length < room,
      ) || `${label.slice(0, Math.max(8, room / 6.6 - 1))}…`;
    const middle = (box.top + box.bottom) / 2;
    parts.push(
      svg("path", { class: "domain", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }),
      text(title(losing(map), map.labels[1], map.signs[1], box.right - box.left), {
        class: "title",
        x: (box.left + box.right) / 2,
        y: this.height - 6,
        "text-anchor": "middle",
      }),
      text(title("risk", map.labels[0], map.signs[0], box.bottom - box.top), {
        class: "title",
        x: 13,
        y: middle,
        "text-anchor": "middle",
        transform: `rotate(-90 13 ${middle})`,
      }),
    );
    if (map.floor) {
      const at = this.sy.at(map.floor.risk);
      if (at > box.top && at < box.bottom)
        parts.push(svg("line", { class: "floor", x1: box.left, x2: box.right, y1: at, y2: at }));
    }
    this.back.replaceChildren(...parts);
  }

  look(row, many) {
    const group = this.groupOf(row),
      base = { shape: NAMES[group % NAMES.length], fill: hue(group) };
    if (row.outside) return { ...base, fill: colour("--plot-grey"), size: many ? 4 : 6, opacity: 0.3 };
    if (row.frontier) return { ...base, size: many ? 8 : 9, rim: colour("--card") };
    return { ...base, size: many ? 5 : 7.5, opacity: many ? 0.4 : 0.6 };
  }

  // Points that are, or are not, on the frontier. One beyond the picture stands at its edge, as an arrow.
  stamp(pen, frontier) {
    const { list, across, up, group, box, sx, sy, ratio } = this,
      many = list.length > 1500 && this.by !== "mean";
    const [left, right, top, bottom] = [box.left - 4, box.right + 4, box.top - 4, box.bottom + 4];
    const looks = [],
      own = [];
    this.dots.clear();
    for (let i = 0; i < list.length; i += 1) {
      const row = list[i];
      if (row.frontier !== frontier) continue;
      let px = sx.at(across[i]),
        py = sy.at(up[i]),
        made;
      if (px >= left && px <= right && py >= top && py <= bottom) {
        const look = 2 * group[i] + (row.outside ? 1 : 0);
        made = looks[look] ||= this.dots.of(this.look(row, many));
      } else {
        if (this.seen && isFinitePoint(row)) continue;
        const edge = py < top ? "up" : py > bottom ? "down" : px > right ? "right" : "left";
        made = this.dots.of({ ...this.look(row, many), edge });
        px = Math.min(box.right - 4, Math.max(box.left + 4, px));
        py = Math.min(box.bottom - 4, Math.max(box.top + 4, py));
      }
      this.dots.lay(made, px * ratio, py * ratio);
      if (this.told === "era" && row.era === 0) own.push([px, py]);
    }
    this.dots.onto(pen);
    Object.assign(pen, { strokeStyle: colour("--ink"), lineWidth: 1.4 });
    for (const [px, py] of own) {
      pen.beginPath();
      pen.arc(px, py, 6, 0, 7);
      pen.stroke();
    }
  }

  drawFrontier(pen) {
    if (this.front.length < 2) return;
    const after = this.map.signs[1] * this.map.signs[0] > 0;
    pen.beginPath();
    this.front.forEach((row, i) => {
      const [x, y] = this.pixel(row);
      if (!i) return pen.moveTo(x, y);
      const [x0, y0] = this.pixel(this.front[i - 1]);
      if (after) pen.lineTo(x, y0);
      else pen.lineTo(x0, y);
      pen.lineTo(x, y);
    });
    Object.assign(pen, { strokeStyle: colour("--ink"), lineWidth: 1.4 });
    pen.stroke();
  }

  // Spread of single releases (thin) and error of the mean (thick), of the undominated where methods are many.
  drawBands(pen) {
    if (this.by !== "mean") return;
    const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
    const line = (x1, y1, x2, y2) => {
      pen.beginPath();
      pen.moveTo(...this.at(x1, y1));
      pen.lineTo(...this.at(x2, y2));
      pen.stroke();
    };
    for (const row of this.list) {
      if ((!row.frontier && this.list.length > 40) || !isFinitePoint(row) || row.count < 2) continue;
      Object.assign(pen, { strokeStyle: colour("--plot-grey"), lineWidth: 0.8 });
      if (known(row.risk_low)) line(row.utility, row.risk_low, row.utility, row.risk_high);
      if (known(row.utility_low)) line(row.utility_low, row.risk, row.utility_high, row.risk);
      Object.assign(pen, { strokeStyle: colour("--ink"), lineWidth: 2.4 });
      if (known(row.risk_se))
        line(row.utility, row.risk - 1.96 * row.risk_se, row.utility, row.risk + 1.96 * row.risk_se);
      if (known(row.utility_se))
        line(row.utility - 1.96 * row.utility_se, row.risk, row.utility + 1.96 * row.utility_se, row.risk);
    }
  }

  // Where an anchor is drawn, and the way its arrow points where it lies beyond the picture.
  anchorAt(anchor) {
    const { box } = this,
      [x, y] = this.pixel(anchor);
    const edge = !(y >= box.top)
      ? "up"
      : y > box.bottom
        ? "down"
        : !(x <= box.right)
          ? "right"
          : x < box.left
            ? "left"
            : "";
    const held = (value, low, high) =>
      Number.isFinite(value) ? Math.min(high - 5, Math.max(low + 5, value)) : high - 5;
    return {
      edge,
      at: edge
        ? [held(x, box.left, box.right), Number.isFinite(y) ? held(y, box.top, box.bottom) : box.top + 5]
        : [x, y],
    };
  }

  drawAnchors(pen) {
    const shapes = { "release everything": "circle", "release nothing": "square" };
    this.dots.clear();
    for (const anchor of this.anchors()) {
      const { edge, at } = this.anchorAt(anchor);
      if (edge && this.seen) continue;
      const made = this.dots.of({
        shape: shapes[anchor.name],
        fill: edge ? colour("--ink") : colour("--card"),
        rim: colour("--ink"),
        size: 10,
        edge,
      });
      this.dots.lay(made, at[0] * this.ratio, at[1] * this.ratio);
    }
    this.dots.onto(pen);
  }

  drawKey() {
    const entry = (name, i) => {
      const mark = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
      mark.append(svg("path", { d: SHAPES[NAMES[i % NAMES.length]], fill: hue(i) }));
      return el("li", {}, mark, brief(name));
    };
    const beyond = this.anchors().filter((anchor) => this.anchorAt(anchor).edge);
    const facts = [
      "line: frontier",
      "○ release everything",
      "□ release nothing",
      ...(this.told === "era" ? ["ring: your plan's own"] : []),
      ...(this.by === "mean" ? ["thin: 95 % of releases", "thick: ± error of the mean"] : []),
    ];
    this.key.replaceChildren(
      ...this.groups().map(entry),
      ...facts.map((words) => el("li", {}, words)),
      ...beyond.map((anchor) =>
        el(
          "li",
          {},
          `${anchor.name}: beyond the picture, risk ${short(anchor.risk)}, ${losing(this.map)} ${short(anchor.utility)}`,
        ),
      ),
    );
  }

  // ---- labels -------------------------------------------------------------------------------------------------------
  // Anchors, the choice and lines must be named; methods on the frontier where they find room.
  placeLabels() {
    if (!this.map || !this.box) return;
    this.work.labels += 1;
    const { box } = this,
      [width, height] = [Math.round(box.right - box.left), Math.round(box.bottom - box.top)];
    const inside = ([x, y]) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
    const wishes = [],
      dots = [];
    const wish = (text, kind, spots, base, more = {}) =>
      wishes.push({ text, kind, base, near: spots.map(([x, y]) => [x - box.left, y - box.top]), ...more });
    const ink = ([x, y], weight) => dots.push([x - box.left, y - box.top, weight]);
    for (const anchor of this.anchors()) {
      const { edge, at } = this.anchorAt(anchor);
      if (edge && this.seen) continue;
      ink(at, 4);
      wish(
        edge ? `${anchor.name}: risk ${short(anchor.risk)}, ${losing(this.map)} ${short(anchor.utility)}` : anchor.name,
        "anchor",
        [at],
        () => this.anchorAt(anchor).at,
        { must: true },
      );
    }
    const chosen = this.chosen && isFinitePoint(this.chosen) && inside(this.pixel(this.chosen)) ? this.chosen : null;
    if (chosen) {
      const spot = this.pixel(chosen);
      for (let turn = 0; turn < 6; turn += 1) ink([spot[0] + 8 * Math.cos(turn), spot[1] + 8 * Math.sin(turn)], 1.5);
      wish(`chosen: ${chosen.short}`, "name", [spot], () => this.pixel(chosen), { must: true });
    }
    const lines = [
      ...this.guides,
      ...(this.map.floor ? [{ text: this.map.floor.words, risk: () => this.map.floor.risk, kind: "floor" }] : []),
    ];
    for (const { text, risk, kind } of lines) {
      const at = this.sy.at(risk());
      if (at < box.top || at > box.bottom) continue;
      for (let x = box.left; x < box.right; x += 4) ink([x, at], 0.8);
      wish(
        text,
        kind,
        ALONG.map((share) => [box.left + share * (box.right - box.left), at]),
        ([x]) => [x, this.sy.at(risk())],
        { must: true, distances: NEAR },
      );
    }
    const spots = new Map();
    for (const row of this.list) {
      const at = this.pixel(row);
      if (!inside(at)) continue;
      ink(at, 4);
      if (!row.frontier) continue;
      (ink([at[0], at[1] - 4], 2), ink([at[0], at[1] + 4], 2));
      if (row.short !== chosen?.short) spots.set(row.method, [...(spots.get(row.method) || []), row]);
    }
    this.front.slice(1).forEach((row, i) => {
      const [[x0, y0], [x1, y1]] = [this.pixel(this.front[i]), this.pixel(row)];
      const count = Math.min(400, Math.trunc(Math.hypot(x1 - x0, y1 - y0) / 4) + 1);
      for (let step = 0; step < count; step += 1)
        (ink([x0 + ((x1 - x0) * step) / count, y0], 0.8), ink([x1, y0 + ((y1 - y0) * step) / count], 0.8));
    });
    for (const [, rows] of [...spots].sort(([a], [b]) => (a < b ? -1 : 1)))
      wish(
        rows[0].short,
        "name",
        rows.map((row) => this.pixel(row)),
        null,
        { rows },
      );
    this.labels = place(wishes, dots, width, height, FONT).map((spot) => {
      const { text, kind, base, rows, near } = wishes[spot.wish];
      const which = near.findIndex(([x, y]) => x === spot.point[0] && y === spot.point[1]);
      const follow = rows
        ? () => this.pixel(rows[which])
        : () => base([near[which][0] + box.left, near[which][1] + box.top]);
      return {
        text,
        kind,
        follow,
        off: [spot.x - spot.point[0], spot.y - spot.point[1]],
        end: [spot.end[0] - spot.point[0], spot.end[1] - spot.point[1]],
        align: spot.align,
        leader: spot.leader,
      };
    });
  }

  // Labels where their points are now.
  drawLabels() {
    const { box } = this;
    this.texts.replaceChildren(
      ...this.labels.flatMap(({ text, kind, follow, off, end, align, leader }) => {
        const [x, y] = follow();
        if (x < box.left - 1 || x > box.right + 1 || y < box.top - 1 || y > box.bottom + 1) return [];
        const words = svg("text", { class: `label ${kind}`, x: x + off[0], y: y + off[1] + 4, "text-anchor": align });
        words.textContent = text;
        return [
          ...(leader ? [svg("line", { class: "leader", x1: x, y1: y, x2: x + end[0], y2: y + end[1] })] : []),
          words,
        ];
      }),
    );
  }

  // ---- numbers and pixels ---------------------------------------------------------------------------------------------
  at(x, y) {
    return [this.sx.at(x), this.sy.at(y)];
  }

  pixel(row) {
    return this.at(row.utility, row.risk);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  under(event) {
    const [x, y] = this.place(event);
    return [this.sx.back(x), this.sy.back(y)];
  }

  frame() {
    return this.box;
  }

  nearest([x, y]) {
    const { list, across, up, sx, sy } = this;
    let best = null,
      least = REACH;
    for (let i = 0; i < list.length; i += 1) {
      const distance = Math.hypot(sx.at(across[i]) - x, sy.at(up[i]) - y);
      if (distance < least || (distance === least && best === null)) [best, least] = [list[i], distance];
    }
    return best;
  }

  // ---- the hand -------------------------------------------------------------------------------------------------------
  listen() {
    const { node } = this;
    node.addEventListener(
      "wheel",
      (event) => {
        if (!this.box || (!this.seen && event.deltaY > 0)) return; // all is seen: the page scrolls on
        event.preventDefault();
        this.zoom(STEP ** (event.deltaY < 0 ? -1 : 1), this.place(event));
      },
      { passive: false },
    );
    node.addEventListener("keydown", (event) => {
      const act = {
        "+": () => this.zoom(1 / STEP),
        "=": () => this.zoom(1 / STEP),
        "-": () => this.zoom(STEP),
        0: () => this.look_at(null),
        ArrowLeft: () => this.pan(-0.1, 0),
        ArrowRight: () => this.pan(0.1, 0),
        ArrowUp: () => this.pan(0, 0.1),
        ArrowDown: () => this.pan(0, -0.1),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey || (event.key.startsWith("Arrow") && !this.seen))
        return;
      event.preventDefault();
      act();
    });
    node.addEventListener("pointerleave", () => (this.tip.hidden = true));
    node.addEventListener("pointermove", (event) => {
      if (!this.box || event.buttons) return void (this.tip.hidden = true);
      this.frameOnce("hover", () => this.hover(event));
    });
    let down = null; // no `click`: a line that is dragged is drawn anew under the pointer
    node.addEventListener(
      "pointerdown",
      (event) => {
        down = event;
        if (
          this.box &&
          this.onbrush &&
          event.button === 0 &&
          event.pointerType !== "touch" &&
          !event.target.closest(".grip")
        )
          this.brush(event);
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

  // At most once a frame, and then the latest.
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
      { box } = this,
      shape = svg("rect", { class: "brush" });
    const held = ([x, y]) => [Math.min(box.right, Math.max(box.left, x)), Math.min(box.bottom, Math.max(box.top, y))];
    if (x0 < box.left || x0 > box.right || y0 < box.top || y0 > box.bottom) return;
    let ends = null;
    const over = new AbortController(),
      on = (name, act) => this.node.addEventListener(name, act, { signal: over.signal });
    this.node.setPointerCapture(event.pointerId);
    this.node.focus({ preventScroll: true });
    on("pointermove", (moved) => {
      const [x1, y1] = held(this.place(moved));
      if (!ends && Math.hypot(x1 - x0, y1 - y0) < 4) return;
      ends = [Math.min(x0, x1), Math.max(x0, x1), Math.min(y0, y1), Math.max(y0, y1)];
      for (const [name, value] of Object.entries({
        x: ends[0],
        y: ends[2],
        width: ends[1] - ends[0],
        height: ends[3] - ends[2],
      }))
        shape.setAttribute(name, value);
      if (!shape.isConnected) this.texts.append(shape);
    });
    const end = () => {
      over.abort();
      shape.remove();
      if (ends)
        this.onbrush(this.within(ends), {
          x: [this.sx.back(ends[0]), this.sx.back(ends[1])],
          y: [this.sy.back(ends[3]), this.sy.back(ends[2])],
        });
    };
    on("pointerup", end);
    on("pointercancel", end);
    event.preventDefault();
  }

  within([left, right, top, bottom]) {
    return this.list.filter((row) => {
      const [x, y] = this.pixel(row);
      return x >= left && x <= right && y >= top && y <= bottom;
    });
  }

  // ---- zoom -----------------------------------------------------------------------------------------------------------
  tools() {
    const button = (words, sign, act) =>
      el("button", { type: "button", class: "second", "aria-label": words, title: words, onclick: act }, sign);
    this.all = button("Show all", "Show all", () => this.look_at(null));
    this.all.disabled = true;
    return el(
      "div",
      { class: "zoomers" },
      button("Zoom in", "+", () => this.zoom(1 / STEP ** 2)),
      button("Zoom out", "−", () => this.zoom(STEP ** 2)),
      this.all,
    );
  }

  // `times` as wide, around a pixel of the picture; by default its middle.
  zoom(times, [px, py] = [(this.box.left + this.box.right) / 2, (this.box.top + this.box.bottom) / 2]) {
    const around = ([low, high], middle, full) => {
      const span = Math.min(full[1] - full[0], Math.max(DEEPEST * (full[1] - full[0]), times * (high - low)));
      return this.shifted(middle - ((middle - low) / (high - low)) * span, span, full);
    };
    const { x, y } = this.seen || this;
    this.look_at({ x: around(x, this.sx.back(px), this.x), y: around(y, this.sy.back(py), this.y) });
  }

  pan(across, up) {
    const { x, y } = this.seen || this;
    const move = ([low, high], share, full) => this.shifted(low + share * (high - low), high - low, full);
    this.look_at({ x: move(x, across, this.x), y: move(y, up, this.y) });
  }

  shifted(low, span, full) {
    const start = Math.min(full[1] - span, Math.max(full[0], low));
    return [start, start + span];
  }

  // Show this part of the axes, {x: [low, high], y: [low, high]}; null: all.
  look_at(part) {
    const whole =
      !part ||
      ["x", "y"].every((axis) => part[axis][1] - part[axis][0] >= (1 - 1e-9) * (this[axis][1] - this[axis][0]));
    this.seen = whole ? null : part;
    this.all.disabled = whole;
    this.tip.hidden = true;
    this.scale(); // at once: the next turn of the wheel counts from here
    this.frameOnce("zoom", () => {
      this.picture();
      this.drawLabels();
      this.after?.();
      this.onmove();
      this.settle();
    });
  }

  // ---- what a point tells -----------------------------------------------------------------------------------------------
  hover(event) {
    const spot = this.place(event),
      row = this.nearest(spot);
    const anchor = row
      ? null
      : this.anchors().find(
          (one) => Math.hypot(this.anchorAt(one).at[0] - spot[0], this.anchorAt(one).at[1] - spot[1]) < REACH,
        );
    const said = row
      ? this.facts(row)
      : anchor
        ? [anchor.name, ["risk", short(anchor.risk)], [losing(this.map), short(anchor.utility)]]
        : null;
    this.tip.hidden = !said;
    if (!said) return;
    this.tip.replaceChildren(
      el("strong", {}, said[0]),
      el("dl", {}, ...said.slice(1).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    );
    const [x, y] = row ? this.pixel(row) : spot,
      { offsetWidth: width, offsetHeight: height } = this.tip;
    const left = x + 14 + width > this.width ? Math.max(0, x - 14 - width) : x + 14;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${Math.max(0, Math.min(this.height - height, y - height / 2))}px`;
  }

  facts(row) {
    const share = (value) => `${Math.round(100 * value)} %`;
    const mean = this.by === "mean";
    return [
      row.name,
      ...(mean
        ? [["releases", String(row.count)]]
        : [
            ["draw", String(row.replicate + 1)],
            ["id", row.id],
          ]),
      ["risk", short(row.risk)],
      [losing(this.map), short(row.utility)],
      ...(mean && row.membership !== null
        ? [["on the frontier in", share(row.membership)]]
        : row.frontier
          ? [["frontier", "on it"]]
          : []),
      ...(this.map.eras.length && row.era !== null ? [["made by", this.map.eras[row.era]]] : []),
      ...(row.outside ? [["outside its limit", row.outside]] : []),
    ];
  }
}
