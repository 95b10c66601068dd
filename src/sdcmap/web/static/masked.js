// What masking did to the data: relations as heat maps, and single records with their values.
import { all, base, complain, el, get, hint, options, quiet, region, tableOf, whole } from "./api.js";
import { drawChart } from "./chart.js";

// A section whose content is requested when it is opened for the first time.
export function lazily(words, show) {
  const place = el("div", {}, quiet("Creating the candidate again …"));
  const details = el("details", {}, el("summary", {}, words), place);
  details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.asked) return;
    details.dataset.asked = "true";
    try {
      await show(place);
    } catch (error) {
      complain(error, place);
    }
    details.dataset.shown = "true";
  });
  return details;
}

export async function picture(place, spec, words) {
  const chart = el("div", { class: "chart" });
  place.append(chart);
  return drawChart(chart, spec, words);
}

// How many analyses of users lead to another conclusion, and the estimates that masking changed most.
export async function analyses(place, id) {
  place.replaceChildren(quiet("Creating the candidate again …"));
  /** @type {Api.Analyses} */
  const { sentence, rules, table: part, chart } = await get(`${base}/candidates/${id}/analyses`);
  place.replaceChildren(el("p", { class: "words" }, el("strong", {}, sentence)));
  if (!part) return;
  const table = tableOf(
    part.head.map((head) => [head, ["original", "release"].includes(head) ? "n" : "words"]),
    part.rows,
  );
  place.append(el("p", { class: "hint words" }, rules));
  const words =
    "Estimates of the original and of this release with 95 % intervals, in standard errors of the original; the table below contains the numbers.";
  if (chart) await picture(place, chart, words);
  place.append(region(part.name, table));
}

// Correlations of the numeric columns, and a two-way table of two selected columns.
export async function relations(place, id) {
  const ask = (pair = {}) => get(`${base}/candidates/${id}/relations?${new URLSearchParams(pair)}`);
  const response = await ask();
  place.replaceChildren();
  if (response.words) place.append(quiet(response.words));
  if (response.correlations)
    await picture(
      place,
      response.correlations,
      "Correlations of the numeric columns before and after masking, as two heat maps.",
    );
  if (!response.table) return;
  const boxes = ["down", "across"].map((way, at) => {
    const box = el("select", { id: `${way}-${id}` }, ...options(response.columns, response.pair[at]));
    return { box, field: el("div", {}, el("label", { for: box.id }, at ? "by" : "Table of"), box) };
  });
  const [down, across] = boxes.map(({ box }) => box);
  const table = el("div");
  const draw = async (spec) => {
    table.replaceChildren();
    await picture(
      table,
      spec,
      `${down.value} by ${across.value}: percent of the records before, after, and the change.`,
    );
  };
  place.append(el("div", { class: "bar" }, ...boxes.map(({ field }) => field)), table);
  place.addEventListener("change", async () => {
    try {
      await draw((await ask({ down: down.value, across: across.value })).table);
    } catch (error) {
      complain(error, table);
    }
  });
  await draw(response.table);
}

// One record of the masked file beside its original.
export async function values(place, id, row) {
  /** @type {Api.RecordValues} */
  const record = await get(`${base}/candidates/${id}/records/${row}`);
  const cells = ({ name, role, original, masked, changed }) => [
    name,
    role || "number",
    original ?? "",
    masked,
    changed ? "changed" : "",
  ];
  const table = tableOf([["column", "words"], "role", "original", "masked", ""], record.values.map(cells));
  all("tbody tr", table).forEach((line, at) => line.classList.toggle("differs", record.values[at].changed));
  const count = record.values.filter((one) => one.changed).length;
  const counted = `${count === 1 ? "one value" : `${whole(count)} values`} of ${whole(record.values.length)} changed`;
  const words =
    record.original_row === null
      ? record.reason
      : `Row ${whole(record.original_row + 1)} of the original; ${counted}. For internal use only: no report and no release contains it.`;
  place.replaceChildren(
    el("h3", {}, `Record ${whole(row + 1)} before and after`),
    hint(words),
    region(`Values of record ${row + 1}`, table, "wide tall"),
  );
  place.scrollIntoView({ block: "nearest" });
  place.focus({ preventScroll: true });
}
