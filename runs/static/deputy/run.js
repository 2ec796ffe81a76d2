// Keeps a run's page up to date while any run of its tree is active. The stream says that something has
// happened; the parts come from the server, escaped there. Opened and closed details stay as the reader left
// them. Where there is no stream the page asks by itself.
(() => {
  "use strict";
  const page = document.querySelector("[data-live]");
  if (!page) return;
  const QUICK = 1500; // without a stream
  const SLOW = 15000; // with one: what a lost hint may cost
  const GATHER = 120; // hints that come together are one
  let failures = 0;
  let timer = 0;
  let source = null;
  let busy = false;
  let again = false;

  const folded = (part) =>
    new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));

  const show = (name, html) => {
    const part = page.querySelector(`[data-part="${name}"]`);
    if (!part || part.contains(document.activeElement)) return part === null;
    const before = folded(part);
    part.innerHTML = html;
    for (const [id, open] of before) {
      const same = document.getElementById(id);
      if (same) same.open = open;
    }
    return true;
  };

  const refresh = async () => {
    const address = new URL(page.dataset.live, location.href);
    for (const [name, value] of new URLSearchParams(location.search)) address.searchParams.set(name, value);
    address.searchParams.set("v", page.dataset.stamp);
    const response = await fetch(address, { credentials: "same-origin", redirect: "error" });
    if (!response.ok) throw new Error(String(response.status));
    const answer = await response.json();
    const shown = Object.entries(answer.parts).map(([name, html]) => show(name, html));
    if (shown.every(Boolean)) page.dataset.stamp = answer.stamp;
    if (answer.last) page.dataset.last = answer.last;
    page.dataset.active = answer.active ? "yes" : "no";
  };

  const streaming = () => source !== null && source.readyState === EventSource.OPEN;

  const wait = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(tick, milliseconds);
  };

  const tick = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    if (!document.hidden) {
      try {
        await refresh();
        failures = 0;
      } catch {
        failures += 1;
      }
    }
    busy = false;
    if (page.dataset.active !== "yes") finish();
    else if (again) wait(GATHER);
    else wait(streaming() ? SLOW : Math.min(QUICK * 2 ** failures, SLOW));
  };

  // What models are just saying, a paragraph for each run, until the finished message takes its place.
  const words = page.querySelector("[data-words]");
  const saying = new Map();

  const say = ({ run, text }) => {
    if (!words) return;
    if (!saying.has(run)) {
      const paragraph = document.createElement("p");
      paragraph.className = "dp-words";
      saying.set(run, words.appendChild(paragraph));
    }
    saying.get(run).append(text);
    words.hidden = false;
  };

  const said = (run) => {
    saying.get(run)?.remove();
    saying.delete(run);
    if (words && saying.size === 0) words.hidden = true;
  };

  const finish = () => {
    source?.close();
    page.querySelectorAll("[data-while-active]").forEach((element) => element.remove());
  };

  const follow = () => {
    const address = new URL(page.dataset.stream, location.href);
    address.searchParams.set("last_event_id", page.dataset.last);
    source = new EventSource(address);
    const hint = () => wait(GATHER);
    source.addEventListener("message", (event) => {
      said(JSON.parse(event.data).run);
      hint();
    });
    source.addEventListener("delta", (event) => say(JSON.parse(event.data)));
    source.addEventListener("open", () => (page.dataset.following = "yes"));
    source.addEventListener("end", () => {
      source.close();
      hint();
    });
  };

  // A browser has few connections to one host: a page that nobody sees lets go of its own.
  document.addEventListener("visibilitychange", () => {
    if (page.dataset.active !== "yes") return;
    source?.close();
    if (document.hidden) return;
    follow();
    wait(0);
  });
  if (page.dataset.active === "yes") {
    follow();
    wait(QUICK);
  }
})();
