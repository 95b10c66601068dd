// Values of a plan in words: numbers, names, lists, and values made of parts such as the steps of a chain.

/** A value made of parts as its text, such as Linkage(metric="l"). */
export function partOf({ type, ...given }) {
  const fields = Object.entries(given).map(([name, value]) => `${name}=${literal(value)}`);
  return `${type}(${fields.join(", ")})`;
}

function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value?.type) return partOf(value);
  return value === true ? "True" : value === false ? "False" : JSON.stringify(value);
}

/** @returns {string} */
export function inWords(value) {
  if (Array.isArray(value)) return value.map(inWords).join(value.some((part) => part?.type) ? "; " : ", ");
  if (value?.type) return partOf(value);
  if (value && typeof value === "object")
    return Object.entries(value)
      .map(([name, of]) => `${name}: ${inWords(of)}`)
      .join(", ");
  return value === null || value === undefined ? "" : String(value);
}
