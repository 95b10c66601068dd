// The editor of a hierarchy: one row per category, one column per level. Input is counted and checked, then saved as a file.
import { all, base, button, el, hint, later, one, options, post, put, say, textBox, whole } from "./api.js";
import { countFold } from "./columns.js";

const MAX_LEVELS = 9;
const TOP_CATEGORY = "*"; // all categories, as in ARX files
/** @type {Set<HierarchyDrawing>} */
const drawings = new Set();
let nextId = 0;
window.addEventListener("beforeunload", (event) => {
  if ([...drawings].some((drawing) => drawing.past.length)) event.preventDefault();
});

// A draft survives a redraw of the page: it belongs to a table of the plan and, after the plan was read again, to its columns.
export const setAside = () =>
  drawings.forEach((drawing) => {
    drawing.table = null;
  });
export const drawingOf = (table, on) => {
  const begun = [...drawings],
    isOf = (drawing) => drawing.on.some((name) => on.includes(name));
  return begun.find((drawing) => drawing.table === table) || begun.find((drawing) => !drawing.table && isOf(drawing));
};

// on: columns. `saved` is called with {name, levels} of the written file, `closed` when the editor is closed.
export class HierarchyDrawing {
  /** @type {object | null} the recode in the plan that it belongs to */
  table = null;
  saved = (/** @type {{ name: string, levels: number }} */ _file) => {};
  closed = () => {};
  id = (nextId += 1);
  /** @type {string[][]} */
  rows = [];
  /** @type {number[]} of each category */
  records = [];
  /** @type {Set<number>} */
  picked = new Set();
  last = 0;
  /** @type {string[][][]} */
  past = [];
  file = "";
  version = "";
  turn = 0;
  isSound = false;

  /** @param {string[]} on columns */
  constructor(on) {
    this.on = on;
    drawings.add(this);
    this.ask = later(150, () => this.draft());
    this.heads = el("thead", {});
    this.body = el("tbody", {});
    this.names = el("div", {}); // the names in use, level by level, to be picked
    this.judged = el("div", {
      class: "judged",
      role: "region",
      "aria-live": "polite",
      "aria-label": "Categories of each level",
    });
    this.wrong = el("ul", { class: "bad plain", role: "status" });
    this.node = el("section", { class: "drawn", "aria-label": "Edit a hierarchy" });
    this.filter = el("input", { type: "search", autocomplete: "off", oninput: () => this.show() });
    this.level = el("select", { onchange: () => this.offer() });
    this.name = textBox();
    this.name.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.apply();
    });
    this.give = button("Name the selected", () => this.apply(), { class: null });
    this.back = button("Undo", () => this.undo());
    this.more = button("Add a level", () => this.addLevel());
    this.called = textBox({ value: `${on[0]} hierarchy.csv`, oninput: () => this.nameFile() });
    this.replace = el("input", { type: "checkbox", id: `drawn-${this.id}-replace`, onchange: () => this.nameFile() });
    const words = "Replace the file; plans that use the old version will reject it";
    this.replacing = el("div", {}, this.replace, el("label", { for: this.replace.id }, words));
    this.save = button("Save as", () => this.keep(), { class: null });
    this.all = el("input", { type: "checkbox", "aria-label": "Select all categories that are shown" });
    this.all.addEventListener("click", () => {
      const shown = this.rows.map((_, index) => index).filter((index) => this.isShown(index));
      for (const index of shown) this.mark(index, this.all.checked);
      this.show();
    });
    this.lay();
  }

  close() {
    drawings.delete(this);
    this.node.remove();
    this.closed();
  }

  // ---- controls ----
  control(words, name, node) {
    node.id = `drawn-${this.id}-${name}`;
    return el("div", {}, el("label", { for: node.id }, words), node);
  }

  lay() {
    this.node.append(
      el("h4", { tabindex: "-1" }, this.title),
      hint(
        "Select rows (Shift for a range), type a name and press Enter; or type in the cells. Each level groups the categories of the level below. Missing values stay missing.",
      ),
      el(
        "div",
        { class: "row" },
        this.control("Filter categories", "filter", this.filter),
        this.control("Level", "level", this.level),
        this.control("Name", "name", this.name),
        this.give,
      ),
      el(
        "div",
        { class: "chips" },
        button("Start with first characters", () => this.begin({ begin: "prefixes" })),
        this.more,
        button(`All others: ${TOP_CATEGORY}`, () => this.rest(() => TOP_CATEGORY)),
        button("All others: as on the level below", () => this.rest((row, level) => row[level - 1])),
        this.back,
      ),
      el(
        "div",
        { class: "beside" },
        el("div", { class: "tall wide" }, el("table", { class: "levels" }, this.heads, this.body)),
        el("div", {}, this.judged, this.wrong),
      ),
      el(
        "div",
        { class: "row" },
        this.control("File", "file", this.called),
        this.replacing,
        this.save,
        button("Close without saving", () => this.close()),
      ),
      this.names,
    );
    this.draw();
  }

  // The columns of the recode changed.
  of(on) {
    if (on.join() === this.on.join()) return;
    this.on = on;
    one("h4", this.node).textContent = this.title;
    this.ask();
  }

  get title() {
    return `Hierarchy of ${this.on.join(", ")}`;
  }

  // ---- requests ----
  async post(asked) {
    const turn = (this.turn += 1);
    try {
      const draft = await post(`${base}/hierarchies/drafts`, { on: this.on, ...asked });
      return turn === this.turn ? draft : null;
    } catch (error) {
      if (turn === this.turn) this.tell([error.message]);
      return null;
    }
  }

  // Start from first characters or from a file.
  async begin(asked) {
    const draft = await this.post(asked);
    if (!draft) return;
    if (this.rows.length) this.remember();
    if (asked.file) {
      this.file = this.called.value = asked.file;
      this.version = draft.version;
    }
    Object.assign(this, { rows: draft.rows, records: draft.records });
    this.picked.clear();
    this.draw();
    this.judge(draft);
  }

  async draft() {
    const draft = await this.post({ rows: this.rows });
    if (draft) this.judge(draft);
  }

  async keep() {
    try {
      const file = await put(`${base}/hierarchies`, {
        file: this.called.value.trim(),
        rows: this.rows,
        version: this.isOpened() ? this.version : "",
      });
      say(`${file.name} is saved, and the recode uses it.`);
      this.saved(file);
      this.close();
    } catch (error) {
      this.tell(error.problems || [error.message]);
    }
  }

  // ---- changes ----
  remember() {
    this.past.push(this.rows.map((row) => [...row]));
  }

  change(act) {
    this.remember();
    act();
    this.draw();
    this.ask();
  }

  undo() {
    this.rows = this.past.pop() ?? [];
    this.draw();
    this.ask();
  }

  apply() {
    const name = this.name.value.trim(),
      level = Number(this.level.value);
    if (!name || !this.picked.size) return;
    this.change(() => {
      for (const index of this.picked) this.rows[index][level] = name;
      this.picked.clear();
    });
    this.name.value = "";
    this.name.focus();
  }

  // Name all categories without a name on the selected level.
  rest(named) {
    const level = Number(this.level.value);
    this.change(() => {
      for (const row of this.rows) row[level] ||= named(row, level);
    });
  }

  addLevel() {
    if (!this.rows.length) return;
    this.change(() => {
      for (const row of this.rows) row.push("");
    });
    this.level.value = String(this.rows[0].length - 1);
    this.offer();
  }

  dropLevel(level) {
    this.change(() => {
      for (const row of this.rows) row.splice(level, 1);
    });
  }

  // Shift + click selects every visible row from the last clicked one.
  pick(index, on, range) {
    const [from, to] = (range ? [this.last, index] : [index, index]).sort((a, b) => a - b);
    for (let at = from; at <= to; at += 1) if (this.isShown(at)) this.mark(at, on);
    this.last = index;
    this.show();
  }

  mark(index, on) {
    if (on) this.picked.add(index);
    else this.picked.delete(index);
  }

  // ---- drawing ----
  isShown(index) {
    return this.rows[index][0].toLowerCase().includes(this.filter.value.trim().toLowerCase());
  }
  isOpened() {
    return Boolean(this.version) && this.called.value.trim() === this.file;
  }

  draw() {
    const levels = Array.from({ length: (this.rows[0]?.length || 1) - 1 }, (_, k) => k + 1);
    const chosen = Math.min(Number(this.level.value) || 1, levels.length || 1);
    this.level.replaceChildren(
      ...options(
        levels.map((level) => [level, String(level)]),
        chosen,
      ),
    );
    const away = (level) =>
      levels.length > 1 ? button("×", () => this.dropLevel(level), { "aria-label": `Remove level ${level}` }) : "";
    this.heads.replaceChildren(
      el(
        "tr",
        {},
        el("th", { scope: "col" }, this.all),
        el("th", { scope: "col" }, "category"),
        el("th", { scope: "col", class: "n" }, "records"),
        ...levels.map((level) => el("th", { scope: "col" }, `level ${level} `, away(level))),
      ),
    );
    this.body.replaceChildren(...this.rows.map((row, index) => this.row(row, index, levels)));
    this.names.replaceChildren(...levels.map((level) => el("datalist", { id: this.listOf(level) })));
    this.more.disabled = levels.length >= MAX_LEVELS;
    this.back.disabled = !this.past.length;
    this.offer();
    this.show();
    this.nameFile();
  }

  row(/** @type {string[]} */ [category, ...names], index, levels) {
    const tick = el("input", { type: "checkbox", "aria-label": `Select ${category}` });
    tick.addEventListener("click", (event) => this.pick(index, tick.checked, event.shiftKey));
    return el(
      "tr",
      {},
      el("td", {}, tick),
      el("th", { scope: "row" }, category),
      el("td", { class: "n" }, whole(this.records[index] ?? 0)),
      ...levels.map((level) => el("td", {}, this.cell(category, names[level - 1], index, level))),
    );
  }

  // Input is counted at once and undone as one change; Enter moves to the next row.
  cell(category, name, index, level) {
    const box = textBox({ value: name, list: this.listOf(level), "aria-label": `Level ${level} of ${category}` });
    let typing = false;
    box.addEventListener("input", () => {
      if (!typing) {
        this.remember();
        this.back.disabled = false;
      }
      typing = true;
      this.rows[index][level] = box.value.trim();
      this.ask();
    });
    box.addEventListener("blur", () => {
      typing = false;
    });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      for (let next = index + 1; next < this.rows.length; next += 1)
        if (this.isShown(next)) return this.boxAt(next, level).focus();
    });
    return box;
  }

  listOf(level) {
    return `drawn-${this.id}-names-${level}`;
  }
  boxAt(index, level) {
    return one("input", this.body.rows[index].cells[level + 2]);
  }
  offer() {
    this.name.setAttribute("list", this.listOf(this.level.value));
  }

  // Update which rows are visible and selected.
  show() {
    const shown = this.rows.map((_, index) => this.isShown(index));
    this.rows.forEach((_, index) => {
      const tr = this.body.rows[index];
      tr.hidden = !shown[index];
      one("input", tr).checked = this.picked.has(index);
    });
    this.all.checked = shown.some(Boolean) && shown.every((isShown, index) => !isShown || this.picked.has(index));
    this.give.disabled = !this.picked.size;
    this.give.textContent = this.picked.size ? `Name the ${whole(this.picked.size)} selected` : "Name the selected";
  }

  // An opened file is replaced only if the user confirms it.
  nameFile() {
    this.replacing.hidden = !this.isOpened();
    this.save.disabled = !this.isSound || !this.called.value.trim() || (this.isOpened() && !this.replace.checked);
  }

  // ---- results ----
  /** @param {Api.OpenedHierarchy} draft */
  judge(draft) {
    const same =
      draft.rows.length === this.rows.length &&
      draft.rows.every(([category], index) => category === this.rows[index][0]);
    Object.assign(this, { isSound: !draft.problems.length, records: draft.records });
    if (!same) {
      this.rows = draft.rows;
      this.picked.clear();
      this.draw();
    } // the columns have other categories
    draft.records.forEach((count, index) => {
      this.body.rows[index].cells[2].textContent = whole(count);
    });
    for (const box of all("[aria-invalid]", this.body)) box.removeAttribute("aria-invalid");
    for (const [index, level] of draft.split) this.boxAt(index, level).setAttribute("aria-invalid", "true");
    draft.levels.forEach(({ groups }, k) =>
      this.names.children[k].replaceChildren(...groups.map(({ label }) => el("option", { value: label }))),
    );
    const open = all("details", this.judged).map((details) => details.hasAttribute("open"));
    this.judged.replaceChildren(...draft.levels.map((level, k) => this.summary(level, k + 1, open[k] ?? k === 0)));
    this.tell(draft.problems);
    this.nameFile();
  }

  summary({ groups, rarest, unnamed }, level, open) {
    const least = rarest
      ? `; the rarest, “${rarest.label}”, has ${whole(rarest.count)} record${rarest.count === 1 ? "" : "s"}`
      : "";
    const words = `Level ${level}: ${whole(groups.length)} categor${groups.length === 1 ? "y" : "ies"}${least}${unnamed ? `; ${whole(unnamed)} without a name` : ""}.`;
    return countFold(words, groups, open, "No names yet.");
  }

  tell(problems) {
    this.wrong.replaceChildren(...problems.map((problem) => el("li", {}, problem)));
  }
}
