// Values of a plan as text: numbers, names, lists, and nested values such as the steps of a chain.

/** A nested value as text, such as Linkage(metric="l"). */
export function nestedText({ type, ...given }) {
  const fields = Object.entries(given).map(([name, value]) => `${name}=${literal(value)}`);
  return `${type}(${fields.join(", ")})`;
}

function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value?.type) return nestedText(value);
  return value === true ? "True" : value === false ? "False" : JSON.stringify(value);
}

/** @returns {string} */
export function toText(value) {
  if (Array.isArray(value)) return value.map(toText).join(value.some((part) => part?.type) ? "; " : ", ");
  if (value?.type) return nestedText(value);
  if (value && typeof value === "object")
    return Object.entries(value)
      .map(([name, of]) => `${name}: ${toText(of)}`)
      .join(", ");
  return value === null || value === undefined ? "" : String(value);
}
