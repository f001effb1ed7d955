/** What a reply names elsewhere. Nothing is asked of that host before a press; then a tab of its own opens it: the
 * page's policy lets no other host into the page itself. */
import { Button } from "../button";
import { mount } from "./mount";
import { words } from "./words";

export function drawRemote(block: HTMLElement): void {
  for (const button of block.querySelectorAll<HTMLElement>("button.load[data-src]")) {
    const address = button.dataset["src"]!;
    const host = document.createElement("span");
    button.replaceWith(host);
    mount(host, <Elsewhere address={address} />);
  }
  for (const button of block.querySelectorAll("button.load")) button.remove();
}

function Elsewhere({ address }: { address: string }) {
  const host = URL.canParse(address) ? new URL(address).host : address;
  const t = words();
  return (
    <>
      <Button sign="link" onClick={() => void window.open(address, "_blank", "noopener,noreferrer")}>{t.openAt(host)}</Button>
      <span class="faint"> {t.elsewhere}</span>
    </>
  );
}
