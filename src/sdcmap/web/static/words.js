// Explanations of terms, shown when a term is hovered or focused (docs/glossary.md has all terms).
export const MEANINGS = {
  anchor: "One of the two ends of the map: the unmasked file, and releasing nothing.",
  area: "The result of a search: the share of the area between the unmasked file and a total loss that its releases dominate.",
  bundle: "The files of a release: data, codebook, method note and checksums.",
  candidate: "A possible release: a method with its parameters, and the number of a draw.",
  draw: "One random realization of a method. Draws are counted from 1.",
  DUS: "Data utility for society: how certain society is about its number after the release; 0 is certain.",
  frontier: "The candidates that no other candidate beats on both axes.",
  IEK: "Intruder's estimated knowledge: how much the intruder knows, as the agency sees it; 0 means exact knowledge.",
  interval: "The range of the middle 95 % of single releases of a method; it needs 40 draws.",
  key: "A column that an attacker may know about a person, such as age or region (quasi-identifier).",
  ledger:
    "The private record of all releases, which prevents two releases from revealing more together than each alone.",
  limit: "The largest tolerable risk. Fix it before the first score.",
  loss: "A utility measure that is better when lower.",
  "missing code": "A value that means “no answer”, such as -8 or 99. It is not treated as a value of the column.",
  plan: "The methods, the measures and the rule of a study, fixed before the first score.",
  profile: "Named risk limits for a kind of release: public use, scientific use, teaching or business.",
  RDH: "Risk of discredit harm: how certain the intruder is about a value, whether right or wrong; 0 is certain.",
  "release checks":
    "Tests of the written files. They include attacks by somebody who knows every column that others could know.",
  risk: "How much an attacker can learn about a person from the release, by the named measure.",
  role: "What a column is: a key, sensitive, a numeric amount, an identifier, a survey column, or none of these.",
  rule: "How one candidate is chosen from the map, for example the smallest loss within a risk limit.",
  search: "Tries methods that are not in the plan, generation by generation, and keeps those that no other beats.",
  SEK: "Society's estimated knowledge: how much society knows about its number, as the agency sees it; 0 means exact knowledge.",
  study: "The private folder of a sweep: plan, scores and a working copy of the data.",
  sweep: "Creating and scoring every candidate of a plan.",
};
const PLURALS = {
  anchors: "anchor",
  candidates: "candidate",
  draws: "draw",
  keys: "key",
  limits: "limit",
  roles: "role",
};

// Add the explanation of its term to an element; elements with an unknown term stay unchanged.
export function explain(node, word = node.textContent.trim()) {
  const meaning = MEANINGS[word] || MEANINGS[PLURALS[word]];
  if (!meaning) return node;
  node.classList.add("word");
  node.setAttribute("tabindex", "0");
  node.setAttribute("data-means", meaning);
  node.setAttribute("aria-description", meaning);
  return node;
}

export function word(name, shown = name) {
  const node = document.createElement("span");
  node.textContent = shown;
  return explain(node, name);
}

for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".word")))
  explain(node, node.dataset.word || node.textContent?.trim());
