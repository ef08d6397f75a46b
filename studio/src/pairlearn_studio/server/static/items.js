// Show one item. Whatever an item holds is text: nothing here is ever parsed as HTML.

import { t } from "./words.js";

const TINY = 100;
const pictures = new Map();

// Items stand side by side, or on a narrow page one above the other.
const narrow = matchMedia("(max-width: 540px)");

// Rows of a table are shown as one table, which stays side by side.
const aligned = document.body.classList.contains("aligned");
const stacked = () => narrow.matches && !aligned;

export function sideName(first) {
  if (stacked()) return first ? t("above") : t("below");
  return first ? t("left") : t("right");
}

export function sideOne(first) {
  if (stacked()) return first ? t("the one above") : t("the one below");
  return first ? t("the left one") : t("the right one");
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const rowsOf = (view) => view.rows ?? [["", view.text]];

// Both items as one table: a row for each column of theirs, values that differ marked.
function table(left, right) {
  const made = element("table", "values");
  const head = made.createTHead().insertRow();
  head.append(element("td"));
  for (const [view, first] of [[left, true], [right, false]]) {
    const cell = element("th", "", "");
    cell.scope = "col";
    cell.append(element("span", "side", sideName(first)), element("b", "", view.title));
    cell.lastChild.dir = "auto";
    head.append(cell);
  }
  const body = made.createTBody();
  const theirs = new Map(rowsOf(right));
  const names = new Set([...rowsOf(left), ...rowsOf(right)].map(([name]) => name));
  const ours = new Map(rowsOf(left));
  for (const name of names) {
    const row = body.insertRow();
    const label = element("th", "", name);
    label.scope = "row";
    label.dir = "auto";
    row.append(label);
    for (const value of [ours.get(name) ?? "", theirs.get(name) ?? ""]) {
      const cell = element("td", "", value);
      cell.dir = "auto";
      row.append(cell);
    }
    if (ours.get(name) === theirs.get(name)) row.className = "shared";
  }
  return made;
}

// A picture fetched ahead is kept as an element and shown as such: replies are not cached.
export function prefetch(view) {
  if (!view?.image || pictures.has(view.image)) return;
  const picture = new Image();
  picture.src = `${location.pathname}/${view.image}`;
  pictures.set(view.image, picture);
}

// Both pictures as large as they can be; any click, tap or key closes them.
function zoom() {
  const copies = [...document.querySelectorAll(".content.image img")].map((image) => image.cloneNode());
  document.getElementById("zoomed").replaceChildren(...copies);
  document.getElementById("zoom").showModal();
}

function picture(view, side) {
  prefetch(view);
  const made = pictures.get(view.image);
  pictures.delete(view.image);
  made.alt = view.title || sideOne(side === "left");
  made.addEventListener("click", zoom);
  // Smoothing a picture of 28 by 28 pixels would hide what is in it.
  const sized = () => made.classList.toggle("tiny", made.naturalWidth <= TINY);
  if (made.complete) sized();
  else made.addEventListener("load", sized);
  made.addEventListener("error", () => {
    made.replaceWith(element("p", "broken", t("This picture cannot be shown.")));
  });
  return made;
}

export function showBoth(left, right) {
  if (aligned) {
    const content = document.getElementById("both-content");
    content.replaceChildren(table(left, right));
    content.scrollTop = 0;
    return;
  }
  show("left", left);
  show("right", right);
}

function show(side, view) {
  document.getElementById(`${side}-title`).textContent = view.title;
  const content = document.getElementById(`${side}-content`);
  content.className = `content ${view.kind}`;
  content.scrollTop = 0;
  if (view.kind === "image") {
    content.replaceChildren(picture(view, side));
    return;
  }
  const text = element("p", "prose", view.text);
  text.dir = "auto";
  content.replaceChildren(text);
}

// An item in a list: a small picture, or the beginning of its text.
export function brief(view) {
  if (!view.image) {
    const text = view.text ?? view.rows.map(([name, value]) => `${name} ${value}`).join(", ");
    const whole = `${view.title} ${text}`.trim();
    return element("span", "brief", whole.length > 80 ? `${whole.slice(0, 80)}…` : whole);
  }
  const made = element("img", "brief");
  made.src = `${location.pathname}/${view.image}`;
  made.alt = view.title || t("Item");
  made.loading = "lazy";
  return made;
}
