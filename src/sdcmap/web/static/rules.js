// The rules of sdcmap over the points of a map, to follow a lever without asking; the server's `choose` is the judge.
const number = (value) => (value === null ? Infinity : value);

// One row a point, or a method: {id, method, name, replicate, risk, utility, loss, turned, ...}; less is better in the last two.
export function rowsOf(map) {
  const { points, methods, signs } = map;
  return points.id.map((id, i) => {
    const risk = number(points.risk[i]),
      utility = number(points.utility[i]),
      at = points.method[i];
    return {
      id,
      method: methods[at],
      name: map.names[at],
      short: map.short[at],
      family: map.families[at],
      era: map.era[at] ?? null,
      replicate: points.replicate[i],
      risk,
      utility,
      turned: signs[0] * risk,
      loss: signs[1] * utility,
      frontier: points.frontier[i],
      compared: points.compared[i],
      anchor: points.anchor[i],
      within: points.within[i],
      place: i,
      of: points,
    };
  });
}

export function meansOf(map) {
  const { means, methods, signs } = map,
    { levels, ...columns } = means;
  return methods.map((method, i) => {
    const facts = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[i]]));
    const risk = number(facts.risk),
      utility = number(facts.utility);
    return {
      ...facts,
      method,
      name: map.names[i],
      short: map.short[i],
      family: map.families[i],
      era: map.era[i] ?? null,
      risk,
      utility,
      turned: signs[0] * risk,
      loss: signs[1] * utility,
      place: i,
      of: means,
    };
  });
}

// row => the first of {measure: limit} that it breaks, "" where none. A measure without a value is within no limit.
export function breaks(map, limits) {
  const held = Object.entries(limits).map(([measure, limit]) => [
    measure,
    limit,
    map.measures.find((one) => one.name === measure)?.direction === "higher",
  ]);
  return (row) =>
    held.find(([measure, limit, higher]) => {
      const level = row.of.levels[measure]?.[row.place] ?? null;
      return level === null || (higher ? level < limit : level > limit);
    })?.[0] ?? "";
}

const before = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// The row that a rule takes: {type: "Threshold", risk} or {type: "Linear", slope}; null: release nothing.
export function choose(map, rule, rows = rowsOf(map), means = map.expectation ? meansOf(map) : []) {
  const compared = map.expectation ? means : rows.filter((row) => row.compared);
  const cost = rule.type === "Linear" ? (row) => row.turned + rule.slope * row.loss : (row) => row.loss;
  const passes =
    rule.type === "Linear"
      ? (row) => !row.anchor && Number.isFinite(cost(row))
      : (row) => !row.anchor && row.turned <= map.signs[0] * rule.risk;
  let best = null;
  for (const row of compared) {
    if (!passes(row) || row.within === false) continue;
    if (
      best === null ||
      (before(cost(row), cost(best)) || before(row.turned, best.turned) || before(row.method, best.method)) < 0
    )
      best = row;
  }
  if (best === null || best.id) return best;
  const draws = rows.filter((row) => row.compared && row.method === best.method);
  return draws.reduce((first, row) => (row.replicate < first.replicate ? row : first));
}
