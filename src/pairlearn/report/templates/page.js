// Sorting and filters. Without them the page still shows everything.
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
    const { dataset: { v }, textContent: text } = line.cells[place];
    return [(numeric ? v === undefined : text.trim() === "–") ? null : numeric ? Number(v) : text, line];
  });
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);  // a dash comes last
    return sign * (numeric ? a - b : number.compare(a, b));
  });
  body.append(...keyed.map(([, line]) => line));
}

for (const button of document.querySelectorAll("table.sortable thead button"))
  button.addEventListener("click", () => sort(button.parentElement));

// A table that is wider than its box says so, and fades at the side where it goes on.
function mark(box) {
  const beyond = box.scrollWidth - box.clientWidth;
  box.classList.toggle("scrolls", beyond > 1);
  box.classList.toggle("goes-on", beyond - box.scrollLeft > 1);
}

const resized = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
for (const box of document.querySelectorAll(".scroll")) {
  box.addEventListener("scroll", () => mark(box), { passive: true });
  resized.observe(box);
}

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
