// Two sliders: each knows whether it was answered.

import { sideName } from "./items.js";
import { t } from "./words.js";
import { differenceRanges, similarityRange } from "./feasible.js";

const STEP = 5;
const DIGITS_MS = 900;

class Slider {
  constructor(name, start, words) {
    this.input = document.getElementById(name);
    this.box = document.getElementById(`question-${name}`);
    this.shown = document.getElementById(`value-${name}`);
    this.fitText = document.getElementById(`fit-${name}`);
    this.fits = [...this.box.querySelectorAll(".fit")];
    this.low = Number(this.input.min);
    this.high = Number(this.input.max);
    this.start = start;
    this.words = words;
    this.value = null; // not answered yet
    this.direction = 1; // where digits go: towards the right item, or the left one
    this.changed = () => {};
    this.typed = { digits: "", at: 0 };
    this.input.addEventListener("input", () => this.set(Number(this.input.value)));
    // A click on the thumb where it stands is an answer too, but no "input" event.
    this.input.addEventListener("click", () => this.set(Number(this.input.value)));
  }

  set(value) {
    this.value = value === null ? null : Math.min(Math.max(Math.round(value), this.low), this.high);
    if (this.value) this.direction = Math.sign(this.value);
    this.paint();
    this.changed(this);
  }

  clear() {
    this.typed.digits = "";
    this.direction = 1;
    this.set(null);
  }

  nudge(direction, fine) {
    this.typed.digits = "";
    this.set((this.value ?? this.start) + direction * (fine ? 1 : STEP));
  }

  // 7 is 70, then 5 makes it 75; 1 0 0 is 100. The direction stays as it was.
  type(digit) {
    const now = performance.now();
    const fresh = now - this.typed.at > DIGITS_MS;
    let digits = (fresh ? "" : this.typed.digits) + digit;
    if (digits.length > 2 && digits !== "100") digits = digit;
    this.typed = { digits, at: now };
    const size = digits.length === 1 ? Number(digits) * 10 : Number(digits);
    this.set(this.direction * size);
  }

  // Before any digit as well as after: - 4 and 4 - are the same.
  turn(direction) {
    this.direction = direction;
    if (this.value !== null) this.set(direction * Math.abs(this.value));
  }

  paint() {
    const answered = this.value !== null;
    this.input.value = String(this.value ?? this.start);
    this.box.classList.toggle("answered", answered);
    const text = answered ? this.words(this.value) : t("not answered yet");
    this.shown.textContent = answered ? text : "—";
    this.input.setAttribute("aria-valuetext", text);
  }

  // Shade the values that fit the other answer; null: no other answer, nothing to shade.
  shade(ranges, text) {
    this.box.classList.toggle("bounded", ranges !== null);
    this.fits.forEach((fit, index) => {
      const range = ranges?.[index];
      fit.hidden = !range;
      if (!range) return;
      const share = (value) => (100 * (value - this.low)) / (this.high - this.low);
      fit.style.setProperty("--from", `${share(range[0])}%`);
      fit.style.setProperty("--to", `${share(range[1])}%`);
      fit.dataset.range = `${range[0]}..${range[1]}`;
    });
    this.fitText.textContent = text;
  }
}

const signed = (value) => (value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0");

export function describeDifference(value) {
  if (value === 0) return t("no difference");
  return t("{side}, by {size}", { side: sideName(value < 0), size: Math.abs(value) });
}

class Sliders {
  constructor(sliders, changed) {
    this.sliders = sliders;
    this.active = sliders[0];
    for (const slider of sliders) {
      slider.changed = () => {
        this.shade();
        changed(slider);
      };
      slider.input.addEventListener("focus", () => { this.active = slider; });
      slider.paint();
    }
  }

  get state() {
    return this.sliders.map((slider) => slider.value);
  }

  // The first slider that is still open, if any.
  get open() {
    return this.sliders.find((slider) => slider.value === null);
  }

  fill(values) {
    this.sliders.forEach((slider, index) => slider.set(values[index]));
  }

  clear() {
    for (const slider of this.sliders) slider.clear();
  }

  focus(slider = this.sliders[0]) {
    this.active = slider;
    slider.input.focus({ preventScroll: true });
  }

  shade() {}
}

// How likely each of the two is positive: every two answers fit together.
export class Each extends Sliders {
  constructor(changed) {
    super(["left-one", "right-one"].map((name) => new Slider(name, 50, (value) => `${value}%`)), changed);
  }

  get values() {
    const [left, right] = this.state;
    if (left === null || right === null) return { similarity: null, difference: null };
    return { similarity: (left * right + (100 - left) * (100 - right)) / 100, difference: right - left };
  }
}

// Similarity and difference as they are, each with the range that fits the other.
export class Exact extends Sliders {
  constructor(changed) {
    super([
      new Slider("similarity", 50, (value) => `${value}%`),
      new Slider("difference", 0, describeDifference),
    ], changed);
  }

  get values() {
    const [similarity, difference] = this.state;
    return { similarity, difference };
  }

  shade() {
    const { similarity, difference } = this.values;
    const onDifference = similarity === null ? null : differenceRanges(similarity);
    const onSimilarity = difference === null ? null : [similarityRange(difference)];
    this.sliders[1].shade(onDifference, onDifference === null ? "" :
      t("With {similarity}% the same, this fits: {ranges}", { similarity,
        ranges: onDifference.map(([a, b]) => `${signed(a)} – ${signed(b)}`).join("; ") }));
    this.sliders[0].shade(onSimilarity, onSimilarity === null ? "" :
      t("With a difference of {difference}, this fits: {low} – {high}%",
        { difference: describeDifference(difference), low: onSimilarity[0][0], high: onSimilarity[0][1] }));
  }
}
