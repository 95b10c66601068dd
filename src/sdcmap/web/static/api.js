// The service, and small helpers that every page shares.
import "./words.js";

export const study = document.body.dataset.study ?? "";
export const root = new URL("..", import.meta.url).pathname.slice(0, -1); // what stands before every path
export const base = `${root}/api/studies/${encodeURIComponent(study)}`;

// The address of a page of this study.
export const page = (name, asked = {}) =>
  `${root}/studies/${encodeURIComponent(study)}/${name}${Object.keys(asked).length ? `?${new URLSearchParams(asked)}` : ""}`;

// What a tab remembers of this study until it is closed.
const stored = (what, empty) => {
  const key = `sdcmap ${root} ${study} ${what}`;
  return {
    get: () => JSON.parse(sessionStorage.getItem(key) ?? "null") ?? empty,
    set: (value) => (value ? sessionStorage.setItem(key, JSON.stringify(value)) : sessionStorage.removeItem(key)),
  };
};
export const tried = stored("rule", null); // a rule that was tried on the map, {rule, limits, risk, utility}
export const picked = stored("picked", null); // a candidate that a person picked to release, {id, reason}
export const pins = stored("pins", []); // candidates that were pinned to be compared

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

// ---- elements -----------------------------------------------------------------------------------------------------
/**
 * An element of the page by its id, taken to be a field or a link.
 * @param {string} id
 */
export const byId = (id) => /** @type {HTMLInputElement & HTMLAnchorElement} */ (document.getElementById(id));

/**
 * An element: el("td", {class: "n"}, "text", other)
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} facts
 * @param {...(Node | string | null | undefined)} inside
 */
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

/** @returns {HTMLElement[]} what a selector finds */
export const all = (selector, /** @type {ParentNode} */ within = document) => [...within.querySelectorAll(selector)];

/** @returns {any} the first that a selector finds, where there must be one */
export const one = (selector, /** @type {ParentNode} */ within = document) => within.querySelector(selector);

export const hint = (...inside) => el("p", { class: "hint" }, ...inside);
export const quiet = (...inside) => el("p", { class: "quiet" }, ...inside);
export const button = (words, act, facts = {}) =>
  el("button", { type: "button", class: "second", onclick: act, ...facts }, words);

// A field to type in, that no browser fills in or corrects.
export const textBox = (facts = {}) =>
  el("input", { type: "text", autocomplete: "off", spellcheck: "false", ...facts });

// A part of the page that scrolls by itself.
export const region = (label, inside, kind = "wide") =>
  el("div", { class: kind, tabindex: "0", role: "region", "aria-label": label }, inside);

/**
 * What can be chosen in a list: names, or [value, words].
 * @param {(string | [string | number, string])[]} choices
 * @param {string | number} [chosen]
 */
export const options = (choices, chosen) =>
  choices.map((choice) => {
    const [value, words] = Array.isArray(choice) ? choice : [choice, choice];
    return el("option", { value, selected: value === chosen }, words);
  });

// A table from its heads and rows; a head is a text, or [text, "n"] for numbers.
export function fill(table, heads, rows, empty = "None.") {
  const classes = heads.map((head) => (Array.isArray(head) ? head[1] : ""));
  const titles = heads.map((head) => (Array.isArray(head) ? head[0] : head));
  const cells = (kind, row, facts) => row.map((cell, place) => el(kind, { ...facts, class: classes[place] }, cell));
  if (rows.length)
    table.replaceChildren(
      el("thead", {}, el("tr", {}, ...cells("th", titles, { scope: "col" }))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells("td", row, {})))),
    );
  else table.replaceChildren(el("tbody", {}, el("tr", {}, el("td", { class: "quiet" }, empty))));
  return table;
}
export const tableOf = (heads, rows, empty = "None.") => fill(el("table"), heads, rows, empty);

// ---- words --------------------------------------------------------------------------------------------------------
export const whole = (count) => Number(count).toLocaleString("en");
export const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "infinite");

// Words for people: draws count from 1, and a utility that is better when lower is a loss.
export const draw = (row) => `draw ${row.replicate + 1}`;
export const losing = (map) => (map.signs[1] > 0 ? "loss" : "utility");

export function duration(seconds) {
  if (seconds < 90) return `${Number(seconds.toPrecision(2))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** @type {ReturnType<typeof setTimeout>} */
let silence;
export function say(text) {
  byId("said").textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => (byId("said").textContent = ""), 5000);
}

/** @param {Error} error @param {HTMLElement} place */
export function complain(error, place = byId("problems")) {
  const problems = error instanceof Problem ? error.problems : [String(error.message || error)];
  place.replaceChildren(el("ul", {}, ...problems.map((problem) => el("li", {}, problem))));
}

// What went wrong, where it was asked for.
export function alarm(error) {
  const made = el("div", { class: "alarm", role: "alert" });
  complain(error, made);
  return made;
}

export function later(wait, act) {
  /** @type {ReturnType<typeof setTimeout>} */
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
  all("nav [data-page]").forEach((step, place) => {
    const isDone = Boolean(done[step.dataset.page ?? ""]);
    step.toggleAttribute("data-done", isDone);
    one(".number", step).textContent = isDone ? "\u2713" : String(place + 1);
    one(".done", step).textContent = isDone ? "done" : "";
  });
}
if (study) window.addEventListener("load", markSteps);

// A button that needs a script sleeps until every script of the page has run: no click is lost on a slow machine.
document.addEventListener("DOMContentLoaded", () => {
  for (const asleep of all("[data-asleep]")) asleep.removeAttribute("disabled");
});
