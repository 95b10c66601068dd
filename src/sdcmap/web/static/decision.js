import { base, byId, complain, el, fill, get, later, post, put, root, short, study } from "./api.js";
import { Plane, drawKey, nearest, region, rowsOf } from "./planes.js";

const LEVER = 1000;
const levers = { agency_limit: "agency", intruder_limit: "intruder" };
const state = { rule: null, rows: [], best: null };
const risk = new Plane(byId("risk-plane"), "iek", "rdh");
const utility = new Plane(byId("utility-plane"), "sek", "dus");
risk.after = utility.after = overlay;
window.workbench = { state, nearest, region, risk };  // what the tests look at

const axis = (name) => (name === "agency_limit" ? risk.x : risk.y);
const link = (id, words) => el("a", { href: `${root}/studies/${encodeURIComponent(study)}/candidate?id=${encodeURIComponent(id)}` }, words);

function overlay() {
  if (!risk.view || !utility.view) return;
  state.best = nearest(state.rows, state.rule);
  risk.lay([...risk.limits(state.rule, set, overlay), ...risk.ring(state.best)]);
  utility.lay([...utility.way(state.best), ...utility.ring(state.best)]);
}

function set(change) {
  for (const [name, value] of Object.entries(change)) {
    if (!Number.isFinite(value)) continue;
    const limit = (state.rule[name] = Math.min(0, Number(value.toPrecision(6))));
    const [low, high] = axis(name);
    const lever = byId(`${levers[name]}-limit`);
    lever.value = String(Math.round((LEVER * (limit - low)) / (high - low)));
    lever.setAttribute("aria-valuetext", short(limit));
    byId(`${levers[name]}-shown`).textContent = short(limit);
  }
  overlay();
  risk.recolour();
  utility.recolour();
  table();
  confirm();
}

function table() {
  const safe = state.rows.filter((row) => region(row, state.rule) === "D");
  const rows = safe.slice(0, 100);
  byId("left").replaceChildren(el("p", {}, el("strong", {}, safe.length ? `${safe.length.toLocaleString("en")} of ${state.rows.length.toLocaleString("en")} are safe` : "Nothing is safe: release nothing.")));
  fill(byId("table"), [["method", "words"], ["IEK", "n"], ["RDH", "n"], ["SEK", "n"], ["DUS", "n"], ["from (0, 0)", "n"]],
    rows.map((row) => [row.id ? link(row.id, `${row.name}, draw ${row.replicate}`) : row.name, ...[row.iek, row.rdh, row.sek, row.dus, row.distance].map(short)]), "Nothing.");
}

const confirm = later(200, async () => {
  const asked = { rule: { ...state.rule } };
  let found;
  try {
    found = await post(`${base}/choices`, asked);
  } catch (error) {
    return complain(error, byId("choice"));
  }
  if (JSON.stringify(asked.rule) !== JSON.stringify(state.rule)) return;
  state.choice = found;
  byId("choice").replaceChildren(el("div", { class: "verdict" }, el("p", {}, found.reason), found.candidate ? el("p", {}, link(found.candidate, "Open this candidate")) : null));
  document.body.dataset.confirmed = found.candidate || "nothing";
});

for (const [name, id] of Object.entries(levers)) {
  byId(`${id}-limit`).addEventListener("input", (event) => {
    const [low, high] = axis(name);
    set({ [name]: low + (Number(event.target.value) / LEVER) * (high - low) });
  });
}

// ---- a study without the four measures ----------------------------------------------------------------------------
function offer(found) {
  byId("lacking").hidden = false;
  byId("planes").hidden = true;
  const options = (box) => byId(box).replaceChildren(...found.numeric.map((name) => el("option", { value: name }, name)));
  options("wanted");
  options("studied");
  byId("add").disabled = !found.numeric.length;
  if (!found.numeric.length) byId("add-problems").textContent = "The study has no numeric variable; the measures need one.";
  document.body.dataset.confirmed = "lacking";
}

byId("add-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const { table: plan } = await get(base);
    const [wanted, studied] = [byId("wanted").value, byId("studied").value];
    const more = [{ type: "IntruderKnowledge", on: wanted }, { type: "DiscreditHarm", on: wanted }, { type: "SocietyKnowledge", on: studied }, { type: "SocietyUtility", on: studied }];
    const drafted = await post(`${root}/api/plans`, { table: { ...plan, measures: [...plan.measures, ...more] }, study });
    if (drafted.problems.length) return byId("add-problems").replaceChildren(el("ul", {}, ...drafted.problems.map((problem) => el("li", {}, problem))));
    await put(`${base}/plan`, { toml: drafted.toml });
    location.assign(`${root}/studies/${encodeURIComponent(study)}/sweep`);
  } catch (error) {
    complain(error, byId("add-problems"));
  }
});

async function begin() {
  const found = await get(`${base}/criterion`);
  if (!found.rule) return offer(found);
  state.rule = found.rule;
  state.rows = rowsOf(found);
  const isSafe = (row) => region(row, state.rule) === "D";
  drawKey(byId("key"), found.prior);
  await risk.set(state.rows, found.prior, isSafe, [state.rule.agency_limit, state.rule.intruder_limit]);
  await utility.set(state.rows, found.prior, isSafe);
  set({ agency_limit: state.rule.agency_limit, intruder_limit: state.rule.intruder_limit });
}
begin().catch((error) => complain(error, byId("choice")));
