import { base, byId, duration, el, fill, get, markSteps, page, put, whole } from "./api.js";
import { Plot } from "./ruplot.js";

const plot = new Plot(byId("plot"), { tall: 0.3 });
const STATE_TEXTS = {
  "not begun": "Not started",
  running: "Running",
  "running elsewhere": "Another process is writing this study",
  paused: "Paused",
  cancelled: "Cancelled",
  stopped: "Stopped",
  done: "Done",
  away: "Not known: the server does not respond",
};
let drawn = -1,
  timer;

/** @param {Api.SweepStatus} status */
function stateOf(status) {
  if (status.state === "not begun" && status.done)
    return `The plan was extended by ${whole(status.total - status.done)} candidates`;
  return status.task === "search" ? "Searching" : STATE_TEXTS[status.state] || status.state;
}

// The current phase until the first candidate is done, then the pace and the time left.
/** @param {Api.SweepStatus} status */
function pace(status) {
  if (status.state !== "running") return "";
  const since = status.seconds === null ? "" : `, for ${duration(Math.round(status.seconds))}`;
  if (status.phase === "searching")
    return `Generation ${whole(status.areas.length)} · ${whole(status.evaluations)} of ${whole(status.budget)} new methods tried · ${Math.round(100 * (status.area ?? 0))} % of the area dominated`;
  const phase = status.phase || "creating and scoring candidates";
  if (!status.rate) return `${phase[0].toUpperCase()}${phase.slice(1)}${since}`;
  return `${Number(status.rate.toPrecision(2))} candidates per second · about ${duration(status.seconds_left)} left`;
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
      ". If no candidate passes, a search may find one.",
    ];
  if (status.state === "not begun")
    return ["Next: start the sweep of the plan's candidates, or let a search try other methods as well."];
  return [];
}

async function refresh() {
  /** @type {Api.SweepStatus} */
  let status;
  try {
    status = await get(`${base}/sweep`);
  } catch (error) {
    byId("error").textContent = error.status ? error.message : "";
    byId("state").textContent = STATE_TEXTS.away;
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
      ["area dominated, in %", "n"],
      ["gain", "n"],
    ],
    status.areas
      .map((area, at) => [
        whole(at + 1),
        (100 * area).toFixed(1),
        at ? (100 * (area - status.areas[at - 1])).toFixed(1) : "plan",
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
      ["reason (first candidate)", "words"],
    ],
    status.refused.map(([method, count, why]) => [method, whole(count), why]),
    "None so far.",
  );
  const evaluated = status.done + (status.evaluations || 0);
  if (status.done && evaluated !== drawn) {
    try {
      await plot.set(await get(`${base}/map`));
      drawn = evaluated;
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
    await poll();
  });
}

async function poll() {
  clearTimeout(timer);
  await refresh();
  clearTimeout(timer);
  const isMoving = ["running", "running elsewhere", "stopped", "away"].includes(document.body.dataset.state ?? "");
  timer = setTimeout(poll, isMoving ? 1000 : 3000);
}
window.addEventListener("back", poll);
poll();
