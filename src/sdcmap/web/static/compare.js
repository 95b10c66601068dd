// Two studies side by side.
import { byId, complain, el, fill, get, options, root, short, whole } from "./api.js";
import { drawChart } from "./chart.js";

const { first = "", second = "" } = byId("compared").dataset;
const day = (when) => (when ? when.slice(0, 10) : "");

function pick(box, names, shown) {
  box.replaceChildren(...options(names, shown));
  box.disabled = names.length < 2;
}

function list(releases) {
  const facts = ({ name, when, signed_by, reason }) => [name, day(when), signed_by && `signed by ${signed_by}`, reason];
  const words = (release) => facts(release).filter(Boolean).join(" · ") || release.release;
  return releases.length ? el("ul", { class: "plain" }, ...releases.map((one) => el("li", {}, words(one)))) : "none";
}

// The choice of each study's rule with its risk and utility, on the common axes or, without any, on the study's own.
/** @param {Api.Comparison} compared */
function chosen({ studies }) {
  const row = (head, read) => [head, ...studies.map(read)];
  const number = (study, value, label) => {
    if (!study.choice) return "";
    return el("span", {}, value === null ? "no value" : short(value), el("span", { class: "hint" }, ` ${label}`));
  };
  fill(
    byId("chosen"),
    ["", ...studies.map((study) => [study.name, "words"])],
    [
      row("candidates with scores", (study) => whole(study.candidates)),
      row("on the frontier", (study) => whole(study.frontier)),
      row("its rule chooses", (study) => study.choice || "there is no rule"),
      row("its risk", (study) => number(study, study.risk, study.labels[0])),
      row("its utility or loss", (study) => number(study, study.utility, study.labels[1])),
      row("because", (study) => study.reason),
      row("released", (study) => list(study.releases)),
    ],
  );
}

async function show() {
  const asked = new URLSearchParams({ first, second, risk: byId("risk").value, utility: byId("utility").value });
  try {
    /** @type {Api.Comparison} */
    const compared = await get(`${root}/api/comparisons?${asked}`);
    byId("problems").replaceChildren();
    pick(byId("risk"), compared.risks, compared.risk);
    pick(byId("utility"), compared.utilities, compared.utility);
    byId("axes").hidden = !compared.chart;
    byId("same").textContent =
      compared.reason ||
      (compared.same_data
        ? "Both studies use the same file with the same roles, so their numbers can be compared."
        : "The studies use different files or different roles, so their numbers cannot be compared directly.");
    chosen(compared);
    fill(
      byId("differences"),
      ["", [first, "words"], [second, "words"]],
      compared.differences.map((one) => [one.what, one.first, one.second]),
      "None: the plans are equal.",
    );
    if (compared.chart)
      await drawChart(
        byId("chart"),
        compared.chart,
        `Frontiers of ${first} and ${second}; rings mark the choices of their rules. The tables below contain the choices.`,
      );
    else byId("chart").replaceChildren();
  } catch (error) {
    complain(error);
  }
  document.body.dataset.compared = "true";
}

byId("axes").addEventListener("change", show);
show();
