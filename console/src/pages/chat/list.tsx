/** The conversations of this key, the pinned ones first: found by words in their messages, opened, changed, imported. */
import { Fragment } from "preact";
import type { FoundConversation } from "toolyard-client";
import { withQuery } from "../../lib/api";
import { setQuery, queryParam, route } from "../../lib/router";
import { useRecords } from "../../lib/resource";
import { Button } from "../../ui/button";
import { Search } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import { ConversationMenu } from "./conversation-menu";
import { ImportButton } from "./import-button";
import { groupOf, groupRows } from "./day-groups";
import { markWords } from "./mark-words";
import { words } from "./words";
import { threadWords } from "./words-thread";

export function ConversationList({ onPick }: { onPick?: () => void }) {
  const t = words(),
    own = threadWords();
  const search = queryParam("q");
  const records = useRecords<FoundConversation>(
    withQuery("/v1/conversations", { limit: 50, search }),
    ["conversation."],
    undefined,
    undefined,
    search ? placeByActivity : placePinnedFirst,
  );
  const here = route.value.name;
  // Hits are not in the order of time, and stand together.
  const groups = groupRows(records.rows, (row) => (search ? null : groupOf(row, Date.now())));
  return (
    <div class="chat-list">
      <div class="row chat-list-head">
        <a class="button chat-new grow" href="/chat" onClick={onPick}>
          <Icon sign="plus" size={16} />
          <span>{t.newChat}</span>
        </a>
        <ImportButton onImported={onPick} />
      </div>
      <Search label={t.search} value={search} onInput={(q) => setQuery({ q })} />
      {records.state === "loading" && <Loading rows={6} />}
      {records.state === "fault" && <Fault error={records.error} retry={records.reload} />}
      {records.state === "ready" && !records.rows.length && (
        <p class="faint chat-none">{search ? t.noneFound : t.noneText}</p>
      )}
      {groups.map(({ group, rows }) => (
        <Fragment key={rows[0]!.id}>
          {group && <h2 class="chat-day">{t.group(group)}</h2>}
          <ul>
            {rows.map((row) => (
              <li key={row.id} class={row.id === here ? "on" : ""}>
                <a
                  href={withQuery(`/chat/${row.id}`, { q: search, at: row.message_id })}
                  data-row
                  aria-current={row.id === here ? "page" : undefined}
                  onClick={onPick}
                >
                  <span class="cut" dir="auto" title={row.title} data-given={row.title ? "" : undefined}>
                    {row.title ? <Marked text={row.title} search={search} /> : t.untitled}
                  </span>
                  {row.snippet && (
                    <span class="chat-snippet" dir="auto" data-given>
                      <Marked text={row.snippet} search={search} />
                    </span>
                  )}
                  <span class="faint chat-when">
                    {row.pinned && (
                      <span class="chat-pinned" role="img" aria-label={own.pinned} title={own.pinned}>
                        <Icon sign="pin" size={13} />
                      </span>
                    )}
                    <Ago at={row.updated} />
                  </span>
                </a>
                <span class="chat-row-acts">
                  <ConversationMenu
                    row={row}
                    label={own.menuOf(row.title || t.untitled)}
                    given
                    onChanged={records.reload}
                    onGone={() => records.drop(row.id)}
                  />
                </span>
              </li>
            ))}
          </ul>
        </Fragment>
      ))}
      {records.next && (
        <Button kind="quiet" disabled={records.busy} onClick={records.more}>
          {t.more}
        </Button>
      )}
    </div>
  );
}

const PINNED = 1e12; // seconds, more than any time

const placeByActivity = (row: FoundConversation) => row.updated;
const placePinnedFirst = (row: FoundConversation) => row.updated + (row.pinned ? PINNED : 0);

function Marked({ text, search }: { text: string; search: string }) {
  return <>{markWords(text, search).map((part, at) => (part.hit ? <mark key={at}>{part.text}</mark> : part.text))}</>;
}
