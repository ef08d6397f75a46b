// The annotator's page: shows a pair, sends the answer, moves on once it is stored.

import { Choices } from "./choices.js";
import { Refused, Studio } from "./client.js";
import { conflict, nearest } from "./feasible.js";
import { brief, prefetch, showBoth, sideName } from "./items.js";
import { lettersOn, listen, setLetters } from "./keys.js";
import { describeDifference, Each, Exact } from "./sliders.js";
import { lessons, remember, seen } from "./tutorial.js";
import { t } from "./words.js";

const SURE = { same: [100, 0], left: [0, -100], right: [0, 100], none: null };
// A second key must not answer the pair that has just appeared: looking at it takes longer.
const SETTLE_MS = 350;
const SPEAK_MS = 200;

const at = (id) => document.getElementById(id);
const { slot, mode, positive, negative, tutorial } = document.body.dataset;

const drafts = new Map(); // the answers of this visit by pair, to start from after an undo
const receipts = []; // the numbers of these answers, in order
let task = null;
let progress = null;
let lesson = null; // the practice pair on show: { index, all, tries }, or { known }
let busy = true;
let named = null; // the classes of both items, where the annotator names them
let confirmed = ""; // the question of the last Enter, which the next one confirms
let speaking = 0;
const clock = { since: 0, spent: 0 };
const answers = mode === "graded" ? new Choices(choose)
  : mode === "each" ? new Each(changed) : new Exact(changed);
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
    const difference = describeDifference(fit.difference);
    button.textContent = `${t("Use {similarity}% and {difference}", { similarity: fit.similarity, difference })} `;
    const hint = document.createElement("kbd");
    hint.textContent = "F";
    button.append(hint);
  }
}

// Why the two answers of an exact page cannot both hold; null when they can, or one is open.
function doubt() {
  if (mode !== "exact" || answers.open) return null;
  const { similarity, difference } = answers.values;
  return conflict(similarity, difference, positive);
}

function fitting() {
  const { similarity, difference } = answers.values;
  return nearest(similarity, difference);
}

function changed() {
  confirmed = "";
  const why = doubt();
  clearTimeout(speaking);
  // Not at every step of a drag: a screen reader reads each change out.
  speaking = setTimeout(() => {
    if (why === null) {
      if (["doubt", "ask"].includes(at("say").dataset.tone)) say("");
    } else {
      say(why, { tone: "doubt", fit: fitting() });
    }
  }, SPEAK_MS);
}

function away(wait, reason) {
  at("away").hidden = wait === null;
  if (wait === null) return;
  const why = reason.charAt(0).toUpperCase() + reason.slice(1);
  at("away-text").textContent = busy && task
    ? t("{why}. Your answer is not stored yet: this browser keeps it and tries again in {wait} s.", { why, wait })
    : t("{why}. Trying again in {wait} s.", { why, wait });
}

function showProgress() {
  const { done, total, seconds_left: left } = progress;
  const meter = at("meter");
  meter.setAttribute("aria-valuemax", String(Math.max(total, 1)));
  meter.setAttribute("aria-valuenow", String(done));
  meter.setAttribute("aria-valuetext", t("{done} of {total}", progress));
  at("meter-fill").style.setProperty("--share", String(total ? done / total : 0));
  document.body.dataset.done = String(done);
  at("count").textContent = t("{done} of {total}", progress);
  at("left-time").textContent = left && done < total ? duration(left) : "";
}

function duration(time) {
  const minutes = Math.max(1, Math.round(time / 60));
  if (minutes < 90) return t("about {number} min left", { number: minutes });
  return t("about {number} h left", { number: Math.round(minutes / 60) });
}

// ---- showing a pair

function showPair(shown) {
  showBoth(shown.left, shown.right);
  answers.ask?.(shown);
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
  at("start").hidden = true;
  at("finished").hidden = task !== null;
  at("work").hidden = task === null;
  if (task === null) {
    at("finished-title").textContent = reply.paused ? t("Paused") : t("All done, thank you");
    at("finished-text").textContent = reply.paused
      ? t("Every answer is saved. Come back to this link later.") : progress.total
      ? t("You judged {done} pairs. Every answer is saved.", progress)
      : t("There are no pairs for you yet. Come back to this link later.");
    at("finished-undo").hidden = progress.done === 0;
    at("finished").focus();
    busy = false;
    document.body.classList.remove("sending");
    return;
  }
  showPair(task);
  answers.focus();
  if (task.left.kind === "image") {
    studio.ahead(task.pair).then((views) => views.forEach(prefetch), () => {});
  }
  say(word, {
    aside: t("Pair {number} of {total}. Left: {left}. Right: {right}.",
      { ...task, left: task.left.title, right: task.right.title }),
  });
}

// ---- answering

// The fields of an answer to send: the name of a level, or numbers; none for "can't say".
function fields() {
  if (named) return { classes: named };
  if (mode === "graded") return answers.state === null ? {} : { level: answers.state };
  const share = (value) => (value === null ? null : value / 100);
  const { similarity, difference } = answers.values;
  return { similarity: share(similarity), difference: share(difference) };
}

async function send(cantSay = false) {
  if (busy) return;
  if (lesson) return lesson.known ? judgeKnown(cantSay) : practise(cantSay);
  busy = true;
  at("pair").setAttribute("aria-busy", "true");
  document.body.classList.add("sending");
  say("");
  const pair = task.pair;
  drafts.set(pair, { state: answers.state, note: at("note").value });
  try {
    const reply = await studio.answer({
      pair,
      ...fields(),
      cant_say: cantSay,
      note: at("note").value.trim(),
      seconds: seconds(),
      replaces: task.answer?.id ?? null,
    });
    receipts.push(reply.receipt.answer_id);
    move(reply, cantSay ? t("Skipped.") : t("Saved."));
  } catch (error) {
    if (error.status === 409) move(await studio.task(), t("Not saved: {why}.", { why: error.message }));
    else refusedBy(error);
  }
}

function refusedBy(error) {
  busy = false;
  at("pair").setAttribute("aria-busy", "false");
  document.body.classList.remove("sending");
  if (!(error instanceof Refused)) throw error;
  say(t("Not saved: {why}.", { why: error.message }), { tone: "alarm" });
}

function enter() {
  if (!busy && !at("start").hidden) return begin();
  if (!busy && lesson?.judged) return nextKnown();
  if (busy || at("work").hidden || mode === "graded") return;
  const { open } = answers;
  if (open && (mode === "each" || answers.state.every((value) => value === null))) {
    answers.focus(open);
    say(mode === "each" ? t("Answer both: digits or arrows set the slider.")
      : t("Answer at least one of the two questions: digits or arrows set the slider."), { tone: "ask" });
    return;
  }
  if (open && confirmed !== "open") {
    answers.focus(open);
    confirmed = "open";
    say(open === answers.sliders[0] ? t("The first question has no answer. Press Enter again to leave it open.")
      : t("The second question has no answer. Press Enter again to leave it open."), { tone: "ask" });
    return;
  }
  const why = doubt();
  if (why !== null && confirmed !== "doubt") {
    confirmed = "doubt";
    say(`${why} ${t("Press Enter again to keep yours.")}`, { tone: "doubt", fit: fitting() });
    return;
  }
  send();
}

function choose(level) {
  if (!level || busy || at("work").hidden || lesson?.judged) return;
  answers.fill(level);
  send();
}

async function nameClasses() {
  if (busy || at("work").hidden || lesson?.judged) return;
  const classes = ["left-class", "right-class"].map((name) => at(name).value);
  if (classes.includes("")) {
    say(t("Choose the classes of both items."), { tone: "ask" });
    return;
  }
  named = classes;
  await send();
  named = null;
}

function sure(kind) {
  if (busy || at("work").hidden || lesson?.judged) return;
  if (SURE[kind] === null) answers.clear();
  else answers.fill(SURE[kind]);
  send(SURE[kind] === null);
}

function fit() {
  if (busy || doubt() === null) return;
  const { similarity, difference } = fitting();
  answers.fill([similarity, difference]);
  say(t("Now they fit."));
}

async function undo() {
  if (busy) return;
  if (lesson) {
    if (lesson.index > 0) teach(lesson.index - 1, "");
    return;
  }
  if (at("work").hidden && at("finished").hidden) return;
  busy = true;
  try {
    const shown = task?.pair;
    const reply = await studio.undo(receipts.pop());
    // After a lost reply the request is repeated: nothing is undone then, yet the pair is another.
    if (!reply.undone && reply.task?.pair === shown) {
      busy = false;
      say(t("There is nothing to undo."));
      return;
    }
    move(reply, t("Undone: answer this pair again."));
    const before = task && drafts.get(task.pair);
    if (!before) return;
    if (before.state !== null) answers.fill(before.state);
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

// ---- the start: what is asked, then pairs whose answer is known

function showStart({ start }) {
  const { position, total, before } = start;
  lesson = { known: start };
  at("coach").hidden = true;
  at("work").hidden = true;
  at("start").hidden = false;
  const asked = total ? t("You start with practice pairs ({total}); these answers are not saved.", start) : "";
  const again = before === null ? "" :
    t("You got {before} of {total} right, and {needed} are needed. Read this once more and try again.", start);
  at("start-text").textContent = again || asked;
  at("begin").textContent = position ? t("Go on") : total ? t("Practise") : t("Start");
  document.body.dataset.done = String(progress.done);
  busy = false;
  scrollTo(0, 0);
}

function begin() {
  if (busy) return;
  if (lesson.known.pair) showKnown();
  else studio.practise({}).then((reply) => go(reply), refusedBy);
}

function showKnown() {
  const { position, total, pair } = lesson.known;
  lesson.judged = null;
  at("start").hidden = true;
  at("work").hidden = false;
  at("coach").hidden = false;
  at("skip-tutorial").hidden = true;
  at("next-lesson").hidden = true;
  at("coach-step").textContent = t("Practice {number} of {total}", { number: position + 1, total });
  at("coach-title").textContent = t("What would you say?");
  at("coach-text").textContent = t("You will see the right answer. Nothing is saved.");
  showPair(pair);
  answers.focus();
  say("");
}

async function judgeKnown(cantSay) {
  if (lesson.judged) return nextKnown();
  busy = true;
  try {
    const reply = await studio.practise({ ...fields(), cant_say: cantSay });
    lesson.judged = reply;
    const [side, degree] = reply.level.split(" ");
    const answer = ["left", "right"].includes(side) ? `${sideName(side === "left")}, ${degrees()[degree]}`
      : reply.answer;
    at("coach-title").textContent = reply.right ? t("Right!") : t("We would say: {answer}", { answer });
    at("coach-text").textContent = reply.why || (reply.right ? t("Or near enough.") : "");
    at("next-lesson").hidden = false;
    at("next-lesson").focus({ preventScroll: true });
    say(`${at("coach-title").textContent}. ${reply.why}`);
    busy = false;
  } catch (error) {
    refusedBy(error);
  }
}

const degrees = () => ({ surely: t("surely"), probably: t("probably"), slightly: t("slightly") });

function nextKnown() {
  const { judged } = lesson;
  const { start } = judged;
  if (start === null || start.position === 0) return go(judged);
  lesson = { known: start };
  showKnown();
}

// On to the first pair, or to whatever comes before it.
function go(reply, word = "") {
  ({ task, progress } = reply);
  showProgress();
  lesson = null;
  at("coach").hidden = true;
  if (reply.start) showStart(reply);
  else if (tutorial && task && progress.done === 0 && !seen()) teach(0, word);
  else move(reply, word);
}

// ---- the tutorial of exact projects without practice pairs

function teach(index, word) {
  const all = lesson?.all ?? lessons(positive, negative);
  lesson = { index, all, tries: 0 };
  const now = all[index];
  at("work").hidden = false;
  at("start").hidden = true;
  at("finished").hidden = true;
  at("coach").hidden = false;
  at("skip-tutorial").hidden = false;
  at("next-lesson").hidden = true;
  at("coach-step").textContent = t("Practice {number} of {total} · nothing is saved", { number: index + 1, total: all.length });
  at("coach-title").textContent = now.title;
  at("coach-text").textContent = now.text;
  showPair(now);
  answers.focus();
  say(word, { aside: `${now.title}. ${now.text}` });
}

function practise(cantSay) {
  const now = lesson.all[lesson.index];
  lesson.tries += 1;
  const good = !cantSay && now.good(answers.values);
  if (!good && lesson.tries === 1) {
    answers.clear();
    answers.focus();
    say(cantSay ? t("That skips a pair. Here: {hint}", now) : now.hint);
    return;
  }
  const word = good ? now.praise : t("Never mind, it comes with practice.");
  if (lesson.index + 1 < lesson.all.length) teach(lesson.index + 1, word);
  else endTutorial(`${word} ${t("Now the real ones.")}`);
}

function endTutorial(word) {
  lesson = null;
  remember();
  at("coach").hidden = true;
  move({ task, progress }, word);
}

// ---- wiring

const slide = mode === "graded" ? {} : {
  nudge: (direction, fine) => { answers.active.nudge(direction, fine); focusActive(); },
  accept: () => answers.active.set(Number(answers.active.input.value)),
};
const turn = (direction) => { answers.sliders[1].turn(direction); answers.focus(answers.sliders[1]); };

listen({
  enter, undo, ...slide,
  digit: (digit) => {
    if (mode === "graded") return choose(answers.level(digit));
    answers.active.type(digit);
    focusActive();
  },
  leaveNote: () => { openNote(at("note").value.trim() !== "", false); focusActive(); },
  letters: {
    c: () => sure("none"), z: undo, n: () => openNote(true), "?": openHelp,
    ...(mode === "exact" ? {
      s: () => sure("same"), l: () => sure("left"), r: () => sure("right"), f: fit,
      "-": () => turn(-1), "−": () => turn(-1), "+": () => turn(1),
    } : {}),
  },
});

function focusActive() {
  answers.focus(answers.active);
}

// ---- the answers of this annotator, to look at and to change

async function openOwn() {
  if (busy || lesson || !at("start").hidden) return;
  at("own-list").replaceChildren();
  at("older").dataset.page = "0";
  await listOwn();
  at("own").showModal();
}

async function listOwn() {
  const page = Number(at("older").dataset.page);
  const { answers: own, more } = await studio.own(page).catch(() => ({ answers: [], more: false }));
  at("older").hidden = !more;
  at("older").dataset.page = String(page + 1);
  at("own-list").append(...own.map((one) => {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    const said = document.createElement("b");
    said.textContent = one.answer;
    button.append(brief(one.left), brief(one.right), said);
    button.addEventListener("click", () => { at("own").close(); revise(one.pair); });
    row.append(button);
    return row;
  }));
  const any = at("own-list").firstChild;
  at("own-text").textContent = any ? t("Latest first. Choose one to change it.") : t("None yet.");
}

async function revise(pair) {
  busy = true;
  try {
    const reply = await studio.answered(pair);
    move(reply, t("Change your answer, or choose the same again."));
    const { answer } = task;
    if (mode === "graded" && answer.level) answers.fill(answer.level);
    if (mode === "exact" && !answer.cant_say) {
      answers.fill([answer.similarity, answer.difference].map((value) => (value === null ? null : Math.round(100 * value))));
    }
    at("note").value = answer.note;
    openNote(answer.note !== "", false);
    clearTimeout(speaking);
  } catch (error) {
    refusedBy(error);
  }
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
at("name-classes")?.addEventListener("click", nameClasses);
at("finished-undo").addEventListener("click", undo);
at("use-nearest").addEventListener("click", fit);
at("add-note").addEventListener("click", () => openNote(at("note-box").hidden));
at("retry").addEventListener("click", () => studio.wake());
at("open-help").addEventListener("click", openHelp);
at("open-answers").addEventListener("click", openOwn);
at("older").addEventListener("click", listOwn);
at("letters").addEventListener("change", () => setLetters(at("letters").checked));
at("begin").addEventListener("click", begin);
at("next-lesson").addEventListener("click", nextKnown);
at("skip-tutorial").addEventListener("click", () => { if (!busy) endTutorial(""); });
at("again-tutorial").addEventListener("click", () => {
  at("help").close();
  if (!busy && task && !lesson) teach(0, "");
});

async function open() {
  let word = "";
  for (const kept of studio.waiting()) {
    try {
      await studio.answer(kept);
      word = t("The waiting answer is saved now.");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      word = t("A waiting answer was not saved: {why}.", { why: error.message });
    }
  }
  go(await studio.task(), word);
}

open().catch((error) => say(t("Not available: {why}.", { why: error.message }), { tone: "alarm" }));
