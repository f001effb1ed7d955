/** The folder that tools work in, and what they may touch. */
import { revealHidden } from "../../lib/hidden-characters";
import { Button, CopyButton } from "../../ui/button";
import { Code } from "../../ui/code";
import { Icon, type Sign } from "../../ui/icon";
import { StepFooter } from "./foot";
import { settingOf, type StepProps } from "./types";
import { words } from "./words";

export function FolderStep({ status, settings, next, skip, back }: StepProps) {
  const t = words();
  const asks = settingOf(settings, "approval_mode")?.value !== "auto";
  const rules: [Sign, string][] = [
    ["file", t.mayRead],
    ["approvals", asks ? t.mayAsk : t.mayAuto],
    ["plug", t.mayPlugins],
  ];
  return (
    <div class="stack">
      <div class="welcome-folder">
        <Icon sign="folder" />
        <span class="mono grow" data-given>
          {revealHidden(status.project)}
        </span>
        <CopyButton text={status.project} />
      </div>
      <ul class="welcome-rules">
        {rules.map(([sign, text]) => (
          <li key={text}>
            <Icon sign={sign} size={17} />
            <span>{text}</span>
          </li>
        ))}
      </ul>
      <Code text="toolyard serve --project DIR" label={t.another} />
      <StepFooter back={back} skip={skip}>
        <Button kind="primary" onClick={next}>
          {t.next}
        </Button>
      </StepFooter>
    </div>
  );
}
