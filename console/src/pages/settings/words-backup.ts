/** Words of backup and restore. */
import { dictionary } from "../../lib/language";

export const backupWords = dictionary(
  {
    backup: "Backup",
    backupText:
      "State, settings, keys, what you allowed and the plugins you installed, in one file. Keep it safe: it has your keys in it. Dependencies of plugins (node_modules, .venv) and the files of projects are not in it.",
    backupNow: "Download a backup",
    restore: "Restore",
    restoreText:
      "Bring back a backup in place of what is here. It is checked as a whole and shown first. What is here now is kept beside it.",
    choose: "Choose a backup",
    another: "Choose another",
    failed: "This backup cannot be restored",
    cancel: "Cancel",
    askTitle: "Restore this backup?",
    askText:
      "When the server is started again, this takes the place of what is here now. What is here goes to a folder “before-restore-…” of the home.",
    askKeys: "The keys of the backup count then: sign in with the key of that time. Schedules in it run.",
    confirm: "Restore at the next start",
    waits: "A backup waits. It is put in place at the next start.",
    waitsText:
      "Until then everything goes on as it is. The console cannot start the server again: stop it, and start it with the command below.",
    takeBack: "Do not restore",
    startAgain: "Starts the server again",
    files: "Files",
    plugins: "Plugins",
    call: "Calls",
    conversation: "Conversations",
    task: "Tasks",
    schedule: "Schedules",
    approval: "Approvals",
    rule: "Rules",
    event: "Events",
  },
  {
    backup: "备份",
    backupText:
      "把状态、设置、密钥、已允许的内容和安装的插件存成一个文件。其中有密钥，请妥善保管。不含插件的依赖（node_modules、.venv）和项目文件。",
    backupNow: "下载备份",
    restore: "恢复",
    restoreText: "用备份替换现有内容。先整体检查并显示内容，现有内容会保留在一旁。",
    choose: "选择备份文件",
    another: "另选一个",
    failed: "这个备份不能恢复",
    cancel: "取消",
    askTitle: "恢复这个备份？",
    askText: "服务器重新启动时，以下内容会替换现有内容。现有内容移到数据目录的“before-restore-…”文件夹。",
    askKeys: "之后以备份中的密钥为准：请用当时的密钥登录。其中的日程会运行。",
    confirm: "下次启动时恢复",
    waits: "有一个备份等待恢复，下次启动时生效。",
    waitsText: "在那之前一切照常。控制台不能重启服务器：请停止服务器，再用下面的命令启动。",
    takeBack: "不恢复了",
    startAgain: "重新启动服务器",
    files: "文件",
    plugins: "插件",
    call: "调用",
    conversation: "对话",
    task: "任务",
    schedule: "日程",
    approval: "审批",
    rule: "规则",
    event: "事件",
  },
);

/** The word for a kind of record; those that people do not know by name have none. */
export function kindWord(kind: string): string {
  const t = backupWords();
  return (
    {
      call: t.call,
      conversation: t.conversation,
      task: t.task,
      schedule: t.schedule,
      approval: t.approval,
      rule: t.rule,
      event: t.event,
    }[kind] ?? ""
  );
}
