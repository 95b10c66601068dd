// What the pages find in the browser besides their own modules.
interface Window {
  workbench: Record<string, any>; // what the tests look at
  vegaEmbed: (node: HTMLElement, spec: object, options: object) => Promise<{ view: any }>;
}
declare module "*/vega.js";
