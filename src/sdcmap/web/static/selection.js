// Candidates that were chosen together, by a box drawn on the map or row by row: listed, and compared.
import { draw, el, page, short } from "./api.js";

const MOST_COMPARED = 3,
  MOST_LISTED = 100;

export class Selection {
  constructor(node, head, { onzoom, onchange }) {
    Object.assign(this, { node, head, onzoom, onchange, chosen: new Map(), part: null });
    this.show();
  }

  get ids() {
    return [...this.chosen.keys()].slice(0, MOST_LISTED);
  }

  rows(all) {
    return this.chosen.size ? all.filter((row) => this.chosen.has(row.id)) : [];
  }

  add(rows, part = null) {
    this.part = part;
    this.chosen = new Map(rows.filter((row) => row.id).map((row) => [row.id, row]));
    this.tell();
  }

  restore(ids, rows) {
    this.chosen = new Map(rows.filter((row) => ids.includes(row.id)).map((row) => [row.id, row]));
    this.show();
  }

  toggle(row, on) {
    if (on) this.chosen.set(row.id, row);
    else this.chosen.delete(row.id);
    this.tell();
  }

  tell() {
    this.show();
    this.onchange();
  }

  // A box to tick in a row of a table.
  box(row) {
    return el("input", {
      type: "checkbox",
      checked: this.chosen.has(row.id),
      "aria-label": `Select ${row.name}, ${draw(row)}`,
      onchange: (event) => this.toggle(row, event.target.checked),
    });
  }

  show() {
    const rows = [...this.chosen.values()];
    this.head.textContent = rows.length ? `Selected: ${rows.length}` : "Selected";
    if (!rows.length)
      return this.node.replaceChildren(
        el("p", { class: "quiet" }, "Draw a box on the map with the mouse, or tick rows of the table."),
      );
    const [first, other, third] = rows;
    const compare =
      rows.length < 2 || rows.length > MOST_COMPARED
        ? el(
            "span",
            { class: "quiet" },
            `Two or three can be compared${rows.length > MOST_COMPARED ? ": untick some" : ""}.`,
          )
        : el(
            "a",
            { href: page("candidate", { id: first.id, other: other.id, ...(third ? { third: third.id } : {}) }) },
            "Compare them",
          );
    const zoom = this.part
      ? el("button", { type: "button", class: "second", onclick: () => this.onzoom(this.part) }, "Zoom to them")
      : null;
    const clear = el("button", { type: "button", class: "second", onclick: () => this.add([]) }, "Clear");
    this.node.replaceChildren(
      el(
        "ul",
        { class: "plain" },
        ...rows
          .slice(0, MOST_LISTED)
          .map((row) =>
            el(
              "li",
              {},
              el(
                "label",
                {},
                this.box(row),
                `${row.name}, ${draw(row)} `,
                el("span", { class: "hint" }, `risk ${short(row.risk)}`),
              ),
            ),
          ),
      ),
      ...(rows.length > MOST_LISTED ? [el("p", { class: "quiet" }, `and ${rows.length - MOST_LISTED} more`)] : []),
      el("p", { class: "row" }, compare, zoom, clear),
    );
  }
}
