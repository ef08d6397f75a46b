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
