// Forms for methods, measures and rules. A form edits one table of the plan.
import { all, button, el, hint, options as choicesOf, textBox } from "./api.js";
import { RecodeEditor } from "./recode.js";
import { Ordered } from "./reorder.js";
import { toText as words } from "./values.js";

const numeric = (entry) => entry.kind === "number" || entry.kind === "whole number";
let count = 0;

const split = (text, mark = ",") =>
  text
    .split(mark)
    .map((part) => part.trim())
    .filter(Boolean);
const number = (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text);

// The text of a field: the values of a grid are separated by commas, sets of columns by semicolons.
function textOf(entry, table) {
  const axis = table.grid?.[entry.name];
  if (entry.nested) return (table[entry.name] || []).map((group) => words(group)).join("; ");
  if (axis && !Array.isArray(axis)) return words(axis.subsets);
  if (axis) return axis.map(words).join(entry.several ? "; " : ", ");
  return words(table[entry.name] ?? "");
}

function sizesOf(entry, table) {
  const axis = table.grid?.[entry.name];
  return axis && !Array.isArray(axis) ? words(axis.sizes) : "";
}

// Parse lists of lists, such as categories to merge: "1, 2; 8, 9" or [["1", "2"], ["8", "9"]].
function groupsOf(text) {
  if (text.trim().startsWith("[")) {
    try {
      const read = JSON.parse(text);
      return (read.every(Array.isArray) ? read : [read]).map((group) => group.map(String));
    } catch {
      /* incomplete JSON: parsed as plain text below */
    }
  }
  return text
    .split(/[;\n]/)
    .map((part) => split(part.replace(/[[\]"]/g, "")))
    .filter((group) => group.length);
}

// Write the text of a field into the table.
function write(entry, table, text, sizes) {
  const grid = { ...table.grid };
  delete table[entry.name];
  delete grid[entry.name];
  const cast = numeric(entry) || entry.open ? number : (part) => part;
  if (entry.nested) {
    const groups = groupsOf(text);
    if (groups.length) table[entry.name] = groups;
  } else if (entry.several) {
    const sets = split(text, ";").map((part) => split(part).map(cast));
    if (sets.length && split(sizes).length)
      grid[entry.name] = { subsets: sets.flat(), sizes: split(sizes).map(number) };
    else if (sets.length > 1) grid[entry.name] = sets;
    else if (sets.length) table[entry.name] = sets[0];
  } else {
    const values = numeric(entry) || entry.open ? split(text).map(cast) : text.trim() ? [text.trim()] : [];
    if (values.length > 1) grid[entry.name] = values;
    else if (values.length) table[entry.name] = values[0];
  }
  if (Object.keys(grid).length) table.grid = grid;
  else delete table.grid;
}

function help(entry, id) {
  const range = entry.range ? ` Range ${entry.range}.` : "";
  const default_ =
    entry.required || entry.default === null || words(entry.default) === "" ? "" : ` Default ${words(entry.default)}.`;
  const parts =
    entry.kind === "part" && entry.several
      ? " Drag a step into the list, or press it. To move a step, drag its handle or press the arrow keys on it."
      : "";
  const lists = entry.nested ? " Separate values by commas and lists by semicolons: a, b; c, d." : "";
  const choices =
    entry.choices.length && (entry.open || entry.several)
      ? ` One of ${entry.choices.join(", ")}${entry.open ? ", or a number" : ""}.`
      : "";
  return el("p", { class: "hint", id }, `${entry.help || ""}${parts}${lists}${choices}${range}${default_}`);
}

// ---- pickers ------------------------------------------------------------------------------------------------------
// Columns as buttons below a field: pressing one adds it. Columns of the wrong kind are left out.
function chips(entry, box, { columns, kinds }, act) {
  const excluded = ["weight", "household"]; // methods that can be selected here do not mask survey columns
  const fit = columns.filter(
    (column) =>
      entry.name !== "on" || ((!kinds.length || kinds.includes(column.kind)) && !excluded.includes(column.role)),
  );
  const mark = entry.nested ? "; " : ", ";
  const chosen = () => split(box.value.replace(/;/g, ","));
  const press = (name) => {
    const names = chosen();
    if (!entry.several) box.value = names[0] === name ? "" : name;
    else if (names.includes(name))
      box.value = box.value
        .split(";")
        .map((set) =>
          split(set)
            .filter((one) => one !== name)
            .join(", "),
        )
        .filter(Boolean)
        .join(mark);
    else box.value = box.value.trim() ? `${box.value.trim().replace(/,$/, "")}, ${name}` : name;
    act();
  };
  const row = el(
    "div",
    { class: "chips", role: "group", "aria-label": `Columns for ${entry.name}` },
    ...fit.map(({ name }) => button(name, () => press(name), { class: "chip", "data-column": name })),
  );
  const show = () => {
    for (const chip of all(".chip", row))
      chip.setAttribute("aria-pressed", String(chosen().includes(chip.dataset.column)));
  };
  box.addEventListener("input", show);
  row.addEventListener("click", show);
  show();
  return row;
}

// A nested value, such as the steps of a chain or the attack of a measure: each part has its own form. Steps can be dragged.
function steps(entry, table, id, options) {
  const forms = options.forms[entry.group] || options.forms.parts[entry.group];
  const place = el("div", { class: "steps" });
  const parts = () => (table[entry.name] === undefined || table[entry.name] === null ? [] : [table[entry.name]].flat());
  const typeOf = (part) => (typeof part === "string" ? part.split("(")[0] : part.type);
  const keep = (list) => {
    if (!list.length) delete table[entry.name];
    else table[entry.name] = entry.several ? list : list[0];
  };
  const set = (list) => {
    keep(list);
    show();
    options.changed();
  };
  const ordered = new Ordered(place, {
    move: (from, to) => {
      const list = parts();
      list.splice(to, 0, ...list.splice(from, 1));
      set(list);
    },
    insert: (type, to) => {
      const list = parts();
      list.splice(to, 0, { type });
      set(list);
    },
    name: (at) => labelOf(typeOf(parts()[at])),
  });
  const formOf = (type) => forms.find((one) => one.type === type);
  const labelOf = (type) => formOf(type)?.label ?? type;
  const step = (part, at) => {
    const type = typeOf(part);
    const form = formOf(type);
    const fields =
      typeof part === "string"
        ? [hint(`${part}: edit it in the text.`)]
        : form
          ? fieldsOf(form, part, { ...options, grids: false })
          : [];
    const away = button("Remove", () => set(parts().filter((_, other) => other !== at)), {
      "aria-label": `Remove ${labelOf(type)}`,
    });
    return el(
      "div",
      { class: "item step", role: "group", "aria-label": `${labelOf(type)}, step ${at + 1}` },
      el(
        "div",
        { class: "item-head" },
        el(
          "h4",
          {},
          entry.several ? ordered.handle(at, parts().length) : "",
          entry.several ? ` ${at + 1}. ${labelOf(type)} ` : `${labelOf(type)} `,
          el("small", { class: "hint" }, type),
        ),
        away,
      ),
      ...fields,
    );
  };
  const show = () => place.replaceChildren(...parts().map(step));
  show();
  if (entry.several) {
    // the steps that can be added
    const chip = (form) =>
      ordered.source(
        el(
          "button",
          { type: "button", class: "chip", "data-step": form.type, title: `${form.type}: ${form.summary}` },
          form.label,
        ),
        form.type,
      );
    return [
      place,
      el(
        "div",
        {
          class: "chips palette",
          role: "group",
          "aria-label": `Add to ${entry.name}`,
          id,
          tabindex: "-1",
          "data-field": entry.name,
          "aria-describedby": `${id}-hint`,
        },
        ...forms.filter((form) => fitting(form, options.columns)).map(chip),
      ),
    ];
  }
  const choice = el(
    "select",
    { id, "data-field": entry.name, "aria-describedby": `${id}-hint` },
    ...choicesOf([["", "choose …"], ...forms.map((form) => form.type)]),
  );
  choice.addEventListener("change", () => {
    if (choice.value) set([{ type: choice.value }]);
    choice.value = "";
  });
  return [place, choice];
}

// Whether the file has a column of a kind that a method or measure accepts.
export const fitting = (form, columns) =>
  !form.kinds.length || !columns.length || columns.some((column) => form.kinds.includes(column.kind));

function control(entry, table, options) {
  const { columns, changed, grids } = options;
  const id = `field-${(count += 1)}`;
  const described = { id, "aria-describedby": `${id}-hint`, "data-field": entry.name };
  const label = el("label", { for: id }, entry.name + (entry.required ? " (required)" : ""));
  if (entry.kind === "flag") {
    const box = el("input", { ...described, type: "checkbox", checked: Boolean(table[entry.name] ?? entry.default) });
    box.addEventListener("change", () => {
      table[entry.name] = box.checked;
      changed();
    });
    return el("div", {}, box, label, help(entry, `${id}-hint`));
  }
  if (entry.kind === "choice" && !entry.open && !entry.several) {
    const box = el("select", described, ...choicesOf(entry.choices, table[entry.name] ?? entry.default));
    box.addEventListener("change", () => {
      table[entry.name] = box.value;
      changed();
    });
    return el("div", {}, label, box, help(entry, `${id}-hint`));
  }
  if (entry.kind === "part")
    return el("div", { class: "whole-row" }, label, ...steps(entry, table, id, options), help(entry, `${id}-hint`));
  const box = textBox({
    ...described,
    value: textOf(entry, table),
    ...(numeric(entry) && !grids ? { inputmode: "decimal" } : {}),
    placeholder: words(entry.default),
  });
  /** @type {HTMLElement[]} */
  const parts = [label, box];
  const isSet = grids && entry.several && entry.kind === "text" && entry.name === "on";
  const sizes = isSet ? textBox({ id: `${id}-sizes`, value: sizesOf(entry, table), inputmode: "numeric" }) : null;
  const act = () => {
    write(entry, table, box.value, sizes?.value || "");
    changed();
  };
  if (entry.columns && columns.length) parts.push(chips(entry, box, options, act));
  parts.push(help(entry, `${id}-hint`));
  if (sizes)
    parts.push(
      el("label", { for: sizes.id }, "in all sets of this size"),
      sizes,
      hint("For example 1, 2. Empty: all columns together."),
    );
  for (const input of [box, sizes]) input?.addEventListener("input", act);
  return el("div", { class: entry.columns && columns.length ? "whole-row" : null }, ...parts);
}

// Every field of a form; fields at their default value are folded.
/**
 * @param {any} form
 * @param {Record<string, any>} table
 * @param {{ columns?: Api.PlanColumn[], changed?: () => void, grids?: boolean, forms?: any }} how
 */
export function fieldsOf(form, table, { columns = [], changed = () => {}, grids = true, forms = null } = {}) {
  const options = { columns, changed, grids, forms, kinds: form.kinds || [] };
  const given = (entry) => entry.required || entry.name in table || entry.name in (table.grid || {});
  const first = form.entries.find((entry) => !entry.required && numeric(entry));
  const near = form.entries.filter((entry) => given(entry) || entry === first);
  const far = form.entries.filter((entry) => !near.includes(entry));
  const drawn = (entries) => el("div", { class: "fields" }, ...entries.map((entry) => control(entry, table, options)));
  const more = () =>
    far.length
      ? [el("details", {}, el("summary", {}, `${far.length} more option${far.length > 1 ? "s" : ""}`), drawn(far))]
      : [];
  if (form.type === "Recode") return recode(form, table, options, drawn);
  return [drawn(near), ...more()];
}

// A recode has its own editor; its fields are also shown below, and both stay in step.
function recode(form, table, options, drawn) {
  const on = form.entries.filter((entry) => entry.name === "on");
  const others = form.entries.filter((entry) => entry.name !== "on");
  const summary = el("summary", {}, `${others.length} more options`),
    typed = el("details");
  const write = () => typed.replaceChildren(summary, drawn(others));
  const changed = options.changed;
  const editor = new RecodeEditor(table, () => {
    write();
    changed();
  });
  options.changed = () => {
    editor.refresh();
    changed();
  };
  write();
  return [drawn(on), editor.node, typed];
}
