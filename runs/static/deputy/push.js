// The button that lets this browser be told by Web Push; the form it stands in says where the key and the worker are.
(() => {
  "use strict";
  const form = document.querySelector("[data-push]");
  if (!form || !("serviceWorker" in navigator) || !("PushManager" in window)) return;
  form.hidden = false;
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  form.querySelector("button").addEventListener("click", async () => {
    if ((await Notification.requestPermission()) !== "granted") return;
    await navigator.serviceWorker.register(form.dataset.worker);
    const worker = await navigator.serviceWorker.ready;
    const before = await worker.pushManager.getSubscription();
    if (before) await before.unsubscribe();
    const options = { userVisibleOnly: true, applicationServerKey: bytes(form.dataset.push) };
    form.elements.address.value = JSON.stringify(await worker.pushManager.subscribe(options));
    form.submit();
  });
})();
