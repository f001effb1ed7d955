/** Every approval that was answered, or that nobody answered, newest first; one opens at the side. */
import { asked, ask } from "../../lib/router";
import { useRecords, useThing } from "../../lib/resource";
import { narrow } from "../../lib/narrow";
import { visible } from "../../lib/visible";
import { who } from "../../lib/who";
import { StateChip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { Empty, Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import { Virtual } from "../../ui/virtual";
import { Body } from "./card";
import { whoAnswered } from "./outcome";
import { nameOf, type Approval } from "./types";
import { approvalWords as words, whyOf } from "./words";

const PATH = "/v1/approvals?state=allowed&state=denied&state=expired&state=interrupted&limit=50";
const one = (id: string) => `/v1/approvals/${encodeURIComponent(id)}`;

export function History() {
  const t = words();
  const list = useRecords<Approval>(PATH, ["approval."], one);
  const open = asked("open");
  if (list.state === "loading") return <Loading />;
  if (list.state === "fault" && !list.rows.length) return <Fault error={list.error} retry={list.reload} />;
  return (
    <>
      {list.error && <Fault error={list.error} retry={list.reload} />}
      {list.rows.length ? (
        <div class="apr-history">
          <Virtual
            rows={list.rows}
            height={narrow.value ? 64 : 48}
            label={t.history}
            keyOf={(row) => row.id}
            onEnd={list.more}
            draw={(row) => <Row row={row} />}
          />
        </div>
      ) : (
        <Empty sign="approvals" title={t.historyNone}>
          {t.historyNoneText}
        </Empty>
      )}
      {list.busy && (
        <p class="faint" role="status">
          {t.more}
        </p>
      )}
      {open && <Detail id={open} />}
    </>
  );
}

function Row({ row }: { row: Approval }) {
  return (
    <button type="button" class="apr-row" data-row onClick={() => ask({ open: row.id }, false)}>
      <StateChip state={row.state} />
      <span class="mono cut" data-given title={nameOf(row)}>
        {visible(nameOf(row))}
      </span>
      <span class="quiet cut apr-row-who" title={whoAnswered(row)}>
        {whoAnswered(row)}
      </span>
      <span class="faint apr-row-when">
        <Ago at={row.answered ?? row.updated} />
      </span>
    </button>
  );
}

function Detail({ id }: { id: string }) {
  const t = words();
  const found = useThing<Approval>(one(id), ["approval."], (data) => data.id === id);
  const row = found.value;
  return (
    <Dialog side given={!!row} title={row ? nameOf(row) : t.detail} onClose={() => ask({ open: null })}>
      {!row && found.state === "loading" && <Loading />}
      {found.state === "fault" && <Fault error={found.error} retry={found.reload} />}
      {row && (
        <>
          <div class="row">
            <StateChip state={row.state} />
            <span>{whoAnswered(row)}</span>
            <span class="faint">
              <Ago at={row.answered ?? row.updated} />
            </span>
          </div>
          {row.note && <blockquote class="apr-note">{visible(row.note)}</blockquote>}
          <p>{whyOf(t, row.because, row.reason)}</p>
          <p class="faint">
            {t.asks(visible(who(row.caller)))} ·{" "}
            <a href={`/activity?call=${encodeURIComponent(row.call_id)}`}>{t.openCall}</a>
          </p>
          <Body one={row} />
        </>
      )}
    </Dialog>
  );
}
