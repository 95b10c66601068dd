// The rows of a map: its points, or its methods by their means.

/**
 * @typedef {object} Row
 * @property {string} [id] of a point
 * @property {number} [replicate] of a point
 * @property {number} [count] of a method: its releases
 * @property {number | null} [membership]
 * @property {string} method
 * @property {string} name
 * @property {string} short
 * @property {string} family
 * @property {number | null} era
 * @property {number} risk
 * @property {number} utility
 * @property {number} loss less is better
 * @property {boolean} anchor
 * @property {boolean} frontier
 * @property {boolean} worse than not masking: more risk and less utility than the unmasked file
 * @property {number} [line] of a point on a curve: the index of the curve ...
 * @property {number} [index] ... and of the point on it
 * @property {string} [outside] the first limit that it exceeds
 * @property {(measure: string) => number | null} level what a limit on a measure is compared with; null: no value
 */

const finite = (/** @type {number | null} */ value) => value ?? Infinity;

/**
 * @param {Api.Map} map
 * @param {Api.Points | Api.Means} table
 * @returns {Row[]}
 */
export function rowsOf(map, table = map.points) {
  const { levels, ...columns } = table;
  const names = Object.keys(columns);
  return table.risk.map((risk, i) => {
    const of = "method" in table ? table.method[i] : i; // methods are in the order of the map
    const row = Object.fromEntries(names.map((name) => [name, columns[name][i]]));
    return /** @type {Row} */ ({
      ...row,
      method: map.methods[of],
      name: map.names[of],
      short: map.short[of],
      family: map.families[of],
      era: map.era[of] ?? null,
      risk: finite(risk),
      utility: finite(table.utility[i]),
      loss: map.signs[1] * finite(table.utility[i]),
      level: (measure) => levels[measure]?.[i] ?? null,
    });
  });
}

/**
 * The points of one curve: its methods as one attacker sees them, named by the parameter.
 * @param {Row[]} means
 * @param {Api.MapCurve} curve
 * @param {number} line
 * @returns {Row[]}
 */
export function rowsOfCurve(means, curve, line) {
  return curve.method.map((method, index) => ({
    ...means[method],
    risk: finite(curve.risk[index]),
    utility: finite(curve.utility[index]),
    short: curve.value[index],
    frontier: true, // drawn large, as it is on a line
    line,
    index,
  }));
}

// The first of {measure: limit} that a row exceeds, "" if none; Python computes the level that is compared.
export function firstExceeded(map, limits) {
  const stated = Object.entries(limits).map(([measure, limit]) => {
    const sign = map.measures.find((one) => one.name === measure)?.direction === "higher" ? -1 : 1;
    return { measure, sign, limit: sign * limit };
  });
  return (/** @type {Row} */ row) =>
    stated.find(({ measure, sign, limit }) => {
      const level = row.level(measure);
      return level === null || sign * level > limit;
    })?.measure ?? "";
}
