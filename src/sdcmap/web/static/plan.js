import {
  all,
  base,
  button,
  byId,
  complain,
  duration,
  el,
  get,
  hint,
  later,
  one,
  options,
  page,
  post,
  put,
  root,
  say,
  study,
  whole,
} from "./api.js";
import { fieldsOf, fitting } from "./forms.js";
import { setAside } from "./hierarchy.js";
import { nestedText } from "./values.js";

const state = {
  /** @type {Record<string, any>} the plan */
  table: {},
  /** @type {any} */
  forms: {},
  /** @type {Api.PlanColumn[]} */
  columns: [],
  /** @type {string[]} names of the measures */
  texts: [],
  /** @type {string[]} */
  problems: [],
  open: new WeakSet(),
  turn: 0,
  saved: "",
  version: "",
  /** @type {string[]} texts of the plan */
  past: [],
  /** @type {string[]} */
  future: [],
};
const unfoldFunctions = new WeakMap(); // an item: what unfolds it
const KINDS = { methods: "method", measures: "measure" };
const MAX_UNFOLDED = 6; // methods or measures; longer lists start folded
const formOf = (group, type) =>
  state.forms[group].find((form) => form.type === type) || {
    type,
    label: type,
    summary: "A class of another package. Edit it in the text.",
    entries: [],
  };

// ---- from the table to the page -----------------------------------------------------------------------------------
function draw() {
  for (const group of ["methods", "measures"]) {
    const folds = () => /** @type {HTMLDetailsElement[]} */ (all("details:not(.recoded *)", byId(group)));
    const open = folds().map((details) => details.open);
    byId(group).replaceChildren(...(state.table[group] || []).map((entry, index) => item(group, entry, index)));
    folds().forEach((details, i) => (details.open = open[i] || false));
  }
  byId("replicates").value = state.table.replicates ?? 1;
  const rule = state.table.rule;
  byId("rule").value = rule?.type || "";
  byId("rule-fields").replaceChildren(
    ...(rule ? fieldsOf(formOf("rules", rule.type), rule, { changed: edited, grids: false }) : [hint("No rule yet.")]),
  );
}

function item(group, entry, index) {
  const form = formOf(group, entry.type);
  const removeButton = button(
    "Remove",
    () => {
      state.table[group].splice(index, 1);
      if (group === "measures") state.texts.splice(index, 1);
      draw();
      edited();
    },
    { "aria-label": `Remove ${entry.type} ${index + 1}` },
  );
  const unit = form.unit ? ` Unit: ${form.unit}.` : "";
  const body = el("div", {});
  const title = el("span", {}, form.label, " ", el("small", { class: "hint" }, entry.type));
  const fold = button(title, () => (body.hasChildNodes() ? shut() : unfold()), {
    class: "head",
    "aria-expanded": "false",
  });
  const node = el(
    "div",
    {
      class: "item",
      role: "group",
      "aria-label": `${entry.type} ${index + 1}`,
      "data-place": `${group}[${index + 1}]`,
      "data-type": entry.type,
    },
    el("div", { class: "item-head" }, el("h3", {}, fold), removeButton),
    body,
    el("div", { class: "bad problem-here" }),
  );
  const shut = () => {
    state.open.delete(entry);
    fold.setAttribute("aria-expanded", "false");
    node.classList.add("folded");
    body.replaceChildren();
    node.dataset.summary = summaryOf(entry);
  };
  const unfold = () => {
    // the fields are created when they are shown for the first time
    if (body.hasChildNodes()) return;
    state.open.add(entry);
    fold.setAttribute("aria-expanded", "true");
    node.classList.remove("folded");
    body.append(
      hint(form.summary + unit),
      ...fieldsOf(form, entry, {
        columns: state.columns,
        forms: state.forms,
        changed:
          group === "measures"
            ? () => {
                follow(index);
                edited();
              }
            : edited,
        grids: group === "methods",
      }),
    );
  };
  unfoldFunctions.set(node, unfold);
  if (state.table[group].length <= MAX_UNFOLDED || state.open.has(entry)) unfold();
  else shut();
  return node;
}

// The label of a step of a chain. A step may be a table or a text such as "Noise(on='wage')".
function stepLabel(step) {
  return formOf("methods", (step.type || step).split("(")[0]).label;
}

// The summary of a folded method or measure.
function summaryOf({ type, name, grid, ...entry }) {
  if (name) return name;
  if (Array.isArray(entry.methods)) return entry.methods.map(stepLabel).join(" + ");
  const text = nestedText({ type, ...entry, ...grid }).slice(type.length + 1, -1);
  return text.length > 110 ? `${text.slice(0, 110)}…` : text || "default parameters";
}

// Keep an axis on its measure while the fields of the measure change: name it by its class if there is only one.
function follow(index) {
  const { table, texts } = state;
  const { type } = table.measures[index];
  if (table.measures.filter((measure) => measure.type === type).length > 1) return;
  table.risk = table.risk?.map((name) => (name === texts[index] ? type : name));
  if (table.utility === texts[index]) table.utility = type;
  for (const absent of ["risk", "utility"]) if (table[absent] === undefined) delete table[absent];
}

// The label of a measure, with its text as in the plan.
const titleOf = (name) => {
  const { label, type } = formOf("measures", name.split("(")[0]);
  return label === type ? name : `${label} (${name})`;
};

function axes(checked) {
  const names = checked.measures;
  const axis = (form, type) => form.measures.find((measure) => type.startsWith(measure.type))?.axis;
  for (const id of ["risk", "utility"]) {
    const fit = names.filter((name) => axis(state.forms, name.split("(")[0]) === id);
    const chosen = id === "risk" ? checked.axes?.risk[0] : checked.axes?.utility;
    byId(id).replaceChildren(
      ...options(
        fit.map((name) => [name, titleOf(name)]),
        chosen,
      ),
    );
  }
}

// ---- problems at their fields -------------------------------------------------------------------------------------
function problems(list) {
  byId("problems").replaceChildren();
  for (const box of document.querySelectorAll("[aria-invalid]")) box.removeAttribute("aria-invalid");
  for (const place of document.querySelectorAll(".problem-here")) place.replaceChildren();
  if (!list.length) return;
  byId("problems").append(
    el("strong", {}, list.length === 1 ? "One problem" : `${list.length} problems`),
    el("ul", {}, ...list.map((problem) => el("li", {}, problem))),
  );
  for (const problem of list) {
    const place = problem.match(/^(methods|measures)\[\d+\]/)?.[0];
    const [, type, field] = problem.replace(/^\w+\[\d+\]: /, "").match(/^(\w+)(?:\.(\w+))?/) || [];
    const near = all(place ? `[data-place="${place}"]` : "[data-place]").filter(
      (node) => place || node.dataset.type === type,
    );
    for (const node of near) {
      unfoldFunctions.get(node)();
      one(".problem-here", node).append(el("p", {}, problem));
      const box = node.querySelector(`[data-field="${field || "on"}"]`);
      box?.setAttribute("aria-invalid", "true");
      const more = box?.closest("details");
      if (more) more.open = true;
    }
  }
}

// ---- what is saved, and what is not ---------------------------------------------------------------------------------
const isDirty = () => byId("toml").value !== state.saved;

function dirty() {
  byId("on-paper").textContent = byId("toml").value; // printed boxes cut their text
  byId("dirty").hidden = !isDirty();
  document.body.dataset.dirty = String(isDirty());
  byId("undo").disabled = state.past.length < 2;
  byId("redo").disabled = !state.future.length;
}

// Every valid text is remembered, so that each change can be undone.
function remember(text) {
  if (state.past.at(-1) === text) return;
  state.past.push(text);
  state.future = [];
}

function step(back) {
  const [from, to] = back ? [state.past, state.future] : [state.future, state.past];
  to.push(from.pop() ?? "");
  byId("toml").value = state.past.at(-1) ?? "";
  dirty();
  check({ toml: byId("toml").value }, { redraw: true });
}

async function save() {
  const saved = await put(`${base}/plan`, { toml: byId("toml").value, version: state.version });
  byId("toml").value = state.saved = saved.toml;
  state.version = saved.version;
  remember(saved.toml);
  byId("conflict").hidden = true;
  dirty();
  say("The plan is saved.");
  if (byId("history").hasAttribute("open")) history().catch(complain);
}

// The plan was saved elsewhere meanwhile: never overwrite it without asking.
function conflict(error) {
  if (error.status !== 412) return complain(error);
  byId("conflict").hidden = false;
  byId("conflict").scrollIntoView({ block: "center" });
}

async function loadSaved() {
  const saved = await get(base);
  Object.assign(state, { saved: saved.toml, version: saved.version });
  byId("conflict").hidden = true;
  return saved;
}

// ---- what was saved before -------------------------------------------------------------------------------------------
async function history() {
  /** @type {Api.EarlierPlans} */
  const { plans } = await get(`${base}/plans`);
  const entry = ({ saved, toml, changed }) => {
    const when = new Date(saved).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    const take = button("Restore", () => restore(toml, when), { "aria-label": `Restore the plan of ${when}` });
    return el(
      "li",
      {},
      el("time", { datetime: saved }, when),
      take,
      el("span", { class: "quiet" }, changed.length ? `Changed afterwards: ${changed.join(", ")}.` : ""),
    );
  };
  byId("earlier").replaceChildren(
    ...(plans.length
      ? plans.map(entry)
      : [el("li", { class: "quiet" }, "None: no other plan was saved for this study.")]),
  );
}

// Restoring an earlier plan is an edit like any other: it can be undone, and takes effect when it is saved.
function restore(toml, when) {
  byId("toml").value = toml;
  dirty();
  say(`The plan of ${when} is restored, but not saved yet.`);
  return check({ toml }, { redraw: true });
}

// ---- form and text stay in step ------------------------------------------------------------------------------------
async function check(draft, { redraw }) {
  const turn = (state.turn += 1);
  /** @type {Api.CheckedPlan} */
  let checked;
  try {
    checked = await post(`${root}/api/plans`, { ...draft, study });
  } catch (error) {
    return complain(error);
  }
  if (turn !== state.turn) return;
  if (checked.columns.length) {
    state.columns = checked.columns;
    offer();
  }
  if (redraw && checked.table) {
    state.table = checked.table;
    setAside();
    draw();
  }
  if (!redraw) byId("toml").value = checked.toml;
  if (checked.table) remember(byId("toml").value);
  dirty();
  state.problems = checked.problems;
  byId("count").textContent = checked.candidates === null ? "–" : whole(checked.candidates);
  byId("save").disabled = checked.problems.length > 0;
  if (checked.measures.length) {
    state.texts = checked.measures;
    axes(checked);
  }
  problems(checked.problems);
  byId("remarks").replaceChildren(...checked.remarks.map((remark) => el("li", {}, remark)));
  byId("cost").textContent = "";
  document.body.dataset.checked = String(turn);
  if (!checked.problems.length) estimateCost(turn);
}

// ---- estimated cost -------------------------------------------------------------------------------------------------
const estimateCost = later(700, async (turn) => {
  /** @type {Api.CheckedPlan | null} */
  const estimate = await post(`${root}/api/plans`, { toml: byId("toml").value, cost: true, study }).catch(() => null);
  if (turn !== state.turn || !estimate?.seconds) return;
  byId("cost").textContent = `· about ${duration(estimate.seconds)} on one core`;
  byId("draw-price").textContent = estimate.draw
    ? `One more draw of each method adds about ${duration(estimate.draw)}.`
    : "No method is random, so one draw is enough.";
  price("measure");
  price("method");
});

// Show the cost of the selected class; classes with a known cost show it in the list.
async function price(kind) {
  const [group, list, words] = [`${kind}s`, byId(`new-${kind}`), byId(`${kind}-price`)];
  const [turn, type] = [state.turn, list.value];
  words.textContent = "Estimating the cost …";
  /** @type {Api.Prices | null} */
  const prices = await post(`${root}/api/prices`, { toml: byId("toml").value, group, type, study }).catch(() => null);
  if (turn !== state.turn || list.value !== type) return;
  if (!prices) return (words.textContent = "The cost is shown when the plan has no problems.");
  for (const option of /** @type {HTMLOptionElement[]} */ (all("option", list))) {
    const seconds = prices.stated[option.value];
    const added = seconds === undefined ? "" : `, adds about ${duration(seconds)}`;
    option.textContent = `${formOf(group, option.value).label} (${option.value}${added})`;
  }
  words.textContent =
    prices.price === null
      ? "The cost is shown when the fields are filled in."
      : `Adds about ${duration(prices.price)} to the ${duration(prices.seconds)} of the plan${prices.example === type ? "" : `, as ${prices.example}`}.`;
  words.dataset.priced = type;
}

const edited = later(250, () => check({ table: clean(state.table) }, { redraw: false }));
const typed = later(400, () => check({ toml: byId("toml").value }, { redraw: true }));

function clean(table) {
  const copy = structuredClone(table);
  if (copy.rule && !copy.rule.type) delete copy.rule;
  return copy;
}

byId("toml").addEventListener("input", () => {
  dirty();
  typed();
});
byId("replicates").addEventListener("input", () => {
  state.table.replicates = Number(byId("replicates").value);
  edited();
});
byId("risk").addEventListener("change", () => {
  state.table.risk = [byId("risk").value];
  if (Array.isArray(state.table.limits)) delete state.table.limits;
  edited();
});
byId("utility").addEventListener("change", () => {
  state.table.utility = byId("utility").value;
  edited();
});
byId("rule").addEventListener("change", () => {
  if (byId("rule").value) state.table.rule = { type: byId("rule").value };
  else delete state.table.rule;
  draw();
  edited();
});
// Disable the classes in the lists that no column of the file fits.
function offer() {
  for (const [group, kind] of Object.entries(KINDS))
    for (const option of /** @type {HTMLOptionElement[]} */ (all("option", byId(`new-${kind}`))))
      option.disabled = !fitting(formOf(group, option.value), state.columns);
}

for (const [group, kind] of Object.entries(KINDS)) {
  byId(`new-${kind}`).addEventListener("change", () => price(kind));
  byId(`add-${kind}`).addEventListener("click", () => {
    const entry = { type: byId(`new-${kind}`).value };
    (state.table[group] ||= []).push(entry);
    state.open.add(entry);
    draw();
    one(":scope > :last-child :is(input, select)", byId(group))?.focus();
    edited();
  });
}

byId("save").addEventListener("click", () => save().catch(conflict));
byId("undo").addEventListener("click", () => step(true));
byId("redo").addEventListener("click", () => step(false));
byId("history").addEventListener("toggle", () => byId("history").hasAttribute("open") && history().catch(complain));
byId("keep-mine").addEventListener("click", () => loadSaved().then(save).catch(conflict));
byId("take-theirs").addEventListener("click", async () => {
  const saved = await loadSaved();
  byId("toml").value = saved.toml;
  await check({ toml: saved.toml }, { redraw: true });
});
byId("next").addEventListener("click", async (event) => {
  // the sweep uses the saved plan only
  if (!isDirty()) return;
  event.preventDefault();
  if (state.problems.length)
    return complain(
      new Error("The plan has problems, so it cannot be saved yet. The sweep would use the last saved plan."),
    );
  await save()
    .then(() => location.assign(page("sweep")))
    .catch(conflict);
});
window.addEventListener("beforeunload", (event) => {
  if (isDirty()) event.preventDefault();
});

async function begin() {
  const [forms, saved] = await Promise.all([get(`${root}/api/forms`), get(base)]);
  state.forms = forms;
  /** @returns {[string, string][]} */
  const choices = (group) =>
    forms[group].map(({ type, label }) => [type, label === type ? type : `${label} (${type})`]);
  byId("new-method").replaceChildren(...options(choices("methods")));
  byId("new-measure").replaceChildren(...options(choices("measures")));
  byId("rule").replaceChildren(...options([["", "none yet"], ...choices("rules")]));
  byId("toml").value = state.saved = saved.toml;
  state.version = saved.version;
  await check({ toml: saved.toml }, { redraw: true });
}
begin().catch(complain);
