// Graded answers: one button, one answer. The studio knows the numbers that each stands for.

export class Choices {
  constructor(chosen) {
    this.buttons = [...document.querySelectorAll("[data-level]")];
    for (const button of this.buttons) {
      button.addEventListener("click", () => chosen(button.dataset.level));
    }
    this.clear();
  }

  // Keys 1 to 9 and 0 are the buttons in their order.
  level(digit) {
    return this.buttons[(Number(digit) + 9) % 10].dataset.level;
  }

  get state() {
    return this.chosen;
  }

  fill(level) {
    this.chosen = level;
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.level === level));
    }
  }

  clear() {
    this.fill(null);
  }

  // A button keeps the focus; the note gives it up, so that digits are answers again.
  focus() {
    if (document.activeElement?.matches("textarea")) document.getElementById("answer").focus();
  }
}
