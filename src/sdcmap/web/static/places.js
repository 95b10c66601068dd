// Where labels go, as charts/labels.py has it: greedy, in pixels; a label that finds no free place is dropped.
export const NEAR = [9],
  FAR = [9, 16, 27, 41, 57]; // from a point to its label; beyond the first a leader line is drawn
const DIRECTIONS = [
  [1, 0],
  [1, -1],
  [0, -1],
  [-1, -1],
  [-1, 0],
  [-1, 1],
  [0, 1],
  [1, 1],
]; // right first, y grows downwards
const MOST_COVERED = 1,
  MOST_CROSSED = 5; // ink that a label, and a leader, may cover when they need not stand

// How much is drawn in any box, from a summed-area table with one cell a pixel.
class Ink {
  constructor(dots, width, height) {
    Object.assign(this, {
      width: width + 1,
      height: height + 1,
      weights: new Float64Array((width + 1) * (height + 1)),
      sums: new Float64Array((width + 2) * (height + 2)),
    });
    this.add(dots);
  }

  add(dots) {
    const { width, height, weights, sums } = this;
    let first = height; // the rows above it stay as they are
    for (const [x, y, weight] of dots) {
      const row = Math.round(y),
        column = Math.round(x);
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      weights[row * width + column] += weight;
      first = Math.min(first, row);
    }
    for (let row = first; row < height; row += 1) {
      for (let column = 0, along = 0; column < width; column += 1) {
        along += weights[row * width + column];
        sums[(row + 1) * (width + 1) + column + 1] = sums[row * (width + 1) + column + 1] + along;
      }
    }
  }

  within([left, top, right, bottom]) {
    const held = (value, most) => Math.trunc(Math.min(Math.max(value, 0), most));
    const [a, b] = [held(top, this.height), held(bottom + 1, this.height)];
    const [c, d] = [held(left, this.width), held(right + 1, this.width)];
    const at = (row, column) => this.sums[row * (this.width + 1) + column];
    return at(b, d) - at(a, d) - at(b, c) + at(a, c);
  }
}

const touch = (a, b) => a[0] < b[2] + 4 && b[0] < a[2] + 4 && a[1] < b[3] && b[1] < a[3];
const crosses = (leader, box) =>
  leader.some(([x, y]) => box[0] - 2 < x && x < box[2] + 2 && box[1] - 1 < y && y < box[3] + 1);

// wishes: [{text, near: [[x, y]], must, distances}]; font: {character, line} in pixels.
// Places, each {wish, x, y, align, point, leader, end}: no label leaves the picture or touches another.
export function place(wishes, dots, width, height, font = { character: 5.4, line: 12.5 }) {
  const ink = new Ink(dots, width, height),
    taken = [],
    granted = [];
  const spare = 0.16 * font.line;
  const inside = (box) => box[0] >= 2 && box[1] >= -spare && box[2] <= width - 2 && box[3] <= height + spare;
  wishes.forEach((wish, number) => {
    let best = null;
    candidates(number, wish, font).forEach((candidate, rank) => {
      const box = boxOf(candidate, wish.text, font),
        leader = leaderOf(candidate);
      if (!inside(box) || taken.some((other) => touch(box, other) || crosses(leader, other))) return;
      const covered = ink.within([box[0] - 3, box[1] - 1, box[2] + 3, box[3] + 1]);
      const crossed = leader.reduce((sum, [x, y]) => sum + ink.within([x - 2, y - 2, x + 2, y + 2]), 0);
      const cost = 3 * covered + 0.7 * crossed + (0.2 * rank) / wish.near.length;
      const fine = wish.must || (covered <= MOST_COVERED && crossed <= MOST_CROSSED);
      if (fine && (best === null || cost < best.cost)) best = { cost, candidate, box };
    });
    if (best === null) return;
    granted.push(best.candidate);
    taken.push(best.box);
    if (best.candidate.leader) ink.add(leaderOf(best.candidate));
  });
  return granted;
}

function candidates(number, wish, font) {
  return (wish.distances || FAR).flatMap((reach) =>
    wish.near.flatMap(([x, y]) =>
      DIRECTIONS.map(([across, down]) => {
        const made = {
          wish: number,
          x: x + across * reach,
          y: y + down * reach,
          align: { 1: "start", 0: "middle", "-1": "end" }[across],
          point: [x, y],
          leader: reach > NEAR[0],
        };
        const half = made.align === "middle" ? font.line / 2 : 0;
        return { ...made, end: [made.x, made.y + (y >= made.y ? half : -half)] };
      }),
    ),
  );
}

function boxOf({ x, y, align }, text, { character, line }) {
  const width = character * text.length;
  const left = x - { start: 0, middle: width / 2, end: width }[align];
  return [left, y - line / 2, left + width, y + line / 2];
}

// Dots along the leader line, its own point left out.
function leaderOf({ leader, point: [x, y], end: [x2, y2] }, step = 5) {
  if (!leader) return [];
  const length = Math.hypot(x2 - x, y2 - y);
  return Array.from({ length: Math.trunc(Math.max(length - 8, 0) / step) + 1 }, (_, i) => {
    const share = (8 + step * i) / length;
    return [x + share * (x2 - x), y + share * (y2 - y), 1];
  });
}
