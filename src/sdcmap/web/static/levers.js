// What a rule chooses at every value of a lever. Python computes it; it is looked up here while the lever moves.
import { base, later, post } from "./api.js";

/** @typedef {{ rule: Record<string, any> | null, limits: Record<string, number>, axes: any }} Settings */
/** @typedef {["rule" | "limits", string]} LeverName such as ["rule", "risk"] or ["limits", "KAnonymity"] */

const REST = 200; // milliseconds after which the service is asked

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

// The settings as a text, with one lever left out: what its choices depend on.
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
    this.ask = later(REST, async () => {
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
   * The candidate that is chosen where this lever stands now; undefined until the service has answered.
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
