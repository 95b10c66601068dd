import { base, byId, complain, el, fill, get, later, post, put, root, say, study, whole } from "./api.js";
import { Columns, ROLES, share } from "./columns.js";

const PARTS = { key: "keys", identifier: "identifiers" }; // of a plan, where they are not called by the role

/** @type {{ file: string, roles: Record<string, string>, kinds: Record<string, string>, missing: string[] }} */
const stated = { file: document.body.dataset.file ?? "", roles: {}, kinds: {}, missing: [] };
const state = { begun: false };
const columns = new Columns(stated, () => {
  changed();
  refresh();
});

/** @param {Api.SeenFile} look */
function facts(look) {
  const fact = (value, words) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, words));
  const gone = look.variables.reduce((sum, v) => sum + v.missing, 0);
  byId("facts").replaceChildren(
    fact(whole(look.rows), "records"),
    fact(whole(look.variables.length), "columns"),
    fact(whole(look.cells), "key combinations"),
    fact(whole(look.sizes["<2"] ?? 0), "records alone on the keys"),
    fact(whole(look.sizes["<3"] ?? 0), "records in cells under 3"),
    fact(whole(gone), "missing values"),
  );
  byId("facts").setAttribute("aria-busy", "false");
  fill(
    byId("alone"),
    ["he knows", ["columns", "n"], ["alone", "n"], ["share", "n"], ""],
    Object.entries(look.alone).map(([words, [count, alone]]) => [
      words,
      whole(count),
      whole(alone),
      `${((100 * alone) / look.rows).toFixed(1)} %`,
      share(alone, look.rows),
    ]),
  );
  const most = Math.max(...look.class_sizes.map(([, count]) => count), 1);
  fill(
    byId("sizes"),
    ["class size", ["records", "n"], ""],
    look.class_sizes.map(([words, count]) => [words, whole(count), share(count, most)]),
    "State keys to see this.",
  );
  fill(byId("preview"), look.preview.columns, look.preview.rows);
}

// ---- which columns tell the most ------------------------------------------------------------------------------------
function telling(told, rows) {
  const top = Math.max(...told.sets.map((set) => set.alone), 1);
  fill(
    byId("telling"),
    ["columns", ["alone", "n"], ""],
    told.sets.map((set) => [set.keys.join(", "), whole(set.alone), share(set.alone, top)]),
    "No set of up to three columns leaves a record alone.",
  );
  byId("telling-words").textContent = `Sets of up to three columns that leave the most records alone: ${told.words}.`;
  heat(told, rows);
}

// Every pair of columns: the darker, the more records are alone on it; the most telling columns first.
function heat({ names, pairs, pairs_words: words }, rows) {
  const weight = (k) => pairs[k].reduce((sum, alone) => sum + alone, 0);
  const order = names.map((_, k) => k).sort((a, b) => weight(b) - weight(a));
  const most = Math.max(...pairs.flat(), 1);
  const cell = (a, b, k) => {
    if (k < 0) return el("td", { class: "n" });
    const [alone, known] = [pairs[a][b], a === b ? names[a] : `${names[a]} and ${names[b]}`];
    const made = el(
      "td",
      { class: "n", title: `${whole(alone)} of ${whole(rows)} records are alone on ${known}` },
      alone ? whole(alone) : "–",
    );
    made.dataset.heat = String(Math.ceil(5 * Math.sqrt(alone / most)));
    return made;
  };
  byId("pairs-words").textContent = `Records alone on each pair of ${words}; on the diagonal, on one column alone.`;
  if (!names.length)
    return byId("pairs").replaceChildren(
      el("tbody", {}, el("tr", {}, el("td", { class: "quiet" }, "No column is released."))),
    );
  byId("pairs").replaceChildren(
    el(
      "thead",
      {},
      el("tr", {}, el("td", {}), ...order.map((b) => el("th", { scope: "col" }, el("span", {}, names[b])))),
    ),
    el(
      "tbody",
      {},
      ...order.map((a, i) =>
        el("tr", {}, el("th", { scope: "row" }, names[a]), ...order.map((b, j) => cell(a, b, i - j))),
      ),
    ),
  );
}

let turn = 0;
async function look() {
  const asked = (turn += 1);
  document.body.dataset.looking = "true";
  try {
    /** @type {Api.SeenFile} */
    const seen = await post(`${root}/api/looks`, stated);
    if (asked !== turn) return;
    byId("problems").replaceChildren();
    columns.set(seen);
    facts(seen);
    /** @type {Api.TellingColumns} */
    const told = await post(`${root}/api/looks/telling`, stated);
    if (asked === turn) telling(told, seen.rows);
  } catch (error) {
    byId("facts").setAttribute("aria-busy", "false");
    complain(error);
  } finally {
    if (asked === turn) delete document.body.dataset.looking;
  }
}
const refresh = later(60, look);

// ---- what becomes of the roles --------------------------------------------------------------------------------------
const inPlan = () => study && !state.begun;

function changed() {
  if (!study) return;
  byId("changed").hidden = false;
  byId("changed").textContent = inPlan()
    ? "Roles were changed and are not kept in the plan yet."
    : "Roles were changed. This study keeps those that its scores were made with; begin another study to use these.";
}

// From the roles to a plan, and where that is asked for to a sweep or a search at once.
async function go(state_) {
  if (!byId("begin").reportValidity()) return;
  for (const button of byId("begin").querySelectorAll("button")) button.disabled = true;
  say("Writing the plan …");
  try {
    await started; // a hand may be quicker than the first look
    const { kinds, missing } = stated;
    const [roles, name] = [columns.roles, inPlan() ? study : byId("name").value];
    if (inPlan()) await put(`${base}/roles`, { roles, kinds, missing });
    else await post(`${root}/api/studies`, { ...stated, name, roles, profile: byId("profile").value });
    const place = `${root}/studies/${encodeURIComponent(name)}`;
    if (state_) await put(`${root}/api/studies/${encodeURIComponent(name)}/sweep`, { state: state_ });
    location.assign(`${place}/${state_ ? "sweep" : "plan"}`);
  } catch (error) {
    complain(error);
    byId("problems").scrollIntoView();
    for (const button of byId("begin").querySelectorAll("button")) button.disabled = false;
  }
}
byId("begin").addEventListener("submit", (event) => {
  event.preventDefault();
  go("");
});
byId("find").addEventListener("click", () => go("searching"));
byId("compare").addEventListener("click", () => go("running"));

async function begin() {
  if (study) {
    // the data of a study: what its plan states
    /** @type {Api.StudyPlan} */
    const { table, begun } = await get(base);
    const data = table?.data;
    if (!data) return complain(new Error("this study's plan names no file."));
    state.begun = begun;
    stated.file = data.path;
    stated.missing = data.missing || [];
    for (const role of Object.keys(ROLES))
      for (const name of data[PARTS[role] ?? role] || []) stated.roles[name] ||= role;
    for (const kind of ["nominal", "ordinal"]) for (const name of data[kind] || []) stated.kinds[name] = kind;
    byId("begin-head").textContent = begun ? "Begin another study with these roles" : "Keep these roles";
    byId("begin-words").textContent = begun
      ? "The scores of this study were made with the roles that its plan states, so they stay."
      : "The plan of this study takes them; nothing was scored yet.";
    byId("begin-button").textContent = begun
      ? "State these roles and write another plan"
      : "Keep these roles in the plan";
    byId("name-field").hidden = byId("profile-field").hidden = byId("ways").hidden = !begun;
    byId("find").hidden = byId("compare").hidden = !begun;
    byId("name").required = begun;
  }
  const file = stated.file.split("/").at(-1) ?? "";
  byId("name").value = `${file.replace(/\.[^.]*$/, "")}${study ? "-2" : ""}`;
  await look();
}
const started = begin().catch(complain);
