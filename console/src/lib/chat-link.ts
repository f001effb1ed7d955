/** The link to a chat. Chats of other clients, which gave them no name, have ids that the server made up and no
 * conversation here: for those there is nowhere to go. */
export function chatLink(id: string | null | undefined): string | null {
  return id && !/^chat_[0-9a-f]{32}$/.test(id) ? `/chat/${encodeURIComponent(id)}` : null;
}
