// A picture by Vega on a canvas, and above it a drawing of our own with what moves.
import { el } from "./api.js";
import { draw } from "./chart.js";
import { Overlay } from "./overlay.js";

export class Layered extends Overlay {
  constructor(node) {
    const canvas = el("div");
    super(node, canvas);
    this.canvas = canvas;
  }

  // Draw a specification; false where a later drawing has overtaken this one.
  async show(make, words) {
    const turn = (this.turn = (this.turn || 0) + 1);
    this.width = this.node.clientWidth;
    this.canvas.style.minHeight = `${this.canvas.clientHeight}px`; // the page does not jump while the picture is changed
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
    return [
      this.view.scale("x").invert(event.clientX - box.left - left),
      this.view.scale("y").invert(event.clientY - box.top - top),
    ];
  }

  frame() {
    const [left, top] = this.corner();
    return { left, top, right: left + this.view.signal("width"), bottom: top + this.view.signal("height") };
  }
}
