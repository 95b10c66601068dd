// What the words of the pages mean: shown when the pointer or the focus is on one (docs/glossary.md has them all).
export const MEANINGS = {
  anchor: "One of the two ends of the map: the file as it is, and releasing nothing.",
  area: "What a search wins: how much of the way from “release everything” and “lose everything” its releases cover.",
  band: "Where the middle 95 % of single releases of a method lie; it needs 40 draws.",
  bundle: "What leaves the room: data, codebook, method note and checksums.",
  candidate: "One release that could be made: a method with its parameters, and a draw number.",
  draw: "One random making of a method. Draws count from 1.",
  DUS: "Data utility for society: how sure society is of its number after the release; 0 is certain.",
  frontier: "The candidates that no other beats on both axes.",
  gate: "The checks of the written file: it is attacked by somebody who knows every column that others could know.",
  IEK: "Intruder's estimated knowledge: how much the intruder knows, as the agency sees it; 0 is that he knows exactly.",
  key: "A column that a snooper may know of a person, such as age or region.",
  ledger: "The private memory of all releases, so that two of them do not tell together what each keeps.",
  limit: "The largest risk that is tolerable. Fix it before the first score.",
  loss: "A utility measure that is better when lower.",
  "missing code":
    "A value that stands for no answer, such as -8 or 99: it is kept apart, and is no value of the column.",
  plan: "What to make, what to measure, how to choose; fixed before the first score.",
  profile: "Named limits for a kind of release: for everybody, for science, for teaching.",
  RDH: "Risk of discredit harm: how sure the intruder is of his value, rightly or not; 0 is certain.",
  risk: "How much somebody can learn of a person from the release, by the measure that is named.",
  role: "What a column is: a key, sensitive, an amount, an identifier, the survey's own, or none of these.",
  rule: "How the map becomes a choice, such as: the least loss under a risk limit.",
  search: "It tries methods that the plan does not name, generation by generation, and keeps those that nothing beats.",
  SEK: "Society's estimated knowledge: how much society knows of its number, as the agency sees it; 0 is that it knows.",
  study: "The folder of one sweep: plan, scores and working copy. Private.",
  sweep: "Making and scoring every candidate of a plan.",
};
const SAME = { anchors: "anchor", candidates: "candidate", draws: "draw", keys: "key", limits: "limit", roles: "role" };

// An element that explains its word; a word that nobody explains stays as it is.
export function explain(node, word = node.textContent.trim()) {
  const means = MEANINGS[word] || MEANINGS[SAME[word]];
  if (!means) return node;
  node.classList.add("word");
  node.setAttribute("tabindex", "0");
  node.setAttribute("data-means", means);
  node.setAttribute("aria-description", means);
  return node;
}

export function word(name, shown = name) {
  const made = document.createElement("span");
  made.textContent = shown;
  return explain(made, name);
}

for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".word")))
  explain(node, node.dataset.word || node.textContent?.trim());
