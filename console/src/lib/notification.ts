/** Notifications of the browser, which lead to a path of the console. Phones allow them to a service worker only; where
 * there is none, the page shows them itself. */
import { navigate } from "./router";

/** Show a notification; a later one with the same `tag` replaces it. Rejects when the browser allows none. */
export async function showNotification(title: string, body: string, tag: string, path: string): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) return worker.showNotification(title, { body, tag, data: { path } });
  const notification = new Notification(title, { body, tag });
  notification.onclick = () => {
    window.focus();
    navigate(path);
  };
}

/** Follow the notifications that were pressed: the service worker names their path to an open window. */
export function followNotifications(): void {
  navigator.serviceWorker?.addEventListener("message", (event: MessageEvent<{ path?: string }>) => {
    if (event.data.path) navigate(event.data.path);
  });
}
