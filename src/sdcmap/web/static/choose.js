import {
  alarm,
  all,
  base,
  button,
  byId,
  complain,
  el,
  get,
  hint,
  markSteps,
  options,
  page,
  picked,
  post,
  quiet,
  region,
  root,
  say,
  tableOf,
  textBox,
  tried,
  whole,
} from "./api.js";
import { idOf, named, offer, wordsOf } from "./candidates.js";
import { showChoice } from "./choices.js";
import { fieldsOf } from "./forms.js";

const state = {
  /** @type {any[]} of rules */
  forms: [],
  /** @type {Record<string, any> | null} the plan's rule */
  own: null,
  /** @type {Record<string, any> | null} */
  rule: null,
  /** @type {Record<string, any>} axes and limits other than the plan's */
  axes: {},
  /** @type {Record<string, string>} check: why it may be overridden */
  override: {},
  /** @type {ReturnType<typeof named>} */
  candidates: [],
  /** @type {Api.ChosenCandidate | null} */
  choice: null,
};
const WHERE = {
  roles: ["data", "Look at the roles"],
  line: ["plan", "State a limit in the plan"],
  risk: ["plan", "Plan stronger methods"],
  gate: ["plan", "Plan stronger methods"],
  unmasked: ["plan", "Mask them in the plan"],
  edits: ["plan", "Add a step to the plan"],
  weight: ["plan", "Add a step to the plan"],
  determines: ["data", "Drop a column"],
  identifier: ["data", "State identifiers"],
};

// ---- the rule -----------------------------------------------------------------------------------------------------
const isOwn = () =>
  state.own && !Object.keys(state.axes).length && JSON.stringify(state.rule) === JSON.stringify(state.own);
const asked = () => (isOwn() ? {} : { rule: state.rule, ...state.axes });

function drawRule() {
  const form = state.forms.find((rule) => rule.type === state.rule?.type);
  byId("rule").value = state.rule?.type || "";
  byId("rule-entries").replaceChildren(
    ...(form ? fieldsOf(form, state.rule ?? {}, { grids: false, changed: sayRule }) : []),
  );
  sayRule();
}

function sayRule() {
  const whence = tried.get() ? "This rule was tried on the map" : "This rule is stated here";
  const said = !state.rule
    ? "The plan states no rule: state one, or name a candidate below."
    : isOwn()
      ? "This is the plan's rule."
      : `${whence}; ${state.own ? "it is not the plan's. " : "the plan states none."}`;
  const canGoBack = state.rule && state.own && !isOwn();
  const back = button("Back to the plan's rule", () => use(state.own), { id: "own-rule" });
  byId("rule-said").replaceChildren(said, ...(canGoBack ? [back] : []));
}

function use(rule) {
  tried.set(null);
  Object.assign(state, { rule: rule && { ...rule }, axes: {} });
  drawRule();
  choose();
}

async function choose() {
  if (!state.rule) return byId("choice").replaceChildren();
  try {
    /** @type {Api.ChosenCandidate} */
    const choice = await post(`${base}/choices`, asked());
    state.choice = choice;
    showChoice(byId("choice"), choice, "choose another profile");
    document.body.dataset.chosen = choice.candidate || "nothing";
  } catch (error) {
    byId("choice").replaceChildren(alarm(error));
  }
}

// ---- the checks ---------------------------------------------------------------------------------------------------
function order() {
  const limit = byId("max-risk").value.trim();
  const reasons = Object.fromEntries(Object.entries(state.override).filter(([, reason]) => reason.trim()));
  return {
    ...asked(),
    candidate: idOf(byId("candidate").value, state.candidates),
    profile: byId("profile").value,
    max_risk: limit === "" ? null : Number(limit),
    again: byId("again").checked,
    confirm_roles: byId("confirm-roles").checked,
    override: reasons,
    reason: byId("candidate").value.trim() ? byId("reason").value.trim() : "",
  };
}

function reason(check) {
  const id = `override-${check.name.replace(/\W/g, "-")}`;
  state.override[check.name] ||= byId("candidate").value.trim() ? byId("reason").value.trim() : ""; // a person's pick has one already
  const box = textBox({ id, value: state.override[check.name], autocomplete: null, spellcheck: null });
  box.addEventListener("input", () => (state.override[check.name] = box.value));
  return el("div", {}, el("label", { for: id }, `Why “${check.name}” may be overridden`), box);
}

/** @param {Api.Checks} result */
function drawChecks(result) {
  const told = new Set(); // one advice and one reason for all failed checks of a name
  const line = (check) => {
    const entry = el(
      "li",
      { class: check.passed ? "" : "failed" },
      el("span", { class: check.passed ? "tick" : "cross" }, el("strong", {}, check.name), `: ${check.reason}`),
    );
    if (check.passed || told.has(check.name)) return entry;
    told.add(check.name);
    const [where, words] = WHERE[check.name] || [];
    entry.append(
      el(
        "p",
        { class: "todo" },
        el("strong", {}, "What to do: "),
        `${check.remedy} `,
        where ? el("a", { href: page(where) }, words) : null,
      ),
    );
    if (!check.is_hard) entry.append(reason(check));
    return entry;
  };
  const failed = result.checks.filter((check) => !check.passed);
  const passed = result.checks.filter((check) => check.passed);
  const list = (checks) => el("ul", { class: "links" }, ...checks.map(line));
  byId("checks").replaceChildren(
    el(
      "p",
      {},
      el(
        "strong",
        { class: result.passed ? "good" : "bad" },
        result.passed ? "Every check passed." : "This may not be released as it is.",
      ),
      ` ${result.name}`,
    ),
    ...(failed.length
      ? [el("h3", {}, failed.length === 1 ? "One check failed" : `${failed.length} checks failed`), list(failed)]
      : []),
    el("details", { open: !failed.length }, el("summary", {}, `${passed.length} checks passed`), list(passed)),
  );
}

async function check(event) {
  event?.preventDefault();
  byId("checks").replaceChildren(quiet("Making the candidate again and reading it back …"));
  try {
    /** @type {Api.Checks} */
    const result = await post(`${base}/checks`, order());
    drawChecks(result);
    drawBundle(result);
  } catch (error) {
    byId("checks").replaceChildren(alarm(error));
  }
}

// ---- what would leave ---------------------------------------------------------------------------------------------
const size = (bytes) => (bytes < 1e4 ? `${whole(bytes)} bytes` : `${whole(Math.round(bytes / 1e3))} kB`);

/** @param {Api.Checks} result */
function drawBundle(result) {
  if (!result.files.length) return byId("files").replaceChildren(hint("Nothing would leave: the checks say why."));
  const done = (column) => (column.masked ? column.done : "as it is");
  const columns = tableOf(
    [["column", "words"], "label", "kind", ["what was done", "words"]],
    result.columns.map((column) => [column.name, column.label, column.kind, done(column)]),
  );
  const fold = (name, note, inside) =>
    el("details", { class: "file" }, el("summary", {}, name, el("span", { class: "quiet" }, ` ${note}`)), inside);
  const head = ({ name, head: lines, whole: isWhole }) =>
    el("pre", { tabindex: "0", role: "region", "aria-label": `First lines of ${name}` }, lines + (isWhole ? "" : "…"));
  const counts = `${result.files.length} files and ${result.columns.length} columns would leave.`;
  byId("files").replaceChildren(
    el("p", {}, `${counts} Nothing has been written.`),
    ...result.files.map((file) => fold(file.name, size(file.bytes), file.head ? head(file) : quiet("Not a text."))),
    fold("Columns of the file", result.columns.length, region("Columns", columns)),
  );
}

// The report in a frame that runs nothing, of what is on its way out.
function look(audience) {
  const { candidate, reason: why } = order();
  const tryout = !candidate && !isOwn() && state.choice?.candidate; // by a rule that is not the plan's
  const said = tryout ? `a rule that the plan does not state chooses it. ${state.choice?.reason}`.slice(0, 2000) : why;
  const asked = new URLSearchParams({ audience, candidate: candidate || tryout || "", reason: said });
  const frame = el("iframe", { title: `The ${audience} report`, sandbox: "", src: `${base}/report/preview?${asked}` });
  const waiting = el("p", { class: "quiet", role: "status" }, "Making the report …");
  frame.addEventListener("load", () => {
    waiting.remove();
    document.body.dataset.report = audience;
  });
  byId("frame").replaceChildren(waiting, frame);
}

// ---- the release --------------------------------------------------------------------------------------------------
async function releases() {
  /** @type {Api.Releases} */
  const { releases: written } = await get(`${base}/releases`).catch(() => ({ releases: [] }));
  const entry = ({ release, name, signed_by, reason: why, when, files }) => {
    const href = `${base}/releases/${encodeURIComponent(release)}.zip`;
    const facts = [
      name,
      signed_by && `signed by ${signed_by}`,
      why && `picked: ${why}`,
      when?.slice(0, 10),
      files.join(", "),
    ];
    return el(
      "li",
      {},
      el("a", { href, download: true, "data-release": release }, `Download ${release}.zip`),
      el("span", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
    );
  };
  byId("releases").replaceChildren(...written.map(entry));
}

async function write() {
  byId("problems").replaceChildren();
  const signed_by = byId("signed").value.trim();
  if (!signed_by) {
    byId("signed").focus();
    return complain(new Error("State who releases this: the name is kept in the study with the date."));
  }
  byId("write").disabled = true;
  say("Writing the release …");
  try {
    /** @type {Api.Written} */
    const made = await post(`${base}/releases`, { ...order(), signed_by });
    picked.set(null);
    say(
      made.already
        ? `It was written before, as ${made.release}: nothing was written again.`
        : "The release is written.",
    );
    await releases();
    markSteps();
    all("a", byId("releases"))
      .find((link) => link.dataset.release === made.release)
      ?.focus();
  } catch (error) {
    complain(error);
    say("");
  } finally {
    byId("write").disabled = false;
  }
}

byId("rule").addEventListener("change", () => {
  state.rule = byId("rule").value ? { type: byId("rule").value } : null;
  drawRule();
});
byId("rule-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sayRule();
  choose();
});
byId("check-form").addEventListener("submit", check);
byId("write").addEventListener("click", write);
byId("look-internal").addEventListener("click", () => look("internal"));
byId("look-external").addEventListener("click", () => look("external"));
byId("candidate").addEventListener("input", sayPick);

// A candidate that a person names: why, and how to go back to the rule.
function sayPick() {
  const own = Boolean(byId("candidate").value.trim());
  byId("picked").hidden = !own;
  if (!own) picked.set(null);
}

function take(pick) {
  byId("candidate").value = wordsOf(pick.id, state.candidates);
  byId("reason").value = pick.reason;
  sayPick();
  byId("checks-head").scrollIntoView();
  return check();
}

async function begin() {
  const [forms, map] = await Promise.all([get(`${root}/api/forms`), get(`${base}/map`)]);
  const carried = tried.get();
  state.forms = forms.rules;
  state.own = map.rule;
  state.rule = carried?.rule || (map.rule && { ...map.rule });
  state.axes = {
    ...(carried?.utility ? { risk: carried.risk, utility: carried.utility } : {}),
    ...(carried?.limits ? { limits: carried.limits } : {}),
  };
  state.candidates = named(map);
  offer(byId("ids"), state.candidates);
  byId("rule").replaceChildren(...options([["", "none yet"], ...forms.rules.map((form) => form.type)]));
  drawRule();
  const pick = picked.get();
  await Promise.all([choose(), releases(), pick ? take(pick) : null]);
}
begin().catch(complain);
