import { base, byId, complain, el, fill, get, markSteps, page, picked, post, root, say, tried, whole } from "./api.js";
import { idOf, named, offer, wordsOf } from "./candidates.js";
import { fieldsOf } from "./forms.js";

const state = { forms: [], own: null, rule: null, axes: {}, override: {}, candidates: [], choice: null };
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
const isOwn = () => state.own && !state.axes.utility && JSON.stringify(state.rule) === JSON.stringify(state.own);
const asked = () => (isOwn() ? {} : { rule: state.rule, ...state.axes });

function drawRule() {
  const form = state.forms.find((rule) => rule.type === state.rule?.type);
  byId("rule").value = state.rule?.type || "";
  byId("rule-entries").replaceChildren(...(form ? fieldsOf(form, state.rule, { grids: false, changed: sayRule }) : []));
  sayRule();
}

function sayRule() {
  const back = el(
    "button",
    { type: "button", class: "second", id: "own-rule", onclick: () => use(state.own) },
    "Back to the plan's rule",
  );
  const whence = tried.get() ? "This rule was tried on the map" : "This rule is stated here";
  byId("rule-said").replaceChildren(
    ...(!state.rule
      ? ["The plan states no rule: state one, or name a candidate below."]
      : isOwn()
        ? ["This is the plan's rule."]
        : [
            state.own ? `${whence}; it is not the plan's. ` : `${whence}; the plan states none.`,
            state.own ? back : null,
          ].filter(Boolean)),
  );
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
    const choice = (state.choice = await post(`${base}/choices`, asked()));
    const runners = choice.runners_up.map(({ name, reason }) => el("li", {}, `${name}: ${reason}`));
    const next = choice.candidate
      ? []
      : [
          el(
            "p",
            {},
            "What to do: ",
            el("a", { href: page("plan") }, "plan stronger methods"),
            ", ",
            el("a", { href: page("sweep") }, "search for a release"),
            ", or choose another profile.",
          ),
        ];
    byId("choice").replaceChildren(
      el(
        "div",
        { class: "verdict" },
        el("strong", {}, choice.candidate ? choice.name : "Release nothing"),
        el("p", {}, choice.reason),
        ...next,
      ),
      ...(runners.length ? [el("h3", {}, "Runners-up"), el("ul", {}, ...runners)] : []),
    );
    document.body.dataset.chosen = choice.candidate || "nothing";
  } catch (error) {
    alarm("choice", error);
  }
}

function alarm(place, error) {
  const made = el("div", { class: "alarm", role: "alert" });
  byId(place).replaceChildren(made);
  complain(error, made);
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
  const box = el("input", { id, type: "text", value: state.override[check.name] });
  box.addEventListener("input", () => (state.override[check.name] = box.value));
  return el("div", {}, el("label", { for: id }, `Why “${check.name}” may be overridden`), box);
}

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
  byId("checks").replaceChildren(el("p", { class: "quiet" }, "Making the candidate again and reading it back …"));
  try {
    const result = await post(`${base}/checks`, order());
    drawChecks(result);
    drawBundle(result);
  } catch (error) {
    alarm("checks", error);
  }
}

// ---- what would leave ---------------------------------------------------------------------------------------------
const size = (bytes) => (bytes < 1e4 ? `${whole(bytes)} bytes` : `${whole(Math.round(bytes / 1e3))} kB`);

function drawBundle(result) {
  if (!result.files.length)
    return byId("files").replaceChildren(el("p", { class: "hint" }, "Nothing would leave: the checks say why."));
  const columns = el("table");
  const done = (column) => (column.masked ? column.done : "as it is");
  fill(
    columns,
    [["column", "words"], "label", "kind", ["what was done", "words"]],
    result.columns.map((column) => [column.name, column.label, column.kind, done(column)]),
  );
  const head = (file) =>
    el(
      "pre",
      { tabindex: "0", role: "region", "aria-label": `First lines of ${file.name}` },
      file.head + (file.whole ? "" : "…"),
    );
  const file = (one) =>
    el(
      "details",
      { class: "file" },
      el("summary", {}, one.name, el("span", { class: "quiet" }, ` ${size(one.bytes)}`)),
      one.head ? head(one) : el("p", { class: "quiet" }, "Not a text."),
    );
  byId("files").replaceChildren(
    el(
      "p",
      {},
      `${result.files.length} files and ${result.columns.length} columns would leave. Nothing has been written.`,
    ),
    ...result.files.map(file),
    el(
      "details",
      { class: "file" },
      el("summary", {}, `Columns of the file `, el("span", { class: "quiet" }, `${result.columns.length}`)),
      el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Columns" }, columns),
    ),
  );
}

// The report in a frame that runs nothing, of what is on its way out.
function look(audience) {
  const { candidate, reason: why } = order();
  const tryout = !candidate && !isOwn() && state.choice?.candidate; // by a rule that is not the plan's
  const said = tryout ? `a rule that the plan does not state chooses it. ${state.choice.reason}`.slice(0, 2000) : why;
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
  const written = await get(`${base}/releases`).catch(() => ({ releases: [] }));
  byId("releases").replaceChildren(
    ...written.releases.map((bundle) =>
      el(
        "li",
        {},
        el(
          "a",
          { href: `${base}/releases/${encodeURIComponent(bundle.release)}.zip`, download: true },
          `Download ${bundle.release}.zip`,
        ),
        el(
          "span",
          { class: "quiet" },
          [
            bundle.name,
            bundle.signed_by && `signed by ${bundle.signed_by}`,
            bundle.reason && `picked: ${bundle.reason}`,
            bundle.when?.slice(0, 10),
            bundle.files.join(", "),
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
    ),
  );
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
    const made = await post(`${base}/releases`, { ...order(), signed_by });
    picked.set(null);
    say(
      made.already
        ? `It was written before, as ${made.release}: nothing was written again.`
        : "The release is written.",
    );
    await releases();
    markSteps();
    [...byId("releases").querySelectorAll("a")]
      .find((link) => link.href.includes(encodeURIComponent(made.release)))
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
  byId("rule").replaceChildren(
    el("option", { value: "" }, "none yet"),
    ...forms.rules.map((form) => el("option", { value: form.type }, form.type)),
  );
  drawRule();
  const pick = picked.get();
  await Promise.all([choose(), releases(), pick ? take(pick) : null]);
}
begin().catch(complain);
