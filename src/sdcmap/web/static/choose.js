import { base, byId, complain, el, get, post, root, say } from "./api.js";
import { fieldsOf } from "./forms.js";

const state = { forms: [], rule: null, override: {} };

function drawRule() {
  const form = state.forms.find((rule) => rule.type === state.rule.type);
  byId("rule-entries").replaceChildren(...fieldsOf(form, state.rule, { grids: false }));
}

async function choose() {
  try {
    const choice = await post(`${base}/choices`, { rule: state.rule });
    const runners = choice.runners_up.map((words) => el("li", {}, words));
    byId("choice").replaceChildren(
      el("div", { class: "verdict" }, el("strong", {}, choice.candidate ? choice.name : "Release nothing"), el("p", {}, choice.reason)),
      ...(runners.length ? [el("h3", {}, "Runners-up"), el("ul", {}, ...runners)] : []));
  } catch (error) {
    const alarm = el("div", { class: "alarm", role: "alert" });
    byId("choice").replaceChildren(alarm);
    complain(error, alarm);
  }
}

function order() {
  const limit = byId("max-risk").value.trim();
  const reasons = Object.fromEntries(Object.entries(state.override).filter(([, reason]) => reason.trim()));
  return {
    rule: state.rule, candidate: byId("candidate").value.trim(), profile: byId("profile").value,
    max_risk: limit === "" ? null : Number(limit), again: byId("again").checked, confirm_roles: byId("confirm-roles").checked, override: reasons,
  };
}

function drawChecks(result) {
  const asked = new Set();  // one reason for all failed checks of a name
  const line = (check) => {
    const entry = el("li", {}, el("span", { class: check.passed ? "tick" : "cross" }, el("strong", {}, check.name), `: ${check.sentence}`));
    if (!check.passed && !check.hard && !asked.has(check.name)) {
      asked.add(check.name);
      const id = `override-${check.name.replace(/\W/g, "-")}`;
      const box = el("input", { id, type: "text", value: state.override[check.name] || "" });
      box.addEventListener("input", () => (state.override[check.name] = box.value));
      entry.append(el("div", {}, el("label", { for: id }, `Why “${check.name}” may be overridden`), box));
    }
    return entry;
  };
  byId("checks").replaceChildren(
    el("p", {}, el("strong", { class: result.passed ? "good" : "bad" }, result.passed ? "Every check passed." : "This may not be released as it is."), ` ${result.name}`),
    el("ul", { class: "links" }, ...result.checks.map(line)));
}

async function releases() {
  const written = await get(`${base}/releases`).catch(() => ({ releases: [] }));
  byId("releases").replaceChildren(...written.releases.map((bundle) => el("li", {},
    el("a", { href: `${base}/releases/${encodeURIComponent(bundle.release)}.zip`, download: true }, `Download ${bundle.release}.zip`),
    el("span", { class: "quiet" }, bundle.files.join(", ")))));
}

byId("rule").addEventListener("change", () => { state.rule = { type: byId("rule").value }; drawRule(); });
byId("rule-form").addEventListener("submit", (event) => { event.preventDefault(); choose(); });
byId("check-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("checks").replaceChildren(el("p", { class: "quiet" }, "Making the candidate again and reading it back …"));
  try {
    drawChecks(await post(`${base}/checks`, order()));
  } catch (error) {
    const alarm = el("div", { class: "alarm", role: "alert" });
    byId("checks").replaceChildren(alarm);
    complain(error, alarm);
  }
});
byId("write").addEventListener("click", async () => {
  byId("problems").replaceChildren();
  byId("write").disabled = true;
  say("Writing the release …");
  try {
    await post(`${base}/releases`, order());
    say("The release is written.");
    await releases();
    byId("releases").lastElementChild?.querySelector("a").focus();
  } catch (error) {
    complain(error);
    say("");
  } finally {
    byId("write").disabled = false;
  }
});

async function begin() {
  const [forms, map] = await Promise.all([get(`${root}/api/forms`), get(`${base}/map`)]);
  state.forms = forms.rules;
  state.rule = map.rule || { type: "Threshold" };
  byId("rule").replaceChildren(...forms.rules.map((form) => el("option", { value: form.type, selected: form.type === state.rule.type }, form.type)));
  drawRule();
  if (map.rule) choose();
  await releases();
}
begin().catch(complain);
