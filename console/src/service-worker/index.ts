/** The service worker. It shows the console's page while the server cannot be reached; the page then says so and tries
 * again. Whatever the server answers comes from the server: the stored files are those of one build and are shown only
 * without an answer. Nothing else is stored, least of all answers of the API.
 * It also shows the console's notifications, which phones let nobody else do.
 *
 * The same worker serves every build: a page that was loaded asks it to store the files of its own build. A worker per
 * build would have to replace the one before under open pages, and Chromium sometimes loses a page that is being loaded
 * at that moment. For the same reason a changed worker waits, as workers do, until no page uses the old one. */
declare const self: ServiceWorkerGlobalScope;

const BASE = new URL("./", self.location.href).pathname;
const CACHES = `toolyard ${BASE} `; // servers below other paths of this origin have their own
const PAGE = `${BASE}console/index.html`;
/** The pages of the console, named by the server. Whatever else is below the path, such as files and other programs, is
 * left alone. */
const PAGES = new RegExp("^(__PAGES__)?(/|$)");
/** Answers of a proxy, or of a server that is ending: nobody is there. */
const UNREACHABLE = [502, 503, 504];

self.addEventListener("install", (event) => {
  event.waitUntil(storeFiles());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(self.registration.navigationPreload?.enable());
});

self.addEventListener("message", (event) => {
  if (event.data === "store-files") event.waitUntil(storeFiles().then(removeOtherCaches, ignoreLostServer));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin || !pathname.startsWith(BASE)) return;
  const path = pathname.slice(BASE.length);
  if (request.mode === "navigate") {
    if (request.destination === "document" && PAGES.test(path)) event.respondWith(answer(openPage(event), PAGE));
  } else if (path.startsWith("console/")) event.respondWith(answer(fetch(request), pathname));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { path } = event.notification.data as { path: string };
  event.waitUntil(showPath(path));
});

/** Show a path of the console in a window that is open, or in a new one. */
async function showPath(path: string): Promise<void> {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find((one) => new URL(one.url).pathname.startsWith(BASE));
  if (!open) return void (await self.clients.openWindow(BASE + path.slice(1)));
  open.postMessage({ path });
  await open.focus();
}

async function openPage(event: FetchEvent): Promise<Response> {
  return ((await event.preloadResponse) as Response | undefined) ?? fetch(event.request);
}

/** The answer of the server, or the stored file if there is none. */
async function answer(fetching: Promise<Response>, path: string): Promise<Response> {
  try {
    const response = await fetching;
    return UNREACHABLE.includes(response.status) ? ((await findStored(path)) ?? response) : response;
  } catch (error) {
    const stored = await findStored(path);
    if (stored) return stored;
    throw error;
  }
}

async function findStored(path: string): Promise<Response | undefined> {
  for (const cache of await openCaches()) {
    const stored = (await cache.match(PAGE)) && (await cache.match(path, { ignoreVary: true }));
    if (stored) return stored;
  }
}

/** The caches of this server, the newest first. Its page is the last file that comes into a cache: one without a page is
 * not complete. */
async function openCaches(): Promise<Cache[]> {
  const names = (await caches.keys()).filter((name) => name.startsWith(CACHES));
  return Promise.all(names.reverse().map((name) => caches.open(name)));
}

/** Store the console's page and the files that it names, and return the name of their cache. The addresses in the page
 * are relative to itself; the worker knows what they are from everywhere. */
async function storeFiles(): Promise<string> {
  const page = await load(PAGE);
  const text = (await page.text())
    .replaceAll('="./', () => `="${BASE}console/`)
    .replace('name="base" content="/"', () => `name="base" content="${BASE}"`);
  const name = CACHES + (await hash(text)); // the addresses of its scripts have their version
  const cache = await caches.open(name);
  if (await cache.match(PAGE)) return name;
  const headers = new Headers(page.headers); // with the policy of the page
  headers.delete("content-encoding");
  headers.delete("content-length");
  const paths = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!);
  await Promise.all(paths.map(async (path) => cache.put(path, await load(path))));
  await cache.put(PAGE, new Response(text, { headers }));
  return name;
}

async function hash(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(bytes, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function load(path: string): Promise<Response> {
  const response = await fetch(path, { cache: "no-cache" });
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
  return response;
}

async function removeOtherCaches(current: string): Promise<void> {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith(CACHES) && name !== current).map((name) => caches.delete(name)),
  );
}

/** The server or the session was lost meanwhile: what is stored stays, and the next page asks again. */
function ignoreLostServer(): void {}

export {};
