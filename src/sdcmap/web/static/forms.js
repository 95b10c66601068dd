// Forms from the fields of methods, measures and rules; a form and a table of the plan are two views of one thing.
import { el } from "./api.js";

const numeric = (entry) => entry.kind === "number" || entry.kind === "whole number";
let count = 0;

function words(value) {
  if (Array.isArray(value)) return value.map(words).join(value.some((part) => part?.type) ? "; " : ", ");
  if (value?.type) return partOf(value);
  return value === null || value === undefined ? "" : String(value);
}

// A value made of parts as its text, such as Linkage(metric="l").
function partOf({ type, ...given }) {
  const literal = (value) => (Array.isArray(value) ? `[${value.map(literal).join(", ")}]` : value?.type ? partOf(value) : value === true ? "True" : value === false ? "False" : JSON.stringify(value));
  return `${type}(${Object.entries(given).map(([name, value]) => `${name}=${literal(value)}`).join(", ")})`;
}

const split = (text, mark = ",") => text.split(mark).map((part) => part.trim()).filter(Boolean);
const number = (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text);

// The text of one field of a table: grids are lists with commas, sets of columns are parted by semicolons.
function textOf(entry, table) {
  const axis = table.grid?.[entry.name];
  if (axis && !Array.isArray(axis)) return words(axis.subsets);
  if (axis) return axis.map(words).join(entry.several ? "; " : ", ");
  return words(table[entry.name] ?? "");
}

function sizesOf(entry, table) {
  const axis = table.grid?.[entry.name];
  return axis && !Array.isArray(axis) ? words(axis.sizes) : "";
}

// Put what a person wrote back into the table.
function write(entry, table, text, sizes) {
  const grid = { ...table.grid };
  delete table[entry.name];
  delete grid[entry.name];
  const cast = numeric(entry) || entry.open ? number : (part) => part;
  if (entry.kind === "part") {
    const parts = split(text, ";");
    if (parts.length) table[entry.name] = entry.several ? parts : parts[0];
  } else if (entry.several) {
    const sets = split(text, ";").map((part) => split(part).map(cast));
    if (sets.length && split(sizes).length) grid[entry.name] = { subsets: sets.flat(), sizes: split(sizes).map(number) };
    else if (sets.length > 1) grid[entry.name] = sets;
    else if (sets.length) table[entry.name] = sets[0];
  } else {
    const values = numeric(entry) || entry.open ? split(text).map(cast) : text.trim() ? [text.trim()] : [];
    if (values.length > 1) grid[entry.name] = values;
    else if (values.length) table[entry.name] = values[0];
  }
  if (Object.keys(grid).length) table.grid = grid; else delete table.grid;
}

function hint(entry, id) {
  const range = entry.range ? ` Range ${entry.range}.` : "";
  const default_ = entry.required || entry.default === null || words(entry.default) === "" ? "" : ` Default ${words(entry.default)}.`;
  const parts = entry.kind === "part" ? ` Written as NAME(parameter=value)${entry.several ? ", parted by semicolons" : ""}.` : "";
  const choices = entry.choices.length && (entry.open || entry.several) ? ` One of ${entry.choices.join(", ")}${entry.open ? ", or a number" : ""}.` : "";
  return el("p", { class: "hint", id }, `${entry.help || ""}${parts}${choices}${range}${default_}`);
}

function control(entry, table, columns, changed, grids) {
  const id = `field-${(count += 1)}`;
  const described = { id, "aria-describedby": `${id}-hint`, "data-field": entry.name };
  const label = el("label", { for: id }, entry.name + (entry.required ? " (needed)" : ""));
  if (entry.kind === "flag") {
    const box = el("input", { ...described, type: "checkbox", checked: Boolean(table[entry.name] ?? entry.default) });
    box.addEventListener("change", () => { table[entry.name] = box.checked; changed(); });
    return el("div", {}, box, label, hint(entry, `${id}-hint`));
  }
  if (entry.kind === "choice" && !entry.open && !entry.several) {
    const box = el("select", described, ...entry.choices.map((choice) => el("option", { value: choice, selected: choice === (table[entry.name] ?? entry.default) }, choice)));
    box.addEventListener("change", () => { table[entry.name] = box.value; changed(); });
    return el("div", {}, label, box, hint(entry, `${id}-hint`));
  }
  const box = el("input", { ...described, type: "text", value: textOf(entry, table), autocomplete: "off", spellcheck: "false", ...(numeric(entry) && !grids ? { inputmode: "decimal" } : {}), placeholder: words(entry.default) });
  const parts = [label, box, hint(entry, `${id}-hint`)];
  let sizes = null;
  if (grids && entry.several && entry.kind === "text" && entry.name === "on") {
    sizes = el("input", { id: `${id}-sizes`, type: "text", value: sizesOf(entry, table), inputmode: "numeric", autocomplete: "off" });
    parts.push(el("label", { for: `${id}-sizes` }, "in all sets of so many"), sizes, el("p", { class: "hint" }, `such as 1, 2; empty: all at once. Columns: ${columns.join(", ")}`));
  }
  for (const input of [box, sizes]) input?.addEventListener("input", () => { write(entry, table, box.value, sizes?.value || ""); changed(); });
  return el("div", {}, ...parts);
}

// Every field of a form; those that stand at their default are folded away.
export function fieldsOf(form, table, { columns = [], changed = () => {}, grids = true } = {}) {
  const given = (entry) => entry.required || entry.name in table || entry.name in (table.grid || {});
  const first = form.entries.find((entry) => !entry.required && numeric(entry));
  const near = form.entries.filter((entry) => given(entry) || entry === first);
  const far = form.entries.filter((entry) => !near.includes(entry));
  const drawn = (entries) => el("div", { class: "fields" }, ...entries.map((entry) => control(entry, table, columns, changed, grids)));
  const more = far.length ? el("details", {}, el("summary", {}, `${far.length} more option${far.length > 1 ? "s" : ""}`), drawn(far)) : null;
  return [drawn(near), ...(more ? [more] : [])];
}
