/** Words of the first steps. */
import { dictionary } from "../../lib/language";

export const words = dictionary(
  {
    title: "Welcome", step: (n: number, all: number) => `Step ${n} of ${all}`, stepDone: "done", stepSkipped: "skipped", skip: "Skip", skipAll: "Skip all", back: "Back", next: "Next", done: "Start chatting", onlyOwner: "Only the owner can do this", onlyOwnerText: "Sign in with the owner's key to set the server up.", toChat: "To the chat", saveFailed: "This could not be saved",
    model: "Model", modelText: "Which models answer? Any OpenAI-compatible address works. Without one, the built-in guide answers.", url: "Address", urlExample: "https://…/v1", key: "Key", keyHelp: "Stays on this server. Local models often need none.", keySet: "stored", test: "Test", found: (n: number) => (n === 1 ? "1 model found" : `${n} models found`), more: (n: number) => `and ${n} more`, answered: (ms: string) => `answered in ${ms}`, noModels: "It answers, but names no models.", testFailed: "It did not work", presets: "Well-known addresses", needUrl: "Write the address first.",
    place: "Language and time", placeText: "How the console speaks, and which clock schedules go by.", language: "Language", zone: "Time zone", zoneHelp: "Such as Asia/Shanghai.", zoneNow: (time: string) => `It is ${time} there.`, badZone: "There is no such time zone.", afterRestart: "Saved. The time zone changes when the server is started again.",
    folder: "Workspace", folderText: "The folder that tools work in.", mayRead: "File tools read and write inside this folder, nowhere else.", mayAsk: "In a chat, what writes, runs programs or uses the network asks you first.", mayAuto: "In a chat, calls run without asking: the approval mode is set so.", mayPlugins: "Plugins are programs: they see the files that the server's user sees. Only those that come with Toolyard run before you allow them.", another: "To work in another folder, start the server with:",
    echo: "First call", echoText: "Run a tool once, to see that all of it works.", run: "Run EchoPlugin", runOther: "Run LS", runAgain: "Run again", works: "It works", worksText: (ms: string) => `The tool answered in ${ms}.`, failed: "The tool did not answer as it should", hello: "Hello, Toolyard!",
    hint: "New here? Set up a model and try a tool.", hintDo: "First steps",
  },
  {
    title: "欢迎", step: (n: number, all: number) => `第 ${n} 步，共 ${all} 步`, stepDone: "已完成", stepSkipped: "已跳过", skip: "跳过", skipAll: "全部跳过", back: "上一步", next: "下一步", done: "开始对话", onlyOwner: "只有所有者可以操作", onlyOwnerText: "请用所有者的密钥登录后再设置服务器。", toChat: "前往对话", saveFailed: "无法保存",
    model: "模型", modelText: "由哪些模型回答？任何兼容 OpenAI 的地址都可以。不填写时由内置向导回答。", url: "地址", urlExample: "https://…/v1", key: "密钥", keyHelp: "只保存在这台服务器上。本地模型通常不需要。", keySet: "已保存", test: "测试", found: (n: number) => `找到 ${n} 个模型`, more: (n: number) => `还有 ${n} 个`, answered: (ms: string) => `用时 ${ms}`, noModels: "有回应，但没有列出模型。", testFailed: "没有成功", presets: "常用地址", needUrl: "请先填写地址。",
    place: "语言与时间", placeText: "控制台使用的语言，以及日程所依据的时区。", language: "语言", zone: "时区", zoneHelp: "例如 Asia/Shanghai。", zoneNow: (time: string) => `当地时间 ${time}。`, badZone: "没有这个时区。", afterRestart: "已保存。新时区在服务器重启后生效。",
    folder: "工作区", folderText: "工具在这个文件夹中工作。", mayRead: "文件工具只读写这个文件夹里的内容。", mayAsk: "对话中，写入、运行程序或使用网络之前会先问你。", mayAuto: "对话中的调用不会询问：审批模式是这样设置的。", mayPlugins: "插件是程序，能看到服务器用户能看到的文件。除自带的插件外，未经允许不会运行。", another: "要使用其他文件夹，请这样启动服务器：",
    echo: "第一次调用", echoText: "运行一次工具，确认一切正常。", run: "运行 EchoPlugin", runOther: "运行 LS", runAgain: "再运行一次", works: "一切正常", worksText: (ms: string) => `工具用 ${ms} 作出了回答。`, failed: "工具没有正常回答", hello: "你好，Toolyard！",
    hint: "第一次使用？先设置模型，再试一个工具。", hintDo: "开始设置",
  },
);
