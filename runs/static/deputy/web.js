// People's own pages: follows the turns that are at work, copies, sends with Enter, tells of what waits. Everything
// but the live part works without it.
(() => {
  "use strict";
  const GATHER = 150; // hints that come together are one
  const SLOW = 12000; // with a stream: what a lost hint may cost
  const QUICK = 2000; // without one
  const following = new Map(); // turn's element -> its Follower

  class Follower {
    constructor(turn) {
      this.turn = turn;
      this.timer = 0;
      this.busy = false;
      this.again = false;
      this.failures = 0;
      this.source = null;
      this.live = turn.querySelector("[data-live]");
      this.open();
      this.wait(QUICK);
    }

    open() {
      const address = new URL(this.turn.dataset.stream, location.href);
      if (this.turn.dataset.last) address.searchParams.set("last_event_id", this.turn.dataset.last);
      this.source = new EventSource(address);
      const hint = () => this.wait(GATHER);
      this.source.addEventListener("message", hint);
      this.source.addEventListener("open", () => (this.turn.dataset.following = "yes"));
      this.source.addEventListener("delta", (event) => this.say(event));
      this.source.addEventListener("end", () => {
        this.source.close();
        hint();
      });
    }

    // Words as they come: text, and never HTML. The whole message takes their place when it is kept.
    say(event) {
      let said;
      try {
        said = JSON.parse(event.data);
      } catch {
        return;
      }
      if (!said || typeof said.text !== "string") return;
      if (said.run && said.run !== this.turn.id.slice("turn-".length)) return;
      const near = nearEnd();
      this.live.hidden = false;
      this.live.textContent += said.text;
      if (near) toEnd();
    }

    wait(milliseconds) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.look(), milliseconds);
    }

    async look() {
      if (this.busy) {
        this.again = true;
        return;
      }
      this.busy = true;
      this.again = false;
      if (!document.hidden) {
        try {
          await this.refresh();
          this.failures = 0;
        } catch {
          this.failures += 1;
        }
      }
      this.busy = false;
      if (!following.has(this.turn)) return;
      const streaming = this.source?.readyState === EventSource.OPEN;
      if (this.turn.dataset.active !== "yes") this.finish();
      else if (this.again) this.wait(GATHER);
      else this.wait(streaming ? SLOW : Math.min(QUICK * 2 ** this.failures, SLOW));
    }

    async refresh() {
      const response = await fetch(this.turn.dataset.turn, { credentials: "same-origin", redirect: "error" });
      if (!response.ok) throw new Error(String(response.status));
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector(".turn");
      if (!fresh) throw new Error("no turn");
      const near = nearEnd();
      let changed = false;
      for (const part of fresh.querySelectorAll("[data-part]")) changed = this.swap(part) || changed;
      for (const name of ["last", "active"]) this.turn.dataset[name] = fresh.dataset[name];
      if (changed) prepare(this.turn);
      if (changed && near) toEnd();
    }

    // A part takes the place of its older self, unless the reader writes in it; the focus stays where it was.
    swap(part) {
      const old = this.turn.querySelector(`[data-part="${part.dataset.part}"]`);
      const focused = old.contains(document.activeElement) ? document.activeElement : null;
      if (old.dataset.version === part.dataset.version || focused?.matches("input, textarea, select")) return false;
      const fold = focused?.closest("details[id]")?.id;
      const open = new Set([...old.querySelectorAll("details[id][open]")].map((one) => one.id));
      old.replaceWith(part);
      for (const one of part.querySelectorAll("details[id]")) one.open = open.has(one.id);
      if (focused) (document.querySelector(`[id="${fold}"] > summary`) ?? document.querySelector("[data-composer] textarea") ?? document.body).focus();
      if (part.dataset.part === "asks") badges();
      if (["words", "answer"].includes(part.dataset.part)) {
        this.live.textContent = "";
        this.live.hidden = true;
      }
      return true;
    }

    close() {
      clearTimeout(this.timer);
      this.source?.close();
    }

    finish() {
      this.close();
      following.delete(this.turn);
      const words = document.querySelector("[data-composer] textarea[data-idle]");
      if (words && !following.size) words.placeholder = words.dataset.idle;
      badges();
    }
  }

  const nearEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 220;
  const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight });
  // Each in the name of its own place: of those in one name that come while another is asked for, htmx keeps one.
  const ask = (url, place, swap) => window.htmx.ajax("GET", url, { source: place, target: place, swap });
  const badges = () => {
    const shown = document.querySelector("[data-badges]");
    if (!shown || !window.htmx) return;
    ask(shown.getAttribute("hx-get"), shown, "innerHTML");
    const search = document.getElementById("search");
    if (search.value) return;
    const list = document.getElementById("conversations");
    const here = encodeURIComponent(search.dataset.here);
    ask(`${search.getAttribute("hx-get")}?here=${here}`, list, "innerHTML");
  };

  const followAll = () => {
    for (const [turn, follower] of following) {
      if (turn.isConnected) continue;
      follower.close();
      following.delete(turn);
    }
    for (const turn of document.querySelectorAll('.turn[data-active="yes"]')) {
      if (!following.has(turn)) following.set(turn, new Follower(turn));
    }
  };

  // A browser has few connections to one host: a page that nobody sees lets go of its own.
  document.addEventListener("visibilitychange", () => {
    for (const follower of following.values()) {
      follower.source?.close();
      if (!document.hidden) {
        follower.open();
        follower.wait(0);
      }
    }
  });

  const prepare = (where) => {
    for (const button of where.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).innerText.trim());
    const label = button.querySelector("span");
    const before = label.textContent;
    label.textContent = button.dataset.done;
    setTimeout(() => (label.textContent = before), 1500);
  });

  // Enter sends, Shift+Enter makes a line; not while an input method composes a word.
  document.addEventListener("keydown", (event) => {
    const where = event.target;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !where.matches?.("[data-composer] textarea")) return;
    event.preventDefault();
    if (where.value.trim()) where.form.requestSubmit();
  });

  document.addEventListener("change", (event) => {
    if (!event.target.matches(".file input")) return;
    const said = event.target.closest(".file").querySelector("[data-files]");
    said.dataset.empty ??= said.textContent;
    said.textContent = [...event.target.files].map((file) => file.name).join(", ") || said.dataset.empty;
  });

  // One form, one send: a second press does nothing while the first is on its way.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-once], .composer:not([hx-post]), .tries form")) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => document.querySelectorAll("[data-sent]").forEach((form) => delete form.dataset.sent));

  // A menu beside a button closes when the reader goes elsewhere.
  document.addEventListener("click", (event) => {
    for (const open of document.querySelectorAll("details.pop[open]")) if (!open.contains(event.target)) open.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.querySelector("details.pop[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });

  // Browser notifications, where they were allowed: of what has come to wait since the last look.
  let known = null;
  const tell = () => {
    const waits = Number(document.querySelector("[data-count]")?.dataset.count ?? 0);
    const fresh = Number(document.querySelector("[data-unseen]")?.dataset.unseen ?? 0);
    const now = waits + fresh;
    if (known !== null && now > known && document.hidden && "Notification" in window && Notification.permission === "granted") {
      const place = document.querySelector("[data-badges]")?.parentElement;
      new Notification("Deputy", { body: place?.innerText.trim(), tag: "deputy", icon: document.querySelector("link[rel=icon]").href });
    }
    known = now;
  };
  const offer = () => {
    const place = document.querySelector("[data-notify]");
    if (!place || !("Notification" in window) || !isSecureContext) return;
    const show = () => {
      place.hidden = Notification.permission === "denied";
      place.querySelector("[data-allow]").hidden = Notification.permission === "granted";
      place.querySelector("[data-allowed]").hidden = Notification.permission !== "granted";
    };
    place.querySelector("[data-allow]").addEventListener("click", async () => {
      await Notification.requestPermission();
      show();
    });
    show();
  };

  // The queue as it changes: a stream says that it has, and the page asks for it again. The title has the count.
  const bare = document.title.replace(/^\(\d+\) /, "");
  const titled = () => {
    const waits = Number(document.querySelector("[data-count]")?.dataset.count ?? 0);
    document.title = waits ? `(${waits}) ${bare}` : bare;
  };
  let queue = null;
  // One at a time: what came for a place that another answer has taken meanwhile would be lost.
  let stale = false;
  let asking = false;
  const askQueue = async () => {
    stale = true;
    if (asking) return;
    asking = true;
    try {
      while (stale) {
        stale = false;
        const now = document.getElementById("to-decide");
        const read = now.contains(document.activeElement); // what has the focus stays
        if (!read) await ask(now.dataset.toDecide, now, "outerHTML");
        badges();
      }
    } finally {
      asking = false;
    }
  };
  const followQueue = () => {
    const place = document.querySelector("[data-to-decide]");
    queue?.close();
    queue = null;
    if (!place || document.hidden) return;
    queue = new EventSource(place.dataset.stream);
    queue.addEventListener("open", async () => {
      await askQueue(); // what has changed while nobody followed
      document.getElementById("to-decide").dataset.following = "yes";
    });
    queue.addEventListener("queue", askQueue);
  };
  document.addEventListener("visibilitychange", followQueue);

  const begin = () => {
    prepare(document);
    followAll();
    tell();
    titled();
  };
  // What could not be sent stays in its field, and the page says so.
  for (const name of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(name, (event) => {
      if (!event.target.closest("[data-composer]")) return;
      const told = document.querySelector("[data-failed]");
      told.hidden = false;
      told.scrollIntoView({ block: "center" });
    });
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    begin();
    if (event.detail.target?.id !== "main") return;
    badges();
    document.querySelector("[data-composer] textarea")?.focus();
    toEnd();
  });
  begin();
  followQueue();
  offer();
  if (document.querySelector("[data-thread]")) toEnd();
})();
