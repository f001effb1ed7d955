/** Links from a call: its chat, its approval, its tasks, the call that it retries and those that retry it. */
import { Fragment } from "preact";
import type { CallDetail } from "toolyard-client";
import { approvalLink } from "../../lib/approval-link";
import { chatLink } from "../../lib/chat-link";
import { StateChip } from "../../ui/chip";
import { Copyable } from "../../ui/copyable";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { activityWords as words } from "./words";

export function Related({ call }: { call: CallDetail }) {
  const t = words();
  const { approval } = call;
  const chat = chatLink(call.chat);
  const lines: { name: string; href: string; id: string; state?: string; by?: string | null }[] = [
    ...(chat && call.chat ? [{ name: t.chat, href: chat, id: call.chat }] : []),
    ...(approval
      ? [
          {
            name: t.approval,
            href: approvalLink(approval.id),
            id: approval.id,
            state: approval.state,
            by: approval.by,
          },
        ]
      : []),
    ...(call.tasks ?? []).map((id) => ({ name: t.task, href: `/tasks?task=${encodeURIComponent(id)}`, id })),
    ...(call.retry_of ? [{ name: t.retryOf, href: callLink(call.retry_of), id: call.retry_of }] : []),
    ...(call.retries ?? []).map((one) => ({ name: t.retriedAs, href: callLink(one.id), id: one.id, state: one.state })),
  ];
  if (!lines.length) return <p class="quiet">{t.relatedNone}</p>;
  return (
    <dl class="facts act-related">
      {lines.map((line) => (
        <Fragment key={line.id}>
          <dt>{line.name}</dt>
          <dd>
            <Copyable text={line.id} href={line.href} />
            {line.state && <StateChip state={line.state} />}
            {line.by && (
              <span class="faint" data-given>
                {revealHidden(callerName(line.by))}
              </span>
            )}
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

const callLink = (id: string) => `/activity?call=${encodeURIComponent(id)}&part=related`;
