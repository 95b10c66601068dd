// A plot with axes: points on a canvas, lines and texts around it, and an overlay of parts that can be dragged.
import { el, svg } from "./api.js";
import { dark, paper } from "./chart.js";
import { Dots } from "./dots.js";

/** @typedef {[number, number]} Pair */
/** @typedef {{ left: number, top: number, right: number, bottom: number }} Box */

const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#56B4E9", "#7a7a7a"]; // Okabe and Ito
const DARK = ["#5EB8F0", "#FF8B45", "#34C79A", "#E59BC8", "#F0BC42", "#A5B0FF", "#B8B8B8"];
export const hue = (/** @type {number} */ i) => (dark.matches ? DARK : LIGHT)[i % LIGHT.length];
export const clamp = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) =>
  Math.min(high, Math.max(low, value));

// Paper is narrower than a screen, and nothing is redrawn while printing, so plot and overlay are scaled together.
const SHEET = 640; // pixels across
const shrink = (wide) => {
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".plot")))
    node.style.zoom = wide ? "" : String(Math.min(1, SHEET / node.clientWidth));
};
addEventListener("beforeprint", () => shrink(false));
addEventListener("afterprint", () => shrink(true));

export function text(words, facts) {
  const element = svg("text", facts);
  element.textContent = words;
  return element;
}

// ---- scales ---------------------------------------------------------------------------------------------------------
/** @param {Pair} ends @param {Pair} pixels */
function linear([low, high], [from, to]) {
  const per = (to - from) / (high - low || 1);
  return {
    at: (/** @type {number} */ value) => from + (value - low) * per,
    back: (/** @type {number} */ pixel) => low + (pixel - from) / per,
  };
}

/** @param {Pair} ends both above 0 @param {Pair} pixels */
function logarithmic([low, high], pixels) {
  const { at, back } = linear([Math.log(low), Math.log(high)], pixels);
  return {
    at: (/** @type {number} */ value) => at(Math.log(Math.max(value, 0))), // 0 is infinitely far below
    back: (/** @type {number} */ pixel) => Math.exp(back(pixel)),
  };
}

// Round numbers between two ends of a logarithmic axis: powers of ten, and 2 and 5 times these where few fit.
function logTicks(low, high, count) {
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) powers.push(power);
  const all = (/** @type {number[]} */ times) =>
    powers
      .flatMap((power) => times.map((one) => Number((one * 10 ** power).toPrecision(10))))
      .filter((value) => value >= low && value <= high);
  const fine = all([1, 2, 5]);
  if (fine.length < 3) return ticks(low, high, count);
  return fine.length <= 2 * count ? fine : all([1]);
}

// Round numbers between two ends, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((times) => times * power >= rough * 0.999) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const count_ = Math.max(0, Math.floor(high / step + 1e-9) - first + 1);
  return Array.from({ length: count_ }, (_, i) => Number(((first + i) * step).toPrecision(10)));
}

const written = (/** @type {number} */ value) =>
  value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6)
    ? value.toExponential().replace("e+", "e")
    : String(value);

// Subclasses implement paint(pen) for the canvas, titles(), and after(), which is called when everything was drawn.
export class Picture {
  /** @type {Pair} the ends of both axes */
  x = [0, 1];
  /** @type {Pair} */
  y = [0, 1];
  /** @type {{ x: Pair, y: Pair } | null} the part that is shown; null: all of it */
  seen = null;
  isLog = false; // whether the axis that goes up is logarithmic
  width = 0; // pixels; 0 while nothing is drawn
  height = 0;
  ratio = 1;
  tall = 0.62; // of the width
  /** @type {Box | null} where the axes stand */
  box = null;
  sx = linear([0, 1], [0, 1]);
  sy = linear([0, 1], [0, 1]);
  /** @type {{ x: number[], y: number[] }} */
  marks = { x: [], y: [] };
  after = () => {};

  /** @param {HTMLElement} node */
  constructor(node) {
    this.node = node;
    this.back = svg("svg", { "aria-hidden": "true" });
    this.canvas = el("canvas", { role: "img", "aria-label": "Nothing is drawn yet." });
    this.texts = svg("svg", { "aria-hidden": "true", class: "texts" });
    this.over = svg("svg", { "aria-hidden": "true" });
    this.dots = new Dots(1, 1, 1);
    node.replaceChildren(el("div", { class: "picture" }, this.back, this.canvas, this.texts), this.over);
    new ResizeObserver(() => {
      if (!paper.matches && Math.abs(node.clientWidth - this.width) > 4) this.redraw();
    }).observe(node);
    dark.addEventListener("change", () => paper.matches || this.redraw());
  }

  /** @param {CanvasRenderingContext2D} _pen */
  paint(_pen) {}

  /** @returns {Pair | string[]} what stands at the axes, across and up */
  titles() {
    return ["", ""];
  }

  /** @param {"x" | "y"} _axis @param {number} value @returns {string} what stands at a tick */
  tickText(_axis, value) {
    return written(value);
  }

  isReady() {
    return true;
  }

  // A plot without a width is drawn as soon as it has one.
  redraw() {
    this.width = this.node.clientWidth;
    if (!this.width || !this.isReady()) return false;
    this.height = Math.round(clamp(this.tall * this.width, 320, 560));
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    Object.assign(this.canvas, { width: this.width * this.ratio, height: this.height * this.ratio });
    Object.assign(this.canvas.style, { width: `${this.width}px`, height: `${this.height}px` });
    this.dots = new Dots(this.canvas.width, this.canvas.height, this.ratio);
    this.scale();
    this.draw();
    this.after();
    return true;
  }

  // The visible part of the axes and its position; the left margin is as wide as its numbers.
  scale() {
    const { x, y } = this.seen || this;
    const up = this.isLog ? logTicks : ticks;
    this.marks = { x: ticks(...x, Math.max(3, this.width / 110)), y: up(...y, Math.max(3, this.height / 70)) };
    const widest = Math.max(...this.marks.y.map((value) => this.tickText("y", value).length), 3);
    this.box = { left: Math.min(30 + 7 * widest, 120), top: 10, right: this.width - 14, bottom: this.height - 44 };
    this.sx = linear(x, [this.box.left, this.box.right]);
    this.sy = (this.isLog ? logarithmic : linear)(y, [this.box.bottom, this.box.top]);
  }

  draw() {
    if (!this.box) return;
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const { left, right, top, bottom } = this.frame();
    this.drawAxes();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.save();
    pen.scale(this.ratio, this.ratio);
    pen.beginPath();
    pen.rect(left - 5, top - 5, right - left + 10, bottom - top + 10);
    pen.clip();
    this.paint(pen);
    pen.restore();
  }

  drawAxes() {
    const { left, right, top, bottom } = this.frame(),
      middle = (top + bottom) / 2,
      [across, up] = this.titles();
    this.back.replaceChildren(
      ...this.marks.x.flatMap((value) => {
        const x = this.sx.at(value);
        return [
          svg("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }),
          text(this.tickText("x", value), { x, y: bottom + 16, "text-anchor": "middle" }),
        ];
      }),
      ...this.marks.y.flatMap((value) => {
        const y = this.sy.at(value);
        return [
          svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }),
          text(this.tickText("y", value), { x: left - 7, y: y + 4, "text-anchor": "end" }),
        ];
      }),
      svg("path", { class: "domain", d: `M${left} ${top}V${bottom}H${right}` }),
      text(across, { class: "title", x: (left + right) / 2, y: this.height - 6, "text-anchor": "middle" }),
      text(up, { class: "title", x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }),
    );
  }

  // ---- numbers and pixels -------------------------------------------------------------------------------------------
  /** @returns {Pair} */
  at(x, y) {
    return [this.sx.at(x), this.sy.at(y)];
  }

  /** @returns {Pair} */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** @returns {Pair} */
  under(event) {
    const [x, y] = this.place(event);
    return [this.sx.back(x), this.sy.back(y)];
  }

  frame() {
    return /** @type {Box} */ (this.box);
  }

  isInside([x, y], more = 0) {
    const { left, right, top, bottom } = this.frame();
    return x >= left - more && x <= right + more && y >= top - more && y <= bottom + more;
  }

  // ---- overlay ---------------------------------------------------------------------------------------------
  lay(parts) {
    this.over.replaceChildren(...parts);
  }

  ring([cx, cy], kind = "ring", r = 9) {
    return svg("circle", { class: kind, cx, cy, r });
  }

  // A line that can be dragged: move(x, y, first), where `first` is an object that lives as long as the drag.
  grip(line, kind, move, done) {
    const element = svg("line", { class: kind, ...line });
    element.addEventListener("pointerdown", (event) => {
      const first = {};
      this.drag(event, (moved) => move(...this.under(moved), first), done);
    });
    return element;
  }

  // The plot captures the pointer, because the overlay is redrawn during the drag.
  drag(event, move, done) {
    const over = new AbortController();
    const on = (name, act) => this.node.addEventListener(name, act, { signal: over.signal });
    const end = () => {
      over.abort();
      this.node.classList.remove("held");
      done();
    };
    this.node.setPointerCapture(event.pointerId);
    this.node.classList.add("held");
    on("pointermove", move);
    on("pointerup", end);
    on("pointercancel", end);
    event.preventDefault();
  }
}

// An entry of the legend: its shape, and the number of its color.
export function keyEntry(shape, fill, words) {
  const mark = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
  mark.append(svg("path", { d: shape, fill }));
  return el("li", {}, mark, words);
}
