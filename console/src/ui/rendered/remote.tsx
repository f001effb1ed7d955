/** Remote media in a reply. Nothing is requested from that host before a click. Then our own server fetches it once and
 * checks what it is: the page's policy lets no other host into the page. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, request } from "../../lib/api";
import { remoteImages } from "../../lib/display-options";
import type { ServerMessage } from "../../lib/messages";
import { Button } from "../button";
import { MessageText } from "../message-text";
import { mount } from "./mount";
import { words } from "./words";

type Kind = "image" | "audio" | "video";

export function drawRemote(block: HTMLElement): void {
  for (const button of block.querySelectorAll<HTMLElement>("button.load[data-src]")) {
    const address = button.dataset["src"]!,
      kind = button.dataset["kind"];
    const host = document.createElement("span");
    button.replaceWith(host);
    mount(host, <RemoteMedia address={address} kind={kind === "audio" || kind === "video" ? kind : "image"} />);
  }
  for (const button of block.querySelectorAll("button.load")) button.remove();
}

function RemoteMedia({ address, kind }: { address: string; kind: Kind }) {
  const here = useSignal("");
  const fault = useSignal<ServerMessage | null>(null);
  useEffect(() => () => URL.revokeObjectURL(here.peek()), [here]);
  const t = words();
  const host = URL.canParse(address) ? new URL(address).host : address;
  const load = async () => {
    fault.value = null;
    const answer = await request("/v1/reply/media", { body: { url: address, kind } });
    here.value = URL.createObjectURL(await answer.blob());
  };
  const failed = (error: unknown) =>
    (fault.value = error instanceof ApiError ? error.serverMessage : { text: String(error) });
  if (here.value)
    return (
      <span class="loaded">
        <LoadedMedia kind={kind} source={here.value} name={t.from(host)} />
      </span>
    );
  return (
    <>
      {remoteImages.value === "offered" && (
        <Button sign="picture" onClick={load} onFault={failed}>
          {t.load}
        </Button>
      )}{" "}
      <Button sign="external" kind="quiet" onClick={() => void window.open(address, "_blank", "noopener,noreferrer")}>
        {t.openAt(host)}
      </Button>
      {fault.value && (
        <span class="why" role="alert">
          {t.notLoaded} <MessageText message={fault.value} />
        </span>
      )}
    </>
  );
}

function LoadedMedia({ kind, source, name }: { kind: Kind; source: string; name: string }) {
  if (kind === "image") return <img src={source} alt={name} />;
  return kind === "audio" ? (
    <audio controls src={source} aria-label={name} />
  ) : (
    <video controls src={source} aria-label={name} />
  );
}
