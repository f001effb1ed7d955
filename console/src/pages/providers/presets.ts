/** Well-known providers: their addresses as their own documentation gives them. Nothing is asked of them before a
 * test. */
import { language } from "../../lib/language";

export interface Preset {
  id: string;
  name: string;
  /** Its name in Chinese, where it has one. */
  chinese?: string;
  url: string;
  /** The same service for other countries; its keys are different ones. */
  abroad?: string;
  /** What it speaks, if not chat. */
  protocol?: "responses" | "anthropic";
  /** The page that gives out keys; without one, none is needed. */
  keys?: string;
  /** Good first models, best first; only if the provider lists them. */
  prefer: readonly string[];
}

export function presetName({ name, chinese }: Preset): string {
  return (language.value === "zh" && chinese) || name;
}

export const PRESETS: readonly Preset[] = [
  {
    id: "openai",
    name: "OpenAI",
    url: "https://api.openai.com/v1",
    protocol: "responses",
    keys: "https://platform.openai.com/api-keys",
    prefer: ["gpt-5-mini", "gpt-5", "gpt-4.1-mini", "gpt-4o-mini"],
  },
  {
    id: "anthropic",
    name: "Anthropic",
    url: "https://api.anthropic.com/v1",
    protocol: "anthropic",
    keys: "https://console.anthropic.com/settings/keys",
    prefer: ["claude-sonnet", "claude-haiku"],
  },
  {
    id: "gemini",
    name: "Google Gemini",
    url: "https://generativelanguage.googleapis.com/v1beta/openai",
    keys: "https://aistudio.google.com/apikey",
    prefer: ["models/gemini-2.5-flash", "models/gemini-2.5-pro", "models/gemini"],
  },
  {
    id: "deepseek",
    name: "DeepSeek",
    url: "https://api.deepseek.com/v1",
    keys: "https://platform.deepseek.com/api_keys",
    prefer: ["deepseek-chat"],
  },
  {
    id: "dashscope",
    name: "DashScope",
    chinese: "阿里云百炼",
    url: "https://dashscope.aliyuncs.com/compatible-mode/v1",
    abroad: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    keys: "https://bailian.console.aliyun.com/?tab=model#/api-key",
    prefer: ["qwen-plus", "qwen-max", "qwen-turbo"],
  },
  {
    id: "moonshot",
    name: "Moonshot",
    chinese: "月之暗面 Kimi",
    url: "https://api.moonshot.cn/v1",
    abroad: "https://api.moonshot.ai/v1",
    keys: "https://platform.moonshot.cn/console/api-keys",
    prefer: ["kimi-k2", "kimi-latest", "moonshot-v1-auto"],
  },
  {
    id: "zhipu",
    name: "Zhipu",
    chinese: "智谱 AI",
    url: "https://open.bigmodel.cn/api/paas/v4",
    abroad: "https://api.z.ai/api/paas/v4",
    keys: "https://open.bigmodel.cn/usercenter/apikeys",
    prefer: ["glm-4.6", "glm-4.5", "glm-4-flash"],
  },
  {
    id: "siliconflow",
    name: "SiliconFlow",
    chinese: "硅基流动",
    url: "https://api.siliconflow.cn/v1",
    abroad: "https://api.siliconflow.com/v1",
    keys: "https://cloud.siliconflow.cn/account/ak",
    prefer: ["deepseek-ai/DeepSeek-V3", "Qwen/Qwen3"],
  },
  {
    id: "openrouter",
    name: "OpenRouter",
    url: "https://openrouter.ai/api/v1",
    keys: "https://openrouter.ai/settings/keys",
    prefer: ["openrouter/auto", "anthropic/claude-sonnet", "openai/gpt-5-mini"],
  },
  { id: "ollama", name: "Ollama", url: "http://127.0.0.1:11434/v1", prefer: ["qwen3", "llama3"] },
  { id: "lmstudio", name: "LM Studio", url: "http://127.0.0.1:1234/v1", prefer: ["qwen", "gpt-oss"] },
  { id: "vllm", name: "vLLM", url: "http://127.0.0.1:8000/v1", prefer: [] },
  { id: "new-api", name: "new-api", url: "http://127.0.0.1:3000/v1", prefer: ["gpt-5-mini", "deepseek-chat"] },
];
