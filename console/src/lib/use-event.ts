/** A function that is the same at every render and always runs the newest `run`: for effects that call it, but must not
 * begin anew when it changes. */
import { useCallback, useRef } from "preact/hooks";

export function useEvent<Given extends unknown[], Result>(
  run: (...given: Given) => Result,
): (...given: Given) => Result {
  const latest = useRef(run);
  latest.current = run;
  return useCallback((...given: Given) => latest.current(...given), []);
}
