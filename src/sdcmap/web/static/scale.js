// A linear scale, its ticks, and how a number on it is written.
export function linear([low, high], [from, to]) {
  const per = (to - from) / (high - low || 1);
  return { at: (value) => from + (value - low) * per, back: (pixel) => low + (pixel - from) / per };
}

// Round numbers between two ends, about `count` of them.
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(10)));
}

export const written = (value) =>
  value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6)
    ? value.toExponential().replace("e+", "e")
    : String(value);
