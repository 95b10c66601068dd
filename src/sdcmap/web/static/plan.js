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
import { partOf } from "./values.js";

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
const unfolding = new WeakMap(); // an item: what unfolds it
const KINDS = { methods: "method", measures: "measure" };
const MANY = 6; // methods or measures beyond which they are folded
const formOf = (group, type) =>
  state.forms[group].find((form) => form.type === type) || {
    type,
    summary: "A class of another package: write it in the text.",
    entries: [],
  };

// ---- from the table to the page -----------------------------------------------------------------------------------
function draw() {
  for (const group of ["methods", "measures"]) {
    const folds = () => /** @type {HTMLDetailsElement[]} */ (all("details:not(.recoded *)", byId(group)));
    const open = folds().map((details) => details.open);
    byId(group).replaceChildren(...(state.table[group] || []).map((entry, place) => item(group, entry, place)));
    folds().forEach((details, i) => (details.open = open[i] || false));
  }
  byId("replicates").value = state.table.replicates ?? 1;
  const rule = state.table.rule;
  byId("rule").value = rule?.type || "";
  byId("rule-fields").replaceChildren(
    ...(rule ? fieldsOf(formOf("rules", rule.type), rule, { changed: edited, grids: false }) : [hint("No rule yet.")]),
  );
}

function item(group, entry, place) {
  const form = formOf(group, entry.type);
  const away = button(
    "Remove",
    () => {
      state.table[group].splice(place, 1);
      if (group === "measures") state.texts.splice(place, 1);
      draw();
      edited();
    },
    { "aria-label": `Remove ${entry.type} ${place + 1}` },
  );
  const unit = form.unit ? ` Unit: ${form.unit}.` : "";
  const body = el("div", {});
  const fold = button(entry.type, () => (body.hasChildNodes() ? shut() : unfold()), {
    class: "head",
    "aria-expanded": "false",
  });
  const made = el(
    "div",
    {
      class: "item",
      role: "group",
      "aria-label": `${entry.type} ${place + 1}`,
      "data-place": `${group}[${place + 1}]`,
      "data-type": entry.type,
    },
    el("div", { class: "item-head" }, el("h3", {}, fold), away),
    body,
    el("div", { class: "bad said-here" }),
  );
  const shut = () => {
    state.open.delete(entry);
    fold.setAttribute("aria-expanded", "false");
    made.classList.add("folded");
    body.replaceChildren();
    made.dataset.said = inShort(entry);
  };
  const unfold = () => {
    // its fields are made when somebody wants to see them
    if (body.hasChildNodes()) return;
    state.open.add(entry);
    fold.setAttribute("aria-expanded", "true");
    made.classList.remove("folded");
    body.append(
      hint(form.summary + unit),
      ...fieldsOf(form, entry, {
        columns: state.columns,
        forms: state.forms,
        changed:
          group === "measures"
            ? () => {
                follow(place);
                edited();
              }
            : edited,
        grids: group === "methods",
      }),
    );
  };
  unfolding.set(made, unfold);
  if (state.table[group].length <= MANY || state.open.has(entry)) unfold();
  else shut();
  return made;
}

// What a folded method or measure says.
function inShort({ type, name, grid, ...entry }) {
  if (name) return name;
  if (Array.isArray(entry.methods)) return entry.methods.map((step) => step.type || step).join(" → ");
  const said = partOf({ type, ...entry, ...grid }).slice(type.length + 1, -1);
  return said.length > 110 ? `${said.slice(0, 110)}…` : said || "as by default";
}

// An axis that names a measure goes on naming it while its fields change: by its class, where only one is meant.
function follow(place) {
  const { table, texts } = state;
  const { type } = table.measures[place];
  if (table.measures.filter((measure) => measure.type === type).length > 1) return;
  table.risk = table.risk?.map((name) => (name === texts[place] ? type : name));
  if (table.utility === texts[place]) table.utility = type;
  for (const absent of ["risk", "utility"]) if (table[absent] === undefined) delete table[absent];
}

function axes(checked) {
  const names = checked.measures;
  const axis = (form, type) => form.measures.find((measure) => type.startsWith(measure.type))?.axis;
  for (const id of ["risk", "utility"]) {
    const fit = names.filter((name) => axis(state.forms, name.split("(")[0]) === id);
    const chosen = id === "risk" ? checked.axes?.risk[0] : checked.axes?.utility;
    byId(id).replaceChildren(...options(fit, chosen));
  }
}

// ---- problems at their fields -------------------------------------------------------------------------------------
function problems(list) {
  byId("problems").replaceChildren();
  for (const box of document.querySelectorAll("[aria-invalid]")) box.removeAttribute("aria-invalid");
  for (const place of document.querySelectorAll(".said-here")) place.replaceChildren();
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
      unfolding.get(node)();
      one(".said-here", node).append(el("p", {}, problem));
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

// Every text that was whole is remembered, so that each change can be taken back.
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
  const kept = await put(`${base}/plan`, { toml: byId("toml").value, version: state.version });
  byId("toml").value = state.saved = kept.toml;
  state.version = kept.version;
  remember(kept.toml);
  byId("conflict").hidden = true;
  dirty();
  say("The plan is saved.");
  if (byId("history").hasAttribute("open")) history().catch(complain);
}

// Another tab, or somebody at the file, has saved meanwhile: nothing is overwritten unasked.
function conflict(error) {
  if (error.status !== 412) return complain(error);
  byId("conflict").hidden = false;
  byId("conflict").scrollIntoView({ block: "center" });
}

async function theirs() {
  const kept = await get(base);
  Object.assign(state, { saved: kept.toml, version: kept.version });
  byId("conflict").hidden = true;
  return kept;
}

// ---- what was saved before -------------------------------------------------------------------------------------------
async function history() {
  /** @type {Api.EarlierPlans} */
  const { plans } = await get(`${base}/plans`);
  const entry = ({ saved, toml, changed }) => {
    const when = new Date(saved).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    const take = button("Take it back", () => takeBack(toml, when), { "aria-label": `Take the plan of ${when} back` });
    return el(
      "li",
      {},
      el("time", { datetime: saved }, when),
      take,
      el("span", { class: "quiet" }, changed.length ? `Then changed: ${changed.join(", ")}.` : ""),
    );
  };
  byId("earlier").replaceChildren(
    ...(plans.length
      ? plans.map(entry)
      : [el("li", { class: "quiet" }, "None: no other plan was saved in this study.")]),
  );
}

// An earlier plan is an edit like any other: it can be undone, and counts when it is saved.
function takeBack(toml, when) {
  byId("toml").value = toml;
  dirty();
  say(`The plan of ${when} is back, not saved yet.`);
  return check({ toml }, { redraw: true });
}

// ---- both sides in step -------------------------------------------------------------------------------------------
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
  if (!checked.problems.length) guess(turn);
}

// ---- what everything costs, before it is chosen -----------------------------------------------------------------------
const guess = later(700, async (turn) => {
  /** @type {Api.CheckedPlan | null} */
  const guessed = await post(`${root}/api/plans`, { toml: byId("toml").value, cost: true, study }).catch(() => null);
  if (turn !== state.turn || !guessed?.seconds) return;
  byId("cost").textContent = `· about ${duration(guessed.seconds)} of one core`;
  byId("draw-price").textContent = guessed.draw
    ? `One more draw of each method adds about ${duration(guessed.draw)}.`
    : "No method here is random: one draw is all.";
  price("measure");
  price("method");
});

// What the class that is chosen in a list would add; those that state their price have it in the list.
async function price(kind) {
  const [group, list, words] = [`${kind}s`, byId(`new-${kind}`), byId(`${kind}-price`)];
  const [turn, type] = [state.turn, list.value];
  words.textContent = "Its price is being looked up …";
  /** @type {Api.Prices | null} */
  const told = await post(`${root}/api/prices`, { toml: byId("toml").value, group, type, study }).catch(() => null);
  if (turn !== state.turn || list.value !== type) return;
  if (!told) return (words.textContent = "Its price is told when the plan has no problem.");
  for (const option of /** @type {HTMLOptionElement[]} */ (all("option", list))) {
    const seconds = told.stated[option.value];
    option.textContent = seconds === undefined ? option.value : `${option.value} (adds about ${duration(seconds)})`;
  }
  words.textContent =
    told.price === null
      ? "Its price is told when its fields are filled in."
      : `Adds about ${duration(told.price)} to the ${duration(told.seconds)} of the plan${told.example === type ? "" : `, as ${told.example}`}.`;
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
// The lists of what can be added: what no column of the file fits cannot be chosen.
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
byId("keep-mine").addEventListener("click", () => theirs().then(save).catch(conflict));
byId("take-theirs").addEventListener("click", async () => {
  const kept = await theirs();
  byId("toml").value = kept.toml;
  await check({ toml: kept.toml }, { redraw: true });
});
byId("next").addEventListener("click", async (event) => {
  // what is not saved would not be swept
  if (!isDirty()) return;
  event.preventDefault();
  if (state.problems.length)
    return complain(
      new Error("The plan has problems, so it is not saved yet; the sweep would take the last saved one."),
    );
  await save()
    .then(() => location.assign(page("sweep")))
    .catch(conflict);
});
window.addEventListener("beforeunload", (event) => {
  if (isDirty()) event.preventDefault();
});

async function begin() {
  const [forms, kept] = await Promise.all([get(`${root}/api/forms`), get(base)]);
  state.forms = forms;
  const types = (group) => forms[group].map((form) => form.type);
  byId("new-method").replaceChildren(...options(types("methods")));
  byId("new-measure").replaceChildren(...options(types("measures")));
  byId("rule").replaceChildren(...options([["", "none yet"], ...types("rules")]));
  byId("toml").value = state.saved = kept.toml;
  state.version = kept.version;
  await check({ toml: kept.toml }, { redraw: true });
}
begin().catch(complain);
