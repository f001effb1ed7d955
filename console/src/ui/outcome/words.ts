/** Words of a result. */
import { dictionary, plural } from "../../lib/language";

export const outcomeWords = dictionary(
  {
    content: "Content",
    facts: (n: number) => plural(n, { other: "Details (#)" }),
    emptyResult: "The result is empty.",
    failedItems: (n: number) => plural(n, { one: "# item failed", other: "# items failed" }),
    allRows: (n: number) => plural(n, { other: "Show all # rows" }),
    task: "Task",
    download: "Download",
    mediaOf: (n: number) => `Part ${n}`,
    cut: (shown: string, total: string) => `Showing ${shown} of ${total}.`,
    cutData: "The data was too large to store.",
  },
  {
    content: "内容",
    facts: (n: number) => plural(n, { other: "详情（#）" }),
    emptyResult: "结果为空。",
    failedItems: (n: number) => plural(n, { other: "# 项失败" }),
    allRows: (n: number) => plural(n, { other: "显示全部 # 行" }),
    task: "后台任务",
    download: "下载",
    mediaOf: (n: number) => `第 ${n} 部分`,
    cut: (shown: string, total: string) => `已显示 ${shown}，共 ${total}。`,
    cutData: "数据过大，未保存。",
  },
);
