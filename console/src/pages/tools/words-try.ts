/** Words of the tab where a tool is tried. */
import { dictionary } from "../../lib/language";

export const tryWords = dictionary(
  {
    form: "Form", json: "JSON", input: "Input", inputForm: "How the input is written", run: "Run", stop: "Stop", stopping: "Stopping", dryRun: "Dry run", dryRunHelp: "shows what would change, writes nothing", example: "Examples", exampleN: (n: number) => `Example ${n}`, reset: "Clear",
    noParameters: "This tool takes no input.", notJson: (where: string) => `This is not JSON: ${where}`, notObject: "The input has to be a JSON object.", missing: (n: number) => (n === 1 ? "One field is not right yet." : `${n} fields are not right yet.`),
    result: "Result", raw: "Raw JSON", process: "Process", data: "Data", resultOf: "What came out", running: (time: string) => `Running, ${time}`, nothingYet: "Nothing run yet", nothingYetText: "Fill in the form and press Run. The result comes here.", failed: "The call could not be made", took: (time: string) => `in ${time}`, openActivity: "Open in activity",
    keys: "Keys of the envelope", has: (key: string) => `${key} is there`, lacks: (key: string) => `${key} is missing`, noProcess: "No process was started for this call, or it is no longer known.",
    task: "Task", download: "Download", mediaOf: (n: number) => `Part ${n}`,
    history: "Last runs", noHistory: "No runs yet.", show: (what: string) => `Show this run: ${what}`, rerun: "Run this again", noInput: "no input",
    copyAs: "Copy as", curl: "curl", cli: "Command line", block: "Request block", testCase: "Test case", copied: (what: string) => `${what} copied`, noBlock: (why: string) => `This input cannot be written as a block: ${why}`,
    prefilled: "The input of an earlier call is filled in.", masked: "Secrets in it are masked: fill them in again.", lost: "The call of this link is not known any more.",
    saveTest: "Save as test", saveTestText: "The call becomes a test in the plugin’s own folder. “toolyard plugin test” runs it from then on.", testName: "Name", testWords: "The answer must say", testWordsHelp: "Words of this answer that never change. Leave it empty to check only how the call ends.", testTask: "The test waits for the task and passes when it succeeds.", testEnds: "The call must end with", save: "Save", cancel: "Cancel", testSaved: (name: string) => `Saved as “${name}”`, testNotSaved: "The test was not saved",
  },
  {
    form: "表单", json: "JSON", input: "输入", inputForm: "输入方式", run: "运行", stop: "停止", stopping: "正在停止", dryRun: "试运行", dryRunHelp: "只显示会改什么，不写入", example: "示例", exampleN: (n: number) => `示例 ${n}`, reset: "清空",
    noParameters: "这个工具不需要输入。", notJson: (where: string) => `不是有效的 JSON：${where}`, notObject: "输入必须是 JSON 对象。", missing: (n: number) => `有 ${n} 项需要填写或修改。`,
    result: "结果", raw: "原始 JSON", process: "进程", data: "数据", resultOf: "运行结果", running: (time: string) => `运行中，${time}`, nothingYet: "还没有运行", nothingYetText: "填写表单后点“运行”，结果会显示在这里。", failed: "调用没有发出", took: (time: string) => `用时 ${time}`, openActivity: "在活动中打开",
    keys: "信封的键", has: (key: string) => `有 ${key}`, lacks: (key: string) => `缺少 ${key}`, noProcess: "这次调用没有启动进程，或者记录已不在。",
    task: "任务", download: "下载", mediaOf: (n: number) => `第 ${n} 部分`,
    history: "最近运行", noHistory: "还没有运行过。", show: (what: string) => `查看这次运行：${what}`, rerun: "再运行一次", noInput: "无输入",
    copyAs: "复制为", curl: "curl", cli: "命令行", block: "请求块", testCase: "测试用例", copied: (what: string) => `已复制：${what}`, noBlock: (why: string) => `这个输入不能写成请求块：${why}`,
    prefilled: "已填入之前一次调用的输入。", masked: "其中的密钥已隐藏，请重新填写。", lost: "链接中的调用已找不到。",
    saveTest: "存为测试", saveTestText: "这次调用会写进插件自己的文件夹，成为一条测试，以后由“toolyard plugin test”运行。", testName: "名称", testWords: "回答必须包含", testWordsHelp: "填写回答中不会变化的文字；留空则只检查结束状态。", testTask: "测试会等任务结束，任务成功即通过。", testEnds: "结束状态必须是", save: "保存", cancel: "取消", testSaved: (name: string) => `已存为“${name}”`, testNotSaved: "测试没有保存",
  },
);
