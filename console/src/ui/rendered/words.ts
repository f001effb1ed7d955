/** What stands around drawn replies, in both languages. */
import { dictionary } from "../../lib/language";

export const words = dictionary(
  {
    copyCode: "Copy code", download: "Download", wrap: "Wrap lines", code: "Code", text: "text", table: "Table", copyTex: "Copy TeX", copiedTex: "TeX copied", formulaFailed: "The formula could not be drawn", formulaLong: "It is longer than 10,000 characters.", formulaDeep: "It is nested too deeply.",
    diagram: "Diagram", source: "Source", diagramOrSource: "Diagram or source", drawing: "Drawing…", writing: "Being written…", unfinished: "Never finished", copySource: "Copy source", fit: "Fit width", large: "Open large", downloadSvg: "Download SVG", diagramFailed: "The diagram could not be drawn",
    tooSlow: "It took longer than 3 seconds.", tooLarge: "It is too large to be drawn.", noFrame: "The drawing program could not be loaded.", chart: "Chart", data: "Data",
    load: "Load once", notLoaded: "It could not be loaded:", from: (host: string) => `From ${host}`, openAt: (host: string) => `Open ${host} in a new tab`,
  },
  {
    copyCode: "复制代码", download: "下载", wrap: "自动换行", code: "代码", text: "文本", table: "表格", copyTex: "复制 TeX", copiedTex: "已复制 TeX", formulaFailed: "公式无法绘制", formulaLong: "超过 10,000 个字符。", formulaDeep: "嵌套过深。",
    diagram: "图", source: "源码", diagramOrSource: "图或源码", drawing: "绘制中…", writing: "正在书写…", unfinished: "没有写完", copySource: "复制源码", fit: "适应宽度", large: "放大查看", downloadSvg: "下载 SVG", diagramFailed: "图无法绘制",
    tooSlow: "超过 3 秒仍未完成。", tooLarge: "图过大，不绘制。", noFrame: "绘图程序无法加载。", chart: "图表", data: "数据",
    load: "加载一次", notLoaded: "无法加载：", from: (host: string) => `来自 ${host}`, openAt: (host: string) => `在新标签页打开 ${host}`,
  },
);
