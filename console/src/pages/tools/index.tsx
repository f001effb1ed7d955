/** Tools: the catalogue at /tools, one tool or plugin at /tools/NAME. */
import "./style.css";
import { route } from "../../lib/router";
import { Catalogue } from "./catalogue";
import { Remove } from "./remove";
import { ToolPage } from "./tool";

export default function Tools() {
  const { name } = route.value;
  return (
    <>
      {name ? <ToolPage key={name} name={name} /> : <Catalogue />}
      <Remove />
    </>
  );
}
