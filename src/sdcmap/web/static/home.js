import { byId, complain, el, get, root, say, send, whole } from "./api.js";

const form = byId("upload");
const limit = Number(form.dataset.limit);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = byId("file").files[0];
  if (!file) return;
  form.querySelector("[role=alert]")?.remove();
  const alarm = el("div", { role: "alert", class: "alarm" });
  if (file.size > limit) {
    alarm.textContent = `${file.name} has more than ${Math.round(limit / 1e6)} MB: it was not sent.`;
    return form.append(alarm);
  }
  const body = new FormData();
  body.append("file", file);
  const button = form.querySelector("button");
  button.disabled = true;
  say("Sending the file …");
  try {
    const kept = await send(`${root}/api/files`, body);
    location.assign(`${root}/data?file=${encodeURIComponent(kept.name)}`);
  } catch (error) {
    form.append(alarm);
    complain(error, alarm);
    say("");
  } finally {
    button.disabled = false;
  }
});

// What each study is about comes after the page: the list itself is there at once.
const day = (when) => new Date(when).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const STATES = { "not begun": "planned", done: "swept", running: "running now", "running elsewhere": "running elsewhere" };

function facts(study) {
  const far = study.candidates === null ? "its plan cannot be read" : `${whole(study.done)} of ${whole(study.candidates)} candidates`;
  const released = study.releases ? `${study.releases} release${study.releases > 1 ? "s" : ""}` : "";
  return [study.file, far, STATES[study.state] || study.state, released, day(study.changed)].filter(Boolean).join(" · ");
}

if (byId("study-links")) {
  get(`${root}/api/studies`).then(({ studies }) => {
    for (const study of studies) {
      const place = document.querySelector(`[data-study="${CSS.escape(study.name)}"]`);
      if (place) place.textContent = facts(study);
    }
    document.body.dataset.listed = "true";
  }).catch(() => {});
}
