// Candidates by name: what a person picks from, and the id behind it.
import { draw, el } from "./api.js";
import { rowsOf } from "./points.js";

const MOST = 400; // that a list offers unasked; what is typed is found among all

// Every candidate of a map, those on the frontier first, each with the words it is called by.
export function named(map) {
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
      .slice(0, MOST)
      .map((row) => el("option", { value: row.words }, row.frontier ? "on the frontier" : "")),
  );
}

// The id of what was typed: a name, or an id as reports print it.
export function idOf(text, candidates) {
  const typed = text.trim();
  return candidates.find((row) => row.words === typed)?.id ?? typed;
}

export const wordsOf = (id, candidates) => candidates.find((row) => row.id === id)?.words ?? id;
