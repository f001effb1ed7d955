/** Every approval that was answered, or that nobody answered, newest first; one opens at the side. */
import { queryParam, setQuery } from "../../lib/router";
import { useRecords } from "../../lib/resource";
import { isNarrow } from "../../lib/narrow";
import { revealHidden } from "../../lib/hidden-characters";
import { StateChip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { Empty, Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import { VirtualList } from "../../ui/virtual-list";
import { Answered } from "./answered";
import { mainArgumentIn } from "./main-argument-in";
import { answeredBy } from "./outcome";
import { nameOf, titleOf, type Approval } from "./types";
import { approvalPath, useApproval } from "./use-approval";
import { approvalWords as words } from "./words";

const PATH = "/v1/approvals?state=allowed&state=denied&state=expired&state=interrupted&limit=50";

export function History() {
  const t = words();
  const list = useRecords<Approval>(PATH, ["approval."], approvalPath);
  const open = queryParam("open");
  if (list.state === "loading") return <Loading />;
  if (list.state === "fault" && !list.rows.length) return <Fault error={list.error} retry={list.reload} />;
  return (
    <>
      {list.error && <Fault error={list.error} retry={list.reload} />}
      {list.rows.length ? (
        <div class="apr-history">
          <VirtualList
            rows={list.rows}
            height={isNarrow.value ? 64 : 48}
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

/** The list is in the order of the requests, and so are the times that it shows. */
function Row({ row }: { row: Approval }) {
  const subject = mainArgumentIn(row.summary ?? "");
  return (
    <button type="button" class="apr-row" data-row onClick={() => setQuery({ open: row.id }, false)}>
      <StateChip state={row.state} />
      <span class="mono cut" data-given title={[nameOf(row), subject].filter(Boolean).join(" · ")}>
        {revealHidden(nameOf(row))} <span class="faint">{revealHidden(subject)}</span>
      </span>
      <span class="quiet cut apr-row-who" title={answeredBy(row)}>
        {answeredBy(row)}
      </span>
      <span class="faint apr-row-when">
        <Ago at={row.created} />
      </span>
    </button>
  );
}

function Detail({ id }: { id: string }) {
  const t = words();
  const detail = useApproval(id);
  const row = detail.value;
  return (
    <Dialog side given={!!row} title={row ? titleOf(row) : t.detail} onClose={() => setQuery({ open: null })}>
      {!row && detail.state === "loading" && <Loading />}
      {detail.state === "fault" && <Fault error={detail.error} retry={detail.reload} />}
      {row && <Answered one={row} />}
    </Dialog>
  );
}
