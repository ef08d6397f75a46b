// The supervisor's page: make links, end an annotator's part, settle pairs, look at one annotator's
// answers. What changes replaces what was there, without loading the page again.

import { t } from "./words.js";

const REFRESH_MS = 5000;
const at = (id) => document.getElementById(id);

async function send(path, body) {
  const reply = await fetch(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      "Content-Type": "application/json",
      "X-Studio-Form": document.querySelector("meta[name=csrf]").content,
    },
  });
  const content = await reply.json().catch(() => ({ error: t("the studio is not answering") }));
  if (!reply.ok) throw new Error(content.error);
  return content;
}

async function attempt(action) {
  try {
    await action();
  } catch (error) {
    at("link-box").hidden = true; // it shows the link of the person before
    at("made").textContent = t("Not done: {why}.", { why: error.message });
  }
}

function showLink({ name, path }) {
  at("made").textContent = t("A link for {name} is ready.", { name });
  at("link").value = new URL(path, location.origin).href;
  at("link-box").hidden = false;
  at("link").focus();
  at("link").select();
}

at("new-link").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const { name, quota, days } = event.target.elements;
    const limit = (field) => (field.value ? Number(field.value) : null);
    showLink(await send("api/annotators", { name: name.value, quota: limit(quota), days: limit(days) }));
    for (const field of [name, quota, days]) field.value = "";
    refresh();
  });
});
at("copy").addEventListener("click", () => attempt(async () => {
  at("link").select();
  if (navigator.clipboard) await navigator.clipboard.writeText(at("link").value);
  else document.execCommand("copy");
  at("made").textContent = t("Copied.");
}));
document.addEventListener("click", ({ target }) => {
  const { renew, end, name, pause } = target.dataset;
  if (pause) {
    attempt(async () => {
      await send("api/pause", { paused: pause === "yes" });
      target.blur();
      refresh();
    });
  }
  if (renew && confirm(t("Make a new link for {name}? The old one stops working.", { name }))) {
    attempt(async () => showLink(await send("api/annotators/renew", { annotator: Number(renew) })));
  }
  if (end && confirm(t("End {name}’s participation? Their link stops working, their answers are kept, and their open pairs go to the others.", { name }))) {
    attempt(async () => {
      await send("api/annotators/end", { annotator: Number(end) });
      target.blur();
      refresh();
    });
  }
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "extend") return;
  event.preventDefault();
  attempt(async () => {
    const { pairs } = await send("api/extend", { pairs: Number(event.target.elements.pairs.value) });
    at("made").textContent = t("The project has {pairs} pairs now.", { pairs });
    document.activeElement.blur();
    refresh();
  });
});
document.addEventListener("submit", (event) => {
  const pair = event.target.dataset.settle;
  if (!pair) return;
  event.preventDefault();
  const level = event.target.querySelector("select").value;
  attempt(async () => {
    await send("api/settle", { pair: Number(pair), level });
    event.target.reset();
    document.activeElement.blur();
    refresh();
  });
});

function dim() {
  const who = at("who").value;
  for (const dot of document.querySelectorAll("#dots g")) {
    const theirs = dot.dataset.who === who;
    dot.classList.toggle("dim", who !== "" && !theirs);
    dot.classList.toggle("off", !theirs && dot.dataset.always === undefined);
  }
}
document.addEventListener("change", ({ target }) => target === at("who") && dim());

// The page as it is now; it is parsed without running anything, and only its parts are taken.
function refresh() {
  const request = new XMLHttpRequest();
  request.responseType = "document";
  request.onload = () => {
    if (request.status !== 200) return;
    const who = at("who").value;
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = request.responseXML.querySelector(`[data-live=${part.dataset.live}]`);
      const busy = part.contains(document.activeElement) || [...part.querySelectorAll("form select")].some((one) => one.value);
      if (!fresh || busy || fresh.isEqualNode(part)) continue;
      part.replaceWith(document.importNode(fresh, true));
    }
    at("who").value = who;
    dim();
  };
  request.open("GET", location.pathname);
  request.send();
}
setInterval(() => document.hidden || refresh(), REFRESH_MS);
