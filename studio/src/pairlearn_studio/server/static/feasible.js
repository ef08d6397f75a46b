// Which similarities s and differences c can both hold, in whole percent.
//
// Two posteriors r and r' give s = rr' + (1-r)(1-r') and c = r' - r, so that
// (1 - c²)/2 <= s <= 1 - |c|. Whole numbers keep the edges exact.

import { sideOne } from "./items.js";
import { t } from "./words.js";

export function similarityRange(difference) {
  const size = Math.abs(difference);
  return [Math.ceil((10000 - size * size) / 200), 100 - size];
}

// One range, or two when the items are more likely different than the same.
export function differenceRanges(similarity) {
  const most = 100 - similarity;
  if (similarity >= 50) return [[-most, most]];
  const least = Math.ceil(Math.sqrt(10000 - 200 * similarity));
  return [[-most, -least], [least, most]];
}

export function feasible(similarity, difference) {
  const [low, high] = similarityRange(difference);
  return low <= similarity && similarity <= high;
}

// The answers nearest to those given (as points of the plane) that can both hold.
export function nearest(similarity, difference) {
  let best = null;
  for (let c = -100; c <= 100; c += 1) {
    const [low, high] = similarityRange(c);
    const s = Math.min(Math.max(similarity, low), high);
    const far = (c - difference) ** 2 + (s - similarity) ** 2;
    if (best === null || far <= best.far) best = { similarity: s, difference: c, far };
  }
  return { similarity: best.similarity, difference: best.difference };
}

// A gentle word on why two answers cannot both hold; null when they can.
export function conflict(similarity, difference, positive) {
  if (feasible(similarity, difference)) return null;
  const size = Math.abs(difference);
  if (similarity + size > 100) {
    return t("These two don’t fit: if {one} is more likely “{positive}” by {size}, they are the same at most {most}% of the time.",
      { one: sideOne(difference < 0), positive, size, most: 100 - size });
  }
  const [, [least]] = differenceRanges(similarity);
  return t("These two don’t fit: if they are the same only {similarity}% of the time, one of them is more likely “{positive}” by at least {least}.",
    { similarity, positive, least });
}
