// Candidates by name, to select from, and their ids.
import { draw, el } from "./api.js";
import { rowsOf } from "./points.js";

const MAX_OFFERED = 400; // candidates in a list; typed names are found among all

// Every candidate of a map with its name, those on the frontier first.
export function listCandidates(map) {
  const rows = rowsOf(map).filter((row) => !row.anchor);
  const often = new Set(rows.filter((row) => row.replicate).map((row) => row.method));
  const words = (row) => (often.has(row.method) ? `${row.name}, ${draw(row)}` : row.name);
  return rows
    .map((row) => ({ ...row, words: words(row) }))
    .sort((a, b) => Number(b.frontier) - Number(a.frontier) || a.loss - b.loss);
}

export function offer(list, candidates) {
  list.replaceChildren(
    ...candidates
      .slice(0, MAX_OFFERED)
      .map((row) => el("option", { value: row.words }, row.frontier ? "on the frontier" : "")),
  );
}

// The id of a typed name or id.
export function idOf(text, candidates) {
  const typed = text.trim();
  return candidates.find((row) => row.words === typed)?.id ?? typed;
}

export const nameOf = (id, candidates) => candidates.find((row) => row.id === id)?.words ?? id;
