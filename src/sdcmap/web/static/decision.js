import {
  base,
  byId,
  complain,
  draw,
  duration,
  el,
  fill,
  get,
  page,
  post,
  put,
  root,
  short,
  study,
  whole,
} from "./api.js";
import { candidateLink, deadEnd, showChoice } from "./choices.js";
import { Levers } from "./levers.js";
import { analyses } from "./masked.js";
import { drawKey, Plane, rowsOf } from "./planes.js";
import { word } from "./words.js";

/** @typedef {import("./planes.js").Row} Row */

const SLIDER_STEPS = 1000;
const LIMITS = { agency_limit: "agency", intruder_limit: "intruder" };
const state = {
  /** @type {Record<string, any>} */
  rule: {},
  /** @type {Row[]} by preference */
  rows: [],
  /** @type {Row | null | undefined} what is chosen; null: nothing, undefined: not known yet */
  best: undefined,
  /** @type {Api.ChosenCandidate | null} */
  choice: null,
};
const risk = new Plane(byId("risk-plane"), "iek", "rdh");
const utility = new Plane(byId("utility-plane"), "sek", "dus");
const levers = new Levers(() => ({ rule: state.rule, limits: {}, axes: null }), {
  body: () => ({ rule: state.rule }),
  onchoice: confirm,
  onproblem: (error) => complain(error, byId("choice")),
});
risk.after = utility.after = overlay;
window.workbench = { state, risk, levers }; // for the tests

const axis = (/** @type {string} */ name) => (name === "agency_limit" ? "x" : "y");
// A row is safe if its two numbers are within the limits; they are compared with the margins of a release.
const isSafe = (/** @type {Row} */ row) =>
  row.iek_end <= state.rule.agency_limit && row.rdh_end <= state.rule.intruder_limit;

function overlay() {
  if (!risk.box || !utility.box) return;
  risk.lay([
    ...risk.limits(state.rule.agency_limit, state.rule.intruder_limit, set, overlay),
    ...risk.ringOf(state.best),
  ]);
  utility.lay([...utility.way(state.best), ...utility.ringOf(state.best)]);
}

// The row of a candidate, or of its method if methods are compared.
function rowOf(candidate) {
  const method = levers.answer?.methods[candidate];
  return state.rows.find((row) => (row.id ? row.id === candidate : row.method === method)) ?? null;
}

function set(change) {
  for (const [name, value] of Object.entries(change)) {
    if (!Number.isFinite(value)) continue;
    const lowest = risk.valueAt(axis(name), 0);
    const limit = (state.rule[name] = Math.min(0, Number(Math.max(lowest, value).toPrecision(6))));
    const lever = byId(`${LIMITS[name]}-limit`);
    lever.value = String(Math.round(SLIDER_STEPS * risk.share(axis(name), limit)));
    lever.setAttribute("aria-valuetext", short(limit));
    byId(`${LIMITS[name]}-shown`).textContent = short(limit);
  }
  const candidate = levers.at(["rule", Object.keys(change)[0]]);
  state.best = candidate === undefined ? undefined : rowOf(candidate);
  state.choice = null;
  risk.draw();
  utility.draw();
  overlay();
  table();
  levers.ask();
}

function table() {
  const safe = state.rows.filter(isSafe),
    counts = `${whole(safe.length)} of ${whole(state.rows.length)} are safe`;
  byId("left").replaceChildren(
    el("p", {}, el("strong", {}, safe.length ? counts : "No release is safe: release nothing.")),
    ...(safe.length ? [] : [deadEnd("set other limits")]),
  );
  const name = (row) => (row.id ? candidateLink(row.id, `${row.name}, ${draw(row)}`) : row.name);
  fill(
    byId("table"),
    [["method", "words"], ...["IEK", "RDH", "SEK", "DUS"].map((head) => [word(head), "n"]), ["from (0, 0)", "n"]],
    safe.slice(0, 100).map((row) => [name(row), ...[row.iek, row.rdh, row.sek, row.dus, row.distance].map(short)]),
    "Nothing.",
  );
}

/** @param {Api.ChosenCandidate} choice */
function confirm(choice) {
  state.choice = choice;
  state.best = choice.candidate ? rowOf(choice.candidate) : null;
  overlay();
  showChoice(byId("choice"), choice, "set other limits");
  document.body.dataset.confirmed = choice.candidate || "nothing";
  describe(choice.candidate);
}

// Show what users of the chosen file will find. Each choice has its own place, so that a late answer shows nowhere.
/** @type {string | null} */
let described = null;
async function describe(/** @type {string | null} */ candidate) {
  if (candidate === described) return;
  described = candidate;
  byId("findings").hidden = !candidate;
  const place = el("div");
  byId("found").replaceChildren(place);
  if (candidate) await analyses(place, candidate).catch((error) => complain(error, place));
}

for (const [name, id] of Object.entries(LIMITS)) {
  const lever = byId(`${id}-limit`);
  lever.addEventListener("input", () => {
    set({ [name]: risk.valueAt(axis(name), Number(lever.value) / SLIDER_STEPS) });
  });
}

// ---- a study without the four measures ----------------------------------------------------------------------------
function offer(planes) {
  byId("lacking").hidden = false;
  byId("planes").hidden = true;
  const options = (/** @type {string[]} */ names) => names.map((name) => el("option", { value: name }, name));
  const identity = el("option", { value: "" }, "which record is the person's (identity)");
  byId("wanted").replaceChildren(...options([...planes.numeric, ...planes.categories]), identity);
  byId("studied").replaceChildren(...options(planes.numeric));
  document.body.dataset.confirmed = "lacking";
  if (!planes.numeric.length)
    return (byId("add-problems").textContent = "The study has no numeric variable, which the measures need.");
  price();
}

// The plan with the four measures, for the selected variables.
async function draftPlans(more = {}) {
  const [wanted, studied] = [byId("wanted").value, byId("studied").value];
  /** @type {Api.StudyPlan} */
  const { table: plan, version } = await get(base);
  const target = wanted ? { on: wanted } : {}; // without a variable, the identity
  const four = [
    { type: "IntruderKnowledge", ...target },
    { type: "DiscreditHarm", ...target },
    { type: "SocietyKnowledge", on: studied },
    { type: "SocietyUtility", on: studied },
  ];
  const [before, after] = await Promise.all(
    [[], four].map((added) =>
      post(`${root}/api/plans`, {
        table: { ...plan, measures: [...(plan?.measures ?? []), ...added] },
        study,
        ...more,
      }),
    ),
  );
  return { before, after, version };
}

// Estimate the cost before the measures are added; of several requests, only the last one counts.
let estimates = 0;
async function price() {
  const turn = (estimates += 1);
  byId("add").disabled = true;
  byId("price").textContent = "Estimating the cost …";
  try {
    const { before, after } = await draftPlans({ cost: true });
    if (turn !== estimates) return;
    const problems = after.problems.map((problem) => el("li", {}, problem));
    byId("add-problems").replaceChildren(...(problems.length ? [el("ul", {}, ...problems)] : []));
    byId("price").textContent =
      after.seconds === null
        ? ""
        : `The whole sweep takes about ${duration(before.seconds)} on one core without the measures, and about ${duration(after.seconds)} with them. Existing scores are reused.`;
    byId("add").disabled = problems.length > 0;
  } catch (error) {
    byId("price").textContent = "";
    complain(error, byId("add-problems"));
  }
}
for (const id of ["wanted", "studied"]) byId(id).addEventListener("change", price);

byId("add-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const { after, version } = await draftPlans();
    await put(`${base}/plan`, { toml: after.toml, version });
    location.assign(page("sweep"));
  } catch (error) {
    complain(error, byId("add-problems"));
  }
});

// Of several intruders or users, show the worst, or one of them; the rule always compares the worst.
/** @param {Api.CriterionPlanes} planes */
function offerMembers(planes) {
  for (const [id, plane, titles] of /** @type {[string, Plane, string[]][]} */ ([
    ["intruder", risk, planes.intruder_titles],
    ["user", utility, planes.user_titles],
  ])) {
    const select = byId(`shown-${id}`);
    byId(`${id}-field`).hidden = titles.length < 2;
    select.replaceChildren(
      el("option", { value: "0" }, `the worst of ${titles.length}`),
      ...titles.map((title, i) => el("option", { value: String(i + 1) }, `${i + 1}: ${title}`)),
    );
    select.addEventListener("change", () => {
      plane.showMember(Number(select.value));
      plane.set(state.rows, planes.prior, isSafe, planes.axes);
      overlay();
    });
  }
}

async function begin() {
  /** @type {Api.CriterionPlanes} */
  const planes = await get(`${base}/criterion`);
  if (!planes.rule) return offer(planes);
  state.rule = planes.rule;
  state.rows = rowsOf(planes);
  const { agency_limit, intruder_limit } = state.rule;
  risk.set(state.rows, planes.prior, isSafe, planes.axes);
  utility.set(state.rows, planes.prior, isSafe, planes.axes);
  const isBeyond = planes.prior !== null && [risk, utility].some((plane) => plane.isBeyond(planes.prior));
  drawKey(byId("key"), planes.prior, isBeyond);
  offerMembers(planes);
  const several = [
    ...(planes.intruders > 1 ? [`IEK and RDH are the largest of ${planes.intruders} intruders`] : []),
    ...(planes.users > 1 ? [`SEK and DUS are those of the worst served of ${planes.users} users`] : []),
  ];
  byId("several").textContent = several.length ? `${several.join("; ")}.` : "";
  set({ agency_limit, intruder_limit });
}
begin().catch((error) => complain(error, byId("choice")));
