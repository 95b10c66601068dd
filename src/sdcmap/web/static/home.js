import { byId, complain, el, root, say, send } from "./api.js";

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
