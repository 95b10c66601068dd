// A hierarchy drawn up by hand: one row a category, one column a level; counted and checked as it is typed, saved as a file.
import { all, base, button, el, hint, later, one, options, post, put, say, textBox, whole } from "./api.js";
import { countFold } from "./columns.js";

const MOST_LEVELS = 9;
const REST = "*"; // everything, as ARX and Hierarchy write it
/** @type {Set<HierarchyDrawing>} */
const drawings = new Set();
let made = 0;
window.addEventListener("beforeunload", (event) => {
  if ([...drawings].some((drawing) => drawing.past.length)) event.preventDefault();
});

// A drawing outlives the page around it: it belongs to a table of the plan and, once that was read anew, to one of its columns.
export const setAside = () =>
  drawings.forEach((drawing) => {
    drawing.table = null;
  });
export const drawingOf = (table, on) => {
  const begun = [...drawings],
    isOf = (drawing) => drawing.on.some((name) => on.includes(name));
  return begun.find((drawing) => drawing.table === table) || begun.find((drawing) => !drawing.table && isOf(drawing));
};

// on: columns; its `saved` is called with {name, levels} of the file that was written, `closed` when nobody draws any more.
export class HierarchyDrawing {
  /** @type {object | null} the recode in the plan that it belongs to */
  table = null;
  saved = (/** @type {{ name: string, levels: number }} */ _kept) => {};
  closed = () => {};
  id = (made += 1);
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
      "aria-label": "What each level makes of the records",
    });
    this.wrong = el("ul", { class: "bad plain", role: "status" });
    this.node = el("section", { class: "drawn", "aria-label": "Draw up a hierarchy" });
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
    const words = "Replace the file: plans that use it as it was will refuse it";
    this.replacing = el("div", {}, this.replace, el("label", { for: this.replace.id }, words));
    this.save = button("Save as", () => this.keep(), { class: null });
    this.all = el("input", { type: "checkbox", "aria-label": "Select all categories that are shown" });
    this.all.addEventListener("click", () => {
      const shown = this.rows.map((_, place) => place).filter((place) => this.isShown(place));
      for (const place of shown) this.mark(place, this.all.checked);
      this.show();
    });
    this.lay();
  }

  close() {
    drawings.delete(this);
    this.node.remove();
    this.closed();
  }

  // ---- what there is to press ----
  control(words, name, node) {
    node.id = `drawn-${this.id}-${name}`;
    return el("div", {}, el("label", { for: node.id }, words), node);
  }

  lay() {
    this.node.append(
      el("h4", { tabindex: "-1" }, this.title),
      hint(
        "Select rows (Shift for a range), type a name, press Enter; or type in the cells. Each level is made of the groups of the one below. Missing values stay missing.",
      ),
      el(
        "div",
        { class: "row" },
        this.control("Show categories with", "filter", this.filter),
        this.control("Level", "level", this.level),
        this.control("Name", "name", this.name),
        this.give,
      ),
      el(
        "div",
        { class: "chips" },
        button("Begin with first characters", () => this.begin({ begin: "prefixes" })),
        this.more,
        button(`All the rest: ${REST}`, () => this.rest(() => REST)),
        button("All the rest: as one level below", () => this.rest((row, level) => row[level - 1])),
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

  // The recode names other columns now.
  of(on) {
    if (on.join() === this.on.join()) return;
    this.on = on;
    one("h4", this.node).textContent = this.title;
    this.ask();
  }

  get title() {
    return `A hierarchy of ${this.on.join(", ")}`;
  }

  // ---- asking ----
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

  // Begin with something else than what stands there.
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
      const kept = await put(`${base}/hierarchies`, {
        file: this.called.value.trim(),
        rows: this.rows,
        version: this.isOpened() ? this.version : "",
      });
      say(`${kept.name} is saved, and the recode uses it.`);
      this.saved(kept);
      this.close();
    } catch (error) {
      this.tell(error.problems || [error.message]);
    }
  }

  // ---- changing ----
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
      for (const place of this.picked) this.rows[place][level] = name;
      this.picked.clear();
    });
    this.name.value = "";
    this.name.focus();
  }

  // Names for those that have none at the level that is chosen.
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

  // A click with Shift held takes every row that is shown from the last one that was clicked.
  pick(place, on, range) {
    const [from, to] = (range ? [this.last, place] : [place, place]).sort((a, b) => a - b);
    for (let at = from; at <= to; at += 1) if (this.isShown(at)) this.mark(at, on);
    this.last = place;
    this.show();
  }

  mark(place, on) {
    if (on) this.picked.add(place);
    else this.picked.delete(place);
  }

  // ---- drawing ----
  isShown(place) {
    return this.rows[place][0].toLowerCase().includes(this.filter.value.trim().toLowerCase());
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
      levels.length > 1 ? button("×", () => this.dropLevel(level), { "aria-label": `Take level ${level} away` }) : "";
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
    this.body.replaceChildren(...this.rows.map((row, place) => this.row(row, place, levels)));
    this.names.replaceChildren(...levels.map((level) => el("datalist", { id: this.listOf(level) })));
    this.more.disabled = levels.length >= MOST_LEVELS;
    this.back.disabled = !this.past.length;
    this.offer();
    this.show();
    this.nameFile();
  }

  row(/** @type {string[]} */ [category, ...names], place, levels) {
    const tick = el("input", { type: "checkbox", "aria-label": `Select ${category}` });
    tick.addEventListener("click", (event) => this.pick(place, tick.checked, event.shiftKey));
    return el(
      "tr",
      {},
      el("td", {}, tick),
      el("th", { scope: "row" }, category),
      el("td", { class: "n" }, whole(this.records[place] ?? 0)),
      ...levels.map((level) => el("td", {}, this.cell(category, names[level - 1], place, level))),
    );
  }

  // What is typed is counted at once, and can be undone as one change; Enter goes on to the next row.
  cell(category, name, place, level) {
    const box = textBox({ value: name, list: this.listOf(level), "aria-label": `Level ${level} of ${category}` });
    let typing = false;
    box.addEventListener("input", () => {
      if (!typing) {
        this.remember();
        this.back.disabled = false;
      }
      typing = true;
      this.rows[place][level] = box.value.trim();
      this.ask();
    });
    box.addEventListener("blur", () => {
      typing = false;
    });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      for (let next = place + 1; next < this.rows.length; next += 1)
        if (this.isShown(next)) return this.boxAt(next, level).focus();
    });
    return box;
  }

  listOf(level) {
    return `drawn-${this.id}-names-${level}`;
  }
  boxAt(place, level) {
    return one("input", this.body.rows[place].cells[level + 2]);
  }
  offer() {
    this.name.setAttribute("list", this.listOf(this.level.value));
  }

  // Which rows are shown and selected.
  show() {
    const shown = this.rows.map((_, place) => this.isShown(place));
    this.rows.forEach((_, place) => {
      const tr = this.body.rows[place];
      tr.hidden = !shown[place];
      one("input", tr).checked = this.picked.has(place);
    });
    this.all.checked = shown.some(Boolean) && shown.every((isShown, place) => !isShown || this.picked.has(place));
    this.give.disabled = !this.picked.size;
    this.give.textContent = this.picked.size ? `Name the ${whole(this.picked.size)} selected` : "Name the selected";
  }

  // A file that was opened is replaced only where somebody says so.
  nameFile() {
    this.replacing.hidden = !this.isOpened();
    this.save.disabled = !this.isSound || !this.called.value.trim() || (this.isOpened() && !this.replace.checked);
  }

  // ---- what was counted ----
  /** @param {Api.OpenedHierarchy} draft */
  judge(draft) {
    const same =
      draft.rows.length === this.rows.length &&
      draft.rows.every(([category], place) => category === this.rows[place][0]);
    Object.assign(this, { isSound: !draft.problems.length, records: draft.records });
    if (!same) {
      this.rows = draft.rows;
      this.picked.clear();
      this.draw();
    } // the columns have other categories now
    draft.records.forEach((count, place) => {
      this.body.rows[place].cells[2].textContent = whole(count);
    });
    for (const box of all("[aria-invalid]", this.body)) box.removeAttribute("aria-invalid");
    for (const [place, level] of draft.split) this.boxAt(place, level).setAttribute("aria-invalid", "true");
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
