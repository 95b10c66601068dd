// A table that is sorted by its heads. Each column has a title, a value to sort by, and a cell to show.
import { all, button, fill } from "./api.js";

const MAX_ROWS = 200; // that are drawn; filters find the others
const order = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

/** @typedef {{ title: string, kind?: string, value: (row: any) => any, cell?: (row: any) => any }} Column */

export class Sorted {
  down = false;
  left = 0; // rows that are not drawn
  /** @type {any[]} */
  rows = [];

  /** @param {HTMLElement} table @param {Column[]} columns */
  constructor(table, columns, { by = 0, empty = "None." } = {}) {
    this.table = table;
    this.columns = columns;
    this.by = by;
    this.empty = empty;
  }

  set(rows) {
    this.rows = rows;
    this.draw();
  }

  sort(by) {
    this.down = this.by === by && !this.down;
    this.by = by;
    this.draw();
    all("thead button", this.table)[by]?.focus();
  }

  draw() {
    const { value } = this.columns[this.by];
    const rows = [...this.rows].sort((a, b) => order(value(a), value(b)) * (this.down ? -1 : 1));
    const head = ({ title, kind = "" }, index) => {
      const sign = this.by === index ? (this.down ? " ▼" : " ▲") : "";
      return [button(`${title}${sign}`, () => this.sort(index), { class: "head" }), kind];
    };
    fill(
      this.table,
      this.columns.map(head),
      rows.slice(0, MAX_ROWS).map((row) => this.columns.map(({ value: of, cell = of }) => cell(row))),
      this.empty,
    );
    all("thead th", this.table)[this.by]?.setAttribute("aria-sort", this.down ? "descending" : "ascending");
    this.left = Math.max(0, rows.length - MAX_ROWS);
  }
}
