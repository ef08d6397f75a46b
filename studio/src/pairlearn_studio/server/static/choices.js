// Graded answers: one button, one answer. The studio knows the numbers that each stands for.

export class Choices {
  constructor(chosen) {
    this.buttons = [...document.querySelectorAll("[data-level]")];
    this.asked = this.buttons.map((button) => button.dataset.level);
    for (const button of this.buttons) {
      button.addEventListener("click", () => chosen(button.dataset.level));
    }
    this.clear();
  }

  // In a project of several classes each pair has its own question, with its own answers.
  ask({ asked, levels }) {
    if (!asked) return;
    document.getElementById("asked").textContent = asked.question;
    this.asked = levels;
    for (const button of this.buttons) {
      const { level } = button.dataset;
      button.disabled = !levels.includes(level); // in its place, so that nothing moves
      if (asked[level]) button.querySelector("b").textContent = asked[level];
    }
    for (const group of document.querySelectorAll("#answer .levels:not(.both)")) {
      group.hidden = !group.querySelector("button:enabled");
    }
    document.querySelectorAll(".name-classes select").forEach((one) => { one.value = ""; });
  }

  // Keys 1 to 9 and 0 are the buttons in their order.
  level(digit) {
    return this.asked[(Number(digit) + 9) % 10];
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
