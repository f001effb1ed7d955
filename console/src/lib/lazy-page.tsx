/** A page that few people open: it is loaded when it is shown for the first time. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Fault, Loading } from "../ui/state";

export function lazyPage(load: () => Promise<{ default: ComponentType }>): ComponentType {
  const page = signal<ComponentType | null>(null);
  const fault = signal<Error | null>(null);
  const start = () => {
    fault.value = null;
    load().then(
      (module) => (page.value = module.default),
      (error: unknown) => (fault.value = error as Error),
    );
  };
  return function LazyPage() {
    useEffect(() => {
      if (!page.peek()) start();
    }, []);
    const Page = page.value;
    if (Page) return <Page />;
    return <div class="page">{fault.value ? <Fault error={fault.value} retry={start} /> : <Loading />}</div>;
  };
}
