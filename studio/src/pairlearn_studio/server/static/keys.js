// One place that turns keys into actions. Letters and digits can be switched off (they
// clash with some speech and screen-reader software); arrows, Enter and Tab always work.

const LETTERS = "pairlearn letters off";

export function lettersOn() {
  try {
    return localStorage.getItem(LETTERS) === null;
  } catch {
    return true;
  }
}

export function setLetters(on) {
  try {
    if (on) localStorage.removeItem(LETTERS);
    else localStorage.setItem(LETTERS, "1");
  } catch {
    // Storage may be switched off: the choice then lasts as long as the page.
  }
}

// Letters are a table of their own, which differs from mode to mode.
export function listen({ letters, enter, undo, leaveNote, nudge, accept, digit }) {
  const arrows = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const target = event.target;
    const writing = target.matches?.("textarea");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return act(event, enter);
    if (writing) return event.key === "Escape" ? act(event, leaveNote) : undefined;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") return act(event, undo);
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    // Enter on a focused button or link presses that one.
    if (event.key === "Enter") return target.matches?.("button, a, summary") ? undefined : act(event, enter);
    if (nudge && event.key in arrows && !target.matches?.(".content")) {
      return act(event, () => nudge(arrows[event.key], event.shiftKey));
    }
    if (event.key === " " && target.matches?.("input[type=range]")) return act(event, accept);
    if (!lettersOn()) return undefined;
    if (/^[0-9]$/.test(event.key)) return event.repeat ? undefined : act(event, () => digit(event.key));
    const letter = letters[event.key.toLowerCase()];
    return letter && !event.repeat ? act(event, letter) : undefined;
  });
}

function act(event, action) {
  event.preventDefault();
  action();
}
