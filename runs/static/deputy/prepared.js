// A mail's link has prepared a decision: its button has the focus, and is pressed like any other.
(() => {
  "use strict";
  const what = new URLSearchParams(location.search).get("prepared");
  if (what !== "approve" && what !== "reject") return;
  const button = document.querySelector(`main button[name=decision][value=${what}]`);
  const reason = document.querySelector("main [name=reason]");
  const element = what === "reject" && reason ? reason : button;
  if (!element) return;
  element.scrollIntoView({ block: "center" });
  element.focus();
})();
