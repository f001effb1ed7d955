/** What a form made from a schema says. */
import { dictionary } from "../../lib/language";

export const schemaWords = dictionary(
  {
    required: "This is needed.", emptyText: "Send empty text", emptySent: "empty text is sent", number: "Write a number.", whole: "Write a whole number.", atLeast: (n: number) => `At least ${n}.`, atMost: (n: number) => `At most ${n}.`, moreThan: (n: number) => `More than ${n}.`, lessThan: (n: number) => `Less than ${n}.`, step: (n: number) => `A multiple of ${n}.`,
    longer: (n: number) => `At least ${n} characters.`, shorter: (n: number) => `At most ${n} characters.`, pattern: (p: string) => `It has to match ${p}.`, oneOf: "Choose one of the values.", wrong: (type: string) => `It has to be ${type}.`, moreItems: (n: number) => `At least ${n} items.`, fewerItems: (n: number) => `At most ${n} items.`,
    text: "text", integer: "whole number", list: "list", object: "object", truth: "yes or no", plainNumber: "number", any: "any value",
    options: (n: number) => `Options (${n})`, byDefault: (value: string) => `default: ${value}`, notSet: "not set", range: (a: string, b: string) => `${a} to ${b}`, null: "null", kindOf: (name: string) => `${name}: kind of value`, addTo: (name: string) => `Add to ${name}`, add: "Add", removeItem: (name: string) => `Remove ${name}`, item: (name: string, n: number) => `${name} ${n}`, none: "Nothing in it yet.",
    also: (names: string) => `Also sent: ${names}. The JSON tab has them.`, notJson: "This is not JSON yet.", asText: "This is not JSON: it is sent as text.", browse: (name: string) => `Choose ${name} from the project`, up: "Up", noFiles: "Nothing here.", here: "Take this folder", example: "for example",
  },
  {
    required: "必填。", emptyText: "发送空文本", emptySent: "将发送空文本", number: "请输入数字。", whole: "请输入整数。", atLeast: (n: number) => `不小于 ${n}。`, atMost: (n: number) => `不大于 ${n}。`, moreThan: (n: number) => `大于 ${n}。`, lessThan: (n: number) => `小于 ${n}。`, step: (n: number) => `须为 ${n} 的倍数。`,
    longer: (n: number) => `至少 ${n} 个字符。`, shorter: (n: number) => `最多 ${n} 个字符。`, pattern: (p: string) => `须符合 ${p}。`, oneOf: "请从给定的值中选择。", wrong: (type: string) => `应为${type}。`, moreItems: (n: number) => `至少 ${n} 项。`, fewerItems: (n: number) => `最多 ${n} 项。`,
    text: "文本", integer: "整数", list: "列表", object: "对象", truth: "是或否", plainNumber: "数字", any: "任意值",
    options: (n: number) => `选项（${n}）`, byDefault: (value: string) => `默认：${value}`, notSet: "未设置", range: (a: string, b: string) => `${a} 到 ${b}`, null: "null", kindOf: (name: string) => `${name}：值的类型`, addTo: (name: string) => `添加到 ${name}`, add: "添加", removeItem: (name: string) => `删除 ${name}`, item: (name: string, n: number) => `${name} ${n}`, none: "还没有内容。",
    also: (names: string) => `还会发送：${names}。可在 JSON 标签页中查看。`, notJson: "还不是有效的 JSON。", asText: "不是 JSON，将作为文本发送。", browse: (name: string) => `从项目中选择 ${name}`, up: "上一级", noFiles: "这里没有内容。", here: "选择此文件夹", example: "例如",
  },
);

export function typeWord(type: string): string {
  const t = schemaWords();
  return { string: t.text, integer: t.integer, number: t.plainNumber, array: t.list, object: t.object, boolean: t.truth }[type] ?? (type || t.any);
}
