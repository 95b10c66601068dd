import { alarm, byId, el, get, one, root, say, send, whole } from "./api.js";
import { actions } from "./studies.js";

const form = byId("upload");
const limit = Number(form.dataset.limit);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = byId("file").files?.[0];
  if (!file) return;
  form.querySelector("[role=alert]")?.remove();
  if (file.size > limit) {
    const most = Math.round(limit / 1e6);
    return form.append(alarm(new Error(`${file.name} has more than ${most} MB and was not uploaded.`)));
  }
  const body = new FormData();
  body.append("file", file);
  const button = one("button", form);
  button.disabled = true;
  say("Uploading the file …");
  try {
    const uploaded = await send(`${root}/api/files`, body);
    location.assign(`${root}/data?file=${encodeURIComponent(uploaded.name)}`);
  } catch (error) {
    form.append(alarm(error));
    say("");
  } finally {
    button.disabled = false;
  }
});

// Details of each study are loaded after the list itself; what its rule chooses takes longest.
const day = (when) => new Date(when).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const STATES = {
  "not begun": "planned",
  done: "complete",
  running: "running now",
  "running elsewhere": "running elsewhere",
};

/** @param {Api.StudyEntry} study */
function facts(study) {
  const far =
    study.candidates === null
      ? "the plan cannot be read"
      : `${whole(study.done)} of ${whole(study.candidates)} candidates`;
  const released = study.releases
    ? `${study.releases} release${study.releases > 1 ? "s" : ""}${study.released ? `, last ${study.released}` : ""}`
    : "";
  return [study.file, far, STATES[study.state] || study.state, released, day(study.changed)]
    .filter(Boolean)
    .join(" · ");
}

const line = (study) => document.querySelector(`li [data-study="${CSS.escape(study.name)}"]`);

async function list() {
  /** @type {Api.Studies} */
  const { studies } = await get(`${root}/api/studies`);
  for (const study of studies) {
    const node = line(study);
    if (!node) continue;
    node.textContent = facts(study);
    const note = study.note ? el("span", { class: "quiet note" }, study.note) : null;
    node.after(el("span", { class: "choice" }), ...(note ? [note] : []), actions(study, studies));
  }
  document.body.dataset.listed = "true";
  for (const study of (await get(`${root}/api/studies?choices=true`)).studies) {
    const node = line(study)?.parentElement?.querySelector(".choice");
    if (node && study.choice)
      node.textContent =
        study.choice === "release nothing" ? "its rule: release nothing" : `its rule chooses ${study.choice}`;
  }
}

if (document.querySelector("li [data-study]")) list().catch(() => {});
