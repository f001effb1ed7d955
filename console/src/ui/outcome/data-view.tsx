/** Structured data as people read it: rows as a table, names with their values, everything else as JSON. */
import { useSignal } from "@preact/signals";
import { revealHidden } from "../../lib/hidden-characters";
import { formatNumber } from "../../lib/language";
import { Button, CopyButton } from "../button";
import { Code, Json as JsonView } from "../code";
import type { Json, Values } from "../schema-form";
import { outcomeWords } from "./words";

const FIRST_ROWS = 100;
const MOST_COLUMNS = 8;
const WRAPS = 32; // longer values go over several lines

export function DataView({ name, value }: { name: string; value: Json }) {
  if (typeof value === "string") return <Code text={value} label={name} />;
  if (Array.isArray(value) && value.length && value.every(isFlat) && columnsOf(value).length <= MOST_COLUMNS)
    return <Table name={name} rows={value} />;
  return <JsonView value={value} label={name} />;
}

/** Short values with their names. */
export function Facts({ facts }: { facts: Values }) {
  return (
    <dl class="outcome-facts">
      {Object.entries(facts).map(([name, value]) => (
        <div key={name} data-given>
          <dt>{revealHidden(name)}</dt>
          <dd class="mono">{formatCell(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Table({ name, rows }: { name: string; rows: Values[] }) {
  const t = outcomeWords();
  const isWhole = useSignal(rows.length <= FIRST_ROWS);
  const columns = columnsOf(rows);
  const shown = isWhole.value ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <div class="code outcome-table">
      <div class="code-head">
        <span class="faint cut" data-given>
          {revealHidden(name)} · {formatNumber(rows.length)}
        </span>
        <CopyButton text={() => JSON.stringify(rows, null, 2)} />
      </div>
      <div class="outcome-table-box" role="region" tabIndex={0} aria-label={name} data-given>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {revealHidden(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, n) => (
              <tr key={n}>
                {columns.map((column) => (
                  <td key={column} class={formatCell(row[column] ?? null).length > WRAPS ? "long" : ""}>
                    {formatCell(row[column] ?? null)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!isWhole.value && (
        <Button kind="quiet" onClick={() => (isWhole.value = true)}>
          {t.allRows(rows.length)}
        </Button>
      )}
    </div>
  );
}

function isFlat(row: Json): row is Values {
  return (
    typeof row === "object" &&
    row !== null &&
    !Array.isArray(row) &&
    Object.values(row).every((value) => typeof value !== "object" || value === null)
  );
}

function columnsOf(rows: readonly Json[]): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row as Values)))];
}

function formatCell(value: Json): string {
  return value === null ? "" : revealHidden(typeof value === "string" ? value : JSON.stringify(value));
}
