// A table that is sorted by its heads: each column has a title, a value to sort by, and a cell to show.
import { el, fill } from "./api.js";

const MOST = 200; // rows that are drawn; filters find the others
const order = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

export class Sorted {
  constructor(table, columns, { by = 0, empty = "None." } = {}) {
    Object.assign(this, { table, columns, by, empty, down: false, rows: [] });
  }

  set(rows) {
    this.rows = rows;
    this.draw();
  }

  sort(by) {
    this.down = this.by === by && !this.down;
    this.by = by;
    this.draw();
    this.table.querySelectorAll("thead button")[by]?.focus();
  }

  draw() {
    const { value } = this.columns[this.by];
    const rows = [...this.rows].sort((a, b) => order(value(a), value(b)) * (this.down ? -1 : 1));
    const head = ({ title, kind = "" }, place) => [
      el(
        "button",
        { type: "button", class: "head", onclick: () => this.sort(place) },
        `${title}${this.by === place ? (this.down ? " ▼" : " ▲") : ""}`,
      ),
      kind,
    ];
    fill(
      this.table,
      this.columns.map(head),
      rows.slice(0, MOST).map((row) => this.columns.map(({ value: of, cell = of }) => cell(row))),
      this.empty,
    );
    this.table
      .querySelectorAll("thead th")
      .forEach(
        (th, place) => place === this.by && th.setAttribute("aria-sort", this.down ? "descending" : "ascending"),
      );
    this.left = Math.max(0, rows.length - MOST);
  }
}
