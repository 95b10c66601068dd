// The choice of a rule at every value of a slider. Python computes it; this module looks it up while the slider moves.
import { base, later, post } from "./api.js";

/** @typedef {{ rule: Record<string, any> | null, limits: Record<string, number>, axes: any }} Settings */
/** @typedef {["rule" | "limits", string]} LeverName such as ["rule", "risk"] or ["limits", "KAnonymity"] */

const REQUEST_DELAY_MS = 200; // after the last movement, before the service is asked

/**
 * The candidate at a value; null: release nothing.
 * @param {Api.Lever} lever
 * @param {number} value
 */
export function lookUp({ starts, candidates }, value) {
  let low = 0,
    high = starts.length - 1; // the first start is below every value
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (/** @type {number} */ (starts[middle]) <= value) low = middle;
    else high = middle - 1;
  }
  return candidates[low];
}

// The settings as text without one slider: what its choices depend on.
function without({ rule, limits, axes }, [part, name]) {
  const others = (of, here) => Object.entries(of ?? {}).filter(([one]) => !(here && one === name));
  return JSON.stringify([others(rule, part === "rule"), others(limits, part === "limits").sort(), axes]);
}

export class Levers {
  /** @type {Api.LeverAnswer | null} */
  answer = null;
  /** @type {Settings | null} for which the answer holds */
  asked = null;

  /**
   * @param {() => Settings} settings as they are now
   * @param {{ body: () => object, onchoice: (choice: Api.ChosenCandidate) => void, onproblem: (error: Error) => void }} how
   */
  constructor(settings, { body, onchoice, onproblem }) {
    this.settings = settings;
    this.ask = later(REQUEST_DELAY_MS, async () => {
      const asked = structuredClone(settings());
      if (!asked.rule) return;
      try {
        /** @type {Api.LeverAnswer} */
        const answer = await post(`${base}/levers`, body());
        Object.assign(this, { answer, asked });
        if (JSON.stringify(asked) === JSON.stringify(settings())) onchoice(answer.choice);
      } catch (error) {
        onproblem(error);
      }
    });
  }

  /**
   * Return the candidate at the current value of this slider; undefined until the service has responded.
   * @param {LeverName} lever
   */
  at(lever) {
    const now = this.settings(),
      [part, name] = lever;
    const path = this.answer?.[part][name],
      value = now[part]?.[name];
    if (!path || !this.asked || value === undefined || value === null) return undefined;
    return without(this.asked, lever) === without(now, lever) ? lookUp(path, value) : undefined;
  }
}
