// The supervisor's page: make links, end somebody's part, look at one annotator's answers.

const REFRESH_MS = 30000;
const at = (id) => document.getElementById(id);
let linkShown = false;

async function send(path, body) {
  const reply = await fetch(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      "Content-Type": "application/json",
      "X-Studio-Form": document.querySelector("meta[name=csrf]").content,
    },
  });
  const content = await reply.json().catch(() => ({ error: "the studio is not answering" }));
  if (!reply.ok) throw new Error(content.error);
  return content;
}

async function attempt(action) {
  try {
    await action();
  } catch (error) {
    at("made").textContent = `Not done: ${error.message}.`;
  }
}

function showLink({ name, path }) {
  linkShown = true;
  at("made").textContent = `A link for ${name} is ready.`;
  at("link").value = new URL(path, location.origin).href;
  at("link-box").hidden = false;
  at("link").focus();
  at("link").select();
}

at("new-link").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    showLink(await send("/api/annotators", { name: at("name").value }));
    at("name").value = "";
  });
});
at("copy").addEventListener("click", () => attempt(async () => {
  at("link").select();
  if (navigator.clipboard) await navigator.clipboard.writeText(at("link").value);
  else document.execCommand("copy");
  at("made").textContent = "Copied.";
}));
for (const button of document.querySelectorAll("[data-renew]")) {
  button.addEventListener("click", () => attempt(async () => {
    showLink(await send("/api/annotators/renew", { annotator: Number(button.dataset.renew) }));
  }));
}
for (const button of document.querySelectorAll("[data-end]")) {
  button.addEventListener("click", () => {
    const sure = confirm(`End the part of ${button.dataset.name}? Their link stops working, ` +
      "their answers stay, their open pairs go to the others.");
    if (sure) attempt(async () => {
      await send("/api/annotators/end", { annotator: Number(button.dataset.end) });
      location.reload();
    });
  });
}
at("who").addEventListener("change", () => {
  const who = at("who").value;
  for (const dot of document.querySelectorAll(".dot")) {
    dot.classList.toggle("dim", who !== "" && dot.dataset.who !== who);
  }
});

// A fresh page now and then, but never while a link is on show or a name is being typed.
setInterval(() => {
  if (!document.hidden && !linkShown && !at("name").value && !at("who").value) location.reload();
}, REFRESH_MS);
