// Keeps a run's page up to date while any run of its family is active. Parts come from the server,
// escaped there; opened and closed details stay as the reader left them.
(() => {
  "use strict";
  const page = document.querySelector("[data-live]");
  if (!page) return;
  const QUICK = 1500;
  const SLOW = 15000;
  let failures = 0;

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
    page.dataset.active = answer.active ? "yes" : "no";
  };

  const tick = async () => {
    if (!document.hidden) {
      try {
        await refresh();
        failures = 0;
      } catch {
        failures += 1;
      }
    }
    if (page.dataset.active === "yes") setTimeout(tick, Math.min(QUICK * 2 ** failures, SLOW));
    else page.querySelectorAll("[data-while-active]").forEach((element) => element.remove());
  };

  if (page.dataset.active === "yes") setTimeout(tick, QUICK);
})();
