/** The button that opens the file of a canvas again. The panel itself is loaded when it is wanted. */
import { revealHidden } from "../lib/hidden-characters";
import { dictionary } from "../lib/language";
import { canvasName, openedCanvas } from "../lib/special-action";
import { Button } from "./button";

const words = dictionary({ open: (name: string) => `Open ${name}` }, { open: (name: string) => `打开 ${name}` });

export function CanvasButton({ path }: { path: string }) {
  return (
    <Button sign="file" onClick={() => void (openedCanvas.value = path)}>
      {words().open(revealHidden(canvasName(path)))}
    </Button>
  );
}
