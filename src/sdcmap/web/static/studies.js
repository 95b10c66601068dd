// Actions on a study of the list: notes, rename, copy, compare, archive, delete.
import { button, complain, el, get, hint, one, options, post, put, remove, root, say, textBox } from "./api.js";

let count = 0;
const at = (study, part = "") => `${root}/api/studies/${encodeURIComponent(study.name)}${part}`;
const reload = () => location.reload();

// A field with its label.
function field(words, box) {
  box.id ||= `field-${(count += 1)}`;
  return el("div", { class: "grow" }, el("label", { for: box.id }, words), box);
}

// A form with one button; errors are shown inside the form.
function form(words, act, ...inside) {
  const submit = el("button", { type: "submit", class: "second" }, words);
  const alarm = el("div", { role: "alert" });
  const element = el("form", { class: "bar" }, ...inside, submit, alarm);
  element.addEventListener("submit", async (event) => {
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
        alarm.append(button("Show the saved notes", () => element.dispatchEvent(new Event("theirs"))));
    } finally {
      submit.disabled = false;
    }
  });
  return element;
}

function notes(study) {
  const box = el("textarea", { rows: "5", class: "prose", maxlength: "100000", disabled: true });
  let version = "";
  const load = async () => {
    const saved = await get(at(study, "/notes"));
    box.value = saved.text;
    version = saved.version;
    box.disabled = false;
  };
  const element = form(
    "Save the notes",
    async () => {
      version = (await put(at(study, "/notes"), { text: box.value, version })).version;
      say("The notes are saved beside the study.");
    },
    field("Notes (in no release and no report)", box),
  );
  element.classList.add("notes");
  element.addEventListener("theirs", load);
  load().catch(() => {});
  return element;
}

function rename(study) {
  const box = textBox({ value: study.name, required: true, maxlength: "90" });
  return form(
    "Rename",
    async () => {
      await put(at(study, "/name"), { name: box.value.trim() });
      reload();
    },
    field("New name", box),
  );
}

function copy(study) {
  const box = textBox({ value: `${study.name} copy`, required: true, maxlength: "90" });
  const scores = el("input", { type: "checkbox", id: `scores-${(count += 1)}` });
  const flag = study.begun
    ? el("div", { class: "flag" }, scores, el("label", { for: scores.id }, "with scores and seed"))
    : null;
  return form(
    "Copy",
    async () => {
      await post(at(study, "/copies"), { name: box.value.trim(), scores: scores.checked });
      reload();
    },
    field("Name of the copy", box),
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
    field("Compare with", box),
  );
}

function archive(study) {
  const words = study.archived ? "Show in the list" : "Archive";
  const about = hint(
    study.archived
      ? "The study is hidden from the list; nothing else changed."
      : "Hides the study from the list; nothing else changes.",
  );
  return form(
    words,
    async () => {
      await put(at(study, "/archived"), { archived: !study.archived });
      reload();
    },
    about,
  );
}

function erase(study) {
  const box = textBox();
  const element = form(
    "Delete permanently",
    async () => {
      await remove(at(study, `?${new URLSearchParams({ typed: box.value })}`));
      reload();
    },
    field(`Type “${study.name}” to delete it`, box),
  );
  const deleteButton = one("button", element);
  deleteButton.classList.add("danger");
  deleteButton.disabled = true;
  box.addEventListener("input", () => (deleteButton.disabled = box.value !== study.name));
  const releases = study.releases
    ? ` Its ${study.releases === 1 ? "release stays" : `${study.releases} releases stay`} in the folder, but cannot be reproduced: the ledger will assume that ${study.releases === 1 ? "it" : "they"} disclosed every value.`
    : "";
  return el("div", {}, hint(`This deletes plan, scores, seed and notes.${releases}`), element);
}

// All actions of one study, created when they are opened.
/** @param {Api.StudyEntry} study @param {Api.StudyEntry[]} others */
export function actions(study, others) {
  const inside = el("div", { class: "study-actions" });
  const element = el(
    "details",
    { class: "actions" },
    el("summary", { "aria-label": `More about ${study.name}` }, "More"),
    inside,
  );
  element.addEventListener("toggle", () => {
    if (!element.open || inside.childElementCount) return;
    const parts = [notes(study), compare(study, others), copy(study), rename(study), archive(study), erase(study)];
    inside.append(...parts.filter((part) => part !== null));
    element.dataset.open = "true";
  });
  return element;
}
