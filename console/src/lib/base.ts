/** The path below which a browser reaches the server: empty, or such as `/yard` behind a proxy. The server writes it into
 * the page. Everywhere else in the console, paths are those of the server itself and begin at `/`. */
import { options, type VNode } from "preact";

const given = document.querySelector<HTMLMetaElement>('meta[name="base"]')?.content ?? "/";
export const BASE = new URL(given, location.href).pathname.replace(/\/$/, "");

/** The address of a path of the server. */
export function toAddress(path: string): string {
  return BASE + path;
}

/** The path of the server at an address, or null for an address that is not below it. */
export function toPath(address: string): string | null {
  if (!BASE || address.startsWith(`${BASE}/`)) return address.slice(BASE.length);
  return address === BASE ? "/" : null;
}

/** Make links and images lead below the base, so that opening them in another tab and copying them work too. */
export function addBaseToLinks(): void {
  if (!BASE) return;
  const before = options.vnode?.bind(options);
  options.vnode = (vnode: VNode) => {
    if (typeof vnode.type === "string") {
      const props = vnode.props as Record<string, unknown>;
      for (const name of ["href", "src"]) {
        const path = props[name];
        if (typeof path === "string" && /^\/(?!\/)/.test(path)) props[name] = toAddress(path);
      }
    }
    before?.(vnode);
  };
}
