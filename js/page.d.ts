// Global names that the pages use besides their own modules.
interface Window {
  workbench: Record<string, any>; // for the tests
  vegaEmbed: (node: HTMLElement, spec: object, options: object) => Promise<{ view: any }>;
}
declare module "*/vega.js";
