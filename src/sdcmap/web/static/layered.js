// A picture by Vega on a canvas, and above it a drawing of our own with what moves.
import { el, svg } from "./api.js";
import { draw } from "./chart.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => dark.matches;

export class Layered {
  constructor(node) {
    this.node = node;
    this.canvas = el("div");
    this.over = svg("svg", { "aria-hidden": "true" });
    node.replaceChildren(this.canvas, this.over);
    new ResizeObserver(() => this.width && Math.abs(node.clientWidth - this.width) > 4 && this.redraw()).observe(node);
    dark.addEventListener("change", () => this.redraw());
  }

  // Draw a specification; false where a later drawing has overtaken this one.
  async show(make, words) {
    const turn = (this.turn = (this.turn || 0) + 1);
    this.width = this.node.clientWidth;
    this.canvas.style.minHeight = `${this.canvas.clientHeight}px`;  // the page does not jump while the picture is changed
    const { view } = await draw(this.canvas, make(), { tooltip: false });
    if (turn !== this.turn) return false;
    this.canvas.style.minHeight = "";
    this.view = view;
    const canvas = this.canvas.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", words);
    return true;
  }

  // From numbers to pixels of the drawing, and back.
  corner() {
    const [origin, padding] = [this.view.origin(), this.view.padding()];
    return [origin[0] + padding.left, origin[1] + padding.top];
  }

  at(x, y) {
    const [left, top] = this.corner();
    return [left + this.view.scale("x")(x), top + this.view.scale("y")(y)];
  }

  under(event) {
    const box = this.canvas.querySelector("canvas").getBoundingClientRect();
    const [left, top] = this.corner();
    return [this.view.scale("x").invert(event.clientX - box.left - left), this.view.scale("y").invert(event.clientY - box.top - top)];
  }

  frame() {
    const [left, top] = this.corner();
    return { left, top, right: left + this.view.signal("width"), bottom: top + this.view.signal("height") };
  }

  // A line that can be dragged: move(x, y, first), where `first` is an object that lives as long as the drag.
  grip(line, kind, move, done) {
    const made = svg("line", { class: kind, ...line });
    made.addEventListener("pointerdown", (event) => this.drag(event, move, done));
    return made;
  }

  // The plot itself holds the pointer: it stays, while the lines are drawn anew at every step.
  drag(event, move, done) {
    const [first, over] = [{}, new AbortController()];
    const on = (name, act) => this.node.addEventListener(name, act, { signal: over.signal });
    const end = () => {
      over.abort();
      this.node.classList.remove("held");
      done();
    };
    this.node.setPointerCapture(event.pointerId);
    this.node.classList.add("held");
    on("pointermove", (moved) => move(...this.under(moved), first));
    on("pointerup", end);
    on("pointercancel", end);
    event.preventDefault();
  }

  // The drawing anew.
  lay(parts) {
    this.over.replaceChildren(...parts);
  }
}
