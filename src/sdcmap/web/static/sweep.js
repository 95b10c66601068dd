import { base, byId, duration, fill, get, put, whole } from "./api.js";
import { Plot } from "./ruplot.js";

const plot = new Plot(byId("plot"), { tall: 0.3 });
const WORDS = { "not begun": "Not begun", running: "Running", "running elsewhere": "Another process is writing this study", paused: "Paused", cancelled: "Cancelled", stopped: "Stopped", done: "Done" };
let drawn = -1, timer;

async function refresh() {
  let status;
  try {
    status = await get(`${base}/sweep`);
  } catch (error) {
    byId("error").textContent = error.message;
    return;
  }
  byId("error").textContent = status.error;
  byId("state").textContent = WORDS[status.state] || status.state;
  document.body.dataset.state = status.state;
  byId("counted").textContent = `${whole(status.done)} of ${whole(status.total)} candidates`;
  byId("progress").value = status.total ? status.done / status.total : 0;
  const pace = status.state === "running" && status.rate ? `${Number(status.rate.toPrecision(3))} candidates a second · about ${duration(status.seconds_left)} left` : "";
  byId("pace").textContent = pace;
  const busy = status.state.startsWith("running");
  byId("start").disabled = busy || status.state === "done";
  byId("start").textContent = status.done ? "Resume" : "Start";
  byId("pause").disabled = byId("cancel").disabled = status.state !== "running";
  fill(byId("refused"), [["method", "words"], ["candidates", "n"], ["reason (of one)", "words"]], status.refused.map(([method, count, why]) => [method, whole(count), why]), "None so far.");
  if (status.done && status.done !== drawn) {
    try {
      await plot.set(await get(`${base}/map`));
      drawn = status.done;
    } catch (error) {
      if (error.status !== 422 && error.status !== 404) byId("error").textContent = error.message;
    }
  }
}

for (const [id, state] of [["start", "running"], ["pause", "paused"], ["cancel", "cancelled"]]) {
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
  timer = setTimeout(keepOn, ["running", "running elsewhere", "stopped"].includes(document.body.dataset.state) ? 1000 : 3000);
}
keepOn();
