/** Words of backup and restore. */
import { dictionary } from "../../lib/language";

export const backupWords = dictionary(
  {
    backup: "Backup",
    backupText:
      "State, settings, keys, approvals and installed plugins in one file. Store it safely: it " +
      "contains your keys. Plugin dependencies (node_modules, .venv) and project files are not " +
      "included.",
    backupNow: "Download backup",
    restore: "Restore",
    restoreText:
      "Replace the current data with a backup. The backup is verified and shown to you first. The current data is kept.",
    choose: "Choose a backup file",
    another: "Choose another file",
    failed: "This backup cannot be restored",
    cancel: "Cancel",
    askTitle: "Restore this backup?",
    askText:
      "When the server is restarted, this replaces the current data, which is moved to a folder “before-restore-…” in the home.",
    askKeys:
      "After that, the keys in the backup apply: sign in with a key from that time. Schedules in the backup will run.",
    confirm: "Restore at next start",
    restorePending: "A backup is waiting to be restored at the next start.",
    restorePendingText:
      "Until then, nothing changes. The console cannot restart the server: stop it, then start it with the command below.",
    cancelRestore: "Cancel restore",
    restartsServer: "Restarts the server",
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
      "将状态、设置、密钥、授权和已安装的插件保存为一个文件。其中包含密钥，请妥善保管。不包含插件依赖（node_modules、.venv）和项目文件。",
    backupNow: "下载备份",
    restore: "恢复",
    restoreText: "用备份替换当前数据。会先校验备份并显示其内容；当前数据会保留。",
    choose: "选择备份文件",
    another: "重新选择",
    failed: "无法恢复这个备份",
    cancel: "取消",
    askTitle: "恢复这个备份？",
    askText: "服务器重启后，以下内容将替换当前数据。当前数据会移到主目录的“before-restore-…”文件夹。",
    askKeys: "之后以备份中的密钥为准：请使用当时的密钥登录。备份中的定时任务会运行。",
    confirm: "下次启动时恢复",
    restorePending: "有一个备份等待恢复，下次启动时生效。",
    restorePendingText: "在此之前一切不变。控制台无法重启服务器：请停止服务器，再用下面的命令启动。",
    cancelRestore: "取消恢复",
    restartsServer: "重新启动服务器",
    files: "文件",
    plugins: "插件",
    call: "调用",
    conversation: "对话",
    task: "后台任务",
    schedule: "定时任务",
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
