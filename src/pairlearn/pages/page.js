// Sorting, filters and tips. Without it the page still shows everything.
"use strict";

const number = new Intl.Collator(undefined, { numeric: true });

function sort(head) {
  const row = head.parentElement, place = [...row.children].indexOf(head);
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of row.children) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = head.closest("table").tBodies[0], sign = down ? -1 : 1;
  const numeric = head.classList.contains("n");
  const keyed = [...body.rows].map((line) => {
    const cell = line.cells[place], value = cell.dataset.v;
    return [numeric ? (value === undefined ? NaN : Number(value)) : cell.textContent, line];
  });
  keyed.sort(([a], [b]) => {
    if (!numeric) return sign * number.compare(a, b);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return sign * (a - b);
  });
  body.append(...keyed.map(([, line]) => line));
}

for (const button of document.querySelectorAll("table.sortable thead button"))
  button.addEventListener("click", () => sort(button.parentElement));

// Filters: what carries a facet is shown if it is the chosen one.
const lists = [...document.querySelectorAll("select[data-facet]")];

function choose() {
  const chosen = lists.map((list) => [list.dataset.facet, list.value]);
  const all = lists.map((list) => `[data-${list.dataset.facet}]:not(select)`).join();
  let rows = 0;
  for (const one of document.querySelectorAll(all)) {
    one.hidden = chosen.some(([facet, value]) =>
      value !== "" && facet in one.dataset && one.dataset[facet] !== value);
    rows += one.tagName === "TR" && !one.hidden;
  }
  for (const group of document.querySelectorAll(".figures"))
    group.hidden = group.children.length > 0 && ![...group.children].some((one) => !one.hidden);
  for (const said of document.querySelectorAll(".filters .said")) said.value = `${rows} rows shown`;
}

for (const list of lists) list.addEventListener("change", choose);
for (const form of document.querySelectorAll("form.filters"))
  form.addEventListener("submit", (event) => event.preventDefault());
if (lists.length) choose();

// Tips: for the mark under the pointer or near it, and for the one that has the focus.
const tip = document.getElementById("tip");
let shown = null;

function show(mark) {
  if (shown === mark) return;
  if (shown) shown.classList.remove("on");
  shown = mark;
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add("on");
  tip.textContent = mark.getAttribute("aria-label");
  place(mark);
}

function place(mark) {
  const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const middle = box.left + box.width / 2 - own.width / 2;
  const above = box.top - own.height - 8;
  tip.style.left = `${Math.max(6, Math.min(middle, document.documentElement.clientWidth - own.width - 6))}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
}

function nearest(chart, event) {
  let best = null, least = 18;
  for (const mark of chart.querySelectorAll(".pt")) {
    const box = mark.getBoundingClientRect();
    const far = Math.hypot(
      Math.max(box.left - event.clientX, 0, event.clientX - box.right),
      Math.max(box.top - event.clientY, 0, event.clientY - box.bottom));
    if (far < least) [best, least] = [mark, far];
  }
  return best;
}

for (const chart of document.querySelectorAll("svg.chart")) {
  const marks = [...chart.querySelectorAll(".pt")];
  if (!marks.length) continue;
  marks[0].setAttribute("tabindex", "0");  // one stop a chart; the arrows go on from there
  chart.addEventListener("pointermove", (event) => show(nearest(chart, event)));
  chart.addEventListener("pointerdown", (event) => show(nearest(chart, event)));
  chart.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") show(null);  // a finger leaves as soon as it has tapped
  });
  chart.addEventListener("focusin", (event) => {
    if (event.target.matches(".pt")) show(event.target);
  });
  chart.addEventListener("focusout", (event) => { if (event.target === shown) show(null); });
  chart.addEventListener("keydown", (event) => {
    const here = marks.indexOf(document.activeElement);
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    let next = here + (steps[event.key] || 0);
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = marks.length - 1;
    if (event.key === "Escape") show(null);
    if (here < 0 || next === here || !marks[next]) return;
    event.preventDefault();
    marks[here].removeAttribute("tabindex");
    marks[next].setAttribute("tabindex", "0");
    marks[next].focus();
  });
}
// The focus scrolls its mark into view: the tip goes with it.
addEventListener("scroll", () => { if (shown) place(shown); }, { passive: true, capture: true });
addEventListener("pointerdown", (event) => {
  if (!(event.target instanceof Element && event.target.closest("svg.chart"))) show(null);
});
