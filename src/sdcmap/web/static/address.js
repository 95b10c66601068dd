// The view of a page, stored in its address.
const query = new URLSearchParams(location.search);
const numbers = (text) => text.split(",").map(Number);
const see = query.has("see") ? numbers(query.get("see")) : [];

export const savedView = {
  asks: ["risk", "utility", "rule", "limits"].some((name) => query.has(name)),
  by: query.get("by"),
  rows: query.get("rows"),
  color: query.get("color"),
  point: query.get("point"),
  hide: query.getAll("hide"),
  selected: query.getAll("selected"),
  see: see.length === 4 && see.every(Number.isFinite) ? { x: see.slice(0, 2), y: see.slice(2) } : null,

  // Rule, limits and axes as in `tried`; `rules`: rules with one number, whose field is `lever`.
  asked(rules) {
    const type = query.get("rule"),
      at = query.get("at");
    const name = type ? rules[type]?.lever : null;
    return {
      rule: type ? { type, ...(name && at ? { [name]: Number(at) } : {}) } : null,
      limits: JSON.parse(query.get("limits") ?? "null"),
      ...(query.get("utility") ? { risk: query.getAll("risk"), utility: query.get("utility") } : {}),
    };
  },
};

// Lists are repeated parameters; empty values are left out.
export function saveToAddress(facts) {
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries(facts)) {
    for (const one of Array.isArray(value) ? value : value === "" || value === null ? [] : [value])
      next.append(name, one);
  }
  history.replaceState(null, "", `${location.pathname}${next.size ? `?${next}` : ""}`);
}
