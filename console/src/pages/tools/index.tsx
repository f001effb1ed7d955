/** Tools: the catalogue at /tools, one tool or plugin at /tools/NAME. */
import "./style.css";
import { useEffect } from "preact/hooks";
import { lazyPage, loadAhead } from "../../lib/lazy-page";
import { route } from "../../lib/router";
import { Catalogue, Install } from "./catalogue";
import { Remove } from "./remove";

const ToolPage = lazyPage<{ name: string }>(() => import("./tool").then((module) => ({ default: module.ToolPage })));
if (route.peek().name) void ToolPage.load();

export default function Tools() {
  const { name } = route.value;
  useEffect(() => loadAhead([ToolPage.load, Install.load]), []);
  return (
    <>
      {name ? <ToolPage key={name} name={name} /> : <Catalogue />}
      <Remove />
    </>
  );
}
