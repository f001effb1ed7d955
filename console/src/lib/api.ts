/** Requests to our own server. A refusal is an ApiError with its code and the id of the request, never a silent null. */
import { signal } from "@preact/signals";
import type { SessionInfo } from "toolyard-client";
import { toAddress, toPath } from "./base";
import { messageIn, type ServerMessage } from "./messages";

export interface Page<T> {
  data: T[];
  next: string | null;
}

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly request: string,
    readonly body: unknown = null,
  ) {
    super(message);
  }

  get serverMessage(): ServerMessage {
    const error = (this.body as { error?: object } | null)?.error;
    return error ? messageIn(error, "message") : { text: this.message };
  }
}

export interface Failure {
  code: string;
  message: string;
  message_code?: string;
  message_params?: object;
}

/** The failure in a result that came with a good status. */
export function toFailure(error: Failure): ApiError {
  return new ApiError(error.message, 0, error.code, "", { error });
}

export const session = signal<SessionInfo | null>(null);

export function hasScope(scope: "chat" | "tools" | "approve" | "admin"): boolean {
  const scopes = session.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}

interface RequestOptions {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  query?: Query;
}
type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

export function withQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (typeof value === "object") for (const one of value) search.append(key, one);
    else search.set(key, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** The response itself, once it is known to be good. */
export async function request(path: string, requestOptions: RequestOptions = {}): Promise<Response> {
  const { method = requestOptions.body === undefined ? "GET" : "POST", body, signal: stop, query } = requestOptions;
  const headers: Record<string, string> = { Accept: "application/json", ...requestOptions.headers };
  if (method !== "GET") headers["X-CSRF-Token"] = session.value?.csrf ?? "";
  let sent: BodyInit | undefined;
  if (body instanceof Blob) sent = body;
  else if (body !== undefined) {
    sent = JSON.stringify(body);
    headers["Content-Type"] ??= "application/json";
  }
  const address = toAddress(withQuery(path, query));
  return check(fetch(address, { method, headers, body: sent, signal: stop, credentials: "same-origin" }), stop);
}

async function check(coming: Promise<Response>, stop?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await coming;
  } catch (error) {
    if (stop?.aborted) throw error;
    throw new ApiError("The server cannot be reached.", 0, "unreachable", "");
  }
  if (response.ok) return response;
  if (response.status === 401) signInAgain();
  throw await toApiError(response);
}

export async function api<T>(path: string, requestOptions: RequestOptions = {}): Promise<T> {
  return (await (await request(path, requestOptions)).json()) as T;
}

declare global {
  interface Window {
    /** The session, asked for by `early.js` before this script was there. */
    earlySession?: Promise<Response>;
  }
}

export async function openSession(): Promise<void> {
  const early = window.earlySession;
  delete window.earlySession; // an answer is read once: whoever asks later asks anew
  const response = await (early ? check(early) : request("/v1/session"));
  session.value = (await response.json()) as SessionInfo;
}

async function toApiError(response: Response): Promise<ApiError> {
  const request = response.headers.get("X-Request-Id") ?? "";
  try {
    const body = (await response.json()) as { error?: { message?: string; code?: string } };
    return new ApiError(
      body.error?.message ?? response.statusText,
      response.status,
      body.error?.code ?? "",
      request,
      body,
    );
  } catch {
    return new ApiError(response.statusText || `HTTP ${response.status}`, response.status, "", request);
  }
}

let leaving = false;
addEventListener("pageshow", () => (leaving = false)); // a page that the browser kept can come back
/** The session has ended: sign in, and come back to this very place. Many requests may find out; one goes. */
export function signInAgain(): void {
  if (leaving) return;
  leaving = true;
  const here = (toPath(location.pathname) ?? "/") + location.search;
  const lang = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
  location.assign(toAddress(withQuery("/login", { next: here, lang })));
}
