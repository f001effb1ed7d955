/** The doctor: what the machine provides, and commands that fix what is missing. */
import type { CheckRow } from "toolyard-client";
import { dictionary } from "../../lib/language";
import { useResource } from "../../lib/resource";
import { Button } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Fault, Loading, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { words } from "./words";

/** The prefix of a fix that consists of a command. */
const RUN = "Run: ";
const names = dictionary(
  {
    python: "Python",
    system: "System",
    settings: "Settings",
    home: "Home",
    state: "State",
    project: "Project",
    ripgrep: "Search program",
    tools: "Tools",
    confinement: "Confinement",
    plugins: "Plugins",
    providers: "Model providers",
    public_url: "Public address",
    cluster_key: "Cluster key",
    secrets: "Stored secrets",
  },
  {
    python: "Python",
    system: "系统",
    settings: "设置",
    home: "主目录",
    state: "状态数据",
    project: "项目",
    ripgrep: "搜索程序",
    tools: "工具",
    confinement: "访问限制",
    plugins: "插件",
    providers: "模型服务商",
    public_url: "公开地址",
    cluster_key: "集群密钥",
    secrets: "已存的密钥",
  },
);

export function Doctor() {
  const t = words();
  const report = useResource<{ data: CheckRow[] }>("/v1/doctor");
  if (report.state === "fault" && !report.value) return <Fault error={report.error} retry={report.reload} />;
  if (!report.value) return <Loading />;
  const checks = report.value.data;
  return (
    <>
      <div class="row spread">
        <p class="quiet grow">{t.doctorText}</p>
        <Button sign="reload" onClick={report.reload}>
          {t.again}
        </Button>
      </div>
      {checks.every((check) => check.level === "ok" || check.level === "missing_config") && (
        <Notice tone="good">{t.allGood}</Notice>
      )}
      <ul class="card settings-checks one">
        {checks.map((check, place) => (
          <li key={place} class="stack">
            <div class="settings-check">
              <span>
                <StateChip state={check.level} />
              </span>
              <strong>{(names() as Record<string, string>)[check.name] ?? <span data-given>{check.name}</span>}</strong>
              <span class="quiet">
                <MessageText message={messageIn(check, "message")} />
              </span>
            </div>
            {check.fix.startsWith(RUN) ? (
              <Code label={t.fix} text={check.fix.slice(RUN.length)} />
            ) : (
              check.fix && (
                <p class="settings-fix">
                  <MessageText message={messageIn(check, "fix")} />
                </p>
              )
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
