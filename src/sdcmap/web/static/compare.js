// Two studies beside each other.
import { byId, complain, el, fill, get, root, short, whole } from "./api.js";
import { drawChart } from "./chart.js";

const { first, second } = byId("compared").dataset;
const day = (when) => (when ? when.slice(0, 10) : "");

function pick(box, names, shown) {
  box.replaceChildren(...names.map((name) => el("option", { selected: name === shown }, name)));
  box.disabled = names.length < 2;
}

const release = (one) =>
  el(
    "li",
    {},
    [one.name, day(one.when), one.signed_by && `signed by ${one.signed_by}`, one.reason].filter(Boolean).join(" · ") ||
      one.release,
  );
const list = (releases) => (releases.length ? el("ul", { class: "plain" }, ...releases.map(release)) : "none");

function chosen({ studies, risk, utility }) {
  const of = (read) => studies.map(read);
  fill(
    byId("chosen"),
    ["", ...of((study) => [study.name, "words"])],
    [
      ["candidates with scores", ...of((study) => whole(study.candidates))],
      ["on the frontier", ...of((study) => whole(study.frontier))],
      ["its rule chooses", ...of((study) => study.choice || "there is no rule")],
      [risk || "risk", ...of((study) => (study.risk === null ? "" : short(study.risk)))],
      [utility || "utility", ...of((study) => (study.utility === null ? "" : short(study.utility)))],
      ["because", ...of((study) => study.reason)],
      ["released", ...of((study) => list(study.releases))],
    ],
  );
}

async function show() {
  const asked = new URLSearchParams({ first, second, risk: byId("risk").value, utility: byId("utility").value });
  try {
    const compared = await get(`${root}/api/comparisons?${asked}`);
    byId("problems").replaceChildren();
    pick(byId("risk"), compared.risks, compared.risk);
    pick(byId("utility"), compared.utilities, compared.utility);
    byId("axes").hidden = !compared.chart;
    byId("same").textContent =
      compared.reason ||
      (compared.same_data
        ? "Both studies are of the same file with the same roles: their numbers can be compared."
        : "The studies are of different files, or of other roles: each number speaks of its own file.");
    chosen(compared);
    fill(
      byId("differences"),
      ["", [first, "words"], [second, "words"]],
      compared.differences.map((one) => [one.what, one.first, one.second]),
      "Nothing: the plans state the same.",
    );
    if (compared.chart)
      await drawChart(
        byId("chart"),
        compared.chart,
        `Frontiers of ${first} and ${second}; rings are what their rules choose. The tables below hold the choices.`,
      );
    else byId("chart").replaceChildren();
  } catch (error) {
    complain(error);
  }
  document.body.dataset.compared = "true";
}

byId("axes").addEventListener("change", show);
show();
