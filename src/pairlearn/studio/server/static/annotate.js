// The annotator's page: shows a pair, takes two answers, moves on once they are on disk.

import { Refused, Studio } from "./client.js";
import { conflict, nearest } from "./feasible.js";
import { prefetch, show } from "./items.js";
import { lettersOn, listen, setLetters } from "./keys.js";
import { Answers, describeDifference } from "./sliders.js";
import { lessons, remember, seen } from "./tutorial.js";

const SURE = {
  same: { similarity: 100, difference: 0 },
  left: { similarity: 0, difference: -100 },
  right: { similarity: 0, difference: 100 },
  none: { similarity: null, difference: null },
};
// A key pressed twice by accident must not answer the pair that has just appeared.
const SETTLE_MS = 150;
const SPEAK_MS = 200;

const at = (id) => document.getElementById(id);
const { slot, positive, negative } = document.body.dataset;

const given = new Map(); // what was answered on this visit, to start from after an undo
const receipts = []; // their numbers, the last one last
let task = null;
let progress = null;
let lesson = null; // the practice pair on show: { index, all, tries }
let busy = true;
let confirmed = ""; // what the last Enter asked, and the next one confirms
let speaking = 0;
const clock = { since: 0, spent: 0 };
const answers = new Answers(changed);
const studio = new Studio(slot, away);

// ---- time on a pair, without the time the page was hidden

document.addEventListener("visibilitychange", () => {
  const now = performance.now();
  if (document.hidden) clock.spent += now - clock.since;
  clock.since = now;
});

function startClock() {
  clock.spent = 0;
  clock.since = performance.now();
}

function seconds() {
  const running = document.hidden ? 0 : performance.now() - clock.since;
  return Math.round(clock.spent + running) / 1000;
}

// ---- what the page says

function say(text, { tone = "calm", aside = "", fit = null } = {}) {
  clearTimeout(speaking);
  const status = at("status");
  status.textContent = text;
  if (aside) {
    const hidden = document.createElement("span");
    hidden.className = "visually-hidden";
    hidden.textContent = ` ${aside}`;
    status.append(hidden);
  }
  at("say").dataset.tone = tone;
  const button = at("use-nearest");
  button.hidden = fit === null;
  if (fit !== null) {
    button.textContent = `Use ${fit.similarity}% and ${describeDifference(fit.difference)} `;
    const hint = document.createElement("kbd");
    hint.textContent = "F";
    button.append(hint);
    at("say").scrollIntoView({ block: "nearest" }); // a phone may have it below the edge
  }
}

function changed() {
  confirmed = "";
  const { similarity, difference } = answers.values;
  const why = similarity === null || difference === null
    ? null : conflict(similarity, difference, positive);
  clearTimeout(speaking);
  // Not at every step of a drag: a screen reader reads each change out.
  speaking = setTimeout(() => {
    if (why === null) {
      if (["doubt", "ask"].includes(at("say").dataset.tone)) say("");
    } else {
      say(why, { tone: "doubt", fit: nearest(similarity, difference) });
    }
  }, SPEAK_MS);
}

function away(wait, reason) {
  at("away").hidden = wait === null;
  if (wait === null) return;
  const why = reason.charAt(0).toUpperCase() + reason.slice(1);
  at("away-text").textContent = busy && task
    ? `${why}. Your answer is kept in this browser, not stored yet; it is sent again in ${wait} s.`
    : `${why}. Trying again in ${wait} s.`;
}

function showProgress() {
  const { done, total, per_hour: pace, seconds_left: left } = progress;
  const meter = at("meter");
  meter.setAttribute("aria-valuemax", String(Math.max(total, 1)));
  meter.setAttribute("aria-valuenow", String(done));
  meter.setAttribute("aria-valuetext", `${done} of ${total}`);
  at("meter-fill").style.setProperty("--share", String(total ? done / total : 0));
  document.body.dataset.done = String(done);
  at("count").textContent = `${done} of ${total}`;
  at("pace").textContent = pace ? `${Math.round(pace)} an hour` : "";
  at("left-time").textContent = left && done < total ? `${duration(left)} left` : "";
}

function duration(time) {
  const minutes = Math.max(1, Math.round(time / 60));
  return minutes < 90 ? `about ${minutes} min` : `about ${Math.round(minutes / 60)} h`;
}

// ---- showing a pair

function showPair(left, right) {
  show("left", left, right);
  show("right", right, left);
  answers.clear();
  at("note").value = "";
  openNote(false);
  confirmed = "";
  scrollTo(0, 0);
  startClock();
  settle();
}

function settle() {
  const pair = at("pair");
  busy = true;
  pair.setAttribute("aria-busy", "true");
  pair.classList.remove("arrived");
  void pair.offsetWidth; // restarts the animation
  pair.classList.add("arrived");
  setTimeout(() => {
    busy = false;
    pair.setAttribute("aria-busy", "false");
    document.body.classList.remove("sending");
  }, SETTLE_MS);
}

function move(reply, word) {
  ({ task, progress } = reply);
  showProgress();
  at("finished").hidden = task !== null;
  at("work").hidden = task === null;
  if (task === null) {
    at("finished-text").textContent = progress.total
      ? `You judged ${progress.done} pairs. Every answer is saved.`
      : "There are no pairs for you yet. Come back to this link later.";
    at("finished-undo").hidden = progress.done === 0;
    at("finished").focus();
    busy = false;
    document.body.classList.remove("sending");
    return;
  }
  showPair(task.left, task.right);
  answers.focus();
  if (task.left.kind === "image") {
    studio.ahead(task.pair).then((views) => views.forEach(prefetch), () => {});
  }
  say(word, {
    aside: `Pair ${task.number} of ${task.total}. Left: ${task.left.title}. ` +
      `Right: ${task.right.title}.`,
  });
}

// ---- answering

async function send(values, cantSay) {
  if (busy) return;
  if (lesson) return practise(values, cantSay);
  busy = true;
  at("pair").setAttribute("aria-busy", "true");
  document.body.classList.add("sending");
  say("");
  const pair = task.pair;
  const share = (value) => (value === null ? null : value / 100);
  given.set(pair, { ...values, note: at("note").value });
  try {
    const reply = await studio.answer({
      pair,
      similarity: share(values.similarity),
      difference: share(values.difference),
      cant_say: cantSay,
      note: at("note").value.trim(),
      seconds: seconds(),
    });
    receipts.push(reply.receipt.answer_id);
    move(reply, cantSay ? "Saved as “can’t say”." : "Saved.");
  } catch (error) {
    refusedBy(error);
  }
}

function refusedBy(error) {
  busy = false;
  at("pair").setAttribute("aria-busy", "false");
  document.body.classList.remove("sending");
  if (!(error instanceof Refused)) throw error;
  say(`Not saved: ${error.message}.`, { tone: "alarm" });
}

function enter() {
  if (busy || at("work").hidden) return;
  const { similarity, difference } = answers.values;
  if (similarity === null && difference === null) {
    answers.focus();
    say("Answer at least one of the two questions: digits or arrows set the slider.",
      { tone: "ask" });
    return;
  }
  if ((similarity === null || difference === null) && confirmed !== "open") {
    answers.focus(similarity === null ? answers.similarity : answers.difference);
    confirmed = "open";
    say(`And the ${similarity === null ? "first" : "second"} question? ` +
      "Enter again leaves it open.", { tone: "ask" });
    return;
  }
  const why = similarity === null || difference === null
    ? null : conflict(similarity, difference, positive);
  if (why !== null && confirmed !== "doubt") {
    confirmed = "doubt";
    say(`${why} Enter again keeps yours.`,
      { tone: "doubt", fit: nearest(similarity, difference) });
    return;
  }
  send({ similarity, difference }, false);
}

function sure(kind) {
  if (busy || at("work").hidden) return;
  answers.fill(SURE[kind]);
  send(SURE[kind], kind === "none");
}

function fit() {
  const { similarity, difference } = answers.values;
  if (busy || similarity === null || difference === null) return;
  answers.fill(nearest(similarity, difference));
  say("Now they fit.");
}

async function undo() {
  if (busy) return;
  if (lesson) {
    if (lesson.index > 0) teach(lesson.index - 1, "");
    return;
  }
  busy = true;
  try {
    const shown = task?.pair;
    const reply = await studio.undo(receipts.pop());
    // A reply that was lost and asked for again: nothing undone now, and yet another pair.
    if (!reply.undone && reply.task?.pair === shown) {
      busy = false;
      say("There is nothing to undo.");
      return;
    }
    move(reply, "Taken back: answer it again.");
    const before = task && given.get(task.pair);
    if (!before) return;
    answers.fill(before);
    at("note").value = before.note;
    openNote(before.note !== "", false);
    clearTimeout(speaking);
  } catch (error) {
    refusedBy(error);
  }
}

function openNote(open, focus = true) {
  at("note-box").hidden = !open;
  at("add-note").setAttribute("aria-expanded", String(open));
  if (open && focus) at("note").focus();
}

// ---- the tutorial

function teach(index, word) {
  const all = lesson?.all ?? lessons(positive, negative);
  lesson = { index, all, tries: 0 };
  const now = all[index];
  at("work").hidden = false;
  at("finished").hidden = true;
  at("coach").hidden = false;
  at("coach-step").textContent = `Practice ${index + 1} of ${all.length} · nothing is saved`;
  at("coach-title").textContent = now.title;
  at("coach-text").textContent = now.text;
  showPair(now.left, now.right);
  answers.focus();
  say(word, { aside: `${now.title}. ${now.text}` });
}

function practise(values, cantSay) {
  const now = lesson.all[lesson.index];
  lesson.tries += 1;
  const good = !cantSay && now.good(values);
  if (!good && lesson.tries === 1) {
    answers.clear();
    answers.focus();
    say(cantSay ? `“Can’t say” skips a pair. Here: ${now.hint}` : now.hint);
    return;
  }
  const word = good ? now.praise : "Never mind, it comes with practice.";
  if (lesson.index + 1 < lesson.all.length) teach(lesson.index + 1, word);
  else endTutorial(`${word} Now the real ones.`);
}

function endTutorial(word) {
  lesson = null;
  remember();
  at("coach").hidden = true;
  move({ task, progress }, word);
}

// ---- wiring

listen({
  enter, sure, fit, undo,
  nudge: (direction, fine) => { answers.active.nudge(direction, fine); focusActive(); },
  digit: (digit) => { answers.active.type(digit); focusActive(); },
  turn: (direction) => { answers.difference.turn(direction); answers.focus(answers.difference); },
  accept: () => answers.active.set(Number(answers.active.input.value)),
  note: () => openNote(true),
  leaveNote: () => { openNote(at("note").value.trim() !== "", false); answers.focus(answers.active); },
  help: openHelp,
});

function focusActive() {
  answers.focus(answers.active);
}

function openHelp() {
  at("letters").checked = lettersOn();
  at("help").showModal();
}

at("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  enter();
});
for (const button of document.querySelectorAll("[data-sure]")) {
  button.addEventListener("click", () => sure(button.dataset.sure));
}
at("undo").addEventListener("click", undo);
at("finished-undo").addEventListener("click", undo);
at("use-nearest").addEventListener("click", fit);
at("add-note").addEventListener("click", () => openNote(at("note-box").hidden));
at("retry").addEventListener("click", () => studio.wake());
at("open-help").addEventListener("click", openHelp);
at("letters").addEventListener("change", () => setLetters(at("letters").checked));
at("skip-tutorial").addEventListener("click", () => { if (!busy) endTutorial(""); });
at("again-tutorial").addEventListener("click", () => {
  at("help").close();
  if (!busy && task) teach(0, "");
});

async function begin() {
  let word = "";
  for (const kept of studio.waiting()) {
    try {
      await studio.answer(kept);
      word = "The answer that was waiting is saved.";
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      word = `An answer that was waiting is not saved: ${error.message}.`;
    }
  }
  const reply = await studio.task();
  if (reply.task && reply.progress.done === 0 && !seen()) {
    ({ task, progress } = reply);
    showProgress();
    for (const view of [task.left, task.right]) prefetch(view);
    teach(0, "");
    return;
  }
  move(reply, word);
}

begin().catch((error) => say(`Not available: ${error.message}.`, { tone: "alarm" }));
