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
import { idOf, listCandidates, offer, nameOf } from "./candidates.js";
import { showChoice } from "./choices.js";
import { fieldsOf } from "./forms.js";
import { analyses, lazily } from "./masked.js";

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
  /** @type {ReturnType<typeof listCandidates>} */
  candidates: [],
  /** @type {Api.ChosenCandidate | null} */
  choice: null,
};
// check: the page on which to fix it, and the text of the link
const FIXES = {
  roles: ["data", "Review the roles"],
  limit: ["plan", "Add a limit to the plan"],
  risk: ["plan", "Plan stronger methods"],
  profile: ["plan", "Plan stronger methods"],
  unmasked: ["plan", "Mask these columns in the plan"],
  edits: ["plan", "Add a step to the plan"],
  weight: ["plan", "Add a step to the plan"],
  recoverable: ["data", "Drop a column"],
  identifier: ["data", "State the identifiers"],
};

// ---- the rule -----------------------------------------------------------------------------------------------------
const isOwn = () =>
  state.own && !Object.keys(state.axes).length && JSON.stringify(state.rule) === JSON.stringify(state.own);
const ruleRequest = () => (isOwn() ? {} : { rule: state.rule, ...state.axes });

function drawRule() {
  const form = state.forms.find((rule) => rule.type === state.rule?.type);
  byId("rule").value = state.rule?.type || "";
  byId("rule-entries").replaceChildren(
    ...(form ? fieldsOf(form, state.rule ?? {}, { grids: false, changed: describeRule }) : []),
  );
  describeRule();
}

function describeRule() {
  const origin = tried.get() ? "This rule was tried on the map" : "This rule is stated here";
  const sentence = !state.rule
    ? "The plan has no rule. State one, or name a candidate below."
    : isOwn()
      ? "This is the plan's rule."
      : `${origin}; ${state.own ? "it is not the plan's. " : "the plan has none."}`;
  const canGoBack = state.rule && state.own && !isOwn();
  const back = button("Back to the plan's rule", () => use(state.own), { id: "own-rule" });
  byId("rule-said").replaceChildren(sentence, ...(canGoBack ? [back] : []));
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
    const choice = await post(`${base}/choices`, ruleRequest());
    state.choice = choice;
    const id = choice.candidate;
    const findings = id ? [lazily("What users of this file will find", (place) => analyses(place, id))] : [];
    showChoice(byId("choice"), choice, "choose another profile", ...findings);
    document.body.dataset.chosen = choice.candidate || "nothing";
  } catch (error) {
    byId("choice").replaceChildren(alarm(error));
  }
}

// ---- the checks ---------------------------------------------------------------------------------------------------
function releaseRequest() {
  const limit = byId("max-risk").value.trim();
  const reasons = Object.fromEntries(Object.entries(state.override).filter(([, reason]) => reason.trim()));
  return {
    ...ruleRequest(),
    candidate: idOf(byId("candidate").value, state.candidates),
    profile: byId("profile").value,
    max_risk: limit === "" ? null : Number(limit),
    again: byId("again").checked,
    confirm_roles: byId("confirm-roles").checked,
    excel_safe: byId("excel-safe").checked,
    override: reasons,
    reason: byId("candidate").value.trim() ? byId("reason").value.trim() : "",
  };
}

function reason(check) {
  const id = `override-${check.name.replace(/\W/g, "-")}`;
  state.override[check.name] ||= byId("candidate").value.trim() ? byId("reason").value.trim() : ""; // the reason for the pick is proposed
  const box = textBox({ id, value: state.override[check.name], autocomplete: null, spellcheck: null });
  box.addEventListener("input", () => (state.override[check.name] = box.value));
  return el("div", {}, el("label", { for: id }, `Why “${check.label}” may be overridden`), box);
}

/** @param {Api.Checks} result */
function drawChecks(result) {
  const explained = new Set(); // checks with the same name share one advice and one reason
  const line = (check) => {
    const entry = el(
      "li",
      { class: check.passed ? "" : "failed" },
      el(
        "span",
        { class: check.passed ? "tick" : "cross" },
        el("strong", { title: check.description }, check.label),
        `: ${check.reason}`,
      ),
    );
    if (check.passed || explained.has(check.name)) return entry;
    explained.add(check.name);
    const [target, linkText] = FIXES[check.name] || [];
    entry.append(
      el(
        "p",
        { class: "todo" },
        el("strong", {}, "What to do: "),
        `${check.remedy} `,
        target ? el("a", { href: page(target) }, linkText) : null,
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
        result.passed ? "Every check passed." : "This candidate cannot be released as it is.",
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
  byId("checks").replaceChildren(quiet("Creating the candidate again and checking the written files …"));
  try {
    /** @type {Api.Checks} */
    const result = await post(`${base}/checks`, releaseRequest());
    drawChecks(result);
    drawBundle(result);
  } catch (error) {
    byId("checks").replaceChildren(alarm(error));
  }
}

// ---- the files of the release --------------------------------------------------------------------------------------
const size = (bytes) => (bytes < 1e4 ? `${whole(bytes)} bytes` : `${whole(Math.round(bytes / 1e3))} kB`);

/** @param {Api.Checks} result */
function drawBundle(result) {
  if (!result.files.length)
    return byId("files").replaceChildren(hint("Nothing would be released; the checks say why."));
  const treatment = (column) => (column.masked ? column.done : "unchanged");
  const columns = tableOf(
    [["column", "words"], "label", "kind", ["treatment", "words"]],
    result.columns.map((column) => [column.name, column.label, column.kind, treatment(column)]),
  );
  const fold = (name, note, inside) =>
    el("details", { class: "file" }, el("summary", {}, name, el("span", { class: "quiet" }, ` ${note}`)), inside);
  const head = ({ name, head: lines, whole: isWhole }) =>
    el("pre", { tabindex: "0", role: "region", "aria-label": `First lines of ${name}` }, lines + (isWhole ? "" : "…"));
  const counts = `${result.files.length} files and ${result.columns.length} columns would be released.`;
  byId("files").replaceChildren(
    el("p", {}, `${counts} Nothing has been written.`),
    ...result.files.map((file) =>
      fold(file.name, size(file.bytes), file.head ? head(file) : quiet("This is not a text file.")),
    ),
    fold("Columns of the file", result.columns.length, region("Columns", columns)),
  );
}

// Show the report of the selected candidate in a sandboxed frame.
function showReport(audience) {
  const { candidate, reason: why } = releaseRequest();
  const trial = !candidate && !isOwn() && state.choice?.candidate; // chosen by a rule that is not the plan's
  const stated = trial ? `A rule that is not in the plan chose it. ${state.choice?.reason}`.slice(0, 2000) : why;
  const query = new URLSearchParams({ audience, candidate: candidate || trial || "", reason: stated });
  const frame = el("iframe", { title: `The ${audience} report`, sandbox: "", src: `${base}/report/preview?${query}` });
  const waiting = el("p", { class: "quiet", role: "status" }, "Writing the report …");
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
    return complain(new Error("State who releases this file. The name is stored in the study with the date."));
  }
  byId("write").disabled = true;
  say("Writing the release …");
  try {
    /** @type {Api.ReleaseFiles} */
    const written = await post(`${base}/releases`, { ...releaseRequest(), signed_by });
    picked.set(null);
    say(
      written.already
        ? `The same release was written before, as ${written.release}. Nothing was written again.`
        : "The release was written.",
    );
    await releases();
    markSteps();
    all("a", byId("releases"))
      .find((link) => link.dataset.release === written.release)
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
  describeRule();
  choose();
});
byId("check-form").addEventListener("submit", check);
byId("write").addEventListener("click", write);
byId("look-internal").addEventListener("click", () => showReport("internal"));
byId("look-external").addEventListener("click", () => showReport("external"));
byId("candidate").addEventListener("input", updatePick);

// Ask for a reason if the user names a candidate; without one, the rule's choice is used.
function updatePick() {
  const own = Boolean(byId("candidate").value.trim());
  byId("picked").hidden = !own;
  if (!own) picked.set(null);
}

function take(pick) {
  byId("candidate").value = nameOf(pick.id, state.candidates);
  byId("reason").value = pick.reason;
  updatePick();
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
  state.candidates = listCandidates(map);
  offer(byId("ids"), state.candidates);
  byId("rule").replaceChildren(...options([["", "none yet"], ...forms.rules.map((form) => form.type)]));
  drawRule();
  const pick = picked.get();
  await Promise.all([choose(), releases(), pick ? take(pick) : null]);
}
begin().catch(complain);
