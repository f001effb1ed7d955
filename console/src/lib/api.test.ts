import { afterEach, describe, expect, test, vi } from "vitest";
import { api, ApiError, hasScope, openSession, request, session, toFailure, withQuery } from "./api";

const answer = (body: unknown, init?: ResponseInit) =>
  vi.stubGlobal(
    "fetch",
    vi.fn(() => Promise.resolve(new Response(JSON.stringify(body), init))),
  );
const sent = () => vi.mocked(fetch).mock.calls[0]!;

afterEach(() => {
  session.value = null;
});

describe("withQuery", () => {
  test("writes what is asked for and leaves out what is not", () => {
    expect(
      withQuery("/v1/calls", { limit: 0, q: "a b&c", paused: false, state: "", tool: null, caller: undefined }),
    ).toBe("/v1/calls?limit=0&q=a+b%26c&paused=false");
  });

  test("repeats a key for each value of a list", () => {
    expect(withQuery("/v1/calls", { tool: ["LS", "Read"] })).toBe("/v1/calls?tool=LS&tool=Read");
  });

  test("adds nothing where nothing is asked for", () => {
    expect(withQuery("/v1/calls", { q: "" })).toBe("/v1/calls");
  });
});

test("a failure in a result keeps its code and what its translation needs", () => {
  const failure = toFailure({ code: "NOT_FOUND", message: "no a", message_code: "a.b", message_params: { n: 1 } });
  expect(failure).toMatchObject({ code: "NOT_FOUND", message: "no a", status: 0 });
  expect(failure.serverMessage).toEqual({ text: "no a", code: "a.b", params: { n: 1 } });
});

describe("may", () => {
  test("nobody may do anything before the session is known", () => expect(hasScope("chat")).toBe(false));

  test("a key may do what its scopes say, and an owner everything", () => {
    session.value = { key: "k", scopes: ["chat"], csrf: "", cursor: null };
    expect([hasScope("chat"), hasScope("approve")]).toEqual([true, false]);
    session.value = { key: "k", scopes: ["admin"], csrf: "", cursor: null };
    expect([hasScope("chat"), hasScope("approve"), hasScope("admin")]).toEqual([true, true, true]);
  });
});

describe("request", () => {
  test("a body is sent as JSON, with the token of the session", async () => {
    session.value = { key: "k", scopes: [], csrf: "secret", cursor: null };
    answer({ id: "1" });
    await expect(api("/v1/schedules", { body: { a: 1 } })).resolves.toEqual({ id: "1" });
    expect(sent()[0]).toBe("/v1/schedules");
    expect(sent()[1]).toMatchObject({
      method: "POST",
      body: '{"a":1}',
      headers: { "X-CSRF-Token": "secret", "Content-Type": "application/json" },
    });
  });

  test("without a body it only reads", async () => {
    answer({});
    await request("/v1/calls", { query: { limit: 5 } });
    expect(sent()[0]).toBe("/v1/calls?limit=5");
    expect(sent()[1]).toMatchObject({ method: "GET", body: undefined });
    expect(sent()[1]!.headers).not.toHaveProperty("X-CSRF-Token");
  });

  test("a refusal has the words and the code of the server, and the id of the request", async () => {
    answer(
      { error: { message: "no such call", code: "NOT_FOUND" } },
      { status: 404, headers: { "X-Request-Id": "req_1" } },
    );
    const error = await api("/v1/calls/x").catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ message: "no such call", code: "NOT_FOUND", status: 404, request: "req_1" });
  });

  test("a refusal that is no JSON has the words of HTTP", async () => {
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("<h1>", { status: 502, statusText: "Bad Gateway" })));
    await expect(api("/v1/calls")).rejects.toMatchObject({ message: "Bad Gateway", code: "", status: 502 });
  });

  test("a server that is away is told apart from one that refuses", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("fetch failed")));
    await expect(api("/v1/calls")).rejects.toMatchObject({ status: 0, code: "unreachable" });
  });

  test("a request that was given up is no fault of the server", async () => {
    const gone = new AbortController();
    gone.abort();
    vi.stubGlobal("fetch", () => Promise.reject(gone.signal.reason as Error));
    await expect(api("/v1/calls", { signal: gone.signal })).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("openSession", () => {
  const owner = { key: "owner", scopes: ["admin"], csrf: "t", cursor: 7 };
  const early = (answer: Promise<Response>) => vi.stubGlobal("window", { earlySession: answer });

  test("takes the answer that was asked for before, and asks anew the next time", async () => {
    early(Promise.resolve(new Response(JSON.stringify(owner))));
    answer({ ...owner, cursor: 9 });
    await openSession();
    expect(session.value).toEqual(owner);
    expect(fetch).not.toHaveBeenCalled();
    await openSession();
    expect(session.value).toEqual({ ...owner, cursor: 9 });
    expect(sent()[0]).toBe("/v1/session");
  });

  test("tells a server that was away then from one that refused", async () => {
    early(Promise.reject(new TypeError("fetch failed")));
    await expect(openSession()).rejects.toMatchObject({ status: 0, code: "unreachable" });
    early(Promise.resolve(new Response("{}", { status: 503 })));
    await expect(openSession()).rejects.toMatchObject({ status: 503 });
    expect(session.value).toBeNull();
  });
});
