/** The codes and reasons that a failed call ends with, and what each means in plain words. */
import { dictionary } from "./language";

export const errorWords = dictionary(
  {
    NOT_FOUND: "Something that the call names does not exist",
    ACCESS_DENIED: "Outside the project, or not approved",
    PERMISSION_DENIED: "The operating system refused",
    INVALID_PARAM: "An argument is missing or wrong",
    TIMEOUT: "It took too long",
    INTERNAL_ERROR: "A fault in Toolyard itself",
    EXECUTION_ERROR: "The tool failed while it ran",
    CONFLICT: "Something changed in the meantime",
    IS_DIRECTORY: "A folder where a file was expected",
    BINARY_FILE: "A binary file where text was expected",
    NOT_FOUND_IN_FILE: "The text to replace is not in the file",
    NOT_UNIQUE: "The text to replace is there several times",
    NO_CHANGE: "The edit would change nothing",
    STALE: "The file has changed since it was read",
    TOO_LARGE: "The file is too large",
    UNSUPPORTED_ENCODING: "The file has an unsupported encoding",
    ALREADY_EXISTS: "The file exists already",
    START_FAILED: "The plugin did not start",
    NO_OUTPUT: "The plugin gave no answer",
    INVALID_OUTPUT: "The plugin's answer is not valid",
    OUTPUT_TOO_LARGE: "The plugin's answer is too large",
    CRASHED: "The plugin crashed",
    BUSY: "Too many calls at once",
    INTERRUPTED: "The server stopped while it ran",
    CANCELLED: "Somebody stopped it",
    DENIED: "Somebody did not approve it",
    APPROVAL_REQUIRED: "It waited too long for approval",
  },
  {
    NOT_FOUND: "调用中提到的对象不存在",
    ACCESS_DENIED: "超出项目范围，或未获批准",
    PERMISSION_DENIED: "操作系统拒绝访问",
    INVALID_PARAM: "参数缺失或有误",
    TIMEOUT: "执行超时",
    INTERNAL_ERROR: "Toolyard 自身的故障",
    EXECUTION_ERROR: "工具执行失败",
    CONFLICT: "内容在此期间发生了变化",
    IS_DIRECTORY: "需要文件，却是文件夹",
    BINARY_FILE: "需要文本，却是二进制文件",
    NOT_FOUND_IN_FILE: "文件中没有要替换的文本",
    NOT_UNIQUE: "要替换的文本在文件中不止一处",
    NO_CHANGE: "这次编辑不会改变任何内容",
    STALE: "文件在读取之后被修改过",
    TOO_LARGE: "文件过大",
    UNSUPPORTED_ENCODING: "不支持该文件的编码",
    ALREADY_EXISTS: "文件已存在",
    START_FAILED: "插件未能启动",
    NO_OUTPUT: "插件没有返回结果",
    INVALID_OUTPUT: "插件返回的结果无效",
    OUTPUT_TOO_LARGE: "插件返回的结果过大",
    CRASHED: "插件崩溃",
    BUSY: "同时进行的调用过多",
    INTERRUPTED: "运行期间服务器停止",
    CANCELLED: "被人停止",
    DENIED: "未获批准",
    APPROVAL_REQUIRED: "等待审批超时",
  },
);
export type ErrorCode = keyof ReturnType<typeof errorWords>;
export const ERROR_CODES = Object.keys(errorWords.both[0]) as ErrorCode[];

export const isErrorCode = (text: string): text is ErrorCode => ERROR_CODES.includes(text as ErrorCode);

/** The calls that ended with this code. */
export const codeLink = (code: string) => `/activity?code=${encodeURIComponent(code)}`;
