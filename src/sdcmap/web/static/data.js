import { base, byId, complain, el, fill, get, later, post, put, root, say, study, svg, whole } from "./api.js";

const ROLES = { key: "key", sensitive: "sensitive", numeric: "numeric amount", identifier: "identifier", weight: "weight", household: "household", stratum: "stratum", other: "other", drop: "drop", replicate: "replicate weight", psu: "sampling unit", wave: "wave", case: "case of a panel" };
const KINDS = { "": "as inferred", nominal: "nominal", ordinal: "ordinal" };
const stated = { file: document.body.dataset.file, roles: {}, kinds: {} };
const state = { begun: false };

function choice(name, label, options, value, onchange) {
  const box = el("select", { "aria-label": `${label} of ${name}`, onchange });
  for (const [key, words] of Object.entries(options)) box.append(el("option", { value: key, selected: key === value }, words));
  return box;
}

function columns(look) {
  const rows = look.variables.map((v) => {
    const role = choice(v.name, "Role", ROLES, v.role, (event) => {
      stated.roles[v.name] = event.target.value;
      changed();
      refresh();
    });
    role.dataset.name = v.name;
    const kind = choice(v.name, "Kind", KINDS, stated.kinds[v.name] || "", (event) => {
      if (event.target.value) stated.kinds[v.name] = event.target.value; else delete stated.kinds[v.name];
      changed();
      refresh();
    });
    const mark = el("span", { class: "quiet" }, v.stated ? "stated" : "proposed ?");
    role.dataset.role = v.role;
    return [v.name, role, mark, v.kind, kind, whole(v.distinct), whole(v.missing), whole(v.once)];
  });
  const focused = document.activeElement?.getAttribute("aria-label");
  fill(byId("columns"), ["column", "role", "", "kind", "read as", ["distinct", "n"], ["missing", "n"], ["alone", "n"]], rows);
  if (focused) document.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function share(count, most) {
  const bar = svg("svg", { class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(svg("rect", { width: most ? (100 * count) / most : 0, height: 10, rx: 1 }));
  return bar;
}

function facts(look) {
  const fact = (value, words) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, words));
  const gone = look.variables.reduce((sum, v) => sum + v.missing, 0);
  byId("facts").replaceChildren(
    fact(whole(look.rows), "records"), fact(whole(look.variables.length), "columns"),
    fact(whole(look.cells), "key combinations"), fact(whole(look.sizes["<2"] ?? 0), "records alone on the keys"),
    fact(whole(look.sizes["<3"] ?? 0), "records in cells under 3"), fact(whole(gone), "missing values"),
  );
  byId("facts").setAttribute("aria-busy", "false");
  const most = Math.max(...look.class_sizes.map(([, count]) => count), 1);
  fill(byId("sizes"), ["class size", ["records", "n"], ""], look.class_sizes.map(([words, count]) => [words, whole(count), share(count, most)]), "State keys to see this.");
  const top = Math.max(...look.telling.map((set) => set.alone), 1);
  fill(byId("telling"), ["columns", ["alone", "n"], ""], look.telling.map((set) => [set.keys.join(", "), whole(set.alone), share(set.alone, top)]), "No set of up to three columns leaves a record alone.");
  byId("telling-words").textContent = `Sets of up to three columns that leave the most records alone: ${look.telling_words}.`;
  fill(byId("preview"), look.preview.columns, look.preview.rows);
}

let turn = 0;
async function look() {
  const asked = (turn += 1);
  document.body.dataset.looking = "true";
  try {
    const look = await post(`${root}/api/looks`, stated);
    if (asked !== turn) return;
    byId("problems").replaceChildren();
    columns(look);
    facts(look);
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
const rolesNow = () => Object.fromEntries([...document.querySelectorAll("#columns select[data-name]")].map((box) => [box.dataset.name, box.value]));

function changed() {
  if (!study) return;
  byId("changed").hidden = false;
  byId("changed").textContent = inPlan() ? "Roles were changed and are not kept in the plan yet." : "Roles were changed. This study keeps those that its scores were made with; begin another study to use these.";
}

// From the roles to a plan, and where that is asked for to a sweep or a search at once.
async function go(state_) {
  const [roles, kinds, name] = [rolesNow(), stated.kinds, inPlan() ? study : byId("name").value];
  if (!byId("begin").reportValidity()) return;
  for (const button of byId("begin").querySelectorAll("button")) button.disabled = true;
  say("Writing the plan …");
  try {
    if (inPlan()) await put(`${base}/roles`, { roles, kinds });
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
byId("begin").addEventListener("submit", (event) => { event.preventDefault(); go(""); });
byId("find").addEventListener("click", () => go("searching"));
byId("compare").addEventListener("click", () => go("running"));

async function begin() {
  if (study) {  // the data of a study: what its plan states
    const { table, begun } = await get(base);
    const data = table?.data;
    if (!data) return complain(new Error("this study's plan names no file."));
    state.begun = begun;
    stated.file = data.path;
    const role = { keys: "key", identifiers: "identifier" };
    for (const part of ["keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum", "other", "drop", "replicate", "psu", "wave", "case"])
      for (const name of data[part] || []) stated.roles[name] ||= role[part] || part;
    for (const kind of ["nominal", "ordinal"]) for (const name of data[kind] || []) stated.kinds[name] = kind;
    byId("begin-head").textContent = begun ? "Begin another study with these roles" : "Keep these roles";
    byId("begin-words").textContent = begun ? "The scores of this study were made with the roles that its plan states, so they stay." : "The plan of this study takes them; nothing was scored yet.";
    byId("begin-button").textContent = begun ? "State these roles and write another plan" : "Keep these roles in the plan";
    byId("name-field").hidden = byId("profile-field").hidden = byId("ways").hidden = !begun;
    byId("find").hidden = byId("compare").hidden = !begun;
    byId("name").required = begun;
  }
  byId("name").value = `${stated.file.split("/").pop().replace(/\.[^.]*$/, "")}${study ? "-2" : ""}`;
  await look();
}
begin().catch(complain);
