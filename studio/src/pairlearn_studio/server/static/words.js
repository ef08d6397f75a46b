// The words of the page: English in the scripts, other languages in a table that the page carries.

const table = JSON.parse(document.body.dataset.words ?? "{}");

export function t(text, values = {}) {
  return (table[text] ?? text).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
