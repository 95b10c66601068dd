// The editor of a recode: one of six methods, and the resulting categories of each column, counted as the user types.
import { base, button, el, get, hint, later, one, options as choicesOf, post, root, textBox, whole } from "./api.js";
import { countFold } from "./columns.js";
import { drawingOf, HierarchyDrawing } from "./hierarchy.js";

const WAYS = {
  breaks: "Intervals at my own breaks",
  bins: "A number of intervals",
  width: "Intervals of equal width",
  merge: "Merge categories",
  prefix: "First characters",
  hierarchy: "A hierarchy file",
};
const NUMBERS = ["breaks", "bins", "width"];
let nextId = 0;

// The combination of a grid that is shown: the first one.
const first = ({ grid, ...table }) => ({
  ...table,
  ...Object.fromEntries(
    Object.entries(grid || {}).map(([name, values]) => [
      name,
      Array.isArray(values) ? values[0] : (values.subsets || []).slice(0, 1),
    ]),
  ),
});
const filled = (value) =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== "";

// table: the recode in the plan; changed: called after each edit.
export class RecodeEditor {
  id = (nextId += 1);
  /** @type {Api.Recodes | null} what comes of it */
  seen = null;
  /** @type {string[]} */
  files = [];
  /** @type {Set<string>} categories */
  marked = new Set();
  turn = 0;
  /** @type {HierarchyDrawing | null} */
  drawing = null;

  constructor(table, changed) {
    this.table = table;
    this.changed = changed;
    this.way = Object.keys(WAYS).find((name) => filled(first(table)[name])) ?? "";
    this.ways = el("div", { class: "ways" });
    this.panel = el("div", { class: "way-panel" });
    this.counts = el("div", {
      class: "recoded",
      role: "region",
      "aria-live": "polite",
      "aria-label": "Categories after the recode",
    });
    this.board = el("div", {}); // the editor of a hierarchy
    this.node = el(
      "div",
      { class: "recode" },
      el("fieldset", {}, el("legend", {}, "How"), this.ways),
      el("div", { class: "beside" }, this.panel, this.counts),
      this.board,
    );
    this.ask = later(150, () => this.count());
    this.take(drawingOf(table, this.on));
    this.draw();
    const near = new IntersectionObserver(([{ isIntersecting }]) => {
      if (isIntersecting) {
        near.disconnect();
        this.count();
      }
    }); // only editors on the screen are counted
    near.observe(this.node);
  }

  // The fields were edited in the form or in the text.
  refresh() {
    this.way = Object.keys(WAYS).find((name) => filled(first(this.table)[name])) || this.way;
    this.draw();
    this.ask();
    if (this.on.length) this.drawing?.of(this.on);
  }

  // The columns that it names.
  get on() {
    return [first(this.table).on || []].flat();
  }

  edit() {
    this.changed();
    this.ask();
  }

  set(name, value) {
    if (this.table.grid) delete this.table.grid[name];
    if (this.table.grid && !Object.keys(this.table.grid).length) delete this.table.grid;
    if (filled(value)) this.table[name] = value;
    else delete this.table[name];
  }

  choose(way) {
    for (const other of [...Object.keys(WAYS), "labels", "sha256", "level"])
      if (other !== way) this.set(other, undefined);
    if (!NUMBERS.includes(way)) this.set("becomes", undefined);
    this.way = way;
    this.marked.clear();
    if (way === "bins" && !filled(this.table.bins)) this.set("bins", 5);
    if (way === "prefix" && !filled(this.table.prefix)) this.set("prefix", 1);
    this.draw();
    this.edit();
  }

  async count() {
    const turn = (this.turn += 1);
    if (!this.on.length) return this.tell({ columns: [], levels: null });
    try {
      /** @type {Api.Recodes} */
      const seen = await post(`${base}/recodes`, { method: { ...first(this.table), on: this.on } });
      if (turn === this.turn) this.tell(seen);
    } catch (error) {
      if (turn === this.turn) this.counts.replaceChildren(el("p", { class: "bad" }, error.message));
    }
  }

  // ---- results ----
  tell(seen) {
    const before = JSON.stringify([this.seen?.levels, this.seen?.columns.map((column) => column.name)]);
    this.seen = seen;
    if (before !== JSON.stringify([seen.levels, seen.columns.map((column) => column.name)])) this.draw();
    this.counts.replaceChildren(
      ...(seen.columns.length
        ? seen.columns.map((column, index) => this.column(column, index))
        : [hint("Select columns to see the result.")]),
    );
    this.node.dataset.counted = String(this.turn);
  }

  column({ name, before_count: many, after, after_count: left, missing, smallest, problem }, index) {
    if (problem)
      return hint(
        el("strong", {}, name),
        ` has ${whole(many)} categories. ${this.way ? problem : "Select how to recode them."}`,
      );
    const counts = missing ? [...after, { label: "missing", count: missing }] : after;
    const empty = left ? `${whole(left)} categories are too many to list.` : "No category is left.";
    const words = `${name}: ${whole(many)} categories become ${whole(left)}; the rarest has ${whole(smallest)} record${smallest === 1 ? "" : "s"}.`;
    return countFold(words, counts, index < 2, empty);
  }

  // ---- the method of recoding ----
  draw() {
    const kinds = this.seen?.columns.map((column) => column.kind) || [];
    const fits = (way) =>
      !kinds.length || (NUMBERS.includes(way) ? true : way === "hierarchy" || kinds.some((kind) => kind !== "numeric"));
    this.ways.replaceChildren(
      ...Object.entries(WAYS)
        .filter(([way]) => fits(way) || way === this.way)
        .map(([way, words]) => {
          const id = `recode-${this.id}-${way}`;
          const box = el("input", { type: "radio", name: `recode-${this.id}`, id, checked: way === this.way });
          box.addEventListener("change", () => {
            this.choose(way);
            one(`#${id}`, this.ways)?.focus();
          });
          return el("span", { class: "way-choice" }, box, el("label", { for: id }, words));
        }),
    );
    const focused = this.panel.contains(document.activeElement) ? document.activeElement?.id : "";
    this.panel.replaceChildren(...(this.way ? this[this.way]() : []));
    if (focused) one(`#${CSS.escape(focused)}`, this.panel)?.focus();
    this.board.hidden = this.way !== "hierarchy"; // a draft hierarchy is kept while another method is tried
  }

  field(words, value, act, facts = {}) {
    const id = `recode-${this.id}-field-${words.replace(/\W/g, "-")}`;
    const box = textBox({ id, inputmode: "decimal", value: value ?? "", ...facts });
    box.addEventListener("input", () => {
      act(box.value.trim());
      this.edit();
    });
    return el("div", {}, el("label", { for: id }, words), box);
  }

  number(words, name) {
    const number = (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text);
    return this.field(words, first(this.table)[name], (text) => this.set(name, number(text)));
  }

  select(words, value, options, act) {
    const id = `recode-${this.id}-select-${words.replace(/\W/g, "-")}`;
    const box = el("select", { id }, ...choicesOf(options, value));
    box.addEventListener("change", () => {
      act(box.value);
      this.edit();
    });
    return el("div", {}, el("label", { for: id }, words), box);
  }

  becomes() {
    return this.select(
      "Numbers become",
      this.table.becomes || "label",
      [
        ["label", "the interval"],
        ["midpoint", "its midpoint"],
        ["mean", "the mean of the interval"],
        ["median", "the median of the interval"],
      ],
      (value) => this.set("becomes", value === "label" ? undefined : value),
    );
  }

  breaks() {
    const ends = [...(first(this.table).breaks || [])];
    const keep = () =>
      this.set(
        "breaks",
        ends
          .filter((end) => end !== "")
          .map(Number)
          .filter(Number.isFinite),
      );
    const again = () => {
      keep();
      this.draw();
      this.edit();
    };
    const rows = ends.map((end, index) => {
      const facts = { inputmode: "decimal", class: "code", value: end };
      const box = textBox({ ...facts, "aria-label": `Break ${index + 1}` });
      box.addEventListener("input", () => {
        ends[index] = box.value.trim();
        keep();
        this.edit();
      });
      return el(
        "span",
        { class: "break" },
        box,
        button(
          "×",
          () => {
            ends.splice(index, 1);
            again();
          },
          { "aria-label": `Remove break ${index + 1}` },
        ),
      );
    });
    const facts = { inputmode: "decimal", class: "code", placeholder: "break" };
    const more = textBox({ ...facts, "aria-label": "Another break" });
    const add = () => {
      const given = more.value
        .split(/[;\s]+/)
        .filter((part) => part !== "" && Number.isFinite(Number(part)))
        .map(Number);
      if (!given.length) return;
      ends.push(...given);
      ends.sort((a, b) => a - b);
      again();
      one("[aria-label='Another break']", this.panel)?.focus();
    };
    more.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        add();
      }
    });
    return [
      hint("Break points in the unit of the column; the first and the last interval are open."),
      el("div", { class: "chips breaks" }, ...rows, more, button("Add break", add)),
      el(
        "div",
        { class: "fields" },
        this.select(
          "The break belongs to the interval",
          this.table.closed || "right",
          [
            ["right", "below it"],
            ["left", "above it"],
          ],
          (value) => this.set("closed", value === "right" ? undefined : value),
        ),
        this.becomes(),
      ),
    ];
  }

  bins() {
    return [
      el(
        "div",
        { class: "fields" },
        this.number("Number of intervals (approximate)", "bins"),
        this.select(
          "With equal",
          this.table.by || "width",
          [
            ["width", "width"],
            ["log width", "ratio of their ends"],
            ["quantiles", "numbers of records"],
          ],
          (value) => this.set("by", value === "width" ? undefined : value),
        ),
        this.becomes(),
      ),
    ];
  }

  width() {
    return [
      el(
        "div",
        { class: "fields" },
        this.number("Width", "width"),
        this.number("One interval starts at", "start"),
        this.becomes(),
      ),
    ];
  }

  prefix() {
    return [el("div", { class: "fields" }, this.number("Characters to keep", "prefix"))];
  }

  // Categories are marked and merged under a name; merged categories can be split again.
  merge() {
    const groups = [...(this.table.merge || [])];
    const names = groups.map((group, index) => this.table.labels?.[index] ?? group.join("|"));
    const keep = () => {
      this.set("merge", groups);
      this.set("labels", names.some((name, index) => name !== groups[index].join("|")) ? names : undefined);
    };
    const again = () => {
      this.marked.clear();
      keep();
      this.draw();
      this.edit();
    };
    const merged = new Set(groups.flat());
    const counts = new Map();
    for (const column of this.seen?.columns || [])
      for (const { label, count } of column.categories) counts.set(label, (counts.get(label) || 0) + count);
    const free = [...counts].filter(([label]) => !merged.has(label));
    const box = ([label, count], index) => {
      const id = `recode-${this.id}-category-${index}`;
      const tick = el("input", { type: "checkbox", id, checked: this.marked.has(label), "data-category": label });
      tick.addEventListener("change", () => {
        if (tick.checked) this.marked.add(label);
        else this.marked.delete(label);
        join.disabled = this.marked.size < 2;
      });
      return el("div", {}, tick, el("label", { for: id }, `${label} `, el("span", { class: "quiet" }, whole(count))));
    };
    const called = textBox({ id: `recode-${this.id}-called`, placeholder: "a|b" });
    const join = el("button", { type: "button", disabled: this.marked.size < 2 }, "Merge the marked");
    join.addEventListener("click", () => {
      const group = free.map(([label]) => label).filter((label) => this.marked.has(label));
      groups.push(group);
      names.push(called.value.trim() || group.join("|"));
      again();
    });
    const apart = groups.map((group, index) =>
      el(
        "li",
        {},
        el("strong", {}, names[index]),
        ` = ${group.join(", ")} (${whole(group.reduce((sum, label) => sum + (counts.get(label) || 0), 0))}) `,
        button(
          "Split",
          () => {
            groups.splice(index, 1);
            names.splice(index, 1);
            again();
          },
          { "aria-label": `Split ${names[index]}` },
        ),
      ),
    );
    const rare = button("Mark all below", () => {
      const limit = Number(few.value) || 0;
      for (const [label, count] of free) if (count < limit) this.marked.add(label);
      this.draw();
    });
    const few = el("input", {
      type: "text",
      inputmode: "numeric",
      class: "code",
      "aria-label": "Records below which categories are marked",
      value: "10",
    });
    return [
      apart.length ? el("ul", { class: "merged" }, ...apart) : hint("Mark two or more categories and merge them."),
      el("div", { class: "categories" }, ...free.map(box)),
      el("div", { class: "row" }, el("div", {}, el("label", { for: called.id }, "under the name"), called), join),
      el("div", { class: "chips" }, rare, few, el("span", { class: "quiet" }, "records")),
    ];
  }

  hierarchy() {
    if (!this.files.length)
      get(`${root}/api/files`)
        .then(({ files }) => {
          this.files = files.map((file) => file.name).filter((name) => /\.(csv|txt)$/i.test(name));
          if (this.files.length) this.draw();
        })
        .catch(() => {});
    const chosen = first(this.table).hierarchy || "";
    const files = [...new Set([...(chosen ? [chosen] : []), ...this.files])];
    const levels = this.seen?.levels ?? null;
    const level = first(this.table).level ?? 1;
    const most = Math.max(levels ?? level, 1);
    const draw = (words, file, facts = {}) =>
      el("button", { type: "button", class: "second", onclick: () => this.drawUp(file), ...facts }, words);
    return [
      hint("A text file in this folder without a header: value;level 1;level 2;… (the format of ARX)."),
      el(
        "div",
        { class: "fields" },
        this.select("File", chosen, [["", "choose …"], ...files.map((name) => [name, name])], (value) => {
          this.set("hierarchy", value);
          this.set("sha256", undefined);
          this.draw();
        }),
        this.select(
          "Level",
          level,
          Array.from({ length: most + 1 }, (_, k) => [
            k,
            k === 0 ? "0: unchanged" : k === levels ? `${k}: the coarsest` : String(k),
          ]),
          (value) => this.set("level", Number(value) === 1 ? undefined : Number(value)),
        ),
      ),
      el(
        "div",
        { class: "chips" },
        draw("Create a hierarchy", "", { "data-draw": true }),
        chosen ? draw("Open this file to change it", chosen) : "",
      ),
    ];
  }

  // Edit a hierarchy, new or from a file; once it is saved, the recode uses it.
  drawUp(file) {
    if (!this.on.length)
      return this.counts.replaceChildren(
        el("p", { class: "bad" }, "Select the columns first: their categories are the rows."),
      );
    const begun = Boolean(this.drawing);
    if (!begun) this.take(new HierarchyDrawing(this.on));
    one("h4", this.board).focus();
    if (file)
      this.drawing?.begin({ begin: "file", file }); // "Undo" restores the draft
    else if (!begun) this.drawing?.begin({});
  }

  // Show a draft: a new one, or that of an earlier editor.
  take(drawing) {
    if (!drawing) return;
    this.way ||= "hierarchy";
    const closed = () => {
      this.drawing = null;
      one("[data-draw]", this.panel)?.focus();
    };
    this.drawing = Object.assign(drawing, { table: this.table, saved: (file) => this.use(file), closed });
    this.board.replaceChildren(drawing.node);
    if (this.on.length) drawing.of(this.on);
  }

  use({ name, levels }) {
    this.files = [...new Set([...this.files, name])];
    this.set("hierarchy", name);
    this.set("sha256", undefined);
    if ((first(this.table).level ?? 1) > levels) this.set("level", undefined);
    this.draw();
    this.edit();
  }
}
