// The page of one approval, at every door: keys, long texts that have to be opened, and word of a decision made
// elsewhere. No key decides by itself: it brings the focus to a button, which then is pressed like any other.
(() => {
  "use strict";
  const page = document.querySelector("[data-approval]");
  if (!page) return;
  const LOOK = 4000;
  const NEAR = 24; // pixels from its end at which a text has been scrolled through
  const keys = page.querySelector("[data-keys]");
  const form = page.querySelector("[data-decide]");
  const reason = page.querySelector("#reason");
  const button = (key) => page.querySelector(`button[data-key="${key}"]`);
  const approves = () => [...(form?.querySelectorAll("button[name=decision]") ?? [])].filter((one) => one.value.startsWith("approve"));

  const bring = (element) => {
    if (!element) return;
    element.scrollIntoView({ block: "nearest" });
    element.focus();
  };
  const follow = (key) => page.querySelector(`a[data-key="${key}"]`)?.click();
  const edit = () => {
    const fold = page.querySelector('details[data-key="e"]');
    if (!fold) return follow("e");
    fold.open = true;
    bring(fold.querySelector("textarea, input, select"));
  };

  // Long texts are folded here, and nowhere without this script; none is approved unseen.
  const unread = new Set();
  const told = page.querySelector("[data-unread]");
  const next = page.querySelector("[data-next-unread]");
  let decided = false;
  const weigh = () => {
    if (!form) return;
    for (const one of approves()) one.disabled = decided || unread.size > 0;
    told.hidden = unread.size === 0;
    next.textContent = page.dataset.unreadWord;
  };
  const seen = (text) => {
    if (unread.delete(text)) weigh();
  };
  const open = (text) => {
    text.classList.remove("ap-folded");
    text.removeAttribute("tabindex");
    text.nextElementSibling?.matches("[data-opener]") && text.nextElementSibling.remove();
    seen(text);
  };
  const fold = (text) => {
    text.classList.add("ap-folded");
    if (text.scrollHeight <= text.clientHeight + NEAR) return text.classList.remove("ap-folded");
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", text.closest(".ap-line").querySelector("dt").innerText.trim());
    const opener = document.createElement("button");
    opener.type = "button";
    opener.className = "ap-link ap-opener";
    opener.dataset.opener = "";
    opener.textContent = page.dataset.openWord.replace("{count}", text.dataset.long);
    opener.addEventListener("click", () => open(text));
    text.after(opener);
    text.addEventListener("scroll", () => {
      if (text.scrollTop + text.clientHeight >= text.scrollHeight - NEAR) seen(text);
    });
    unread.add(text);
  };
  if (form) {
    page.querySelectorAll("[data-long]").forEach(fold);
    next.addEventListener("click", () => bring([...unread][0]));
    weigh();
  }

  const does = {
    a: () => bring(unread.size ? [...unread][0] : button("a")),
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
  const help = page.querySelector("[data-help]");
  help.hidden = false;
  help.addEventListener("click", () => keys.showModal());

  // A rejection needs a reason: the browser asks for it before anything is sent.
  form?.addEventListener("click", (event) => {
    const pressed = event.target.closest("button[name=decision]");
    if (pressed) reason.required = pressed.value === "reject";
  });

  // One form, one decision: a second press does nothing while the first is on its way.
  form?.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => delete form?.dataset.sent);

  const look = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(page.dataset.state, { credentials: "same-origin", redirect: "error" });
        const answer = response.ok ? await response.json() : { pending: true };
        if (!answer.pending) {
          const banner = page.querySelector("[data-meanwhile]");
          banner.querySelector("span").textContent = answer.said;
          banner.hidden = false;
          decided = true;
          weigh();
          form?.querySelectorAll("button").forEach((one) => (one.disabled = true));
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
