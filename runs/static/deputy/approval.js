// The page of one approval: keys, and word of a decision made elsewhere. No key decides by itself: it brings
// the focus to a button, which then is pressed like any other.
(() => {
  "use strict";
  const page = document.querySelector("[data-state]");
  if (!page) return;
  const LOOK = 4000;
  const keys = page.querySelector("[data-keys]");
  const reason = page.querySelector("#reason");
  const button = (key) => page.querySelector(`button[data-key="${key}"]`);

  const bring = (element) => {
    if (!element) return;
    element.scrollIntoView({ block: "center" });
    element.focus();
  };
  const follow = (key) => page.querySelector(`a[data-key="${key}"]`)?.click();
  const edit = () => {
    const fold = page.querySelector('details[data-key="e"]');
    if (!fold) return;
    fold.open = true;
    bring(fold.querySelector("textarea, input, select"));
  };
  const does = {
    a: () => bring(button("a")),
    r: () => bring(reason?.value.trim() ? button("r") : reason),
    e: edit,
    j: () => follow("j"),
    k: () => follow("k"),
    "?": () => keys.showModal(),
  };

  const writing = (element) => element.matches("textarea, select, input:not([type=checkbox])");
  document.addEventListener("keydown", (event) => {
    const where = event.target;
    if (where === reason && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      bring(button("r"));
      return;
    }
    if (event.key === "Escape" && writing(where)) where.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || writing(where) || keys.open) return;
    if (Object.hasOwn(does, event.key)) {
      event.preventDefault();
      does[event.key]();
    }
  });
  page.querySelector("[data-help]").addEventListener("click", () => keys.showModal());

  // A rejection needs a reason: the browser asks for it before anything is sent.
  page.querySelector(".dp-decide")?.addEventListener("click", (event) => {
    const pressed = event.target.closest("button[name=decision]");
    if (pressed) reason.required = pressed.value === "reject";
  });

  // One form, one decision: a second press does nothing while the first is on its way.
  page.querySelector(".dp-decide")?.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => delete page.querySelector(".dp-decide")?.dataset.sent);

  const look = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(page.dataset.state, { credentials: "same-origin", redirect: "error" });
        const answer = response.ok ? await response.json() : { pending: true };
        if (!answer.pending) {
          const banner = page.querySelector("[data-meanwhile]");
          banner.querySelector("span").textContent = answer.said;
          banner.hidden = false;
          page.querySelectorAll(".dp-decide button").forEach((one) => (one.disabled = true));
          return;
        }
      } catch {
        // asked again
      }
    }
    setTimeout(look, LOOK);
  };
  if (page.dataset.pending === "yes") setTimeout(look, LOOK);
})();
