import { base, byId, complain, el, fill, get, later, post, put, root, say, study, whole } from "./api.js";
import { Columns, ROLES, share } from "./columns.js";

const PLAN_FIELDS = { key: "keys", identifier: "identifiers" }; // fields of a plan that are not named like the role

/** @type {{ file: string, roles: Record<string, string>, kinds: Record<string, string>, missing: string[] }} */
const stated = { file: document.body.dataset.file ?? "", roles: {}, kinds: {}, missing: [] };
const state = { begun: false };
const columns = new Columns(stated, () => {
  changed();
  refresh();
});

/** @param {Api.FileSummary} look */
function facts(look) {
  const fact = (value, words) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, words));
  const missing = look.variables.reduce((sum, v) => sum + v.missing, 0);
  byId("facts").replaceChildren(
    fact(whole(look.rows), "records"),
    fact(whole(look.variables.length), "columns"),
    fact(whole(look.cells), "key combinations"),
    fact(whole(look.sizes["<2"] ?? 0), "records unique on the keys"),
    fact(whole(look.sizes["<3"] ?? 0), "records in cells below 3"),
    fact(whole(missing), "missing values"),
  );
  byId("facts").setAttribute("aria-busy", "false");
  fill(
    byId("unique"),
    ["the attacker knows", ["columns", "n"], ["unique records", "n"], ["share", "n"], ""],
    Object.entries(look.unique).map(([words, [count, unique]]) => [
      words,
      whole(count),
      whole(unique),
      `${((100 * unique) / look.rows).toFixed(1)} %`,
      share(unique, look.rows),
    ]),
  );
  const most = Math.max(...look.class_sizes.map(([, count]) => count), 1);
  fill(
    byId("sizes"),
    ["class size", ["records", "n"], ""],
    look.class_sizes.map(([words, count]) => [words, whole(count), share(count, most)]),
    "Select keys to see this.",
  );
  fill(byId("preview"), look.preview.columns, look.preview.rows);
}

// ---- the most identifying columns -----------------------------------------------------------------------------------
function showIdentifying(found, rows) {
  const top = Math.max(...found.sets.map((set) => set.unique), 1);
  fill(
    byId("identifying"),
    ["columns", ["unique records", "n"], ""],
    found.sets.map((set) => [set.keys.join(", "), whole(set.unique), share(set.unique, top)]),
    "No record is unique on up to three columns.",
  );
  byId("identifying-words").textContent =
    `Sets of up to three columns on which the most records are unique: ${found.words}.`;
  showPairs(found, rows);
}

// Every pair of columns: the darker, the more records are unique on it; the most identifying columns come first.
function showPairs({ names, pairs, pairs_words: words }, rows) {
  const weight = (k) => pairs[k].reduce((sum, unique) => sum + unique, 0);
  const order = names.map((_, k) => k).sort((a, b) => weight(b) - weight(a));
  const most = Math.max(...pairs.flat(), 1);
  const cellOf = (a, b, k) => {
    if (k < 0) return el("td", { class: "n" });
    const [unique, known] = [pairs[a][b], a === b ? names[a] : `${names[a]} and ${names[b]}`];
    const cell = el(
      "td",
      { class: "n", title: `${whole(unique)} of ${whole(rows)} records are unique on ${known}` },
      unique ? whole(unique) : "–",
    );
    cell.dataset.heat = String(Math.ceil(5 * Math.sqrt(unique / most)));
    return cell;
  };
  byId("pairs-words").textContent = `Records that are unique on each pair of ${words}; on the diagonal, on one column.`;
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
        el("tr", {}, el("th", { scope: "row" }, names[a]), ...order.map((b, j) => cellOf(a, b, i - j))),
      ),
    ),
  );
}

let turn = 0;
async function look() {
  const asked = (turn += 1);
  document.body.dataset.looking = "true";
  try {
    /** @type {Api.FileSummary} */
    const seen = await post(`${root}/api/looks`, stated);
    if (asked !== turn) return;
    byId("problems").replaceChildren();
    columns.set(seen);
    facts(seen);
    /** @type {Api.IdentifyingColumns} */
    const found = await post(`${root}/api/looks/identifying`, stated);
    if (asked === turn) showIdentifying(found, seen.rows);
  } catch (error) {
    byId("facts").setAttribute("aria-busy", "false");
    complain(error);
  } finally {
    if (asked === turn) delete document.body.dataset.looking;
  }
}
const refresh = later(60, look);

// ---- saving the roles -----------------------------------------------------------------------------------------------
const inPlan = () => study && !state.begun;

function changed() {
  if (!study) return;
  byId("changed").hidden = false;
  byId("changed").textContent = inPlan()
    ? "Roles were changed and are not saved in the plan yet."
    : "Roles were changed. The scores of this study use the earlier roles; start another study to use these.";
}

// Write the plan and, if requested, start a sweep or a search at once.
async function go(state_) {
  if (!byId("begin").reportValidity()) return;
  for (const button of byId("begin").querySelectorAll("button")) button.disabled = true;
  say("Writing the plan …");
  try {
    await started; // the user may click before the first look is complete
    const { kinds, missing } = stated;
    const [roles, name] = [columns.roles, inPlan() ? study : byId("name").value];
    if (inPlan()) await put(`${base}/roles`, { roles, kinds, missing });
    else await post(`${root}/api/studies`, { ...stated, name, roles, profile: byId("profile").value });
    const address = `${root}/studies/${encodeURIComponent(name)}`;
    if (state_) await put(`${root}/api/studies/${encodeURIComponent(name)}/sweep`, { state: state_ });
    location.assign(`${address}/${state_ ? "sweep" : "plan"}`);
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
    if (!data) return complain(new Error("The plan of this study names no file."));
    state.begun = begun;
    stated.file = data.path;
    stated.missing = data.missing || [];
    for (const role of Object.keys(ROLES))
      for (const name of data[PLAN_FIELDS[role] ?? role] || []) stated.roles[name] ||= role;
    for (const kind of ["nominal", "ordinal"]) for (const name of data[kind] || []) stated.kinds[name] = kind;
    byId("begin-head").textContent = begun ? "Start another study with these roles" : "Save these roles";
    byId("begin-words").textContent = begun
      ? "The scores of this study use the roles in its plan, so these cannot be changed."
      : "Nothing was scored yet, so the plan of this study can use them.";
    byId("begin-button").textContent = begun
      ? "Use these roles and write another plan"
      : "Save these roles in the plan";
    byId("name-field").hidden = byId("profile-field").hidden = byId("ways").hidden = !begun;
    byId("find").hidden = byId("compare").hidden = !begun;
    byId("name").required = begun;
  }
  const file = stated.file.split("/").at(-1) ?? "";
  byId("name").value = `${file.replace(/\.[^.]*$/, "")}${study ? "-2" : ""}`;
  await look();
}
const started = begin().catch(complain);
