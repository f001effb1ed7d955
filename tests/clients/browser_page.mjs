// The official client in a page: what a desktop application or an extension does with it.
import OpenAI from "openai";

const messages = [{ role: "user", content: "Hello" }];

const uses = {
  async models(client) {
    const found = [];
    for await (const model of client.models.list()) found.push(model.id);
    return found;
  },
  async whole(client) {
    const { data, response } = await client.chat.completions.create({ model: "scripted", messages }).withResponse();
    return [data.choices[0].message.content, response.headers.get("x-request-id")];
  },
  async streamed(client) {
    let text = "";
    for await (const chunk of await client.chat.completions.create({ model: "scripted", messages, stream: true })) {
      text += chunk.choices[0]?.delta?.content ?? "";
    }
    return text;
  },
  async headers(client) {
    const more = { "Idempotency-Key": "one", "X-Toolyard-Chat": "c", "Mcp-Session-Id": "m", "Last-Event-ID": "1" };
    const sent = await client.chat.completions.create({ model: "scripted", messages }, { headers: more });
    return sent.choices[0].message.content;
  },
};

// What `use` gives, or the kind, status and words of its error.
globalThis.useClient = async ({ url, key, use }) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, dangerouslyAllowBrowser: true });
  try {
    return { value: await uses[use](client) };
  } catch (error) {
    return { error: error.constructor.name, status: error.status ?? 0, message: error.message };
  }
};

// A request with whatever the browser adds by itself, cookies too; its status, or 0 when the page may not know.
globalThis.fetchWithCookies = async ({ url, path, method, token }) => {
  const sent = { method, credentials: "include", headers: token ? { "X-CSRF-Token": token } : {} };
  try {
    return (await fetch(url + path, sent)).status;
  } catch {
    return 0;
  }
};
