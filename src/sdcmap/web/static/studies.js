// What can be done with a study of the list: notes, another name, a copy, a comparison, the archive, deletion.
import { button, complain, el, get, hint, one, options, post, put, remove, root, say, textBox } from "./api.js";

let count = 0;
const at = (study, part = "") => `${root}/api/studies/${encodeURIComponent(study.name)}${part}`;
const again = () => location.reload();

// A labeled field: the label, and the box it is of.
function field(words, box) {
  box.id ||= `field-${(count += 1)}`;
  return el("div", { class: "grow" }, el("label", { for: box.id }, words), box);
}

// A form whose button does something; what goes wrong is told in it.
function form(words, act, ...inside) {
  const submit = el("button", { type: "submit", class: "second" }, words);
  const alarm = el("div", { role: "alert" });
  const made = el("form", { class: "bar" }, ...inside, submit, alarm);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    alarm.replaceChildren();
    alarm.classList.remove("alarm");
    submit.disabled = true;
    try {
      await act();
    } catch (error) {
      alarm.classList.add("alarm");
      complain(error, alarm);
      if (error.status === 412)
        alarm.append(button("Show the saved ones", () => made.dispatchEvent(new Event("theirs"))));
    } finally {
      submit.disabled = false;
    }
  });
  return made;
}

function notes(study) {
  const box = el("textarea", { rows: "5", class: "prose", maxlength: "100000", disabled: true });
  let version = "";
  const load = async () => {
    const kept = await get(at(study, "/notes"));
    box.value = kept.text;
    version = kept.version;
    box.disabled = false;
  };
  const made = form(
    "Save the notes",
    async () => {
      version = (await put(at(study, "/notes"), { text: box.value, version })).version;
      say("The notes are saved, beside the study.");
    },
    field("Notes (in no release and no report)", box),
  );
  made.classList.add("notes");
  made.addEventListener("theirs", load);
  load().catch(() => {});
  return made;
}

function rename(study) {
  const box = textBox({ value: study.name, required: true, maxlength: "90" });
  return form(
    "Rename",
    async () => {
      await put(at(study, "/name"), { name: box.value.trim() });
      again();
    },
    field("Another name", box),
  );
}

function copy(study) {
  const box = textBox({ value: `${study.name} copy`, required: true, maxlength: "90" });
  const scores = el("input", { type: "checkbox", id: `scores-${(count += 1)}` });
  const flag = study.begun
    ? el("div", { class: "flag" }, scores, el("label", { for: scores.id }, "with its scores and its seed"))
    : null;
  return form(
    "Copy",
    async () => {
      await post(at(study, "/copies"), { name: box.value.trim(), scores: scores.checked });
      again();
    },
    field("A copy called", box),
    flag,
  );
}

function compare(study, others) {
  const begun = others.filter((other) => other.begun && other.name !== study.name);
  if (!study.begun || !begun.length) return null;
  const box = el("select", {}, ...options(begun.map((other) => other.name)));
  return form(
    "Compare",
    () => location.assign(`${root}/compare?${new URLSearchParams({ first: study.name, second: box.value })}`),
    field("Beside another study", box),
  );
}

function archive(study) {
  const words = study.archived ? "Back into the list" : "Archive";
  const about = hint(
    study.archived ? "It is out of the list; nothing else is different." : "Out of the list; nothing of it changes.",
  );
  return form(
    words,
    async () => {
      await put(at(study, "/archived"), { archived: !study.archived });
      again();
    },
    about,
  );
}

function erase(study) {
  const box = textBox();
  const made = form(
    "Delete for good",
    async () => {
      await remove(at(study, `?${new URLSearchParams({ typed: box.value })}`));
      again();
    },
    field(`Type “${study.name}” to delete it`, box),
  );
  const erase_ = one("button", made);
  erase_.classList.add("danger");
  erase_.disabled = true;
  box.addEventListener("input", () => (erase_.disabled = box.value !== study.name));
  const kept = study.releases
    ? ` Its ${study.releases === 1 ? "release stays" : `${study.releases} releases stay`} in the folder, but cannot be made again: the ledger will count ${study.releases === 1 ? "it" : "them"} as if every value had been told.`
    : "";
  return el("div", {}, hint(`Plan, scores, seed and notes are gone then.${kept}`), made);
}

// Everything about one study, made when it is opened.
/** @param {Api.StudyEntry} study @param {Api.StudyEntry[]} others */
export function actions(study, others) {
  const inside = el("div", { class: "shelf" });
  const made = el(
    "details",
    { class: "actions" },
    el("summary", { "aria-label": `More about ${study.name}` }, "More"),
    inside,
  );
  made.addEventListener("toggle", () => {
    if (!made.open || inside.childElementCount) return;
    const parts = [notes(study), compare(study, others), copy(study), rename(study), archive(study), erase(study)];
    inside.append(...parts.filter((part) => part !== null));
    made.dataset.open = "true";
  });
  return made;
}
