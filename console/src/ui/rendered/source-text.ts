/** The text of a node as it was written: the server shows invisible characters by their names, in `span.control`. */
export function sourceText(node: Node): string {
  if (node.nodeType === Node.TEXT_NODE) return node.nodeValue ?? "";
  if (node instanceof Element && node.matches("span.control")) return restoreHidden(node.textContent ?? "");
  return [...node.childNodes].map(sourceText).join("");
}

function restoreHidden(text: string): string {
  return text.replace(/⟨U\+([0-9A-F]{4,6})⟩|[\u2400-\u241f\u2421]/g, (sign, hex: string | undefined) => {
    if (hex) return String.fromCodePoint(parseInt(hex, 16));
    return sign === "\u2421" ? "\x7f" : String.fromCharCode(sign.charCodeAt(0) - 0x2400);
  });
}

export function downloadText(name: string, text: string, kind = "text/plain"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
