import {
  base,
  byId,
  complain,
  draw,
  duration,
  el,
  fill,
  get,
  later,
  page,
  post,
  put,
  root,
  short,
  study,
} from "./api.js";
import { word } from "./words.js";
import { Plane, drawKey, nearest, region, rowsOf } from "./planes.js";

const LEVER = 1000;
const levers = { agency_limit: "agency", intruder_limit: "intruder" };
const state = { rule: null, rows: [], best: null };
const risk = new Plane(byId("risk-plane"), "iek", "rdh");
const utility = new Plane(byId("utility-plane"), "sek", "dus");
risk.after = utility.after = overlay;
window.workbench = { state, nearest, region, risk }; // what the tests look at

const axis = (name) => (name === "agency_limit" ? risk.x : risk.y);
const link = (id, words) => el("a", { href: page("candidate", { id }) }, words);

function overlay() {
  if (!risk.view || !utility.view) return;
  state.best = nearest(state.rows, state.rule);
  risk.lay([...risk.limits(state.rule, set, overlay), ...risk.ring(state.best)]);
  utility.lay([...utility.way(state.best), ...utility.ring(state.best)]);
}

function set(change) {
  for (const [name, value] of Object.entries(change)) {
    if (!Number.isFinite(value)) continue;
    const [low, high] = axis(name);
    const limit = (state.rule[name] = Math.min(0, Number(Math.max(low, value).toPrecision(6))));
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
  const deadEnd = safe.length
    ? []
    : [
        el(
          "p",
          {},
          "What to do: ",
          el("a", { href: page("plan") }, "plan stronger methods"),
          ", ",
          el("a", { href: page("sweep") }, "search for a release"),
          ", or set other limits.",
        ),
      ];
  byId("left").replaceChildren(
    el(
      "p",
      {},
      el(
        "strong",
        {},
        safe.length
          ? `${safe.length.toLocaleString("en")} of ${state.rows.length.toLocaleString("en")} are safe`
          : "Nothing is safe: release nothing.",
      ),
    ),
    ...deadEnd,
  );
  fill(
    byId("table"),
    [["method", "words"], ...["IEK", "RDH", "SEK", "DUS"].map((name) => [word(name), "n"]), ["from (0, 0)", "n"]],
    rows.map((row) => [
      row.id ? link(row.id, `${row.name}, ${draw(row)}`) : row.name,
      ...[row.iek, row.rdh, row.sek, row.dus, row.distance].map(short),
    ]),
    "Nothing.",
  );
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
  byId("choice").replaceChildren(
    el(
      "div",
      { class: "verdict" },
      el("p", {}, found.reason),
      found.candidate ? el("p", {}, link(found.candidate, "Open this candidate")) : null,
    ),
  );
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
  const options = (box) =>
    byId(box).replaceChildren(...found.numeric.map((name) => el("option", { value: name }, name)));
  options("wanted");
  options("studied");
  document.body.dataset.confirmed = "lacking";
  if (!found.numeric.length)
    return (byId("add-problems").textContent = "The study has no numeric variable; the measures need one.");
  price();
}

// The plan with the four measures, for the variables that are picked.
async function drafted(more = {}) {
  const [wanted, studied] = [byId("wanted").value, byId("studied").value];
  const { table: plan, version } = await get(base);
  const four = [
    { type: "IntruderKnowledge", on: wanted },
    { type: "DiscreditHarm", on: wanted },
    { type: "SocietyKnowledge", on: studied },
    { type: "SocietyUtility", on: studied },
  ];
  const [before, after] = await Promise.all(
    [[], four].map((added) =>
      post(`${root}/api/plans`, { table: { ...plan, measures: [...plan.measures, ...added] }, study, ...more }),
    ),
  );
  return { before, after, version };
}

// What they would cost, before anybody adds them; of several guesses under way the last counts.
let guess = 0;
async function price() {
  const turn = (guess += 1);
  byId("add").disabled = true;
  byId("price").textContent = "Guessing what they would cost …";
  try {
    const { before, after } = await drafted({ cost: true });
    if (turn !== guess) return;
    const problems = after.problems.map((problem) => el("li", {}, problem));
    byId("add-problems").replaceChildren(...(problems.length ? [el("ul", {}, ...problems)] : []));
    byId("price").textContent =
      after.seconds === null
        ? ""
        : `The whole sweep takes about ${duration(before.seconds)} of one core as it is, and about ${duration(after.seconds)} with them. What is scored already is not scored again.`;
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
    const { after, version } = await drafted();
    await put(`${base}/plan`, { toml: after.toml, version });
    location.assign(page("sweep"));
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
