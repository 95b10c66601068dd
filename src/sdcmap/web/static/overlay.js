// A picture with a drawing above it that can be taken with the pointer.
import { svg } from "./api.js";
import { dark, paper } from "./chart.js";

export const isDark = () => dark.matches;

// A sheet of paper is narrower than a screen, and nothing is drawn anew while it is printed: picture and drawing shrink together.
const SHEET = 640; // pixels across
const shrink = (wide) => {
  for (const node of document.querySelectorAll(".plot"))
    node.style.zoom = wide ? "" : Math.min(1, SHEET / node.clientWidth);
};
addEventListener("beforeprint", () => shrink(false));
addEventListener("afterprint", () => shrink(true));

// Whoever extends it says where numbers lie: at(x, y) in pixels, under(event) in numbers, frame(), and how it is drawn anew.
export class Overlay {
  constructor(node, below) {
    this.node = node;
    this.over = svg("svg", { "aria-hidden": "true" });
    node.replaceChildren(below, this.over);
    new ResizeObserver(
      () => this.width && !paper.matches && Math.abs(node.clientWidth - this.width) > 4 && this.redraw(),
    ).observe(node);
    dark.addEventListener("change", () => paper.matches || this.redraw());
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
