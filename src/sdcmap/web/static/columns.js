// The table of columns: filter, select, and change roles one by one or together.
import { button, byId, el, one, options as choicesOf, svg, tableOf, textBox, whole } from "./api.js";

export const ROLES = {
  key: "key",
  sensitive: "sensitive",
  numeric: "numeric amount",
  identifier: "identifier",
  weight: "weight",
  household: "household",
  stratum: "stratum",
  other: "other",
  drop: "drop",
  replicate: "replicate weight",
  psu: "sampling unit",
  wave: "wave",
  case: "case of a panel",
};
const KINDS = { "": "as inferred", nominal: "nominal", ordinal: "ordinal" };
const MAX_ROWS = 200; // that are drawn; filters find the others
const ROWS_PER_FRAME = 12; // that are added at once, so that the page stays responsive
const HEADS = [
  [""],
  ["column"],
  ["role"],
  [" "],
  ["kind"],
  ["read as"],
  ["values"],
  ["distinct", "n"],
  ["unique", "n"],
  ["missing", "n"],
  ["codes for missing values"],
];
const options = (all, value = "") => choicesOf(Object.entries(all), value);

export class Columns {
  /** @type {Api.FileSummary} what was seen of the file */
  look = /** @type {any} */ (null);
  /** @type {Set<string>} */
  picked = new Set();
  /** @type {Set<string>} */
  opened = new Set();
  last = "";
  /** @type {Map<string, any>} */
  rowsByName = new Map();
  body = el("tbody", {});

  // stated: {roles, kinds, missing}; changed: called after each change of it
  constructor(stated, changed) {
    this.stated = stated;
    this.changed = changed;
    this.all = el("input", { type: "checkbox", "aria-label": "Select all that are shown" });
    this.all.addEventListener("click", () => {
      for (const v of this.shown()) this.setPicked(v.name, this.all.checked);
      this.mark();
    });
    byId("columns").replaceChildren(
      el(
        "thead",
        {},
        el("tr", {}, ...HEADS.map(([words, kind]) => el("th", { scope: "col", class: kind }, words || this.all))),
      ),
      this.body,
    );
    byId("by-role").replaceChildren(...options({ "": "any", ...ROLES }));
    byId("all-roles").replaceChildren(...options({ "": "as they are", ...ROLES }));
    byId("all-kinds").replaceChildren(...options({ "-": "as they are", ...KINDS }, "-"));
    for (const id of ["by-name", "by-kind", "by-role", "by-state"])
      byId(id).addEventListener("input", () => this.draw());
    byId("together").addEventListener("submit", (event) => {
      event.preventDefault();
      this.apply(byId("all-roles").value, byId("all-kinds").value);
    });
    byId("drop").addEventListener("click", () => this.apply("drop", "-"));
    byId("confirm").addEventListener("click", () =>
      this.each((v) => {
        stated.roles[v.name] = v.role;
      }),
    );
  }

  set(look) {
    this.look = look;
    this.draw();
  }

  // The role of every column, stated or proposed.
  get roles() {
    return Object.fromEntries(this.look.variables.map((v) => [v.name, this.stated.roles[v.name] || v.role]));
  }

  // ---- many at once ----
  each(act) {
    for (const v of this.look.variables) if (this.picked.has(v.name)) act(v);
    this.changed();
  }

  apply(role, kind) {
    this.each(({ name }) => {
      if (role) this.stated.roles[name] = role;
      if (kind !== "-") this.read(name, kind);
    });
  }

  read(name, kind) {
    if (kind) this.stated.kinds[name] = kind;
    else delete this.stated.kinds[name];
  }

  shown() {
    const [name, kind, role, state] = ["by-name", "by-kind", "by-role", "by-state"].map((id) => byId(id).value);
    const states = {
      proposed: (v) => !v.stated,
      missing: (v) => v.missing > 0,
      codes: (v) => this.likely(v.name).length > 0,
      unique: (v) => v.once > 0,
    };
    return this.look.variables.filter(
      (v) =>
        v.name.toLowerCase().includes(name.trim().toLowerCase()) &&
        (!kind || v.kind === kind) &&
        (!role || v.role === role) &&
        (!state || states[state](v)),
    );
  }

  // Shift + click selects every row from the last clicked one.
  pick(name, on, range) {
    const names = this.shown().map((v) => v.name);
    const [from, to] = [names.indexOf(range ? this.last : name), names.indexOf(name)].sort((a, b) => a - b);
    for (const one of from < 0 ? [name] : names.slice(from, to + 1)) this.setPicked(one, on);
    this.last = name;
    this.mark();
  }

  setPicked(name, on) {
    if (on) this.picked.add(name);
    else this.picked.delete(name);
  }

  // ---- codes for missing values ----
  codesOf(name) {
    return this.stated.missing.filter((text) => text.startsWith(`${name}=`)).map((text) => text.slice(name.length + 1));
  }
  likely(name) {
    return this.look.codes.filter((text) => text.startsWith(`${name}=`)).map((text) => text.slice(name.length + 1));
  }

  setCode(name, code, on) {
    const text = `${name}=${code.trim()}`;
    if (!code.trim()) return;
    this.stated.missing = this.stated.missing.filter((one) => one !== text);
    if (on) this.stated.missing.push(text);
    this.changed();
  }

  codes(v) {
    const own = this.codesOf(v.name);
    const bare = (code) => code.replace(/ \([^()]*\)$/, "");
    const press = (code, on) =>
      button(on ? code : `${code} ?`, () => this.setCode(v.name, code, !on), {
        class: on ? "chip" : "chip likely",
        "aria-pressed": String(on),
        "aria-label": `${code} means missing in ${v.name}`,
      });
    const others = v.missing_codes.filter((code) => !own.some((one) => bare(one) === bare(code)));
    const label = `Another code for missing values of ${v.name}`;
    const box = textBox({ class: "code", "aria-label": label, placeholder: "code" });
    box.addEventListener("change", () => this.setCode(v.name, box.value, true));
    return el(
      "div",
      { class: "chips" },
      ...own.map((code) => press(code, true)),
      ...others.map((code) => el("span", { class: "quiet" }, code)),
      ...this.likely(v.name)
        .filter((code) => !own.includes(code))
        .map((code) => press(code, false)),
      box,
    );
  }

  // ---- drawing ----
  choice(name, label, all, value, act) {
    const box = el("select", { "aria-label": `${label} of ${name}` }, ...options(all, value));
    box.addEventListener("change", () => {
      act(box.value);
      this.changed();
    });
    return box;
  }

  cells(v, tick, spread) {
    const role = this.choice(v.name, "Role", ROLES, v.role, (value) => {
      this.stated.roles[v.name] = value;
    });
    role.dataset.role = v.role;
    const kind = this.choice(v.name, "Kind", KINDS, this.stated.kinds[v.name] || "", (value) =>
      this.read(v.name, value),
    );
    const name = el(
      "span",
      {},
      el("strong", {}, v.name),
      v.formula ? el("span", { class: "hint" }, ` = ${v.formula} within ${v.rounding}`) : "",
    );
    return [
      tick,
      name,
      role,
      el(
        "span",
        { class: "quiet", title: [v.why, v.evidence].filter(Boolean).join("; ") },
        v.stated ? "stated" : `${v.certainty} ?`,
      ),
      v.kind,
      kind,
      spread,
      whole(v.distinct),
      whole(v.once),
      whole(v.missing),
      this.codes(v),
    ];
  }

  // The row of a column, created again only if its content changed; `below`: the table of its values, once opened.
  row(v) {
    const facts = JSON.stringify([v, this.stated.kinds[v.name], this.codesOf(v.name), this.likely(v.name)]);
    const before = this.rowsByName.get(v.name);
    if (before?.facts === facts) return before;
    const tick = el("input", { type: "checkbox", "aria-label": `Select ${v.name}` });
    tick.addEventListener("click", (event) => this.pick(v.name, tick.checked, event.shiftKey));
    const spread = button(
      histogram(v.spread),
      () => {
        if (!this.opened.delete(v.name)) this.opened.add(v.name);
        this.draw();
      },
      { class: "spread", "aria-label": `Distribution of ${v.name}`, title: "Distribution of its values" },
    );
    const tr = el(
      "tr",
      { "data-role": v.role },
      ...this.cells(v, tick, spread).map((cell, index) => el("td", { class: HEADS[index][1] }, cell)),
    );
    const row = { facts, tr, tick, spread, below: null };
    this.rowsByName.set(v.name, row);
    return row;
  }

  // A row, and the table of values below it if it is open.
  rows(v) {
    const row = this.row(v),
      open = this.opened.has(v.name);
    row.spread.setAttribute("aria-expanded", String(open));
    if (open)
      row.below ||= el("tr", { class: "below" }, el("td", { colspan: HEADS.length }, table(v.spread, this.look.rows)));
    return open ? [row.tr, row.below] : [row.tr];
  }

  draw() {
    const focused = document.activeElement?.getAttribute("aria-label");
    const shown = this.shown();
    const drawn = shown.slice(0, MAX_ROWS);
    arrange(
      this.body,
      drawn.length
        ? drawn.flatMap((v) => this.rows(v))
        : [el("tr", {}, el("td", { class: "quiet", colspan: HEADS.length }, "No column matches."))],
    );
    byId("shown").textContent =
      shown.length === this.look.variables.length && drawn.length === shown.length
        ? ""
        : `${whole(shown.length)} of ${whole(this.look.variables.length)} columns${drawn.length < shown.length ? `, the first ${MAX_ROWS} shown` : ""}`;
    this.mark();
    if (focused && document.activeElement === document.body) one(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  // Update the selection without redrawing the rows.
  mark() {
    const shown = this.shown(),
      count = this.picked.size;
    for (const [name, { tick }] of this.rowsByName) tick.checked = this.picked.has(name);
    this.all.checked = shown.length > 0 && shown.every((v) => this.picked.has(v.name));
    byId("picked").textContent = count ? `${whole(count)} selected` : "None selected";
    for (const id of ["apply", "drop", "confirm"]) byId(id).disabled = !count;
  }
}

// Show these rows in this order. Rows that stay are not touched, and new rows are added a few per frame, because the browser
// needs milliseconds to lay out each row and must stay responsive.
let arranging = 0;
function arrange(body, rows) {
  const wanted = new Set(rows),
    turn = (arranging += 1);
  for (const row of [...body.children]) if (!wanted.has(row)) row.remove();
  let index = 0;
  const go = () => {
    for (let added = 0; turn === arranging && index < rows.length && added < ROWS_PER_FRAME; index += 1) {
      if (body.children[index] === rows[index]) continue;
      body.insertBefore(rows[index], body.children[index] ?? null);
      added += 1;
    }
    if (turn === arranging && index < rows.length) requestAnimationFrame(go);
  };
  go();
}

// ---- distributions --------------------------------------------------------------------------------------------------
const WIDTH = 108; // of a small histogram, in pixels
const HEIGHT = 26;
const GAP = 1;

function parts({ bars, others, categories, missing }) {
  const rest = others ? [{ label: `${whole(categories)} rarer categories`, count: others, kind: "others" }] : [];
  const missingBar = missing ? [{ label: "missing", count: missing, kind: "gone" }] : [];
  return [...bars.map((bar) => ({ ...bar, kind: "bar" })), ...rest, ...missingBar];
}

// Bars with records are at least one pixel high; empty bars are not drawn.
export function histogram(spread) {
  const all = parts(spread);
  const most = Math.max(...all.map(({ count }) => count), 1);
  const width = WIDTH / Math.max(all.length, 6);
  const drawing = svg("svg", {
    class: "histogram",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    width: WIDTH,
    height: HEIGHT,
    "aria-hidden": "true",
  });
  all.forEach(({ label, count, kind }, index) => {
    if (!count) return;
    const height = Math.max(1, (HEIGHT * count) / most);
    const bar = svg("rect", { class: kind, x: index * width, y: HEIGHT - height, width: width - GAP, height });
    const title = svg("title");
    title.textContent = `${label}: ${whole(count)}`;
    bar.append(title);
    drawing.append(bar);
  });
  return drawing;
}

export function share(count, most) {
  const bar = svg("svg", { class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(svg("rect", { width: most ? (100 * count) / most : 0, height: 10, rx: 1 }));
  return bar;
}

// The resulting categories with their records, in a section that can be folded.
export function countFold(words, counts, isOpen, empty) {
  const most = Math.max(...counts.map(({ count }) => count), 1);
  const cells = counts.map(({ label, count }) => [label, whole(count), share(count, most)]);
  const table = tableOf(["becomes", ["records", "n"], ""], cells, empty);
  return el("details", { open: isOpen }, el("summary", {}, words), el("div", { class: "tall" }, table));
}

function table(spread, rows) {
  const all = parts(spread);
  return tableOf(
    ["values", ["records", "n"], ["share", "n"], ""],
    all.map(({ label, count }) => [
      label,
      whole(count),
      `${((100 * count) / rows).toFixed(1)} %`,
      share(count, Math.max(...all.map((bar) => bar.count))),
    ]),
  );
}
