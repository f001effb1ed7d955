/** One entry: when, what was done, by whom and from where, and what it was about. */
import type { AuditRow } from "toolyard-client";
import { callerName } from "../../lib/caller";
import { revealHidden } from "../../lib/hidden-characters";
import { stateWord } from "../../ui/chip";
import { Ago } from "../../ui/time";
import { formatDetail, linkOf, subjectOf } from "./format";
import { actionWord, levelWord, wayWord, words } from "./words";

export function EntryRow({ entry }: { entry: AuditRow }) {
  const t = words();
  const { state, confinement, ...rest } = entry.detail;
  const facts = formatDetail(rest);
  const subject = revealHidden(subjectOf(entry));
  const link = linkOf(entry);
  const way = wayWord(entry.way, entry.by);
  return (
    <li class="audit-row">
      <span class="audit-time faint">
        <Ago at={entry.at} />
      </span>
      <span class="audit-action">
        <strong>{actionWord(entry.action)}</strong>{" "}
        {link ? (
          <a class={subject ? "mono" : ""} href={link} data-given={subject ? "" : undefined}>
            {subject || t.open}
          </a>
        ) : (
          <span class="mono" data-given>
            {subject}
          </span>
        )}
      </span>
      <span class="audit-who">
        <span title={t.by} data-given>
          {revealHidden(callerName(entry.by))}
        </span>
        {way && <span class="faint"> · {way}</span>}
        {entry.address && (
          <span class="faint" data-given>
            {" · "}
            {entry.address}
          </span>
        )}
      </span>
      <span class="audit-detail quiet">
        {typeof state === "string" && <span>{stateWord(state)}</span>}
        {typeof confinement === "string" && (
          <span class={confinement === "none" ? "problem" : ""}>{levelWord(confinement)}</span>
        )}
        {facts.map(({ name, value }) => (
          <span key={name} class="cut" title={value ? t.fact(name, revealHidden(value)) : undefined}>
            {name}
            {value && (
              <>
                {t.colon}
                <span data-given>{revealHidden(value)}</span>
              </>
            )}
          </span>
        ))}
      </span>
    </li>
  );
}
