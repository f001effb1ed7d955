/** Why text is no JSON, in the words of the browser, and where; the line is 0 if the browser does not tell. */
export interface JsonProblem {
  why: string;
  line: number;
  column: number;
}

export function readJsonProblem(text: string, error: unknown): JsonProblem {
  const why = error instanceof Error ? error.message : "";
  const place = /line (\d+) column (\d+)/.exec(why);
  if (place) return { why, line: Number(place[1]), column: Number(place[2]) };
  const position = /position (\d+)/.exec(why);
  if (!position && !why.includes("end of JSON")) return { why, line: 0, column: 0 };
  const before = text.slice(0, position ? Number(position[1]) : undefined).split("\n");
  return { why, line: before.length, column: before.at(-1)!.length + 1 };
}
