// The service worker: shows what Deputy pushes, and opens the page it is about. It keeps and fetches nothing.
"use strict";
self.addEventListener("push", (event) => {
  let said = {};
  try {
    said = event.data.json();
  } catch {
    said = {};
  }
  const options = { body: String(said.body || ""), data: { url: String(said.url || "/") }, tag: String(said.url || "") };
  event.waitUntil(self.registration.showNotification(String(said.title || "Deputy"), options));
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const to = new URL(event.notification.data.url, self.location.origin);
  if (to.origin === self.location.origin) event.waitUntil(self.clients.openWindow(to.href));
});
