// A client for Toolyard's HTTP API: one file without dependencies, for browsers, Node, Deno and Bun.
// Made by `make clients` from the OpenAPI document and clients/typescript/template.ts. Do not edit it by hand.
// Licensed under Apache-2.0, like Toolyard itself.

/** The owner's decision on what a plugin may reach. */
export type AccessChoice = "strict" | "declared" | "read-project" | "installation" | "wide" | "unconfined";

export interface AccessOptionRow {
  choice: AccessChoice;
  /** What it may reach, in plain words. */
  reach: Array<TextRow>;
  confinement: ConfinementLevel;
  /** What this machine cannot enforce, and why. */
  missing: Array<TextRow>;
}

export interface AnsweredApproval {
  id: string;
  state: string;
}

export interface AnthropicMedia {
  type: "image" | "document";
  source: Base64Source;
}

export interface AnthropicToolResult {
  type: "tool_result";
  tool_use_id: string;
  content: string | Array<TextPart | AnthropicMedia>;
  is_error: boolean;
}

export interface ApprovalDecision {
  always?: boolean;
  /** `always` adds a rule; `chat` adds one for this chat, until a restart. */
  for?: "once" | "chat" | "always";
  reason?: string;
}

export interface ApprovalDetail {
  /** The command of a plugin. */
  command_line: Array<string> | null;
  /** A preview of its changes, while it waits. */
  patch: Array<PatchedFile> | null;
  patch_problem: string;
  /** The code of the sentence beside it; missing if it has none. */
  patch_problem_code?: string;
  /** The parameters of the sentence. */
  patch_problem_params?: Record<string, string | number | boolean | NestedMessage>;
  /** The last user message of its chat. */
  excerpt: string;
  id: string;
  tool: string;
  state: ApprovalState;
  caller: string;
  created: number;
  updated: number;
  expires: number | null;
  chat: string | null;
  because: DecisionReason | null;
  answered: number | null;
  /** The masked texts of the arguments. */
  hidden: Array<HiddenText>;
  call_id: string;
  commands: Array<string>;
  risk: string;
  origin: string;
  arguments: unknown;
  maid: string | null;
  /** It writes to a protected path. */
  protected: boolean;
  /** One rule can express it. */
  always_offered: boolean;
  /** Of exactly the call that is approved. */
  digest: string;
  plugin: string;
  /** Why it asks. */
  reason: string;
  answered_by: string | null;
  /** The reason that was given with the answer. */
  note: string;
  /** The rule that `always` would make. */
  rule: RuleTarget | null;
  /** The code of the sentence beside it; missing if it has none. */
  note_code?: string;
  /** The parameters of the sentence. */
  note_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface ApprovalEndedData {
  id: string;
  state: "allowed" | "denied" | "expired" | "interrupted";
  call_id: string;
  /** Who answered; missing if nobody did. */
  by?: string | null;
  /** Why nobody was asked. */
  because?: DecisionReason | null;
}

/** An approval was answered, or waits no more. */
export interface ApprovalEndedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "approval.allowed" | "approval.denied" | "approval.expired" | "approval.interrupted";
  data: ApprovalEndedData;
}

export interface ApprovalPage {
  data: Array<ApprovalRow>;
  next: string | null;
}

export interface ApprovalRequestedData {
  id: string;
  tool: string;
  call_id: string;
  expires: number | null;
  commands: Array<string>;
  risk: string;
  origin: string;
  /** The arguments of the call. */
  arguments: unknown;
  /** The masked texts of the arguments. */
  hidden: Array<MaskedText>;
  maid: string | null;
  /** It writes to a protected path. */
  protected: boolean;
  chat: string | null;
  because: DecisionReason | null;
  /** Why it asks. */
  why: string;
  /** One rule can express it. */
  always_offered: boolean;
  /** Of exactly the call that is approved. */
  digest: string;
  plugin: string;
}

/** A call waits for approval. */
export interface ApprovalRequestedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "approval.requested";
  data: ApprovalRequestedData;
}

export interface ApprovalRow {
  /** The beginning of its arguments. */
  summary: string;
  arguments_bytes: number;
  id: string;
  tool: string;
  state: ApprovalState;
  caller: string;
  created: number;
  updated: number;
  expires: number | null;
  chat: string | null;
  because: DecisionReason | null;
  answered: number | null;
  /** The masked texts of the arguments. */
  hidden: Array<HiddenText>;
  call_id: string;
  commands: Array<string>;
  risk: string;
  origin: string;
  maid: string | null;
  /** It writes to a protected path. */
  protected: boolean;
  /** One rule can express it. */
  always_offered: boolean;
  /** Of exactly the call that is approved. */
  digest: string;
  plugin: string;
  /** Why it asks. */
  reason: string;
  answered_by: string | null;
  /** The reason that was given with the answer. */
  note: string;
  /** The rule that `always` would make. */
  rule: RuleTarget | null;
  /** The code of the sentence beside it; missing if it has none. */
  note_code?: string;
  /** The parameters of the sentence. */
  note_params?: Record<string, string | number | boolean | NestedMessage>;
}

/** The state of an approval. */
export type ApprovalState = "pending" | "allowed" | "denied" | "expired" | "interrupted";

export interface AssistantDraft {
  name: string;
  /** The system prompt. */
  instructions?: string;
  /** Empty: the one that was used last. */
  model?: string;
  /** The tools that may run; null: all. */
  tools?: Array<string> | null;
  /** What the tools of the chat may do without asking. */
  mode?: Mode;
  temperature?: number | null;
  /** The longest reply. */
  max_tokens?: number | null;
  reasoning_effort?: ReasoningEffort | null;
  /** The form of its replies; json: structured. */
  reply?: ReplyForm;
}

export interface AssistantList {
  data: Array<AssistantRow>;
}

export interface AssistantRow {
  name: string;
  /** The system prompt. */
  instructions: string;
  /** Empty: the one that was used last. */
  model: string;
  /** The tools that may run; null: all. */
  tools: Array<string> | null;
  /** What the tools of the chat may do without asking. */
  mode: Mode;
  /** Null: the provider's default. */
  temperature: number | null;
  /** The longest reply; null: the provider's default. */
  max_tokens: number | null;
  /** Null: the provider's default. */
  reasoning_effort: ReasoningEffort | null;
  /** The form of its replies; json: structured. */
  reply: ReplyForm;
  id: string;
  created: number;
  updated: number;
}

export interface AttachmentContent {
  /** The name of the file; of a project file its path. */
  name: string;
  kind: AttachmentKind;
  /** The bytes of the complete file. */
  size: number;
  /** The beginning of its text; empty for an image. */
  text: string;
  /** Whether the file has more text. */
  truncated: boolean;
  /** The pages of a PDF. */
  pages: number | null;
  /** An image as a data URI; else empty. */
  image: string;
}

export type AttachmentKind = "text" | "pdf" | "image";

export interface AudioData {
  /** Base64. */
  data: string;
  format: string;
}

export interface AuditPage {
  data: Array<AuditRow>;
  next: string | null;
}

export interface AuditRow {
  id: string;
  at: number;
  /** Such as approval.allowed, plugin.allowed or key.created; call.run is a run. */
  action: string;
  /** The caller, such as key:owner or cli. */
  by: string;
  /** How it came in: key, session, cli, mcp, auto, or the origin of a run. */
  way: string;
  /** The address of the client; empty on this machine's command line. */
  address: string;
  tool: string;
  plugin: string;
  /** The id or name of what it is about. */
  target: string;
  detail: Record<string, unknown>;
}

export interface BackendMessage {
  /** What the tool asks the client to do; missing if nothing. */
  _specialAction?: string;
  /** What the tool adds for that action. */
  payload?: unknown;
  /** The payload was too large: only the answer in the `vcp` dialect has it. */
  payload_left_out?: boolean;
  type: "backend_only";
  tool_name: string;
  tool_use_id: string;
  uuid: string;
  /** The data of the tool in the back end's shape; of a failure, a text. */
  data: unknown;
}

export interface BackupConfirmation {
  /** Of the backup that was shown. */
  fingerprint: string;
}

export interface BackupContents {
  files: Array<string>;
  plugins: Array<string>;
  /** Records by kind, and events. */
  counts: Record<string, number>;
  bytes: number;
  /** Of the archive. */
  fingerprint: string;
}

export interface Base64Source {
  type: "base64";
  media_type: string;
  data: string;
}

export interface BulkDecision {
  ids: Array<string>;
  effect: "allow" | "deny";
  reason?: string;
}

export interface BulkDecisionResult {
  data: Array<BulkDecisionRow>;
}

export interface BulkDecisionRow {
  id: string;
  state: string;
  /** False when another answer came first. */
  ok: boolean;
}

export interface CallApproval {
  id: string;
  state: string;
  by: string | null;
  because?: string | null;
}

export interface CallDetail {
  error: CallError | null;
  command: string | null;
  /** What the tool asks the client to do; missing if nothing. */
  _specialAction?: string;
  /** What the tool adds for that action. */
  payload?: unknown;
  /** The payload was too large: only the answer in the `vcp` dialect has it. */
  payload_left_out?: boolean;
  envelope: Envelope | null;
  /** The calls that repeat it, newest first. */
  retries: Array<RetrySummary>;
  approval: CallApproval | null;
  timeline: Array<TimelineStep>;
  /** The process, for plugins. */
  process: ProcessDetail | null;
  /** Whether its changes can be undone: the files are unchanged since. */
  undoable: boolean;
  id: string;
  tool: string;
  state: CallState;
  caller: string;
  started: number;
  /** Shortened in a list. */
  arguments: unknown;
  origin: string;
  maid: string | null;
  chat: string | null;
  /** The folder of the project in which it ran; empty for calls before this was noted. */
  project: string;
  /** The call that it repeats. */
  retry_of: string | null;
  /** The beginning of the result's text. */
  text: string | null;
  /** How long it ran, without the wait for a person. */
  time_ms: number | null;
  /** When its tool began. */
  ran: number | null;
  /** How long it waited for permission. */
  waited_ms: number | null;
  /** Of its envelope. */
  bytes_out: number | null;
  /** The ids of those that it began. */
  tasks: Array<string>;
  reason: string | null;
  /** When its files were put back. */
  undone: Undo | null;
  /** When it ended. */
  ended: number | null;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
}

/** The error in the record of a call, and in its events. */
export interface CallError {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  code: ErrorCode;
}

/** A call began, ended, or was undone. */
export interface CallEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "call.started" | "call.finished" | "call.undone";
  data: CallEventData;
}

export interface CallEventData {
  /** What the tool asks the client to do; missing if nothing. */
  _specialAction?: string;
  /** What the tool adds for that action. */
  payload?: unknown;
  /** The payload was too large: only the answer in the `vcp` dialect has it. */
  payload_left_out?: boolean;
  id: string;
  tool: string;
  caller: string;
  state: CallState;
  origin?: string;
  maid?: string | null;
  /** The call that it repeats. */
  retry_of?: string | null;
  /** The beginning of the result's text. */
  text?: string | null;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
  /** How long it ran, without the wait for a person. */
  time_ms?: number | null;
  reason?: string | null;
  error?: CallError | null;
  /** When its files were put back. */
  undone?: UndoData | null;
}

export interface CallFile {
  path: string;
  before: FileSide;
  after: FileSide;
}

export interface CallFiles {
  data: Array<CallFile>;
}

export interface CallPage {
  data: Array<CallRow>;
  next: string | null;
}

export interface CallProgressData {
  id: string;
  tool: string;
  caller: string;
  /** From 0 to 1; null when it is not known. */
  done: number | null;
  /** What it reported since the last event. */
  text: string;
}

/** A running call says how far it is. */
export interface CallProgressEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "call.progress";
  data: CallProgressData;
}

export interface CallRow {
  error: CallError | null;
  command: string | null;
  id: string;
  tool: string;
  state: CallState;
  caller: string;
  started: number;
  /** Shortened in a list. */
  arguments: unknown;
  origin: string;
  maid: string | null;
  chat: string | null;
  /** The folder of the project in which it ran; empty for calls before this was noted. */
  project: string;
  /** The call that it repeats. */
  retry_of: string | null;
  /** The beginning of the result's text. */
  text: string | null;
  /** How long it ran, without the wait for a person. */
  time_ms: number | null;
  /** When its tool began. */
  ran: number | null;
  /** How long it waited for permission. */
  waited_ms: number | null;
  /** Of its envelope. */
  bytes_out: number | null;
  /** The ids of those that it began. */
  tasks: Array<string>;
  reason: string | null;
  /** When its files were put back. */
  undone: Undo | null;
  /** When it ended. */
  ended: number | null;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
}

export type CallState = "running" | "success" | "partial" | "error" | "cancelled" | "interrupted";

export interface CallStatistics {
  since: number;
  /** The start of the oldest call that is counted, if `is_capped`. */
  counted_since: number;
  /** There are more calls: only the newest 10,000 are counted. */
  is_capped: boolean;
  total: number;
  by_state: Record<string, number>;
  by_tool: Array<ToolCount>;
  errors: Array<ErrorCount>;
  /** The ten slowest calls. */
  slow: Array<SlowCall>;
}

export interface CallbackAnswer {
  status: "success" | "error";
  /** Only when `status` is `error`. */
  message?: string;
  /** The result was stored already. */
  duplicate?: boolean;
}

export interface CallbackRow {
  at: number;
  result: "accepted" | "duplicate" | "refused";
  /** The response status: 200, 401 or 409. */
  status: number;
  why: string;
  /** The code of the sentence beside it; missing if it has none. */
  why_code?: string;
  /** The parameters of the sentence. */
  why_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface CaseExpectation {
  /** Missing for a call with tasks, which the test waits for. */
  status?: string;
  text_contains?: string;
}

export interface ChangedRecord {
  ok: boolean;
  id: string;
}

export interface ChatChoice {
  index: number;
  message: ChatMessage;
  finish_reason?: string | null;
  [member: string]: unknown;
}

export interface ChatChunkChoice {
  index: number;
  delta: ChatDelta;
  finish_reason?: string | null;
  [member: string]: unknown;
}

export interface ChatCompletion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Array<ChatChoice>;
  usage?: ChatUsage | null;
  [member: string]: unknown;
}

/** One server-sent event of a streamed completion. */
export interface ChatCompletionChunk {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Array<ChatChunkChoice>;
  usage?: ChatUsage | null;
  [member: string]: unknown;
}

export interface ChatDelta {
  role?: string;
  content?: string | null;
  tool_calls?: Array<ChatToolCallDelta>;
  [member: string]: unknown;
}

export interface ChatDetail {
  id: string;
  model: string;
  started: number;
  state: string;
  error: string | null;
  offer: ChatOffer;
  /** The names of placeholders in its prompt that nothing fills. */
  unfilled: Array<string>;
  rounds: Array<ChatRound>;
  work: Array<ChatWork>;
  /** The newest event of its stream; null if it cannot be followed. */
  cursor: number | null;
}

export interface ChatMessage {
  role: string;
  content?: string | Array<ChatPart> | null;
  tool_calls?: Array<ChatToolCall>;
  tool_call_id?: string;
  [member: string]: unknown;
}

export interface ChatOffer {
  mode: OfferMode;
  tools: Array<string>;
  tokens: number;
  left_out: Array<string>;
  /** The number of tools that a search may find. */
  searchable: number;
}

export interface ChatPart {
  type: string;
  text?: string;
  [member: string]: unknown;
}

export interface ChatRequest {
  model?: string;
  messages: Array<ChatMessage>;
  stream?: boolean | null;
  /** The client's own tools, as the provider takes them. */
  tools?: Array<Record<string, unknown>>;
  toolyard?: ToolyardOptions | null;
  [member: string]: unknown;
}

export interface ChatRound {
  /** The request to the model; as a text if it was cut. */
  sent: unknown;
}

export interface ChatToolCall {
  id: string;
  type: "function";
  function: FunctionCall;
  [member: string]: unknown;
}

export interface ChatToolCallDelta {
  index: number;
  id?: string;
  type?: string;
  function?: FunctionCallDelta | null;
  [member: string]: unknown;
}

export interface ChatUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  [member: string]: unknown;
}

export interface ChatWork {
  round: number;
  tool: string;
  state: string;
  text: string;
}

export interface CheckRow {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  name: string;
  level: "ok" | "missing_config" | "warn" | "fail";
  fix: string;
  /** The code of the sentence beside it; missing if it has none. */
  fix_code?: string;
  /** The parameters of the sentence. */
  fix_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface CheckRows {
  data: Array<CheckRow>;
}

export interface CommandForm {
  name: string;
  /** Empty: the name. */
  display_name: string;
  description: string;
  /** Translations by language; an empty text is untranslated. */
  translations: Record<string, TranslationRow>;
  /** A JSON Schema of the calls of this command. */
  parameters: Record<string, unknown>;
}

export interface CompactedResponse {
  id: string;
  object: "response.compaction";
  created_at: number;
  output: Array<Record<string, unknown>>;
  usage: ResponseUsage;
}

/** The extent to which a program is confined to its access. Levels are ordered: see ``reaches``. */
export type ConfinementLevel = "none" | "files" | "full";

export interface ConversationChangedData {
  id: string;
  caller: string;
  version: number;
}

/** A conversation was stored. */
export interface ConversationChangedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "conversation.changed";
  data: ConversationChangedData;
}

/** Changes beside the messages; what is left out stays. */
export interface ConversationChanges {
  title?: string | null;
  pinned?: boolean | null;
  /** The id of the last message of the branch to open. */
  leaf?: string | null;
}

export interface ConversationDetail {
  messages: Array<Record<string, unknown>>;
  settings: Record<string, unknown>;
  /** Chosen by the client. */
  id: string;
  created: number;
  /** When its messages last changed. */
  updated: number;
  version: number;
  state: ConversationState;
  title: string;
  model: string;
  pinned: boolean;
  /** The id of the last message of the branch in view; empty: the newest message. */
  leaf: string;
}

export interface ConversationDraft {
  title?: string;
  model?: string;
  /** Stored unchanged. */
  messages?: Array<Record<string, unknown>>;
  settings?: Record<string, unknown>;
  /** The id of the last message of the branch in view, if there are several. */
  leaf?: string;
  /** The version that was read; 0 for a new conversation. */
  version?: number;
}

export interface ConversationName {
  id: string;
  [member: string]: unknown;
}

export interface ConversationPage {
  data: Array<FoundConversation>;
  next: string | null;
}

export interface ConversationRow {
  /** Chosen by the client. */
  id: string;
  created: number;
  /** When its messages last changed. */
  updated: number;
  version: number;
  state: ConversationState;
  title: string;
  model: string;
  /** How many there are, in all branches. */
  messages: number;
  pinned: boolean;
  /** The id of the last message of the branch in view; empty: the newest message. */
  leaf: string;
}

export type ConversationState = "active" | "deleted";

export interface CreatedCase {
  /** The name of the case. */
  name: string;
  /** The file of the case. */
  file: string;
  /** The case as written. */
  case: PluginCase;
}

export interface CreatedKey {
  id: string;
  name: string;
  scopes: Array<Scope>;
  created: number;
  offer: OfferMode | null;
  /** The secret. It is not stored and cannot be shown again. */
  key: string;
}

export interface DatabaseStatus {
  kind: "sqlite" | "postgres";
  ok: boolean;
  problem: string;
  /** The code of the sentence beside it; missing if it has none. */
  problem_code?: string;
  /** The parameters of the sentence. */
  problem_params?: Record<string, string | number | boolean | NestedMessage>;
  /** The size of the file; null for PostgreSQL. */
  bytes: number | null;
}

/** The reason of a verdict; the risks of tools are reasons too. */
export type DecisionReason = "read" | "write" | "execute" | "network" | "protected" | "allow-rule" | "deny-rule" | "auto-safe" | "mode";

export interface DeclaredPermissions {
  project?: ProjectAccess;
  read?: Array<string>;
  write?: Array<string>;
  ownFolder?: ProjectAccess;
  /** `any`, or hosts such as `*.example.com:8443`. */
  network?: "any" | Array<string> | null;
  unixSockets?: boolean;
  confinement?: ConfinementLevel;
}

export interface DeletedResponse {
  id: string;
  object: "response";
  deleted: boolean;
}

export interface DiskStatus {
  free: number;
  total: number;
}

/** The effect of a rule. */
export type Effect = "allow" | "deny";

export interface Envelope {
  status: "success" | "partial" | "error";
  /** The result for programs; each tool has its own members. */
  data: Record<string, unknown>;
  /** The result for people and models. */
  text: string;
  /** Only when `status` is `error`. */
  error?: EnvelopeError | null;
  stats: Record<string, number | string>;
  context: EnvelopeContext;
}

export interface EnvelopeContext {
  cwd: string;
  /** The arguments as they were sent. */
  params_input: unknown;
  /** The path that the tool worked on, relative to the project. */
  path_resolved?: string;
  /** The specific cause of an error. */
  reason?: string | null;
  /** The code of the error's message; missing if it has none. */
  message_code?: string;
  /** The parameters of it. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  /** What to do next, as at the end of the text of a failure. */
  hint?: string;
  /** The code of the sentence beside it; missing if it has none. */
  hint_code?: string;
  /** The parameters of the sentence. */
  hint_params?: Record<string, string | number | boolean | NestedMessage>;
  /** The code of the text; missing if it has none. */
  text_code?: string;
  /** The parameters of the text. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
  truncation_skip?: boolean;
  warnings?: Array<string>;
  [member: string]: unknown;
}

export interface EnvelopeError {
  code: ErrorCode;
  message: string;
}

export interface ErrorBody {
  error: ErrorFields;
}

export type ErrorCode = "NOT_FOUND" | "ACCESS_DENIED" | "PERMISSION_DENIED" | "INVALID_PARAM" | "TIMEOUT" | "INTERNAL_ERROR" | "EXECUTION_ERROR" | "CONFLICT" | "IS_DIRECTORY" | "BINARY_FILE";

export interface ErrorCount {
  code: string;
  count: number;
}

export interface ErrorFields {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  type: string;
  code: string;
  /** Always null; OpenAI's clients expect it in errors of chats. */
  param?: string | null;
}

export interface Estimate {
  /** The number was not counted by the provider. */
  estimate: boolean;
}

export interface EventStatus {
  newest: number;
  lag: number;
}

export type FileChange = "none" | "added" | "changed" | "removed";

export interface FileData {
  filename: string;
  /** A data URI. */
  file_data: string;
}

export type FileKind = "text" | "binary" | "large" | "link" | "gone";

export interface FilePart {
  type: "file";
  file: FileData;
}

export interface FileSide {
  /** `none`: there was no file; `gone`: it has changed since and is no longer stored. */
  state: "text" | "none" | "binary" | "too_large" | "gone";
  bytes: number | null;
  text: string | null;
}

export interface FilledText {
  /** The system message as the model would get it. */
  text: string;
  characters: number;
  /** Names in it that nothing fills. */
  unfilled: Array<string>;
  /** Whether it lists tools, so that none are offered besides. */
  lists_tools: boolean;
}

export interface FoundConversation {
  /** After a search, the text around a hit; empty if only the title has it. */
  snippet: string;
  /** The message that the snippet is of. */
  message_id: string;
  /** Chosen by the client. */
  id: string;
  created: number;
  /** When its messages last changed. */
  updated: number;
  version: number;
  state: ConversationState;
  title: string;
  model: string;
  /** How many there are, in all branches. */
  messages: number;
  pinned: boolean;
  /** The id of the last message of the branch in view; empty: the newest message. */
  leaf: string;
}

export interface FunctionCall {
  name: string;
  /** JSON. */
  arguments: string;
}

export interface FunctionCallDelta {
  name?: string;
  arguments?: string;
}

export interface FunctionDefinition {
  name: string;
  description: string;
  /** A JSON Schema. */
  parameters: Record<string, unknown>;
}

export interface GapData {
  from: number;
  to: number;
}

/** Events of these numbers are no longer stored: reload what you show. */
export interface GapEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "gap";
  data: GapData;
}

export interface Health {
  status: string;
  version: string;
}

export interface HiddenText {
  /** The JSON pointer of the text that is masked, or has masks in it. */
  at: string;
  characters: number;
}

export interface HostData {
  id: string;
  machine: string;
  tools: Array<string>;
}

/** A host of several came up, left or was lost. */
export interface HostEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "host.up" | "host.left" | "host.lost";
  data: HostData;
}

export interface HostRefusalData {
  id: string;
  tool: string;
  sender: string;
  host: string;
  reason: string;
}

/** A host refused a call of another. */
export interface HostRefusalEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "host.call_refused";
  data: HostRefusalData;
}

export interface HumanError {
  timestamp: string;
  /** The signer of the request, if it has one. */
  MaidName?: string;
  plugin_error: string;
}

export interface HumanRefusal {
  error: string;
}

export interface HumanResult {
  timestamp: string;
  /** The signer of the request, if it has one. */
  MaidName?: string;
  /** The parts for the model; those of a plugin as it printed them. */
  content: Array<unknown>;
  /** The data of the tool, and `message`. */
  details: Record<string, unknown>;
  /** What the tool asks the client to do; missing if nothing. */
  _specialAction?: string;
  /** What the tool adds for that action. */
  payload?: unknown;
}

export interface HumanSchedule {
  status: "success";
  scheduled: boolean;
  taskId: string;
  tool_name: string;
  requestedAt: string;
  scheduledTime: string;
}

export interface IdData {
  id: string;
}

export interface ImageUrlPart {
  type: "image_url";
  image_url: MediaUrl;
}

export interface InputAudioPart {
  type: "input_audio";
  input_audio: AudioData;
}

export interface InputItemList {
  object: "list";
  data: Array<Record<string, unknown>>;
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

export interface InputMessage {
  role: "user" | "assistant" | "system" | "developer";
  content: string | Array<MessageBlock>;
  [member: string]: unknown;
}

export interface InputTokens {
  object: "response.input_tokens";
  input_tokens: number;
  toolyard: Estimate;
}

export interface InstallationDecision {
  /** `fingerprint` as shown. */
  fingerprint: string;
}

export interface InstallationFinding {
  /** What it is; `host`: VCPToolBox itself, or its `config.env`. */
  part: Part;
  name: string;
  /** What becomes of it; `adapted`: it works in another way. */
  verdict: Verdict;
  why: string;
  /** The code of the sentence beside it; missing if it has none. */
  why_code?: string;
  /** The parameters of the sentence. */
  why_params?: Record<string, string | number | boolean | NestedMessage>;
  /** What a plugin needs and this machine does not have. */
  needs: Array<MissingNeed>;
  /** Whether it waits for the decision. */
  waits: boolean;
}

export interface InstallationReach {
  text: string;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
  /** Those of the waiting plugins that may. */
  plugins: Array<string>;
}

export interface InstallationReview {
  /** The folder of the installation; null: none is used in place. */
  folder: string | null;
  /** What becomes of each part of it. */
  findings: Array<InstallationFinding>;
  /** What the waiting plugins may reach together. */
  reach: Array<InstallationReach>;
  /** The plugins that the decision is about. */
  waiting: Array<WaitingPlugin>;
  /** The secrets that those of VCPToolBox's own process get together, if one waits. */
  process_secrets: Array<string>;
  /** Of these plugins, each as it is now. */
  fingerprint: string;
  /** The command that installs what can be; empty when nothing can. */
  install: string;
}

export interface InterruptRequest {
  /** As in the request to stop. */
  requestId?: string;
  /** Another name of `requestId`. */
  messageId?: string;
  /** The id of the chat to stop. */
  chat?: string;
}

export interface InterruptResult {
  status: "success";
  message: string;
}

export interface KeyList {
  data: Array<KeySummary>;
}

export interface KeySummary {
  id: string;
  name: string;
  scopes: Array<Scope>;
  created: number;
  offer: OfferMode | null;
}

export type Language = "zh" | "en";

export interface LateCallback {
  at: number;
  /** It had the body of the first one. */
  duplicate?: boolean;
  /** Of a callback that differs, as the plugin sent it. */
  body?: unknown;
}

/** The reason for which a run did not begin at its time. */
export type LateReason = "no_host" | "busy" | "storage";

export interface LogPage {
  data: Array<LogRow>;
  next: number;
  lost: number;
}

export interface LogRow {
  n: number;
  at: number;
  stream: "stderr" | "noise" | "note";
  call: string;
  text: string;
}

export interface LoginLinks {
  /** For a browser on the machine of the server. */
  url: string;
  /** For other machines; null if they cannot reach the server. */
  remote_url: string | null;
  /** `remote_url` as a QR code with its border: a text for each row, `1` is dark and `0` light. */
  remote_qr: Array<string> | null;
  /** Seconds. */
  expires_in: number;
}

export interface MaskedText {
  /** The JSON pointer of the text that is masked, or has masks in it. */
  at: string;
  characters: number;
}

export interface McpBlob {
  uri: string;
  mimeType: string;
  /** Base64. */
  blob: string;
}

export interface McpMedia {
  type: "image" | "audio";
  /** Base64. */
  data: string;
  mimeType: string;
}

export interface McpMeta {
  "toolyard/envelope": Envelope;
  /** What the tool asks the client to do, if anything. */
  "toolyard/specialAction"?: SpecialAction;
}

export interface McpResource {
  type: "resource";
  resource: McpBlob;
}

export interface McpServerDeclaration {
  /** `stdio` or `http`. */
  type?: string;
  command?: string;
  args?: Array<string>;
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  /** As in a plugin manifest. */
  permissions?: DeclaredPermissions | null;
  disabled?: boolean;
}

export interface McpServersFile {
  mcpServers: Record<string, McpServerDeclaration>;
}

export interface McpStatus {
  by_state: Record<string, number>;
  crashes: number;
}

export interface McpToolResult {
  content: Array<TextPart | McpMedia | McpResource>;
  /** Of a tool of an MCP server: what the server sent, if it sent any. */
  structuredContent?: unknown;
  isError: boolean;
  /** For programs: no model reads it. */
  _meta: McpMeta;
}

export interface MediaUrl {
  /** A data URI. */
  url: string;
}

export interface MessageBlock {
  type: string;
  [member: string]: unknown;
}

export interface MessageFields {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface MessagesAnswer {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: Array<MessageBlock>;
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: MessagesUsage;
  [member: string]: unknown;
}

export interface MessagesBody {
  model?: string;
  messages: Array<InputMessage>;
  max_tokens?: number | null;
  system?: string | Array<MessageBlock> | null;
  stream?: boolean | null;
  /** The client's own tools. */
  tools?: Array<Record<string, unknown>>;
  toolyard?: ToolyardOptions | null;
  [member: string]: unknown;
}

export interface MessagesError {
  type: "error";
  error: MessagesFault;
  request_id?: string;
}

export interface MessagesFault {
  type: string;
  message: string;
  [member: string]: unknown;
}

export interface MessagesModel {
  type: "model";
  id: string;
  display_name: string;
  created_at: string;
}

export interface MessagesModelList {
  data: Array<MessagesModel>;
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}

export interface MessagesUsage {
  input_tokens: number;
  output_tokens: number;
  [member: string]: unknown;
}

export interface MissingNeed {
  kind: NeedKind;
  name: string;
  /** Whether Toolyard can install it. */
  installable: boolean;
}

export type Mode = "ask" | "auto-safe" | "read-only";

export interface Model {
  id: string;
  [member: string]: unknown;
}

export interface ModelList {
  object: "list";
  data: Array<Model>;
  /** Providers that did not answer when they were asked for their models */
  unavailable: Array<string>;
}

export type NeedKind = "npm" | "native" | "python" | "program";

export interface NestedMessage {
  text: string;
  code: string;
  params: Record<string, string | number | boolean | NestedMessage>;
}

export interface NewCase {
  /** The id of a call that the plugin answered. */
  call: string;
  name: string;
  /** A part of the result text that the test must find; empty for none. */
  text_contains?: string;
}

export interface NewKey {
  name: string;
  scopes: Array<Scope>;
  /** How tools are offered in its chats; null: the setting. */
  offer?: OfferMode | null;
}

export interface NewLoginLinks {
  /** The id of the key to sign in with; empty: the key of this request. */
  key?: string;
}

export interface NewRule {
  tool: string;
  /** Only this command; empty: all. */
  command?: string;
  effect: "allow" | "deny";
}

export interface NewSchedule {
  tool: string;
  arguments?: Record<string, unknown>;
  /** YYYY-MM-DD-HH:mm in the configured time zone, or ISO 8601. */
  at?: string;
  /** A cron expression of five fields, instead of `at`. */
  cron?: string;
  maid?: string | null;
}

export interface NewSettings {
  /** The whole file; `[masked]` keeps the stored value. */
  text: string;
  /** `text` as it was read. */
  before: string;
}

export interface NewValues {
  /** null removes a setting. */
  values: Record<string, string | boolean | number | Array<string> | Record<string, unknown> | null>;
}

export interface NoData {
}

export interface NodeList {
  /** Whether nodes can connect. */
  is_open: boolean;
  data: Array<NodeRow>;
}

export interface NodeRow {
  id: string;
  /** What it is called here: its own name, with a number where two have one. */
  name: string;
  /** From where it is connected. */
  address: string;
  /** Since when, as Unix time. */
  connected: number;
  /** When its last message came. */
  seen: number;
  /** False while it waits for a review. */
  allowed: boolean;
  /** The names by which its tools are called. */
  tools: Array<string>;
  /** The placeholders to which it gives a value. */
  placeholders: Array<string>;
  /** The calls that run there. */
  running: number;
  /** Its tools that cannot be offered, and why. */
  left_out: Record<string, string>;
}

/** The ways in which Toolyard's tools are offered to a model. */
export type OfferMode = "auto" | "native" | "text" | "none";

export interface OkResponse {
  ok: boolean;
}

export interface OpenAiToolMessage {
  role: "tool";
  tool_call_id: string;
  content: string | Array<TextPart | ImageUrlPart | VideoUrlPart | InputAudioPart | FilePart>;
}

/** A conversation was deleted, or an assistant stored or deleted. */
export interface OwnedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "conversation.deleted" | "assistant.changed" | "assistant.deleted";
  data: OwnedIdData;
}

export interface OwnedIdData {
  id: string;
  caller: string;
}

export type Part = "plugin" | "variable" | "agent" | "text" | "schedule" | "key" | "client" | "host";

export interface PatchHunk {
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  lines: Array<string>;
}

export interface PatchedFile {
  path: string;
  operation: string;
  /** The earlier path of a moved file. */
  from?: string;
  structured_patch: Array<PatchHunk>;
}

export interface PendingRestore {
  waiting: BackupContents | null;
  /** The command that starts the server again. */
  command: string;
}

export interface PluginCase {
  name: string;
  args: Record<string, unknown>;
  expect: CaseExpectation;
}

/** Plugins or their tools have changed: list them again. */
export interface PluginChangedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "plugin.changed";
  data: NoData;
}

export interface PluginConfigResult {
  name: string;
  state: string;
  reason: string;
  holds: "next call";
  config: Array<PluginSettingRow>;
}

export interface PluginDetail {
  name: string;
  display_name: string;
  /** Translations by language; an empty text is untranslated. */
  translations: Record<string, TranslationRow>;
  version: string;
  kind: "sync" | "async" | "static" | "service" | "unknown";
  state: "ready" | "missing_config" | "disabled" | "needs_review" | "changed" | "unsupported" | "broken" | "duplicate" | "shadowed";
  reason: string;
  /** The code of the sentence beside it; missing if it has none. */
  reason_code?: string;
  /** The parameters of the sentence. */
  reason_params?: Record<string, string | number | boolean | NestedMessage>;
  folder: string;
  origin: "shipped" | "home" | "project" | "given" | "vcp";
  /** How far it is confined; null when it cannot run. */
  confinement: ConfinementLevel | null;
  /** The folder of the plugin with the same name that is used instead. */
  hidden_by: string | null;
  /** The folders of plugins with the same name that are hidden by it. */
  hides: Array<string>;
  tools: Array<string>;
  commands: Array<string>;
  problems: Array<ProblemRow>;
  manifest: string;
  description: string;
  description_length: number;
  /** The function definition in a chat. */
  native: FunctionDefinition | null;
  prompt_text: string;
  hidden_characters: boolean;
  lint: Array<ProblemRow>;
  review: PluginReview | null;
  config: Array<PluginSettingRow>;
  docs: Array<PluginDoc>;
  /** Whether Toolyard can write tests to its folder. */
  takes_tests: boolean;
}

export interface PluginDoc {
  name: string;
  html: string;
}

export interface PluginFileContent {
  path: string;
  size: number;
  /** `large`: a text that is too long to show. `gone`: it was reviewed. */
  kind: FileKind;
  /** Whether the fingerprint covers it. */
  counts: boolean;
  /** Since the plugin was approved. */
  change: FileChange;
  sha256: string;
  /** Null for a file that is not shown as text; secrets are masked. */
  text: string | null;
  /** From the approved version to this one; null without a change, or without the old text. */
  structured_patch: Array<PatchHunk> | null;
}

export interface PluginFileRow {
  path: string;
  size: number;
  /** `large`: a text that is too long to show. `gone`: it was reviewed. */
  kind: FileKind;
  /** Whether the fingerprint covers it. */
  counts: boolean;
  /** Since the plugin was approved. */
  change: FileChange;
}

export interface PluginFileRows {
  data: Array<PluginFileRow>;
  /** The number of further files, which the fingerprint does not cover. */
  left_out: number;
}

export interface PluginReview {
  command_line: string;
  argv: Array<string>;
  shell: boolean;
  /** Whether it may keep working after its answer. */
  detached: boolean;
  /** For how long; null when it never may. */
  detached_s: number | null;
  env: Array<string>;
  files: Record<string, string>;
  folders: Array<string>;
  /** The decision on what it may reach. */
  access: AccessChoice;
  /** Every decision, and what it means here. */
  access_options: Array<AccessOptionRow>;
  fingerprint: string;
  /** Since it was approved. */
  changed: Array<TextRow>;
  diff: string;
  /** Its manifest claims that it is read-only. */
  claims_read: boolean;
  /** The claim is trusted: models run it without asking. */
  read_confirmed: boolean;
}

export interface PluginRow {
  name: string;
  display_name: string;
  /** Translations by language; an empty text is untranslated. */
  translations: Record<string, TranslationRow>;
  version: string;
  kind: "sync" | "async" | "static" | "service" | "unknown";
  state: "ready" | "missing_config" | "disabled" | "needs_review" | "changed" | "unsupported" | "broken" | "duplicate" | "shadowed";
  reason: string;
  /** The code of the sentence beside it; missing if it has none. */
  reason_code?: string;
  /** The parameters of the sentence. */
  reason_params?: Record<string, string | number | boolean | NestedMessage>;
  folder: string;
  origin: "shipped" | "home" | "project" | "given" | "vcp";
  /** How far it is confined; null when it cannot run. */
  confinement: ConfinementLevel | null;
  /** The folder of the plugin with the same name that is used instead. */
  hidden_by: string | null;
  /** The folders of plugins with the same name that are hidden by it. */
  hides: Array<string>;
  tools: Array<string>;
  commands: Array<string>;
  problems: Array<ProblemRow>;
}

export interface PluginRows {
  data: Array<PluginRow>;
}

export interface PluginSettingRow {
  key: string;
  type: string;
  description: string;
  /** Translations of the description by language. */
  translations: Record<string, string>;
  required: boolean;
  secret: boolean;
  value: string | null;
  set: boolean;
  source: "plugin" | "host" | "default" | "missing";
  /** Whether the manifest declares it. */
  in_schema: boolean;
  changed: number | null;
}

export interface PluginStatus {
  by_state: Record<string, number>;
}

export interface PluginValues {
  /** Keys and values; null removes a key from `config.env`. */
  values: Record<string, string | number | boolean | null>;
}

export interface ProblemRow {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  fix: string;
  /** The code of the sentence beside it; missing if it has none. */
  fix_code?: string;
  /** The parameters of the sentence. */
  fix_params?: Record<string, string | number | boolean | NestedMessage>;
  file: string;
  /** From 1; 0 without a position. */
  line: number;
  column: number;
  /** The field of the manifest; empty without one. */
  field: string;
  warning: boolean;
}

export interface ProcessDetail {
  pid: number;
  argv: Array<string>;
  folder: string;
  /** Names of its environment variables. */
  environment: Array<string>;
  /** Whether it was started from a prepared interpreter. */
  warm: boolean;
  started: number;
  first_output: number | null;
  exit_code: number | null;
  signal: number | null;
  limits_hit: Array<string>;
  stdout_bytes: number | null;
  stderr: string;
  /** Output on stdout besides the answer. */
  noise: string;
}

export type ProjectAccess = "none" | "read" | "write";

export interface ProjectEntry {
  name: string;
  /** Relative to the root. */
  path: string;
  type: "folder" | "file" | "link";
}

export interface ProjectFileList {
  data: Array<ProjectFileRow>;
  /** Whether more files match. */
  truncated: boolean;
}

export interface ProjectFileRow {
  /** Relative to the project. */
  path: string;
}

export interface ProjectFolder {
  /** Relative to the root, which is `.`; links are resolved. */
  path: string;
  entries: Array<ProjectEntry>;
  /** There are more entries than were returned. */
  truncated: boolean;
}

export interface PromptDraft {
  /** A system message. */
  text: string;
  /** The model that it would be for. */
  model?: string;
}

export interface PromptList {
  /** Where prompt files are looked for. */
  folders: Array<string>;
  /** The VCPToolBox installation whose prompts are used. */
  installation: string | null;
  data: Array<PromptRow>;
  problems: Array<PromptProblemRow>;
  /** Names in system messages that nothing fills. */
  unfilled: Array<UnfilledName>;
}

export interface PromptProblemRow {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  place: string;
}

export interface PromptRow {
  /** System messages name it as {{NAME}}. */
  name: string;
  /** A prompt file or a variable; agent and toolbox: of a VCPToolBox installation. */
  kind: "prompt" | "variable" | "agent" | "toolbox";
  /** The file that it stands in. */
  place: string;
  /** Its text as it is written, cut after 2,000 characters. */
  text: string;
  /** The length of the whole text. */
  characters: number;
  description: string;
  /** Of an assistant: its model, or empty. Null: it is none. */
  model: string | null;
}

export interface ProviderContact {
  /** When it last answered. */
  answered: number | null;
  /** When it last failed. */
  failed: number | null;
  /** The last failure. */
  error: string;
  /** The code of the sentence beside it; missing if it has none. */
  error_code?: string;
  /** The parameters of the sentence. */
  error_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface ProviderError {
  /** Mostly a text. */
  message?: unknown;
  [member: string]: unknown;
}

/** An error as a provider wrote it. */
export interface ProviderErrorBody {
  error: ProviderError;
}

/** The protocols that model providers speak. */
export type ProviderProtocol = "chat" | "responses" | "anthropic";

export interface PushRow {
  /** The number of the event that was pushed. */
  seq: number;
  at: number;
  target: string | null;
  type: string;
  /** Number of listeners. */
  clients: number;
  /** Number of listeners that took it. */
  reached: number;
  /** Whether it was pushed again on request. */
  again: boolean;
}

export interface PushTarget {
  /** The clients that get it: VCPLog or VCPInfo; null: both. */
  target: string | null;
  type: string;
  /** Whether the channels are enabled. */
  open: boolean;
}

export interface QueueStatus {
  waiting: number;
  running: number;
  requests: number;
}

export interface Readiness {
  /** `ready`, or the problem. */
  status: string;
  /** Every limit, with `?verbose`. */
  limits?: Record<string, number>;
  /** The number of running requests, with `?verbose`. */
  running?: number;
}

export type Reason = "NOT_FOUND_IN_FILE" | "NOT_UNIQUE" | "NO_CHANGE" | "STALE" | "TOO_LARGE" | "UNSUPPORTED_ENCODING" | "ALREADY_EXISTS" | "START_FAILED" | "NO_OUTPUT" | "INVALID_OUTPUT" | "OUTPUT_TOO_LARGE" | "CRASHED" | "BUSY" | "INTERRUPTED" | "CANCELLED" | "DENIED" | "APPROVAL_REQUIRED";

/** The values of OpenAI's ``reasoning_effort``. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh";

export interface RemoteMediaRequest {
  /** As in the reply; only public addresses are fetched. */
  url: string;
  kind?: "image" | "audio" | "video";
}

export interface RemovedPlugin {
  ok: boolean;
  /** The folder that its files were moved to. */
  kept: string | null;
}

export interface RemovedServer {
  ok: boolean;
  name: string;
}

export interface RenderedReply {
  ok: boolean;
  rendered: string;
  kind: "reply" | "markdown";
  /** The thinking, as text. */
  think: string;
  error: ReplyParseError | null;
}

export type ReplyForm = "text" | "json";

export interface ReplyParseError {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  line: number;
  column: number;
}

export interface ReplyRequest {
  /** The text of the model. */
  text: string;
  to?: "html" | "markdown" | "terminal" | "json";
  lang?: "en" | "zh";
  /** The kind of text. `auto` detects it, and omits the thinking from the HTML. */
  kind?: "auto" | "reply" | "markdown";
  /** The text is incomplete: missing parts are no error. */
  partial?: boolean;
}

export interface ResponseObject {
  id: string;
  object: "response";
  created_at: number;
  status: string;
  model: string;
  output: Array<Record<string, unknown>>;
  usage?: ResponseUsage | null;
  [member: string]: unknown;
}

export interface ResponseUsage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  [member: string]: unknown;
}

export interface ResponsesRequest {
  model?: string;
  /** A text, or a list of items. */
  input?: string | Array<Record<string, unknown>>;
  instructions?: string | null;
  stream?: boolean | null;
  store?: boolean | null;
  background?: boolean | null;
  previous_response_id?: string | null;
  /** An id, or an object with it. */
  conversation?: string | ConversationName | null;
  tools?: Array<Record<string, unknown>> | null;
  [member: string]: unknown;
}

export interface RetrySummary {
  id: string;
  state: string;
  started: number;
}

export interface RevealedArguments {
  id: string;
  arguments: Record<string, unknown>;
}

export interface ReviewDecision {
  /** `review.fingerprint` as shown. */
  fingerprint: string;
  /** Whether it may keep working after its answer. Null: as in the manifest. */
  detached?: boolean | null;
  /** What it may reach. Null: as decided before, else what it declares. */
  access?: AccessChoice | null;
  /** Trust its claim to be read-only: models run it without asking. */
  confirm_read?: boolean;
}

export interface RuleAddedData {
  id: string;
  tool: string;
  command: string;
  effect: Effect;
}

/** A rule of approvals was added. */
export interface RuleAddedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "approval.rule";
  data: RuleAddedData;
}

export interface RuleList {
  data: Array<RuleRow>;
}

export interface RulePreview {
  matched: number;
  looked_at: number;
  rule: RuleTarget;
}

/** A rule of approvals was revoked. */
export interface RuleRevokedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "approval.rule_revoked";
  data: IdData;
}

export interface RuleRow {
  id: string;
  tool: string;
  /** Only this command of the tool; empty: all. */
  command: string;
  created: number;
  /** Only for this chat, until the server restarts. */
  chat: string | null;
  /** The plugin that it is about: it does not hold for another of the same name. */
  plugin: string | null;
  effect: Effect;
  by: string;
  /** How often it decided. */
  hits: number;
  last_used: number | null;
}

export interface RuleTarget {
  tool: string;
  command: string;
  effect: Effect;
}

export interface RuleTrial {
  tool: string;
  arguments?: Record<string, unknown>;
}

export interface RuleTrialResult {
  asks: boolean;
  effect: "run" | "ask" | "deny";
  because: string;
  reason: string;
  rule: RuleRow | null;
}

export interface ScheduleDetail {
  /** Its state, or `proposed`, `late`, or `blocked` while an approval is pending. */
  condition: string;
  /** Seconds since its time. */
  late_s: number | null;
  /** `no_host`, `busy` or `storage`. */
  late_because: string | null;
  /** The approval that its run waits for. */
  approval: string | null;
  /** The masked texts of the arguments. */
  hidden: Array<MaskedText>;
  /** Whether this key has a conversation of that id. */
  chat_kept: boolean;
  id: string;
  tool: string;
  state: ScheduleState;
  caller: string;
  created: number;
  updated: number;
  /** Its next time. */
  due: number | null;
  /** Its next or last time, in the zone of the settings. */
  scheduled_for: string;
  at: string | null;
  cron: string | null;
  zone: string;
  arguments: Record<string, unknown>;
  maid: string | null;
  origin: string;
  /** The last 50, oldest first. */
  runs: Array<ScheduleRun>;
  /** The chat that made it. */
  chat: string | null;
  /** Nobody has approved its call yet: it asks when it runs. */
  proposed: boolean;
}

/** A schedule was added or changed, or a run began or ended. */
export interface ScheduleEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "schedule.added" | "schedule.changed" | "schedule.scheduled" | "schedule.paused" | "schedule.running" | "schedule.done" | "schedule.failed" | "schedule.cancelled" | "schedule.expired" | "schedule.interrupted";
  data: ScheduleEventData;
}

export interface ScheduleEventData {
  id: string;
  tool: string;
  state: ScheduleState;
  /** When it runs next. */
  due: number | null;
  /** The call of the run that ended, with the members below. */
  call_id?: string | null;
  at?: number | null;
  text?: string | null;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
  /** By how much the run missed its time. */
  late_s?: number | null;
  late_because?: LateReason | null;
}

export interface SchedulePage {
  data: Array<ScheduleRow>;
  next: string | null;
}

export interface SchedulePreview {
  /** The time in the format of a schedule. */
  at: string | null;
  /** With offset: one for a time, the next five for a cron expression. */
  times: Array<string>;
  in_seconds: number | null;
  zone: string;
  /** The current offset of the zone. */
  offset: string;
  /** A note about a daylight saving change, if any. */
  note: string;
  /** The code of the sentence beside it; missing if it has none. */
  note_code?: string;
  /** The parameters of the sentence. */
  note_params?: Record<string, string | number | boolean | NestedMessage>;
  problem: string | null;
  /** The code of the sentence beside it; missing if it has none. */
  problem_code?: string;
  /** The parameters of the sentence. */
  problem_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface ScheduleRow {
  /** Its state, or `proposed`, `late`, or `blocked` while an approval is pending. */
  condition: string;
  /** Seconds since its time. */
  late_s: number | null;
  /** `no_host`, `busy` or `storage`. */
  late_because: string | null;
  /** The approval that its run waits for. */
  approval: string | null;
  id: string;
  tool: string;
  state: ScheduleState;
  caller: string;
  created: number;
  updated: number;
  /** Its next time. */
  due: number | null;
  /** Its next or last time, in the zone of the settings. */
  scheduled_for: string;
  at: string | null;
  cron: string | null;
  zone: string;
  arguments: Record<string, unknown>;
  maid: string | null;
  origin: string;
  /** The last 50, oldest first. */
  runs: Array<ScheduleRun>;
  /** The chat that made it. */
  chat: string | null;
  /** Nobody has approved its call yet: it asks when it runs. */
  proposed: boolean;
}

export interface ScheduleRun {
  call_id: string;
  state: ScheduleState;
  text: string;
  at: number;
  /** By how much it missed its time. */
  late_s: number | null;
  late_because: LateReason | null;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
}

export type ScheduleState = "scheduled" | "paused" | "running" | "done" | "failed" | "cancelled" | "expired" | "interrupted";

export interface ScheduleTime {
  /** Phrases too: `tomorrow 9:00`, `in 1 hour`. */
  at?: string;
  cron?: string;
  /** All times of a cron expression within so many days, at most 200. */
  days?: number;
}

export type Scope = "chat" | "tools" | "approve" | "node" | "admin";

/** A message of the WebSocket `/ws`: `type` tells which data it has. */
export type ServerEvent = CallEvent | CallProgressEvent | TaskStartedEvent | TaskProgressEvent | TaskEndedEvent | TaskPushedEvent | ScheduleEvent | ApprovalRequestedEvent | ApprovalEndedEvent | RuleAddedEvent | RuleRevokedEvent | ConversationChangedEvent | OwnedEvent | PluginChangedEvent | HostEvent | HostRefusalEvent | GapEvent;

export interface ServerReview {
  name: string;
  file: string;
  command_line: string;
  /** What a program may reach, in plain words. */
  reach: Array<TextRow>;
  variables: Array<string>;
  changed: Array<string>;
  changed_messages: Array<MessageFields>;
  tools: Array<ServerTool>;
  /** Tools that cannot be offered, and why. */
  left_out: Record<string, string>;
  left_out_messages: Record<string, MessageFields>;
  fingerprint: string;
}

export interface ServerRow {
  name: string;
  state: "ready" | "running" | "disabled" | "needs_review" | "changed" | "failed";
  scope: "home" | "project";
  file: string;
  command_line: string;
  variables: Array<string>;
  env: Array<string>;
  headers: Array<string>;
  tools: Array<string>;
  waiting: Array<string>;
  waiting_messages: Array<MessageFields>;
  /** Tools that cannot be offered, and why. */
  left_out: Record<string, string>;
  left_out_messages: Record<string, MessageFields>;
}

export interface ServerRows {
  data: Array<ServerRow>;
  problems: Array<string>;
  problem_messages: Array<MessageFields>;
}

export interface ServerTool {
  name: string;
  title: string;
  description: string;
  /** The JSON Schema of its arguments. */
  schema: Record<string, unknown>;
  /** A JSON Schema; missing if it has none. */
  output_schema?: Record<string, unknown> | null;
  warnings: Array<string>;
  warning_messages: Array<MessageFields>;
}

export interface SessionInfo {
  key: string;
  scopes: Array<Scope>;
  /** The value for X-CSRF-Token; empty when a key was sent. */
  csrf: string;
  /** The number of the newest event; null for a key without access to events. */
  cursor: number | null;
}

export interface SettingGroup {
  id: string;
  title: string;
  /** In Chinese, or as `title` if there is no translation. */
  title_zh: string;
}

export interface SettingProblem {
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
  line: number;
  column: number;
}

export interface SettingProblems {
  error: ErrorFields;
  problems?: Array<SettingProblem>;
}

export interface SettingRow {
  name: string;
  value: string | boolean | number | Array<string> | Record<string, unknown> | null;
  default: string | boolean | number | Array<string> | Record<string, unknown> | null;
  source: "default" | "file" | "env";
  /** The environment variable that sets it, or empty. */
  variable: string;
  /** The environment variables that can set it. */
  variables: Array<string>;
  set: boolean;
  secret: boolean;
  /** Whether a change takes effect at once; else after a restart. */
  live: boolean;
  /** Whether this value is in effect. */
  holds: boolean;
  /** Its name for people. */
  title: string;
  /** In Chinese, or as `title` if there is no translation. */
  title_zh: string;
  description: string;
  /** In Chinese, or as `description` if there is no translation. */
  description_zh: string;
  kind: "text" | "number" | "bool" | "list" | "choice" | "table";
  choices: Array<string>;
  /** The `id` of one of `groups`. */
  group: string;
}

export interface SettingsChangeResult {
  /** Changed settings that are in effect. */
  now: Array<string>;
  /** Changed settings that take effect after a restart. */
  after_restart: Array<string>;
  text: string;
  diff: string;
  written: boolean;
}

export interface SettingsDetail {
  file: string;
  text: string;
  /** The command that starts this server again. */
  restart_command: string;
  /** In the order in which a page shows them. */
  groups: Array<SettingGroup>;
  settings: Array<SettingRow>;
  problems: Array<SettingProblem>;
}

export type Show = "summary" | "raw" | "hidden" | "events";

export interface SlowCall {
  error: CallError | null;
  id: string;
  tool: string;
  state: CallState;
  caller: string;
  started: number;
  /** Shortened in a list. */
  arguments: unknown;
  origin: string;
  maid: string | null;
  chat: string | null;
  /** The folder of the project in which it ran; empty for calls before this was noted. */
  project: string;
  /** The call that it repeats. */
  retry_of: string | null;
  /** The beginning of the result's text. */
  text: string | null;
  /** How long it ran, without the wait for a person. */
  time_ms: number | null;
  /** When its tool began. */
  ran: number | null;
  /** How long it waited for permission. */
  waited_ms: number | null;
  /** Of its envelope. */
  bytes_out: number | null;
  /** The ids of those that it began. */
  tasks: Array<string>;
  reason: string | null;
  /** When its files were put back. */
  undone: Undo | null;
  /** When it ended. */
  ended: number | null;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface SocketTicket {
  ticket: string;
  expires_in: number;
}

export interface SpecialAction {
  /** What the tool asks the client to do; missing if nothing. */
  _specialAction?: string;
  /** What the tool adds for that action. */
  payload?: unknown;
}

export interface StagedBackup {
  files: Array<string>;
  plugins: Array<string>;
  /** Records by kind, and events. */
  counts: Record<string, number>;
  bytes: number;
  /** Of the archive. */
  fingerprint: string;
  staged: string;
}

export interface StagedFile {
  path: string;
  size: number;
}

export interface StagedPluginResponse {
  /** The id for `allow` and `DELETE`. */
  staged: string;
  name: string;
  display_name: string;
  /** Translations by language; an empty text is untranslated. */
  translations: Record<string, TranslationRow>;
  source: string;
  proof: string;
  files: Array<StagedFile>;
  size: number;
  review: PluginReview | null;
  description: string;
  problems: Array<ProblemRow>;
  /** Dependencies that must be installed again. */
  left_out: Array<string>;
}

export interface Status {
  version: string;
  started: number;
  home: string;
  project: string;
  database: DatabaseStatus;
  disk: DiskStatus;
  queue: QueueStatus;
  events: EventStatus;
  websockets: number;
  upstream: UpstreamStatus;
  plugins: PluginStatus;
  mcp: McpStatus;
  confinement: ConfinementLevel;
  memory_bytes: number;
  first_run: boolean;
  /** The zone of times without an offset, such as those of schedules. */
  time_zone: string;
  /** What commands need to reach this home: ` --home DIR`, or empty. */
  home_option: string;
}

export interface TaskCount {
  by_state: Record<string, number>;
}

export interface TaskDetail {
  /** As the plugin last reported it; empty at first. */
  progress: TaskProgress;
  /** Late and repeated callbacks. */
  audit: Array<LateCallback>;
  pushes: Array<PushRow>;
  /** Whether this key has a conversation of that id. */
  chat_kept: boolean;
  callbacks: Array<CallbackRow>;
  /** The push in the manifest; null without one. */
  push: PushTarget | null;
  id: string;
  plugin: string;
  /** As the plugin names it. */
  task_id: string;
  state: TaskState;
  call_id: string;
  caller: string;
  created: number;
  updated: number;
  deadline: number;
  arguments: Record<string, unknown>;
  receipt: string;
  /** The body of the callback that ended it. */
  result: unknown;
  /** The reason of its end when there was no callback. */
  message: string;
  /** The chat of its call. */
  chat: string | null;
  /** The folder of the project of its call; empty for tasks before this was noted. */
  project: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface TaskEndedData {
  id: string;
  plugin: string;
  /** The id that the plugin gave. */
  task_id: string;
  call_id: string;
  state: TaskState;
  /** The body of the callback; null without one. */
  result: unknown;
  message: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
}

/** A task ended; with `task.push`, its result is pushed once more. */
export interface TaskEndedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "task.succeeded" | "task.failed" | "task.timed_out" | "task.cancelled" | "task.interrupted" | "task.push";
  data: TaskEndedData;
}

export interface TaskEventData {
  id: string;
  plugin: string;
  /** The id that the plugin gave. */
  task_id: string;
  call_id: string;
}

export interface TaskFailure {
  reason?: string;
}

export interface TaskPage {
  data: Array<TaskRow>;
  next: string | null;
}

export interface TaskProgress {
  /** From 0 to 1; null when it is not known. */
  done?: number | null;
  text?: string;
}

export interface TaskProgressData {
  id: string;
  plugin: string;
  /** The id that the plugin gave. */
  task_id: string;
  call_id: string;
  /** From 0 to 1; null when it is not known. */
  done: number | null;
  text: string;
}

/** A task says how far it is. */
export interface TaskProgressEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "task.progress";
  data: TaskProgressData;
}

export interface TaskPushedData {
  id: string;
  /** The number of the event that was pushed. */
  seq: number;
  at: number;
  target: string | null;
  type: string;
  /** Number of listeners. */
  clients: number;
  /** Number of listeners that took it. */
  reached: number;
  /** Whether it was pushed again on request. */
  again: boolean;
}

/** The result of a task was pushed to clients. */
export interface TaskPushedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "task.pushed";
  data: TaskPushedData;
}

export interface TaskRow {
  /** As the plugin last reported it; empty at first. */
  progress: TaskProgress;
  /** Late and repeated callbacks. */
  audit: Array<LateCallback>;
  pushes: Array<PushRow>;
  id: string;
  plugin: string;
  /** As the plugin names it. */
  task_id: string;
  state: TaskState;
  call_id: string;
  caller: string;
  created: number;
  updated: number;
  deadline: number;
  arguments: Record<string, unknown>;
  receipt: string;
  /** The body of the callback that ended it. */
  result: unknown;
  /** The reason of its end when there was no callback. */
  message: string;
  /** The chat of its call. */
  chat: string | null;
  /** The folder of the project of its call; empty for tasks before this was noted. */
  project: string;
  /** The code of the sentence beside it; missing if it has none. */
  message_code?: string;
  /** The parameters of the sentence. */
  message_params?: Record<string, string | number | boolean | NestedMessage>;
}

/** A task in the background began. */
export interface TaskStartedEvent {
  /** Its number: the cursor after which the next one comes. */
  seq: number;
  /** When it happened, in seconds since 1970. */
  at: number;
  type: "task.started";
  data: TaskEventData;
}

export type TaskState = "waiting_callback" | "succeeded" | "failed" | "timed_out" | "cancelled" | "interrupted";

export interface TextPart {
  type: "text";
  text: string;
}

export interface TextRow {
  text: string;
  /** The code of the sentence beside it; missing if it has none. */
  text_code?: string;
  /** The parameters of the sentence. */
  text_params?: Record<string, string | number | boolean | NestedMessage>;
}

export interface TimelineStep {
  at: number;
  /** `called`, `asked`, `unasked`, how the approval ended, `started`, `first_output`, `ended`, `callback`, `task_ended`, `undone`. */
  what: string;
  /** The caller that allowed, denied or undid it. */
  by: string | null;
  /** The task of the callback or end. */
  task: string | null;
  /** The result of the callback or the task. */
  result: string | null;
}

export interface TokenCount {
  input_tokens: number;
}

export interface ToolCount {
  tool: string;
  calls: number;
  errors: number;
  /** Cancelled or denied calls, which are no errors. */
  cancelled: number;
  p50_ms: number | null;
  max_ms: number | null;
}

export interface ToolExample {
  command: string;
  arguments: Record<string, unknown>;
}

export interface ToolRow {
  name: string;
  description: string;
  risk: "read" | "write" | "execute" | "network";
  /** A JSON Schema. */
  parameters: Record<string, unknown>;
  /** A JSON Schema of `data`, as an MCP server declares it. */
  output_schema: Record<string, unknown> | null;
  /** Other names of parameters. */
  synonyms: Record<string, string>;
  /** Other names of the tool. */
  aliases: Array<string>;
  timeout_s: number;
  /** The function definition in a chat. */
  native: FunctionDefinition;
  kind: "built-in" | "sync" | "async" | "mcp" | "remote";
  plugin: string | null;
  server: string | null;
  display_name: string;
  /** Translations by language; an empty text is untranslated. */
  translations: Record<string, TranslationRow>;
  version: string;
  commands: Array<string>;
  /** Its commands, if it has several, with their parameters. */
  forms: Array<CommandForm>;
  examples: Array<ToolExample>;
  hidden_characters: boolean;
  /** How far its program is confined; null without one. */
  confinement: ConfinementLevel | null;
}

export interface ToolRows {
  data: Array<ToolRow>;
}

export interface ToolSummaries {
  data: Array<ToolSummary>;
}

export interface ToolSummary {
  name: string;
  /** Its first line. */
  description: string;
  risk: "read" | "write" | "execute" | "network";
  kind: "built-in" | "sync" | "async" | "mcp" | "remote";
  plugin: string | null;
  server: string | null;
  display_name: string;
  /** As in `/v1/tools`, with first lines and without parameters. */
  translations: Record<string, TranslationRow>;
  version: string;
  commands: Array<string>;
  hidden_characters: boolean;
}

export interface ToolyardOptions {
  /** An id chosen by the client; the reply then survives a disconnect. */
  chat?: string;
  /** How the calls of tools are shown in the answer. */
  show?: Show | null;
  /** The tools that may run; null: all. */
  tools?: Array<string> | null;
  /** What the tools of this chat may do without asking. */
  mode?: Mode;
  /** How tools are offered to the model. */
  offer?: OfferMode | null;
}

export interface TranslationRow {
  display_name: string;
  description: string;
  /** The help of parameters, by name; `a.b` is `b` inside the parameter `a`. */
  parameters: Record<string, string>;
}

export interface Undo {
  at: number;
  by: string;
}

export interface UndoData {
  at: number;
  by: string;
}

export interface UndoneCall {
  ok: boolean;
  id: string;
  /** The paths that are as before the call again. */
  restored: Array<string>;
  /** The paths of the files and folders that the call had created. */
  deleted: Array<string>;
}

export interface UnfilledName {
  name: string;
  /** The requests whose system messages had it, since the server started. */
  requests: number;
}

export interface UpstreamStatus {
  url: string | null;
  others: Array<string>;
  /** By the name of the provider. */
  contacts: Record<string, ProviderContact>;
}

export interface UpstreamTest {
  /** Empty: the stored one. */
  url?: string;
  /** Empty: the stored one, if it was stored for the same origin. */
  key?: string;
  /** Changes as for `PATCH /v1/settings`, which are tested instead of stored. */
  values?: Record<string, string | boolean | number | Array<string> | Record<string, unknown> | null>;
  /** The provider to test, of the settings with `values`; empty: the default. */
  name?: string | null;
}

export interface UpstreamTestResult {
  ok: boolean;
  url: string;
  key: "given" | "stored" | "none";
  models: Array<string>;
  /** The protocol that it speaks; null if that cannot be said. */
  protocol: ProviderProtocol | null;
  error: string;
  /** The code of the sentence beside it; missing if it has none. */
  error_code?: string;
  /** The parameters of the sentence. */
  error_params?: Record<string, string | number | boolean | NestedMessage>;
  /** What to do about the error. */
  hint: string;
  /** The code of the sentence beside it; missing if it has none. */
  hint_code?: string;
  /** The parameters of the sentence. */
  hint_params?: Record<string, string | number | boolean | NestedMessage>;
  /** The HTTP status of the provider; null without an answer. */
  status: number | null;
  ms: number;
}

export interface VcpAnswer {
  /** What the tool asks the client to do; missing if nothing. */
  _specialAction?: string;
  /** What the tool adds for that action. */
  payload?: unknown;
  status: "success" | "error";
  /** Only when `status` is `error`. */
  error?: string;
  result: VcpResult;
}

export interface VcpResult {
  /** The parts for the model; those of a plugin as it printed them. */
  content: Array<unknown>;
  /** The data of the tool, and `message`. */
  details: Record<string, unknown>;
}

export interface VcpSchedule {
  schedule_time: string;
  task_id?: string;
  tool_call: VcpToolCall;
}

export interface VcpScheduleAnswer {
  status: "success";
  message: string;
  details: VcpScheduleDetails;
}

export interface VcpScheduleDetails {
  taskId: string;
  scheduledTime: string;
}

export interface VcpScheduleRefusal {
  status: "error";
  error: string;
}

export interface VcpToolCall {
  tool_name: string;
  arguments?: Record<string, unknown>;
}

export type Verdict = "taken" | "adapted" | "needs" | "left";

export interface VideoUrlPart {
  type: "video_url";
  video_url: MediaUrl;
}

export interface WaitingPlugin {
  name: string;
  /** The settings of the installation that it gets. */
  settings: Array<string>;
  /** Since it was approved. */
  changed: Array<TextRow>;
}

/** Every request of the API: what it takes, and what it answers with. */
export interface Operations {
  /** List the available tools, with everything about them; for a list to show there is `/v1/tool-summaries`. */
  "GET /v1/tools": {
    options: {};
    result: ToolRows;
  };
  /** Return one tool: its description for models and its parameters. */
  "GET /v1/tools/{name}": {
    options: {
      path: {
        name: string;
      };
    };
    result: ToolRow;
  };
  /** Call a tool; the body is its arguments. */
  "POST /v1/tools/{name}": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** The format of the result. */
        dialect?: "envelope" | "vcp" | "backend" | "openai" | "anthropic" | "mcp";
        /** The result as a model sees it, truncated if too long. */
        shown?: boolean;
        /** With the codes and the parameters of its sentences, in the envelope's `context`. */
        codes?: boolean;
        /** Overwrite files that were not read before; needs `admin`. */
        force?: boolean;
        /** `cli`: call as the command line of this project; needs `admin`. */
        caller?: string;
        /** The id of the call, `call_` and 32 hex digits; needs `admin`. */
        call_id?: string;
        /** The id of the call that this one repeats; ignored if you cannot see it. */
        retry_of?: string;
        /** The model's id of the call; for the dialects `openai`, `anthropic` and `backend`. */
        tool_call_id?: string;
      };
      body?: Record<string, unknown>;
    };
    result: Envelope | VcpAnswer | BackendMessage | OpenAiToolMessage | AnthropicToolResult | McpToolResult;
  };
  /** List the available tools without their schemas, and with the first lines of their texts. */
  "GET /v1/tool-summaries": {
    options: {};
    result: ToolSummaries;
  };
  /** List a folder of the project: folders first, at most 2,000 entries. Nothing outside it can be listed. */
  "GET /v1/project/folder": {
    options: {
      query?: {
        /** A folder, relative to the root. */
        path?: string;
        /** List the nearest folder above a path that is no folder. */
        nearest?: boolean;
      };
    };
    result: ProjectFolder;
  };
  /** List the files of a staged plugin. */
  "GET /v1/plugins/install/{staged}/files": {
    options: {
      path: {
        staged: string;
      };
    };
    result: PluginFileRows;
  };
  /** Return one file of a staged plugin; secrets are masked. */
  "GET /v1/plugins/install/{staged}/file": {
    options: {
      path: {
        staged: string;
      };
      query: {
        /** A path of the list of files. */
        path: string;
      };
    };
    result: PluginFileContent;
  };
  /** Stage a plugin from a zip in the body or from `source`, for review; nothing of it is run. */
  "POST /v1/plugins/install": {
    options: {
      body: {
        /** The absolute path of a folder or archive, or a git URL. */
        source: string;
      } | Blob;
    };
    result: StagedPluginResponse;
  };
  /** Install a staged plugin and approve exactly what was shown. */
  "POST /v1/plugins/install/{staged}/allow": {
    options: {
      path: {
        staged: string;
      };
      body: ReviewDecision;
    };
    result: PluginRow;
  };
  /** Discard a staged plugin. */
  "DELETE /v1/plugins/install/{staged}": {
    options: {
      path: {
        staged: string;
      };
    };
    result: OkResponse;
  };
  /** List every plugin, including those that cannot run. */
  "GET /v1/plugins": {
    options: {};
    result: PluginRows;
  };
  /** Return one plugin: its command, its description for models, its settings and problems. */
  "GET /v1/plugins/{name}": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
        lang?: Language;
      };
    };
    result: PluginDetail;
  };
  /** Uninstall a plugin from the home; its files are moved aside, and its data is kept. */
  "DELETE /v1/plugins/{name}": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
    };
    result: RemovedPlugin;
  };
  /** List the files of a plugin for its review, those that changed since it was approved first. */
  "GET /v1/plugins/{name}/files": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
    };
    result: PluginFileRows;
  };
  /** Return one file of a plugin, with the difference against the approved version; secrets are masked. */
  "GET /v1/plugins/{name}/file": {
    options: {
      path: {
        name: string;
      };
      query: {
        /** A path of the list of files. */
        path: string;
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
    };
    result: PluginFileContent;
  };
  /** Return its output on stderr, and on stdout besides its answers, since the server started; oldest first. */
  "GET /v1/plugins/{name}/logs": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
        /** `next` of the previous response. */
        after?: number;
      };
    };
    result: LogPage;
  };
  /** Approve this exact version of a plugin; 409 when it has changed since it was shown. */
  "POST /v1/plugins/{name}/allow": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
      body: ReviewDecision;
    };
    result: PluginRow;
  };
  /** Enable a disabled plugin; 409 when its manifest's file name keeps it disabled. */
  "POST /v1/plugins/{name}/enable": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
    };
    result: PluginRow;
  };
  /** Disable a plugin; running calls go on, and its files are untouched. */
  "POST /v1/plugins/{name}/disable": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
    };
    result: PluginRow;
  };
  /** Reload a plugin's files, even if they seem unchanged. */
  "POST /v1/plugins/{name}/reload": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
    };
    result: PluginRow;
  };
  /** Set or remove keys in the plugin's `config.env`; the rest of the file is unchanged. */
  "PUT /v1/plugins/{name}/config": {
    options: {
      path: {
        name: string;
      };
      query?: {
        /** Selects one of several plugins with the same name. */
        folder?: string;
      };
      body: PluginValues;
    };
    result: PluginConfigResult;
  };
  /**
   * Add a call to the plugin's `cases.json`, as a test for `toolyard plugin test`.
   *
   * The test expects the same status, and `text_contains` in the text of the result. Only for plugins in the plugin
   * folder of the home or the project; 409 when the call has not been answered by the plugin.
   */
  "POST /v1/plugins/{name}/cases": {
    options: {
      path: {
        name: string;
      };
      body: NewCase;
    };
    result: CreatedCase;
  };
  /** Return what becomes of each part of a VCPToolBox installation, and what its plugins would be allowed. */
  "GET /v1/installation": {
    options: {};
    result: InstallationReview;
  };
  /** Approve the plugins that wait, exactly as they were shown; 409 when one of them has changed since. */
  "POST /v1/installation/allow": {
    options: {
      body: InstallationDecision;
    };
    result: InstallationReview;
  };
  /** List the configured MCP servers, and problems of their configuration files. */
  "GET /v1/mcp/servers": {
    options: {};
    result: ServerRows;
  };
  /** Add servers to the home's `mcp.json`, all or none; none runs before it is approved. */
  "POST /v1/mcp/servers": {
    options: {
      body: McpServersFile;
    };
    result: ServerRows;
  };
  /** Return the server's tools for a review; it is started once unless it is running. */
  "POST /v1/mcp/servers/{name}/look": {
    options: {
      path: {
        name: string;
      };
    };
    result: ServerReview;
  };
  /** Approve exactly what was shown; 409 when it has changed since. */
  "POST /v1/mcp/servers/{name}/allow": {
    options: {
      path: {
        name: string;
      };
      body: ReviewDecision;
    };
    result: ServerRow;
  };
  /** Enable a disabled server. */
  "POST /v1/mcp/servers/{name}/enable": {
    options: {
      path: {
        name: string;
      };
    };
    result: ServerRow;
  };
  /** Stop and disable a server; its approval is kept. */
  "POST /v1/mcp/servers/{name}/disable": {
    options: {
      path: {
        name: string;
      };
    };
    result: ServerRow;
  };
  /** Remove a server from the home's `mcp.json`, with its approval. */
  "DELETE /v1/mcp/servers/{name}": {
    options: {
      path: {
        name: string;
      };
    };
    result: RemovedServer;
  };
  /** List every setting: its value, its source, and whether it is in effect. */
  "GET /v1/settings": {
    options: {};
    result: SettingsDetail;
  };
  /** Replace `config.toml`; 409 when it has changed since it was read. */
  "PUT /v1/settings": {
    options: {
      query?: {
        /** Only validate, and return what would change. */
        check?: boolean;
      };
      body: NewSettings;
    };
    result: SettingsChangeResult;
  };
  /** Set or remove single settings; the rest of the file is unchanged, comments included. */
  "PATCH /v1/settings": {
    options: {
      query?: {
        /** Only validate, and return what would change. */
        check?: boolean;
      };
      body: NewValues;
    };
    result: SettingsChangeResult;
  };
  /** List the models of a provider, and find out its protocol; `error` is its own message. Nothing is stored. */
  "POST /v1/upstream/test": {
    options: {
      body: UpstreamTest;
    };
    result: UpstreamTestResult;
  };
  /** Mark the setup as finished or dismissed. */
  "POST /v1/setup/done": {
    options: {};
    result: OkResponse;
  };
  /** Return version, paths, storage, disk, queue, events, plugins and memory. */
  "GET /v1/status": {
    options: {};
    result: Status;
  };
  /** List decisions and runs, newest first. */
  "GET /v1/audit": {
    options: {
      query?: {
        /** Maximum number of items. */
        limit?: number;
        /** Unix time. */
        since?: number | null;
        tool?: string | null;
        plugin?: string | null;
        /** A caller, such as `key:owner` or `cli`. */
        by?: string | null;
        /** An action such as `plugin.allowed`, or its first part. */
        action?: string | null;
        /** Somewhere in the entry, in any case. */
        text?: string | null;
        /** Only these entries. */
        only?: "decisions" | "runs" | null;
        /** `next` of the previous page. */
        after?: string;
      };
    };
    result: AuditPage;
  };
  /** Run the checks of `toolyard doctor`; each problem says how to fix it. */
  "GET /v1/doctor": {
    options: {};
    result: CheckRows;
  };
  /** Return the state, settings and keys of the home as one archive, like `toolyard backup`. */
  "POST /v1/backup": {
    options: {};
    result: Blob;
  };
  /** Return the backup that the next start restores, if any. */
  "GET /v1/backup/restore": {
    options: {};
    result: PendingRestore;
  };
  /** Check the archive in the body and return its contents; nothing is changed. */
  "POST /v1/backup/restore": {
    options: {
      body: Blob;
    };
    result: StagedBackup;
  };
  /** Cancel the pending restore. */
  "DELETE /v1/backup/restore": {
    options: {};
    result: OkResponse;
  };
  /** Restore exactly what was shown at the next start of the server. */
  "POST /v1/backup/restore/{staged}/confirm": {
    options: {
      path: {
        staged: string;
      };
      body: BackupConfirmation;
    };
    result: PendingRestore;
  };
  /** Discard the staged backup. */
  "DELETE /v1/backup/restore/{staged}": {
    options: {
      path: {
        staged: string;
      };
    };
    result: OkResponse;
  };
  /** Run the tool requests in the text; the response has VCPToolBox's shape. */
  "POST /v1/human/tool": {
    options: {
      body: string;
    };
    result: HumanResult | HumanError | HumanSchedule | Array<HumanResult | HumanError | HumanSchedule>;
  };
  /** List tasks, newest first. */
  "GET /v1/tasks": {
    options: {
      query?: {
        /** Maximum number of items. */
        limit?: number;
        state?: Array<TaskState>;
        plugin?: string | null;
        /** `next` of the previous page. */
        after?: string;
      };
    };
    result: TaskPage;
  };
  /** Return the number of tasks in each state. */
  "GET /v1/tasks/count": {
    options: {};
    result: TaskCount;
  };
  /** Return one task by its id or `plugin::id`; with `wait`, when it has changed or after that time. */
  "GET /v1/tasks/{id}": {
    options: {
      path: {
        id: string;
      };
      query?: {
        /** Seconds to wait for a change. */
        wait?: number;
      };
    };
    result: TaskDetail;
  };
  /** Cancel a running task. */
  "POST /v1/tasks/{id}/cancel": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Mark a running task as failed. */
  "POST /v1/tasks/{id}/fail": {
    options: {
      path: {
        id: string;
      };
      body?: TaskFailure | null;
    };
    result: ChangedRecord;
  };
  /** Push the result of a task again, as when its callback arrived. */
  "POST /v1/tasks/{id}/push": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Call the plugin of a task again with the same arguments; returns the envelope of the new call. */
  "POST /v1/tasks/{id}/retry": {
    options: {
      path: {
        id: string;
      };
    };
    result: Envelope;
  };
  /** List schedules, newest first. */
  "GET /v1/schedules": {
    options: {
      query?: {
        /** Maximum number of items. */
        limit?: number;
        state?: Array<ScheduleState>;
        tool?: string | null;
        /** `next` of the previous page. */
        after?: string;
      };
    };
    result: SchedulePage;
  };
  /** Schedule a call, once at a time or repeatedly with a cron expression. */
  "POST /v1/schedules": {
    options: {
      body: NewSchedule;
    };
    result: ScheduleDetail;
  };
  /** Return the times that a time or cron expression denotes. */
  "POST /v1/schedules/preview": {
    options: {
      body: ScheduleTime;
    };
    result: SchedulePreview;
  };
  /** Return one schedule with its runs. */
  "GET /v1/schedules/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: ScheduleDetail;
  };
  /** Change the call or the time of a scheduled or paused schedule. */
  "PUT /v1/schedules/{id}": {
    options: {
      path: {
        id: string;
      };
      body: NewSchedule;
    };
    result: ScheduleDetail;
  };
  /** Return the unmasked arguments; requires the scope `admin`. */
  "GET /v1/schedules/{id}/arguments": {
    options: {
      path: {
        id: string;
      };
    };
    result: RevealedArguments;
  };
  /** Approve the call of a proposed schedule to run without asking; requires the scope `approve`. */
  "POST /v1/schedules/{id}/allow": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Pause a schedule. */
  "POST /v1/schedules/{id}/pause": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Resume a paused schedule; 400 when its time has passed. */
  "POST /v1/schedules/{id}/resume": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Cancel a schedule permanently. */
  "POST /v1/schedules/{id}/cancel": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Run a scheduled or expired schedule now. Its result is stored with it. */
  "POST /v1/schedules/{id}/run": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Schedule a call, in VCPToolBox's format. */
  "POST /v1/schedule_task": {
    options: {
      body: VcpSchedule;
    };
    result: VcpScheduleAnswer;
  };
  /** List the rules in effect; one that denies beats one that allows. */
  "GET /v1/approvals/rules": {
    options: {};
    result: RuleList;
  };
  /** Add a rule for a tool, or for one of its commands. */
  "POST /v1/approvals/rules": {
    options: {
      body: NewRule;
    };
    result: RuleRow;
  };
  /** Return how many of the last 1,000 calls a rule would match. */
  "GET /v1/approvals/rules/preview": {
    options: {
      query: {
        tool: string;
        command?: string;
      };
    };
    result: RulePreview;
  };
  /** Revoke a rule. */
  "DELETE /v1/approvals/rules/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Return what would happen to such a call from a chat. Nothing runs, and nobody is asked. */
  "POST /v1/approvals/test": {
    options: {
      body: RuleTrial;
    };
    result: RuleTrialResult;
  };
  /** List approvals, newest first, with the beginning of their arguments. */
  "GET /v1/approvals": {
    options: {
      query?: {
        /** Maximum number of items. */
        limit?: number;
        state?: Array<ApprovalState>;
        /** `next` of the previous page. */
        after?: string;
      };
    };
    result: ApprovalPage;
  };
  /** Answer several approvals at once. Allowing requires that all of them are for the same call. */
  "POST /v1/approvals/bulk": {
    options: {
      body: BulkDecision;
    };
    result: BulkDecisionResult;
  };
  /** Return one approval with its full arguments and a preview of its changes; secrets are masked. */
  "GET /v1/approvals/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: ApprovalDetail;
  };
  /** Return the unmasked arguments of a waiting call; requires the scope `admin`. */
  "GET /v1/approvals/{id}/arguments": {
    options: {
      path: {
        id: string;
      };
    };
    result: RevealedArguments;
  };
  /** Approve a waiting call. */
  "POST /v1/approvals/{id}/allow": {
    options: {
      path: {
        id: string;
      };
      body?: ApprovalDecision | null;
    };
    result: AnsweredApproval;
  };
  /** Deny a waiting call. */
  "POST /v1/approvals/{id}/deny": {
    options: {
      path: {
        id: string;
      };
      body?: ApprovalDecision | null;
    };
    result: AnsweredApproval;
  };
  /** List calls, newest first. */
  "GET /v1/calls": {
    options: {
      query?: {
        /** Maximum number of items. */
        limit?: number;
        state?: Array<CallState>;
        /** Calls that ended with one of these error codes or reasons. */
        code?: Array<ErrorCode | Reason>;
        tool?: string | null;
        /** Calls of this caller; those of others need `admin`. */
        caller?: string | null;
        /** Words in the arguments or the result. */
        search?: string;
        /** Seconds since the epoch. */
        since?: number | null;
        /** Calls that began before it, in seconds since the epoch. */
        before?: number | null;
        /** `next` of the previous page. */
        after?: string;
      };
    };
    result: CallPage;
  };
  /** Return statistics of the newest calls, at most 10,000: how they ended and how long they ran. */
  "GET /v1/calls/stats": {
    options: {
      query?: {
        /** Seconds since the epoch; default: one day ago. */
        since?: number | null;
      };
    };
    result: CallStatistics;
  };
  /** Return one call with its arguments and full result; secrets are masked. */
  "GET /v1/calls/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: CallDetail;
  };
  /**
   * Return the files that a call wrote, before and after it, while they are kept; secrets are masked.
   *
   * At most 50 files, 512 KiB of each and 4 MiB in total.
   */
  "GET /v1/calls/{id}/files": {
    options: {
      path: {
        id: string;
      };
    };
    result: CallFiles;
  };
  /** Return an image, audio or video of the result, by its place in the `content` of `data`, while it is kept. */
  "GET /v1/calls/{id}/media/{number}": {
    options: {
      path: {
        id: string;
        number: number;
      };
    };
    result: Blob;
  };
  /** Cancel a running call. */
  "POST /v1/calls/{id}/cancel": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Restore the files that a call overwrote or deleted and delete those that it created, unless changed since. */
  "POST /v1/calls/{id}/undo": {
    options: {
      path: {
        id: string;
      };
    };
    result: UndoneCall;
  };
  /** Render the text of a model. For an invalid structured reply `ok` is false, with the error and the text. */
  "POST /v1/reply/render": {
    options: {
      body: ReplyRequest;
    };
    result: RenderedReply;
  };
  /** Fetch a remote image, audio or video file of a reply, if it is of that type. */
  "POST /v1/reply/media": {
    options: {
      body: RemoteMediaRequest;
    };
    result: Blob;
  };
  /**
   * List the conversations of this key: the pinned ones first, then those whose messages changed last.
   *
   * A search looks at the title and at the messages of all branches, and answers with the text around a hit, the
   * last active first. A word also finds longer ones that begin with it.
   */
  "GET /v1/conversations": {
    options: {
      query?: {
        /** Maximum number of items. */
        limit?: number;
        /** Words in the title or the messages. */
        search?: string;
        /** `next` of the previous page. */
        after?: string;
      };
    };
    result: ConversationPage;
  };
  /** Return one conversation with its messages. */
  "GET /v1/conversations/{id}": {
    options: {
      path: {
        /** Chosen by the client. */
        id: string;
      };
    };
    result: ConversationDetail;
  };
  /** Store a conversation; 409 when another client has changed it since `version`. */
  "PUT /v1/conversations/{id}": {
    options: {
      path: {
        /** Chosen by the client. */
        id: string;
      };
      body: ConversationDraft;
    };
    result: ConversationRow;
  };
  /** Rename a conversation, pin it, or open another branch of it. The messages stay as they are. */
  "PATCH /v1/conversations/{id}": {
    options: {
      path: {
        /** Chosen by the client. */
        id: string;
      };
      body: ConversationChanges;
    };
    result: ConversationRow;
  };
  /** Delete a conversation. */
  "DELETE /v1/conversations/{id}": {
    options: {
      path: {
        /** Chosen by the client. */
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** List the assistants of this key by name. */
  "GET /v1/assistants": {
    options: {};
    result: AssistantList;
  };
  /** Store an assistant: a name, and the options of the chats that are started with it. */
  "POST /v1/assistants": {
    options: {
      body: AssistantDraft;
    };
    result: AssistantRow;
  };
  /** Replace an assistant; chats that were started with it keep their options. */
  "PUT /v1/assistants/{id}": {
    options: {
      path: {
        id: string;
      };
      body: AssistantDraft;
    };
    result: AssistantRow;
  };
  /** Delete an assistant. */
  "DELETE /v1/assistants/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Return the text of an uploaded file or PDF, for a chat message; nothing is stored. */
  "POST /v1/attachments": {
    options: {
      query: {
        /** Of the file. */
        name: string;
      };
      body: Blob;
    };
    result: AttachmentContent;
  };
  /** Find files of the project by words in their paths, best matches first. */
  "GET /v1/project/files": {
    options: {
      query?: {
        /** Words in the path; none: the last changed. */
        search?: string;
        /** Maximum number of items. */
        limit?: number;
      };
    };
    result: ProjectFileList;
  };
  /** Return a file of the project for a chat message: its text, the text of a PDF, or an image. */
  "GET /v1/project/attachment": {
    options: {
      query: {
        path: string;
      };
    };
    result: AttachmentContent;
  };
  /** Take the result of a task from its plugin. A repeat changes nothing; a different result gets 409. */
  "POST /plugin-callback/~{token}/{plugin}/{id}": {
    options: {
      path: {
        token: string;
        plugin: string;
        id: string;
      };
      body: Record<string, unknown>;
    };
    result: CallbackAnswer;
  };
  /** List the keys, without their secrets. */
  "GET /v1/keys": {
    options: {};
    result: KeyList;
  };
  /** Create a key with the given scopes. Its secret is in this response only. */
  "POST /v1/keys": {
    options: {
      body: NewKey;
    };
    result: CreatedKey;
  };
  /** Revoke a key. */
  "DELETE /v1/keys/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChangedRecord;
  };
  /** Return the login page; a browser that is signed in is redirected at once. */
  "GET /login": {
    options: {
      query?: {
        link?: string;
        next?: string;
        lang?: string;
      };
    };
    result: string;
  };
  /** Sign a browser in with a one-time link or a key. */
  "POST /login": {
    options: {
      body?: URLSearchParams;
    };
    result: unknown;
  };
  /** End the session; its cookie is no longer valid. */
  "POST /logout": {
    options: {};
    result: OkResponse;
  };
  /** Return the current key, its scopes, and the CSRF token that a browser session needs for changes. */
  "GET /v1/session": {
    options: {};
    result: SessionInfo;
  };
  /** Create a short-lived ticket for one WebSocket. */
  "POST /ws-ticket": {
    options: {};
    result: SocketTicket;
  };
  /** Return 200 while the server is alive. */
  "GET /healthz": {
    options: {};
    result: Health;
  };
  /** Return 200 when the server accepts work, else 503; `?verbose` adds every limit. */
  "GET /readyz": {
    options: {};
    result: Readiness;
  };
  /** Return counters and gauges in Prometheus text format. */
  "GET /metrics": {
    options: {};
    result: string;
  };
  /** Return an image, audio or video file of a chat by its signed link; ranges are supported. */
  "GET /media/{name}": {
    options: {
      path: {
        name: string;
      };
      query?: {
        expires?: string;
        signature?: string;
      };
    };
    result: Blob;
  };
  /** List the connected nodes and their tools. */
  "GET /v1/nodes": {
    options: {};
    result: NodeList;
  };
  /** Allow the tools of a node as they are now, where `node_review` is set. */
  "POST /v1/nodes/{node_id}/allow": {
    options: {
      path: {
        node_id: string;
      };
    };
    result: NodeRow;
  };
  /** Return the console. */
  "GET /": {
    options: {};
    result: string;
  };
  /** Return a page that lists every route. */
  "GET /docs": {
    options: {};
    result: string;
  };
  /** Return a page of the documentation, such as `configuration`. */
  "GET /docs/{topic}": {
    options: {
      path: {
        topic: string;
      };
      query?: {
        /** `zh`: the translation, if there is one. */
        lang?: "en" | "zh";
      };
    };
    result: string;
  };
  /** Complete a chat; tools that the model calls are run on the server. */
  "POST /v1/chat/completions": {
    options: {
      body: ChatRequest;
    };
    result: ChatCompletion;
  };
  /** Complete a chat for clients of VCPToolBox, with tool requests and information blocks in the text. */
  "POST /v1/chatvcp/completions": {
    options: {
      body: ChatRequest;
    };
    result: ChatCompletion;
  };
  /** Stop a running turn, its model and its tools, by `requestId` (or `messageId`) or by `chat`. */
  "POST /v1/interrupt": {
    options: {
      body: InterruptRequest;
    };
    result: InterruptResult;
  };
  /** Return what was sent to the model in each round, and the tool calls; secrets are masked. */
  "GET /v1/chats/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: ChatDetail;
  };
  /** Stream the events of a chat after the cursor until its reply has ended. */
  "GET /v1/chats/{id}/stream": {
    options: {
      path: {
        id: string;
      };
      query?: {
        /** The `id` of the last event seen. */
        cursor?: number;
      };
    };
    result: Response;
  };
  /** Create a response; tools that the model calls are run on the server. */
  "POST /v1/responses": {
    options: {
      body: ResponsesRequest;
    };
    result: ResponseObject;
  };
  /** Estimate the tokens of a request, rather too high than too low. */
  "POST /v1/responses/input_tokens": {
    options: {
      body: ResponsesRequest;
    };
    result: InputTokens;
  };
  /** Replace a conversation by a summary, which the model of the request writes. */
  "POST /v1/responses/compact": {
    options: {
      body: ResponsesRequest;
    };
    result: CompactedResponse;
  };
  /** Return a stored response of this key, or the events of one in the background. */
  "GET /v1/responses/{id}": {
    options: {
      path: {
        id: string;
      };
      query?: {
        /** Its events, of one in the background. */
        stream?: boolean;
        /** The number of the last event seen. */
        starting_after?: number;
      };
    };
    result: ResponseObject;
  };
  /** Delete a stored response; one in the background is stopped. */
  "DELETE /v1/responses/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: DeletedResponse;
  };
  /** Stop a response in the background, with its model and its tools. */
  "POST /v1/responses/{id}/cancel": {
    options: {
      path: {
        id: string;
      };
    };
    result: ResponseObject;
  };
  /** List the input of a stored response. */
  "GET /v1/responses/{id}/input_items": {
    options: {
      path: {
        id: string;
      };
      query?: {
        limit?: number;
        order?: "asc" | "desc";
        /** The id of the last item of the page before. */
        after?: string;
      };
    };
    result: InputItemList;
  };
  /** Complete a chat for a client of Anthropic's Messages; tools that the model calls are run on the server. */
  "POST /v1/messages": {
    options: {
      body: MessagesBody;
    };
    result: MessagesAnswer;
  };
  /**
   * Count the tokens of a request. With `X-Toolyard-Estimate: true` they are estimated: the provider has no
   * count.
   */
  "POST /v1/messages/count_tokens": {
    options: {
      body: MessagesBody;
    };
    result: TokenCount;
  };
  /**
   * List the models of every provider, the built-in guide, and the assistants of this key as `assistant/NAME`.
   *
   * The models of a provider that does not answer have `"available": false`, and `unavailable` names it. A request
   * with `anthropic-version` gets them in Anthropic's shape, page by page.
   */
  "GET /v1/models": {
    options: {
      query?: {
        /** Of a page, in Anthropic's shape. */
        limit?: number;
        after_id?: string;
        before_id?: string;
      };
    };
    result: ModelList | MessagesModelList;
  };
  /** Return one model by its id, which may contain slashes, or by `PROVIDER/ID`. */
  "GET /v1/models/{id}": {
    options: {
      path: {
        id: string;
      };
    };
    result: Model | MessagesModel;
  };
  /** List the prompts, variables and assistants in files, and the names in system messages that nothing fills. */
  "GET /v1/prompts": {
    options: {};
    result: PromptList;
  };
  /** Return what a model would get of a system message, with all that it names. */
  "POST /v1/prompts/fill": {
    options: {
      body: PromptDraft;
    };
    result: FilledText;
  };
  /** Create embeddings at the provider of the model. */
  "POST /v1/embeddings": {
    options: {
      body: {
        model?: string;
        input: string | Array<unknown>;
        [member: string]: unknown;
      };
    };
    result: unknown;
  };
  /** Complete a text with OpenAI's legacy API at the provider of the model; no tools run. */
  "POST /v1/completions": {
    options: {
      body: {
        model?: string;
        prompt: string | Array<unknown>;
        [member: string]: unknown;
      };
    };
    result: unknown;
  };
  /** Classify text or images with a moderation model at its provider. */
  "POST /v1/moderations": {
    options: {
      body: {
        model?: string;
        input: string | Array<unknown>;
        [member: string]: unknown;
      };
    };
    result: unknown;
  };
  /** Images: `generations`, `edits`, `variations` or another operation of the model's provider. */
  "POST /v1/images/{operation}": {
    options: {
      path: {
        operation: string;
      };
      body: {
        model?: string;
        [member: string]: unknown;
      } | FormData;
    };
    result: unknown;
  };
  /** Audio: `speech`, `transcriptions`, `translations` or another operation of the model's provider. */
  "POST /v1/audio/{operation}": {
    options: {
      path: {
        operation: string;
      };
      body: {
        model?: string;
        [member: string]: unknown;
      } | FormData;
    };
    result: unknown;
  };
  /** Return an image that a plugin published. The key in the URL is the only credential. */
  "GET /pw={key}/images/{path}": {
    options: {
      path: {
        key: string;
        path: string;
      };
    };
    result: Blob;
  };
  /** Return a file that a plugin published. The key in the URL is the only credential. */
  "GET /pw={key}/files/{path}": {
    options: {
      path: {
        key: string;
        path: string;
      };
    };
    result: Blob;
  };
  /** Stream one `backend_only` message per finished call, failures included. */
  "GET /v1/backend/stream": {
    options: {
      query?: {
        /** The id of the last message read; without it, only new messages. */
        cursor?: string;
      };
    };
    result: Response;
  };
  /** Create links that sign a browser in once: on this machine, and on others if they reach it. */
  "POST /v1/login-links": {
    options: {
      body?: NewLoginLinks | null;
    };
    result: LoginLinks;
  };
}

/** The result of a call in each dialect. */
export interface DialectResults {
  envelope: Envelope;
  vcp: VcpAnswer;
  backend: BackendMessage;
  openai: OpenAiToolMessage;
  anthropic: AnthropicToolResult;
  mcp: McpToolResult;
}

/** How to reach a server. */
export interface ToolyardSettings {
  /** Its address, `http://127.0.0.1:6005` by default. */
  url?: string | undefined;
  /** A key, as `toolyard config show --key` prints it. */
  key: string;
  /** Another implementation of `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Another implementation of `WebSocket`, such as that of the package `ws`; Node has its own since version 22. */
  WebSocket?: EventSocketConstructor | undefined;
}

/** What is used of a `WebSocket`. Implementations disagree about the types of events, so these are left open. */
export interface EventSocket {
  onmessage: any;
  onclose: any;
  close(): void;
}

export type EventSocketConstructor = new (url: string, protocols: string[]) => EventSocket;

/** What every request may have besides its own options. */
export interface RequestSettings {
  signal?: AbortSignal | undefined;
  headers?: Record<string, string> | undefined;
}

/** The options of a call. */
export interface CallSettings<D extends keyof DialectResults> extends RequestSettings {
  dialect?: D | undefined;
  /** The result as a model sees it, not the full one. */
  shown?: boolean | undefined;
  /** The model's id of the call, for the dialects that name it. */
  toolCallId?: string | undefined;
  /** A name by which the call can be sent again without running twice. */
  idempotencyKey?: string | undefined;
}

/** A message of the back-end stream, and the cursor after which to continue. */
export interface BackendEvent {
  cursor: string;
  message: BackendMessage | { type: "gap" };
}

type Arguments<O extends keyof Operations> =
  {} extends Operations[O]["options"]
    ? [options?: Operations[O]["options"] & RequestSettings]
    : [options: Operations[O]["options"] & RequestSettings];

interface RawOptions extends RequestSettings {
  path?: object;
  query?: object;
  body?: unknown;
}

interface ServerSentEvent {
  id: string;
  name: string;
  data: string;
}

const MAX_QUEUED_EVENTS = 1000; // that nobody has taken; beyond it the connection is closed, and resumed later
const MAX_PAUSE_MS = 30_000;
const FORBIDDEN = 1008; // the close code of a client that may not continue

/** An error that the server answered with. */
export class ToolyardError extends Error {
  /** The HTTP status; 0 for an error inside a stream. */
  readonly status: number;
  /** For programs, such as `not_found`. */
  readonly code: string;
  /** The code of the sentence, to translate it. */
  readonly messageCode: string;

  constructor(message: string, status: number, code: string, messageCode = "") {
    super(message);
    this.name = "ToolyardError";
    this.status = status;
    this.code = code;
    this.messageCode = messageCode;
  }
}

/** A server. */
export class Toolyard {
  readonly url: string;
  readonly #key: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #WebSocket: EventSocketConstructor | undefined;

  constructor(settings: ToolyardSettings) {
    this.url = (settings.url ?? "http://127.0.0.1:6005").replace(/\/+$/, "");
    this.#key = settings.key;
    this.#fetch = settings.fetch ?? globalThis.fetch.bind(globalThis);
    this.#WebSocket = settings.WebSocket ?? (globalThis as { WebSocket?: EventSocketConstructor }).WebSocket;
  }

  /** Send any request of the API, such as `request("GET /v1/tools/{name}", { path: { name: "LS" } })`. */
  async request<O extends keyof Operations>(operation: O, ...[options]: Arguments<O>): Promise<Operations[O]["result"]> {
    const response = await this.#send(operation, options ?? {});
    const kind = response.headers.get("content-type") ?? "";
    if (kind.startsWith("application/json")) return (await response.json()) as Operations[O]["result"];
    if (kind.startsWith("text/event-stream")) return response as unknown as Operations[O]["result"];
    const body = kind.startsWith("text/") ? await response.text() : await response.blob();
    return body as unknown as Operations[O]["result"];
  }

  /** Call a tool. A failed tool is an envelope with an `error`, and no exception. */
  async call<D extends keyof DialectResults = "envelope">(
    tool: string,
    args: Record<string, unknown> = {},
    options: CallSettings<D> = {},
  ): Promise<DialectResults[D]> {
    const { dialect, shown, toolCallId, idempotencyKey, signal, headers } = options;
    const response = await this.#send("POST /v1/tools/{name}", {
      path: { name: tool },
      query: { dialect, shown, tool_call_id: toolCallId },
      body: args,
      headers: idempotencyKey === undefined ? headers : { ...headers, "Idempotency-Key": idempotencyKey },
      signal,
    });
    return (await response.json()) as DialectResults[D];
  }

  /** Complete a chat; the server runs the tools that the model calls. */
  async chat(request: ChatRequest, settings: RequestSettings = {}): Promise<ChatCompletion> {
    return this.request("POST /v1/chat/completions", { body: { ...request, stream: false }, ...settings });
  }

  /** Complete a chat, piece by piece. */
  async *streamChat(request: ChatRequest, settings: RequestSettings = {}): AsyncGenerator<ChatCompletionChunk> {
    const body = { ...request, stream: true };
    yield* readChunks(await this.#send("POST /v1/chat/completions", { body, ...settings }));
  }

  /** Follow the running reply of a chat that has an id, from its beginning or after a cursor. */
  async *followChat(
    id: string,
    settings: { cursor?: number | undefined } & RequestSettings = {},
  ): AsyncGenerator<ChatCompletionChunk> {
    const { cursor, ...rest } = settings;
    yield* readChunks(await this.#send("GET /v1/chats/{id}/stream", { path: { id }, query: { cursor }, ...rest }));
  }

  /** Follow the calls that end, as messages for a back end. */
  async *backendMessages(settings: { cursor?: string | undefined } & RequestSettings = {}): AsyncGenerator<BackendEvent> {
    const { cursor, ...rest } = settings;
    const response = await this.#send("GET /v1/backend/stream", { query: { cursor }, ...rest });
    for await (const event of readEvents(response)) {
      yield { cursor: event.id, message: JSON.parse(event.data) as BackendEvent["message"] };
    }
  }

  /**
   * Follow the events of the server: new ones, or all after a cursor. A lost connection is made anew where it broke off,
   * so that each event comes once; a `gap` says that events are no longer stored. It ends when `signal` is aborted.
   */
  async *events(settings: { cursor?: number; signal?: AbortSignal } = {}): AsyncGenerator<ServerEvent> {
    const { signal } = settings;
    if (this.#WebSocket === undefined) throw new TypeError("there is no WebSocket here: pass one to new Toolyard()");
    let cursor = settings.cursor ?? (await this.request("GET /v1/session", { signal })).cursor ?? undefined;
    for (let failures = 0; !signal?.aborted; ) {
      try {
        for await (const event of this.#connect(this.#WebSocket, cursor, signal)) {
          failures = 0;
          cursor = event.seq;
          yield event;
          if (signal?.aborted) return; // more may have arrived meanwhile
        }
      } catch (error) {
        if (error instanceof ToolyardError && error.status < 500 && error.status !== 429) throw error;
        if (signal?.aborted) return;
      }
      await pause(Math.min(MAX_PAUSE_MS, 250 * 2 ** failures++) * (0.5 + Math.random() / 2), signal);
    }
  }

  async *#connect(
    Socket: EventSocketConstructor,
    cursor: number | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ServerEvent> {
    const { ticket } = await this.request("POST /ws-ticket", { signal });
    const query = cursor === undefined ? "" : `?cursor=${cursor}`;
    const socket = new Socket(`${this.url.replace(/^http/, "ws")}/ws${query}`, ["bearer", ticket]);
    const queue: ServerEvent[] = [];
    let closed: { code: number; reason: string } | undefined;
    let wake = (): void => {};
    const abort = (): void => socket.close();
    socket.onmessage = (message: { data: string }) => {
      if (queue.length >= MAX_QUEUED_EVENTS) return socket.close();
      queue.push(JSON.parse(message.data) as ServerEvent);
      wake();
    };
    socket.onclose = (event: { code: number; reason: string }) => {
      closed = event;
      wake();
    };
    signal?.addEventListener("abort", abort);
    try {
      for (;;) {
        for (let event = queue.shift(); event !== undefined; event = queue.shift()) yield event;
        if (closed !== undefined) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (queue.length > 0 || closed !== undefined) resolve();
        });
      }
      if (closed.code === FORBIDDEN) throw new ToolyardError(closed.reason || "the session has ended", 403, "closed");
    } finally {
      signal?.removeEventListener("abort", abort);
      socket.close();
    }
  }

  async #send(operation: keyof Operations, options: RawOptions): Promise<Response> {
    const [method = "GET", template = "/"] = operation.split(" ");
    const parts = (options.path ?? {}) as Record<string, unknown>;
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name])));
    const query = writeQuery(options.query ?? {});
    const headers: Record<string, string> = { ...options.headers, Authorization: `Bearer ${this.#key}` };
    const isRaw = ["Blob", "FormData", "String", "URLSearchParams"].includes(
      Object.prototype.toString.call(options.body).slice(8, -1),
    );
    if (options.body !== undefined && !isRaw) headers["Content-Type"] = "application/json";
    const response = await this.#fetch(this.url + path + query, {
      method,
      headers,
      redirect: "manual",
      ...(options.signal ? { signal: options.signal } : {}),
      ...(options.body === undefined ? {} : { body: isRaw ? (options.body as string) : JSON.stringify(options.body) }),
    });
    if (response.status >= 400) throw await readError(response);
    return response;
  }
}

function writeQuery(query: object): string {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][]) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one !== undefined && one !== null) written.append(name, String(one));
    }
  }
  return written.size > 0 ? `?${written.toString()}` : "";
}

async function readError(response: Response): Promise<ToolyardError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as ErrorBody;
    return new ToolyardError(error.message, response.status, error.code ?? "", error.message_code);
  } catch {
    return new ToolyardError(text || response.statusText, response.status, "");
  }
}

async function* readChunks(response: Response): AsyncGenerator<ChatCompletionChunk> {
  for await (const event of readEvents(response)) {
    if (event.data === "[DONE]") return;
    const chunk = JSON.parse(event.data) as ChatCompletionChunk | ErrorBody;
    if ("error" in chunk) {
      const { error } = chunk as ErrorBody;
      throw new ToolyardError(error.message, 0, error.code, error.message_code);
    }
    yield chunk as ChatCompletionChunk;
  }
}

async function* readEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = events.pop() ?? "";
      for (const event of events) {
        const read = readEvent(event);
        if (read.data !== "") yield read;
      }
    }
  } finally {
    await reader.cancel();
  }
}

function readEvent(text: string): ServerSentEvent {
  const event: ServerSentEvent = { id: "", name: "message", data: "" };
  for (const line of text.split(/\r?\n/)) {
    const [, field, value = ""] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (field === "data") event.data += event.data === "" ? value : `\n${value}`;
    else if (field === "id") event.id = value;
    else if (field === "event") event.name = value;
  }
  return event;
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(finish, milliseconds);
    function finish(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    }
    signal?.addEventListener("abort", finish);
  });
}
