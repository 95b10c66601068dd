// Shows a choice with the reason that Python gives.
import { el, page } from "./api.js";

export const candidateLink = (id, words) => el("a", { href: page("candidate", { id }) }, words);

export const deadEnd = (otherwise) =>
  el(
    "p",
    {},
    "What to do: ",
    el("a", { href: page("plan") }, "plan stronger methods"),
    ", ",
    el("a", { href: page("sweep") }, "search for a release"),
    `, or ${otherwise}.`,
  );

/**
 * @param {HTMLElement} node
 * @param {Api.ChosenCandidate} choice
 * @param {string} otherwise what else the user can do if nothing is chosen
 * @param {...Node} more nodes to show below it
 */
export function showChoice(node, choice, otherwise, ...more) {
  const runners = choice.runners_up.map(({ name, reason }) => el("li", {}, `${name}: ${reason}`));
  node.replaceChildren(
    el(
      "div",
      { class: "verdict" },
      el("strong", {}, choice.candidate ? choice.name : "Release nothing"),
      el("p", {}, choice.reason),
      choice.candidate ? el("p", {}, candidateLink(choice.candidate, "Open this candidate")) : deadEnd(otherwise),
    ),
    ...more,
    ...(runners.length ? [el("h3", {}, "Runners-up"), el("ul", {}, ...runners)] : []),
  );
}
