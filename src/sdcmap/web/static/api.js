// Requests to the service, and helpers that every page shares.
import "./words.js";

export const study = document.body.dataset.study ?? "";
export const root = new URL("..", import.meta.url).pathname.slice(0, -1); // all paths start with it
export const base = `${root}/api/studies/${encodeURIComponent(study)}`;

// The address of a page of this study.
export const page = (name, asked = {}) =>
  `${root}/studies/${encodeURIComponent(study)}/${name}${Object.keys(asked).length ? `?${new URLSearchParams(asked)}` : ""}`;

// Values that a tab remembers for this study until it is closed.
const stored = (name, empty) => {
  const key = `sdcmap ${root} ${study} ${name}`;
  return {
    get: () => JSON.parse(sessionStorage.getItem(key) ?? "null") ?? empty,
    set: (value) => (value ? sessionStorage.setItem(key, JSON.stringify(value)) : sessionStorage.removeItem(key)),
  };
};
export const tried = stored("rule", null); // the rule that was tried on the map, {rule, limits, risk, utility}
export const picked = stored("picked", null); // the candidate that the user picked to release, {id, reason}
export const pins = stored("pins", []); // candidates that are pinned for comparison

export class Problem extends Error {
  constructor(status, answer) {
    super(answer.error || `the server answered ${status}.`);
    this.status = status;
    this.problems = answer.problems || [this.message];
  }
}

async function ask(method, address, body, headers = {}) {
  let answer;
  const done = startRequest();
  try {
    answer = await fetch(address, { method, body, headers: { accept: "application/json", ...headers } });
  } catch {
    waitForServer();
    throw new Problem(0, { error: "The server does not respond. Is `sdcmap serve` still running?" });
  } finally {
    done();
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) showLoggedOut();
  if (!answer.ok) throw new Problem(answer.status, content);
  return content;
}

// ---- progress bar --------------------------------------------------------------------------------------------------
const BUSY_DELAY_MS = 80; // before the bar is shown, so that fast requests do not flicker
let pendingRequests = 0;

// Count a request as pending; call the returned function when it is complete.
function startRequest() {
  pendingRequests += 1;
  const timer = setTimeout(() => (document.documentElement.dataset.busy = "true"), BUSY_DELAY_MS);
  return () => {
    clearTimeout(timer);
    pendingRequests -= 1;
    if (!pendingRequests) delete document.documentElement.dataset.busy;
  };
}

// ---- server not reachable ------------------------------------------------------------------------------------------
const RETRY_MS = 1500; // between two attempts to reach the server

function notice(...words) {
  const bar = byId("away") || el("div", { id: "away", role: "alert" });
  bar.replaceChildren(...words);
  if (!bar.isConnected) document.body.prepend(bar);
}

// Whether a server responds. The cookie is not sent, because another program may use the port now.
const isServerUp = () =>
  fetch(`${root}/static/icon.svg`, { credentials: "omit", cache: "no-store" }).then(
    () => true,
    () => false,
  );
const pause = (wait) => new Promise((done) => setTimeout(done, wait));

// Wait until the server responds again. A request that was aborted because the user leaves the page does not count.
async function waitForServer() {
  if (document.body.dataset.away) return;
  document.body.dataset.away = "true";
  const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  await pause(RETRY_MS / 5);
  if (!(await isServerUp())) {
    notice(
      el("strong", {}, "The server is not reachable"),
      ` since ${since}. This page may be out of date. Start \u201csdcmap serve\u201d again in its folder; the page then continues by itself, and nothing that was saved is lost.`,
    );
    do await pause(RETRY_MS);
    while (!(await isServerUp()));
  }
  delete document.body.dataset.away;
  const answer = await fetch(`${root}/api/files`).catch(() => null);
  if (!answer) return waitForServer();
  if (answer.status === 401) return showLoggedOut();
  if (!byId("away")) return;
  byId("away").remove();
  say("The server is back.");
  window.dispatchEvent(new Event("back"));
}

function showLoggedOut() {
  notice(
    el("strong", {}, "This browser is no longer logged in."),
    " Open the last address that \u201csdcmap serve\u201d printed. Studies, plans and sweeps are unchanged.",
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
 * Return an element by its id, typed as a field or a link.
 * @param {string} id
 */
export const byId = (id) => /** @type {HTMLInputElement & HTMLAnchorElement} */ (document.getElementById(id));

/**
 * Create an element: el("td", {class: "n"}, "text", other)
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} facts
 * @param {...(Node | string | null | undefined)} inside
 */
export function el(name, facts = {}, ...inside) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(facts)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") node.toggleAttribute(key, value);
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...inside.filter((part) => part !== null && part !== undefined));
  return node;
}

export function svg(name, facts = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(facts)) node.setAttribute(key, value);
  return node;
}

/** @returns {HTMLElement[]} all elements that match a selector */
export const all = (selector, /** @type {ParentNode} */ within = document) => [...within.querySelectorAll(selector)];

/** @returns {any} the first element that matches a selector; there must be one */
export const one = (selector, /** @type {ParentNode} */ within = document) => within.querySelector(selector);

export const hint = (...inside) => el("p", { class: "hint" }, ...inside);
export const quiet = (...inside) => el("p", { class: "quiet" }, ...inside);
export const button = (words, act, facts = {}) =>
  el("button", { type: "button", class: "second", onclick: act, ...facts }, words);

// A text field without autocompletion and spell checking.
export const textBox = (facts = {}) =>
  el("input", { type: "text", autocomplete: "off", spellcheck: "false", ...facts });

// A part of the page with its own scroll bar.
export const region = (label, inside, kind = "wide") =>
  el("div", { class: kind, tabindex: "0", role: "region", "aria-label": label }, inside);

/**
 * Create the options of a list from names or [value, text] pairs.
 * @param {(string | [string | number, string])[]} choices
 * @param {string | number} [chosen]
 */
export const options = (choices, chosen) =>
  choices.map((choice) => {
    const [value, words] = Array.isArray(choice) ? choice : [choice, choice];
    return el("option", { value, selected: value === chosen }, words);
  });

// Fill a table from its heads and rows; a head is a text, or [text, class], with class "n" for numbers.
export function fill(table, heads, rows, empty = "None.") {
  const classes = heads.map((head) => (Array.isArray(head) ? head[1] : ""));
  const titles = heads.map((head) => (Array.isArray(head) ? head[0] : head));
  const cells = (kind, row, facts) => row.map((cell, index) => el(kind, { ...facts, class: classes[index] }, cell));
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

// Draws are shown from 1, and a utility measure that is better when lower is called a loss.
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

/** @param {Error} error @param {HTMLElement} node */
export function complain(error, node = byId("problems")) {
  const problems = error instanceof Problem ? error.problems : [String(error.message || error)];
  node.replaceChildren(el("ul", {}, ...problems.map((problem) => el("li", {}, problem))));
}

// An error message as an element.
export function alarm(error) {
  const node = el("div", { class: "alarm", role: "alert" });
  complain(error, node);
  return node;
}

export function later(wait, act) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}

// ---- progress of the study ----------------------------------------------------------------------------------------
// Mark the completed steps in the navigation, after the page has loaded its own data.
export async function markSteps() {
  const answer = await fetch(base, { headers: { accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return;
  const { begun, releases, sweep } = await answer.json();
  const done = { data: true, plan: begun, sweep: sweep.state === "done", choose: releases > 0 };
  all("nav [data-page]").forEach((step, index) => {
    const isDone = Boolean(done[step.dataset.page ?? ""]);
    step.toggleAttribute("data-done", isDone);
    one(".number", step).textContent = isDone ? "\u2713" : String(index + 1);
    one(".done", step).textContent = isDone ? "done" : "";
  });
}
if (study) window.addEventListener("load", markSteps);

// Buttons are disabled until every script of the page has run, so that no click is lost on a slow machine.
document.addEventListener("DOMContentLoaded", () => {
  for (const node of all("[data-asleep]")) node.removeAttribute("disabled");
});
