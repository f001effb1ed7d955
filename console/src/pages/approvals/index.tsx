/** Approvals: what waits for a person, what was answered, and the rules that answer by themselves. */
import "./style.css";
import { notices, setNotices, setSounds, sounds } from "../../lib/approval-notice";
import { queryParam, route, setQuery } from "../../lib/router";
import { useTitle } from "../../lib/title";
import { showToast } from "../../lib/toast";
import { IconButton } from "../../ui/button";
import { Tabs } from "../../ui/tabs";
import { History } from "./history";
import { DenyAll, Inbox } from "./inbox";
import { OneApproval } from "./one";
import { Rules } from "./rules";
import { useInbox } from "./use-inbox";
import { approvalWords as words } from "./words";

type Tab = "inbox" | "history" | "rules";

export default function Approvals() {
  const id = route.value.name;
  return id ? <OneApproval key={id} id={id} /> : <AllApprovals />;
}

function AllApprovals() {
  const t = words();
  const inbox = useInbox();
  const tab = (["history", "rules"].includes(queryParam("tab")) ? queryParam("tab") : "inbox") as Tab;
  useTitle(tab === "inbox" ? "" : t[tab]);
  return (
    <div class="page apr">
      <div class="head">
        <h1>{t.title}</h1>
        <span class="grow" />
        {tab === "inbox" && (
          <span class="apr-all">
            <DenyAll inbox={inbox} />
          </span>
        )}
        <IconButton
          label={t.notify}
          sign="bell"
          pressed={notices.value}
          onClick={async () => {
            if (!(await setNotices(!notices.value))) showToast(t.noNotice, "plain");
          }}
        />
        <IconButton label={t.sound} sign="sound" pressed={sounds.value} onClick={() => setSounds(!sounds.value)} />
      </div>
      <Tabs
        label={t.views}
        open={tab}
        onOpen={(id) => setQuery({ tab: id === "inbox" ? null : id, open: null })}
        tabs={[
          { id: "inbox", name: t.inbox, count: inbox.open.length || undefined },
          { id: "history", name: t.history },
          { id: "rules", name: t.rules },
        ]}
      />
      {tab === "inbox" ? <Inbox inbox={inbox} /> : tab === "history" ? <History /> : <Rules />}
    </div>
  );
}
