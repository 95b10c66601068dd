import { base, byId, duration, el, fill, get, markSteps, page, put, whole } from "./api.js";
import { Plot } from "./ruplot.js";

const plot = new Plot(byId("plot"), { tall: 0.3 });
const WORDS = {
  "not begun": "Not begun",
  running: "Running",
  "running elsewhere": "Another process is writing this study",
  paused: "Paused",
  cancelled: "Cancelled",
  stopped: "Stopped",
  done: "Done",
  away: "Not known: the server does not answer",
};
let drawn = -1,
  timer;

/** @param {Api.SweepStatus} status */
function stateOf(status) {
  if (status.state === "not begun" && status.done)
    return `The plan has grown: ${whole(status.total - status.done)} candidates are new`;
  return status.task === "search" ? "Searching" : WORDS[status.state] || status.state;
}

// What it is at, and how long that will take: a phase while no candidate is done, then the pace.
/** @param {Api.SweepStatus} status */
function pace(status) {
  if (status.state !== "running") return "";
  const since = status.seconds === null ? "" : `, for ${duration(Math.round(status.seconds))} now`;
  if (status.phase === "searching")
    return `Generation ${whole(status.areas.length)} · ${whole(status.evaluations)} of ${whole(status.budget)} new releases tried · ${Math.round(100 * (status.area ?? 0))} % of the area between no and full protection`;
  const phase = status.phase || "making and scoring candidates";
  if (!status.rate) return `${phase[0].toUpperCase()}${phase.slice(1)}${since}`;
  return `${Number(status.rate.toPrecision(2))} candidates a second · about ${duration(status.seconds_left)} left`;
}

/** @param {Api.SweepStatus} status */
function next(status) {
  const go = (where, words) => el("a", { href: page(where) }, words);
  if (status.state === "done")
    return [
      "Next: ",
      go("map", "look at the map"),
      " or ",
      go("choose", "choose and release"),
      ". Where nothing passes, a search may find what does.",
    ];
  if (status.state === "not begun")
    return ["Next: start the sweep of the plan's own candidates, or let a search find releases beyond them."];
  return [];
}

async function refresh() {
  /** @type {Api.SweepStatus} */
  let status;
  try {
    status = await get(`${base}/sweep`);
  } catch (error) {
    byId("error").textContent = error.status ? error.message : "";
    byId("state").textContent = WORDS.away;
    byId("pace").textContent = "";
    document.body.dataset.state = "away";
    for (const id of ["start", "search", "pause", "cancel"]) byId(id).disabled = true;
    return;
  }
  byId("error").textContent = status.error;
  byId("state").textContent = stateOf(status);
  const before = document.body.dataset.state;
  document.body.dataset.state = status.state;
  if (before && before !== status.state) markSteps();
  byId("counted").textContent = `${whole(status.done)} of ${whole(status.total)} candidates`;
  const searching = status.phase === "searching";
  byId("progress").value = String(
    searching ? (status.evaluations ?? 0) / (status.budget ?? 1) : status.total ? status.done / status.total : 0,
  );
  byId("pace").textContent = pace(status);
  byId("next-step").replaceChildren(...next(status));
  byId("generations-card").hidden = !status.areas.length;
  fill(
    byId("generations"),
    [
      ["generation", "n"],
      ["area won, in %", "n"],
      ["gain", "n"],
    ],
    status.areas
      .map((area, at) => [
        whole(at + 1),
        (100 * area).toFixed(1),
        at ? (100 * (area - status.areas[at - 1])).toFixed(1) : "the starts",
      ])
      .reverse(),
    "None so far.",
  );
  const busy = ["running", "running elsewhere"].includes(status.state);
  byId("start").disabled = busy || status.state === "done";
  byId("start").textContent = status.done ? "Resume" : "Start";
  byId("search").disabled = busy;
  byId("pause").disabled = byId("cancel").disabled = status.state !== "running";
  fill(
    byId("refused"),
    [
      ["method", "words"],
      ["candidates", "n"],
      ["reason (of one)", "words"],
    ],
    status.refused.map(([method, count, why]) => [method, whole(count), why]),
    "None so far.",
  );
  const made = status.done + (status.evaluations || 0);
  if (status.done && made !== drawn) {
    try {
      await plot.set(await get(`${base}/map`));
      drawn = made;
    } catch (error) {
      if (error.status !== 422 && error.status !== 404) byId("error").textContent = error.message;
    }
  }
}

for (const [id, state] of [
  ["start", "running"],
  ["search", "searching"],
  ["pause", "paused"],
  ["cancel", "cancelled"],
]) {
  byId(id).addEventListener("click", async () => {
    byId(id).disabled = true;
    try {
      await put(`${base}/sweep`, { state });
    } catch (error) {
      byId("error").textContent = error.message;
      return;
    }
    await keepOn();
  });
}

async function keepOn() {
  clearTimeout(timer);
  await refresh();
  clearTimeout(timer);
  const isMoving = ["running", "running elsewhere", "stopped", "away"].includes(document.body.dataset.state ?? "");
  timer = setTimeout(keepOn, isMoving ? 1000 : 3000);
}
window.addEventListener("back", keepOn);
keepOn();
