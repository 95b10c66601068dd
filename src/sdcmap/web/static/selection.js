// The selected candidates, by a box on the map or row by row: a list, and a link to compare them.
import { button, draw, el, page, quiet, short } from "./api.js";

/** @typedef {import("./points.js").Row} Row */

const MAX_COMPARED = 3;
const MAX_LISTED = 100;

export class Selection {
  /** @type {Map<string | undefined, Row>} */
  chosen = new Map();
  /** @type {object | null} the box that was drawn */
  part = null;

  /** @param {HTMLElement} node @param {HTMLElement} head */
  constructor(node, head, { onzoom, onchange }) {
    this.node = node;
    this.head = head;
    this.onzoom = onzoom;
    this.onchange = onchange;
    this.show();
  }

  get ids() {
    return [...this.chosen.keys()].slice(0, MAX_LISTED);
  }

  rows(all) {
    return this.chosen.size ? all.filter((row) => this.chosen.has(row.id)) : [];
  }

  add(rows, part = null) {
    this.part = part;
    this.chosen = new Map(rows.filter((row) => row.id).map((row) => [row.id, row]));
    this.update();
  }

  restore(ids, rows) {
    this.chosen = new Map(rows.filter((row) => ids.includes(row.id)).map((row) => [row.id, row]));
    this.show();
  }

  toggle(row, on) {
    if (on) this.chosen.set(row.id, row);
    else this.chosen.delete(row.id);
    this.update();
  }

  update() {
    this.show();
    this.onchange();
  }

  // The checkbox in a row of a table.
  box(row) {
    const facts = { checked: this.chosen.has(row.id), "aria-label": `Select ${row.name}, ${draw(row)}` };
    const checkbox = el("input", { type: "checkbox", ...facts });
    checkbox.addEventListener("change", () => this.toggle(row, checkbox.checked));
    return checkbox;
  }

  compare() {
    const [first, other, third] = this.chosen.keys(),
      count = this.chosen.size;
    if (count < 2 || count > MAX_COMPARED)
      return el("span", { class: "quiet" }, `Two or three can be compared${count > 2 ? ": untick some" : ""}.`);
    return el("a", { href: page("candidate", { id: first, other, ...(third ? { third } : {}) }) }, "Compare them");
  }

  show() {
    const rows = [...this.chosen.values()],
      listed = rows.slice(0, MAX_LISTED);
    this.head.textContent = rows.length ? `Selected: ${rows.length}` : "Selected";
    if (!rows.length) return this.node.replaceChildren(quiet("Drag a box on the map, or select rows of the table."));
    const entry = (row) => {
      const risk = el("span", { class: "hint" }, `risk ${short(row.risk)}`);
      return el("li", {}, el("label", {}, this.box(row), `${row.name}, ${draw(row)} `, risk));
    };
    const zoom = this.part ? button("Zoom to them", () => this.onzoom(this.part)) : null;
    this.node.replaceChildren(
      el("ul", { class: "plain" }, ...listed.map(entry)),
      rows.length > MAX_LISTED ? quiet(`and ${rows.length - MAX_LISTED} more`) : "",
      el(
        "p",
        { class: "row" },
        this.compare(),
        zoom,
        button("Clear", () => this.add([])),
      ),
    );
  }
}
