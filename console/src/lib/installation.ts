/** Installing the console as an app, and the service worker that opens it while the server cannot be reached. */
import { effect, signal } from "@preact/signals";
import { toAddress } from "./base";
import { language } from "./language";

/** Chromium's offer to install; it is made in the settings, and not whenever the browser likes. */
interface InstallPrompt extends Event {
  prompt(): Promise<{ outcome: "accepted" | "dismissed" }>;
}
/** `insecure`: plain HTTP from another machine. `refused`: the browser does not trust the certificate, or the window is
 * private. `by-hand`: the browser has a menu entry for it, or no way at all. */
export type Installability = "installed" | "insecure" | "refused" | "offered" | "ios" | "by-hand";

const prompt = signal<InstallPrompt | null>(null);
const isRefused = signal(false);
const standalone = matchMedia("(display-mode: standalone)");
const isInstalled = signal(standalone.matches || (navigator as { standalone?: boolean }).standalone === true);

standalone.addEventListener("change", (event) => (isInstalled.value = event.matches));
addEventListener("beforeinstallprompt", (event) => {
  event.preventDefault();
  prompt.value = event as InstallPrompt;
});
addEventListener("appinstalled", () => {
  isInstalled.value = true;
  prompt.value = null;
});
effect(() => {
  const link = document.querySelector<HTMLLinkElement>('link[rel="manifest"]');
  const address = link?.href.replace(/\w+(?=\.webmanifest$)/, language.value === "zh" ? "zh" : "en");
  if (link && address && address !== link.href) link.href = address;
});

export function getInstallability(): Installability {
  if (isInstalled.value) return "installed";
  if (!isSecureContext) return "insecure";
  if (isRefused.value) return "refused";
  if (prompt.value) return "offered";
  // An iPad says that it is a Mac, which has no touch screen.
  const isApple = /iPhone|iPad|iPod/.test(navigator.userAgent);
  return isApple || (/Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1) ? "ios" : "by-hand";
}

export async function install(): Promise<void> {
  const offer = prompt.value;
  prompt.value = null; // it can be used once
  await offer?.prompt();
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: () => string }): { createScriptURL: (text: string) => string };
}
const ADDRESS = toAddress("/service-worker.js");
/** Trusted Types let only a policy name a worker, and this one knows a single address. */
const policy = (window as { trustedTypes?: PolicyFactory }).trustedTypes?.createPolicy("service-worker", {
  createScriptURL: () => ADDRESS,
});

export async function registerServiceWorker(): Promise<void> {
  if (!("serviceWorker" in navigator) || import.meta.env.DEV) return;
  try {
    await navigator.serviceWorker.register(policy?.createScriptURL("") ?? ADDRESS, { updateViaCache: "none" });
    navigator.serviceWorker.controller?.postMessage("store-files"); // the first worker does it when it is installed
  } catch {
    isRefused.value = true;
  }
}
