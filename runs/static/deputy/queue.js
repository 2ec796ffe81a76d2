// The admin's list of approvals as it changes: a stream says that it has, and the page is asked for again. A list in
// which somebody has chosen rows stays as it is until they are done. The title says how many wait.
(() => {
  "use strict";
  const place = document.querySelector("[data-queue]");
  if (!place) return;
  const bare = document.title;
  const titled = (count) => (document.title = Number(count) ? `(${count}) ${bare}` : bare);
  const refresh = async () => {
    const response = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    titled(fresh.querySelector("[data-queue]")?.dataset.queueCount ?? 0);
    const [list, newer] = [document, fresh].map((each) => each.querySelector("#result_list"));
    if (list && newer && !list.querySelector("input:checked") && !list.contains(document.activeElement)) list.replaceWith(newer);
    else if (!list !== !newer) location.reload();
  };
  let source = null;
  const follow = () => {
    source?.close();
    source = null;
    if (document.hidden) return;
    source = new EventSource(place.dataset.queue);
    source.addEventListener("queue", () => refresh().catch(() => {}));
  };
  document.addEventListener("visibilitychange", follow);
  titled(place.dataset.queueCount);
  follow();
})();
