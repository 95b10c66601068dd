// The service, and small helpers that every page shares.
import "./words.js";

export const study = document.body.dataset.study;
export const root = new URL("..", import.meta.url).pathname.slice(0, -1); // what stands before every path
export const base = `${root}/api/studies/${encodeURIComponent(study)}`;

// The address of a page of this study.
export const page = (name, asked = {}) =>
  `${root}/studies/${encodeURIComponent(study)}/${name}${Object.keys(asked).length ? `?${new URLSearchParams(asked)}` : ""}`;

// A rule that was tried on the map, {rule, risk, utility}, until it is dropped or the tab is closed.
const kept = `sdcmap ${root} ${study} rule`;
export const tried = {
  get: () => JSON.parse(sessionStorage.getItem(kept)),
  set: (rule) => (rule ? sessionStorage.setItem(kept, JSON.stringify(rule)) : sessionStorage.removeItem(kept)),
};

// A candidate that a person picked to release, {id, reason}, and those that were pinned to be compared.
const stored = (what, empty) => {
  const key = `sdcmap ${root} ${study} ${what}`;
  return {
    get: () => JSON.parse(sessionStorage.getItem(key)) ?? empty,
    set: (value) => (value ? sessionStorage.setItem(key, JSON.stringify(value)) : sessionStorage.removeItem(key)),
  };
};
export const picked = stored("picked", null);
export const pins = stored("pins", []);

export class Problem extends Error {
  constructor(status, answer) {
    super(answer.error || `the server answered ${status}.`);
    this.status = status;
    this.problems = answer.problems || [this.message];
  }
}

async function ask(method, address, body, headers = {}) {
  let answer;
  const done = waiting();
  try {
    answer = await fetch(address, { method, body, headers: { accept: "application/json", ...headers } });
  } catch {
    gone();
    throw new Problem(0, { error: "the server does not answer: is `sdcmap serve` still running?" });
  } finally {
    done();
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) shut();
  if (!answer.ok) throw new Problem(answer.status, content);
  return content;
}

// ---- while an answer is awaited -----------------------------------------------------------------------------------
const PROMPT = 80; // milliseconds after which a bar tells that something is under way
let asked = 0;

// A question was asked; call the answer when it has come.
function waiting() {
  asked += 1;
  const timer = setTimeout(() => (document.documentElement.dataset.busy = "true"), PROMPT);
  return () => {
    clearTimeout(timer);
    asked -= 1;
    if (!asked) delete document.documentElement.dataset.busy;
  };
}

// ---- when the server is away ------------------------------------------------------------------------------------
const AWAY = 1500; // milliseconds between two looks

function notice(...words) {
  const bar = byId("away") || el("div", { id: "away", role: "alert" });
  bar.replaceChildren(...words);
  if (!bar.isConnected) document.body.prepend(bar);
}

// Whether somebody answers; asked without the cookie, for who listens there now may be somebody else.
const answers = () =>
  fetch(`${root}/static/icon.svg`, { credentials: "omit", cache: "no-store" }).then(
    () => true,
    () => false,
  );
const pause = (wait) => new Promise((done) => setTimeout(done, wait));

// The page waits by itself. A question that was cut off because the page is being left is no sign of anything.
async function gone() {
  if (document.body.dataset.away) return;
  document.body.dataset.away = "true";
  const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  await pause(AWAY / 5);
  if (!(await answers())) {
    notice(
      el("strong", {}, "The server is away"),
      ` since ${since}. What you see is from before. Start \u201csdcmap serve\u201d again in its folder: this page then goes on by itself, and nothing that was saved is lost.`,
    );
    do await pause(AWAY);
    while (!(await answers()));
  }
  delete document.body.dataset.away;
  const answer = await fetch(`${root}/api/files`).catch(() => null);
  if (!answer) return gone();
  if (answer.status === 401) return shut();
  if (!byId("away")) return;
  byId("away").remove();
  say("The server is back.");
  window.dispatchEvent(new Event("back"));
}

function shut() {
  notice(
    el("strong", {}, "This browser is no longer let in."),
    " Open the last address that \u201csdcmap serve\u201d printed; studies, plans and sweeps are as they were.",
  );
}

const json = { "content-type": "application/json" };
export const get = (address) => ask("GET", address);
export const post = (address, body) => ask("POST", address, JSON.stringify(body), json);
export const put = (address, body) => ask("PUT", address, JSON.stringify(body), json);
export const remove = (address) => ask("DELETE", address);
export const send = (address, form) => ask("POST", address, form);

export const byId = (id) => document.getElementById(id);

// An element: el("td", {class: "n"}, "text", other)
export function el(name, facts = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(facts)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...inside.filter((part) => part !== null && part !== undefined));
  return made;
}

export function svg(name, facts = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
  return made;
}

// A table from its heads and rows; a head is a text, or [text, "n"] for numbers.
export function fill(table, heads, rows, empty = "None.") {
  const classes = heads.map((head) => (Array.isArray(head) ? head[1] : ""));
  const titles = heads.map((head) => (Array.isArray(head) ? head[0] : head));
  if (!rows.length) return table.replaceChildren(el("tbody", {}, el("tr", {}, el("td", { class: "quiet" }, empty))));
  const cells = (row) => row.map((cell, place) => el("td", { class: classes[place] }, cell));
  table.replaceChildren(
    el(
      "thead",
      {},
      el("tr", {}, ...titles.map((title, place) => el("th", { scope: "col", class: classes[place] }, title))),
    ),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells(row)))),
  );
}

export const whole = (count) => Number(count).toLocaleString("en");
export function short(value) {
  if (value === null || value === undefined) return "infinite";
  if (!Number.isFinite(value)) return "infinite";
  return String(Number(value.toPrecision(4)));
}

// Words for people: draws count from 1, and a utility that is better when lower is a loss.
export const draw = (row) => `draw ${row.replicate + 1}`;
export const losing = (map) => (map.signs[1] > 0 ? "loss" : "utility");

export function duration(seconds) {
  if (seconds < 90) return `${Number(seconds.toPrecision(2))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

let quiet;
export function say(text) {
  byId("said").textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => (byId("said").textContent = ""), 5000);
}

export function complain(error, place = byId("problems")) {
  const problems = error instanceof Problem ? error.problems : [String(error.message || error)];
  place.replaceChildren(el("ul", {}, ...problems.map((problem) => el("li", {}, problem))));
}

export function later(wait, act) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}

// ---- how far the study is -----------------------------------------------------------------------------------------
// The steps that are behind one get a mark. Asked when the page has asked for its own, and nothing waits for it.
export async function markSteps() {
  const answer = await fetch(base, { headers: { accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return;
  const { begun, releases, sweep } = await answer.json();
  const done = { data: true, plan: begun, sweep: sweep.state === "done", choose: releases > 0 };
  document.querySelectorAll("nav [data-page]").forEach((step, place) => {
    const isDone = Boolean(done[step.dataset.page]);
    step.toggleAttribute("data-done", isDone);
    step.querySelector(".number").textContent = isDone ? "\u2713" : place + 1;
    step.querySelector(".done").textContent = isDone ? "done" : "";
  });
}
if (study) window.addEventListener("load", markSteps);

// A button that needs a script sleeps until every script of the page has run: no click is lost on a slow machine.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-asleep]")) button.disabled = false;
});
