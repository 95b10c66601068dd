// Vega without eval: expressions are interpreted (`ast`), no style is injected, and nothing is loaded.
/** @type {Promise<Window["vegaEmbed"]> | undefined} */
let vega;

// Charts use the colors of the screen; dark charts are inverted for printing (workbench.css).
export const dark = matchMedia("(prefers-color-scheme: dark)");
export const paper = matchMedia("print");
const updateTheme = () => paper.matches || document.documentElement.toggleAttribute("data-dark", dark.matches);
dark.addEventListener("change", updateTheme);
updateTheme();

export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function theme() {
  const [ink, gray, line] = [color("--ink"), color("--plot-gray"), color("--line")];
  return {
    background: null,
    font: "system-ui, Helvetica, Arial, sans-serif",
    view: { stroke: null },
    axis: {
      domainColor: gray,
      tickColor: gray,
      labelColor: ink,
      titleColor: ink,
      gridColor: line,
      labelFontSize: 12,
      titleFontSize: 13,
      titleFontWeight: "normal",
      titlePadding: 10,
    },
    legend: { labelColor: ink, titleColor: ink, labelFontSize: 12 },
    title: { color: ink },
  };
}

const options = {
  ast: true,
  defaultStyle: false,
  actions: false,
  renderer: "canvas",
  tooltip: { disableDefaultStyle: true },
};

// Draw a chart of the package; one with its own background is drawn as on paper.
export async function drawChart(node, spec, words) {
  const isPaper = "background" in spec;
  node.classList.toggle("paper", isPaper);
  const config = isPaper ? spec.config : { ...spec.config, ...theme() };
  const room = Math.min(spec.width || 420, Math.max(140, node.clientWidth - 80));
  const sized = typeof spec.width === "number" ? { ...spec, width: room } : spec;
  vega ||= import("./vega.js").then(() => window.vegaEmbed);
  const { view } = await (await vega)(node, { ...sized, config }, options);
  const canvas = node.querySelector("canvas");
  canvas?.setAttribute("role", "img");
  canvas?.setAttribute("aria-label", words);
  return view;
}
