/** A field that an address names, as `?setting=port` does: it comes into view with the focus in it. */
import { useEffect, useRef } from "preact/hooks";
import { queryParam } from "./router";

export function useLinkedField(name: string) {
  const place = useRef<HTMLDivElement>(null);
  const isLinked = queryParam("setting") === name;
  useEffect(() => {
    if (!isLinked) return;
    place.current?.scrollIntoView({ block: "center" });
    place.current?.querySelector<HTMLElement>("input, select, textarea, a")?.focus({ preventScroll: true });
  }, [isLinked]);
  return { ref: place, "data-linked": isLinked || undefined };
}
