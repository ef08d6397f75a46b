// Show one item. Whatever an item holds is text: nothing here is ever parsed as HTML.

import { t } from "./words.js";

const TINY = 100;
const pictures = new Map();

// Items stand side by side, or on a narrow page one above the other.
const narrow = matchMedia("(max-width: 720px)");

export function sideName(first) {
  if (narrow.matches) return first ? t("above") : t("below");
  return first ? t("left") : t("right");
}

export function sideOne(first) {
  if (narrow.matches) return first ? t("the one above") : t("the one below");
  return first ? t("the left one") : t("the right one");
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function table(rows, others) {
  const made = element("table", "values");
  const theirs = new Map(others ?? []);
  for (const [name, value] of rows) {
    const row = made.insertRow();
    const head = element("th", "", name);
    head.scope = "row";
    head.dir = "auto";
    const cell = element("td", "", value);
    cell.dir = "auto";
    row.append(head, cell);
    // What both items share says nothing about their difference: let it step back.
    if (theirs.get(name) === value) row.className = "shared";
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

export function show(side, view, other) {
  document.getElementById(`${side}-title`).textContent = view.title;
  const content = document.getElementById(`${side}-content`);
  content.className = `content ${view.kind}`;
  content.scrollTop = 0;
  if (view.kind === "image") content.replaceChildren(picture(view, side));
  else if (view.kind === "table") content.replaceChildren(table(view.rows, other?.rows));
  else {
    const text = element("p", "prose", view.text);
    text.dir = "auto";
    content.replaceChildren(text);
  }
}
