/** The buttons under a step: back, skip, and on. */
import type { ComponentChildren } from "preact";
import { Button } from "../../ui/button";
import { words } from "./words";

export function StepFooter({
  back,
  skip,
  children,
}: {
  back?: () => void;
  skip?: () => unknown;
  children: ComponentChildren;
}) {
  const t = words();
  return (
    <div class="welcome-foot">
      {back && (
        <Button kind="quiet" sign="left" onClick={back}>
          {t.back}
        </Button>
      )}
      <span class="grow" />
      {skip && (
        <Button kind="quiet" onClick={skip}>
          {t.skip}
        </Button>
      )}
      {children}
    </div>
  );
}
