// Talk to the studio. An answer is kept, here and in the browser's storage under the name of its
// annotator, until the studio has it on disk: the same key is sent again after every failure, by
// the next visit too, and counts once.

import { t } from "./words.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The page of an annotator has their requests beneath it, and so their cookie and no other.
async function call(path, body) {
  const options = { headers: { Accept: "application/json" }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
    options.headers["X-Studio-Form"] = document.querySelector("meta[name=csrf]").content;
  }
  const reply = await fetch(`${location.pathname}/api/${path}`, options);
  let content = null;
  try {
    content = await reply.json();
  } catch {
    // A proxy's page, or a reply cut off: treated like a studio that is away.
    throw new Error("not JSON");
  }
  if (reply.ok) return content;
  if (reply.status >= 500 || reply.status === 429) {
    const wait = Number(reply.headers.get("Retry-After")) || 0;
    throw new Error(content.error, { cause: { wait, reason: content.error } });
  }
  throw new Refused(reply.status, content.error ?? "refused");
}

export class Studio {
  constructor(slot, away) {
    this.slot = `pairlearn answer ${slot} `;
    this.away = away; // called with the seconds until the next try and why, or null when it is back
    this.wake = () => {};
    addEventListener("online", () => this.wake());
  }

  task() {
    return this.untilThere(() => call("task"));
  }

  // One of this annotator's answers, to change it; and all of them.
  answered(pair) {
    return call(`task?pair=${pair}`);
  }

  own(page) {
    return call(`answers?page=${page}`);
  }

  practise(answer) {
    return this.untilThere(() => call("practice", answer));
  }

  // What comes next; not worth a second try.
  async ahead(pair) {
    return (await call(`ahead?pair=${pair}`)).ahead;
  }

  // With the number of the answer to take back it may be asked again; without one (the page
  // was loaded anew) a second request could take back a second answer.
  undo(answer) {
    if (answer === undefined) return call("undo", {}).catch((error) => this.unsure(error));
    return this.untilThere(() => call("undo", { answer }));
  }

  async unsure(error) {
    if (error instanceof Refused) throw error;
    return { undone: false, ...(await this.task()) };
  }

  // The answers that earlier visits of this annotator could not hand over.
  waiting() {
    try {
      return Object.keys(localStorage).filter((name) => name.startsWith(this.slot))
        .map((name) => JSON.parse(localStorage.getItem(name)));
    } catch {
      return [];
    }
  }

  async answer(answer) {
    const kept = answer.key ? answer : { ...answer, key: key() };
    const name = this.slot + kept.key;
    try {
      localStorage.setItem(name, JSON.stringify(kept));
    } catch {
      // Storage may be full or switched off: the answer is then kept by this page alone.
    }
    try {
      const reply = await this.untilThere(() => call("answer", kept));
      localStorage.removeItem(name);
      return reply;
    } catch (error) {
      // 400, 404 and 409 are for good; a session that ended comes back with the link.
      if ([400, 404, 409].includes(error.status)) localStorage.removeItem(name);
      throw error;
    }
  }

  async untilThere(attempt) {
    let wait = FIRST_WAIT_MS;
    let missed = false;
    for (;;) {
      try {
        const found = await attempt();
        if (missed) this.away(null);
        return found;
      } catch (error) {
        if (error instanceof Refused) {
          if (missed) this.away(null);
          throw error;
        }
        missed = true;
        const pause = Math.max(wait, 1000 * (error.cause?.wait ?? 0));
        this.away(Math.ceil(pause / 1000), error.cause?.reason ?? t("the studio is not answering"));
        await this.pause(pause);
        wait = Math.min(2 * wait, LONGEST_WAIT_MS);
      }
    }
  }

  pause(milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

// randomUUID exists on secure origins only; a studio on a local network may be plain http.
function key() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
