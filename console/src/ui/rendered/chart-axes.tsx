/** Bars, lines and points between two axes. */
import { locale } from "../../lib/language";

export interface Dataset {
  label: string;
  data: unknown[];
  type?: string;
}
export interface Chart {
  type: string;
  labels: string[];
  datasets: Dataset[];
  stacked: boolean;
  horizontal: boolean;
}

interface Size {
  chart: Chart;
  width: number;
  height: number;
}
type Point = { x: number; y: number; r: number };
const LEFT = 52,
  RIGHT = 12,
  TOP = 10,
  BOTTOM = 26;

export function AxesChart({ chart, width, height }: Size) {
  if (/^(scatter|bubble)$/.test(chart.type)) return <Points chart={chart} width={width} height={height} />;
  return chart.horizontal && chart.type === "bar" ? (
    <HorizontalBars chart={chart} width={width} height={height} />
  ) : (
    <VerticalBars chart={chart} width={width} height={height} />
  );
}

function VerticalBars({ chart, width, height }: Size) {
  const count = Math.max(chart.labels.length, ...chart.datasets.map((one) => one.data.length), 1);
  const scale = scaleOf(reach(chart, count), height - BOTTOM, TOP);
  const step = (width - LEFT - RIGHT) / count;
  const bars = chart.datasets.filter((one) => (one.type ?? chart.type) === "bar");
  return (
    <g>
      {scale.ticks.map((tick) => (
        <g key={tick}>
          <line class="grid-line" x1={LEFT} x2={width - RIGHT} y1={scale.at(tick)} y2={scale.at(tick)} />
          <text class="tick" x={LEFT - 6} y={scale.at(tick)} dy="0.32em" text-anchor="end">
            {formatShort(tick)}
          </text>
        </g>
      ))}
      <Names labels={chart.labels} count={count} step={step} y={height - 8} />
      {chart.datasets.map((one, series) => {
        const at = bars.indexOf(one);
        const middle = (n: number) => LEFT + step * (n + 0.5);
        if (at < 0)
          return (
            <polyline
              key={series}
              class={`line series-${series % 8}`}
              points={one.data
                .map((value, n) => (toNumber(value) === null ? "" : `${middle(n)},${scale.at(toNumber(value)!)}`))
                .filter(Boolean)
                .join(" ")}
            />
          );
        const wide = Math.max(1, (step * 0.72) / (chart.stacked ? 1 : bars.length));
        return (
          <g key={series} class={`bar series-${series % 8}`}>
            {one.data.slice(0, count).map((value, n) => {
              const from = chart.stacked ? below(bars, at, n) : 0,
                to = from + (toNumber(value) ?? 0);
              const x = LEFT + step * n + step * 0.14 + (chart.stacked ? 0 : wide * at);
              return (
                <rect
                  key={n}
                  x={x}
                  width={wide}
                  y={Math.min(scale.at(from), scale.at(to))}
                  height={Math.abs(scale.at(from) - scale.at(to))}
                >
                  <title>{`${chart.labels[n] ?? n + 1}: ${formatShort(toNumber(value) ?? 0)}`}</title>
                </rect>
              );
            })}
          </g>
        );
      })}
    </g>
  );
}

function HorizontalBars({ chart, width, height }: Size) {
  const count = Math.max(chart.labels.length, 1),
    left = Math.min(140, width * 0.32);
  const scale = scaleOf(reach(chart, count), left, width - RIGHT);
  const step = (height - TOP - BOTTOM) / count;
  const wide = Math.max(1, (step * 0.72) / (chart.stacked ? 1 : chart.datasets.length));
  return (
    <g>
      {scale.ticks.map((tick) => (
        <g key={tick}>
          <line class="grid-line" y1={TOP} y2={height - BOTTOM} x1={scale.at(tick)} x2={scale.at(tick)} />
          <text class="tick" y={height - 8} x={scale.at(tick)} text-anchor="middle">
            {formatShort(tick)}
          </text>
        </g>
      ))}
      {chart.labels.map((label, n) => (
        <text key={n} class="tick" x={left - 6} y={TOP + step * (n + 0.5)} dy="0.32em" text-anchor="end">
          {fitText(label, left / 8)}
        </text>
      ))}
      {chart.datasets.map((one, series) => (
        <g key={series} class={`bar series-${series % 8}`}>
          {one.data.slice(0, count).map((value, n) => {
            const from = chart.stacked ? below(chart.datasets, series, n) : 0,
              to = from + (toNumber(value) ?? 0);
            return (
              <rect
                key={n}
                y={TOP + step * n + step * 0.14 + (chart.stacked ? 0 : wide * series)}
                height={wide}
                x={Math.min(scale.at(from), scale.at(to))}
                width={Math.abs(scale.at(from) - scale.at(to))}
              >
                <title>{`${chart.labels[n] ?? n + 1}: ${formatShort(toNumber(value) ?? 0)}`}</title>
              </rect>
            );
          })}
        </g>
      ))}
    </g>
  );
}

function Points({ chart, width, height }: Size) {
  const sets = chart.datasets.map((one) => one.data.map(point).filter((found): found is Point => found !== null));
  const all = sets.flat();
  const across = scaleOf(
      all.map((one) => one.x),
      LEFT,
      width - RIGHT,
    ),
    up = scaleOf(
      all.map((one) => one.y),
      height - BOTTOM,
      TOP,
    );
  return (
    <g>
      {up.ticks.map((tick) => (
        <g key={tick}>
          <line class="grid-line" x1={LEFT} x2={width - RIGHT} y1={up.at(tick)} y2={up.at(tick)} />
          <text class="tick" x={LEFT - 6} y={up.at(tick)} dy="0.32em" text-anchor="end">
            {formatShort(tick)}
          </text>
        </g>
      ))}
      {across.ticks.map((tick) => (
        <text key={tick} class="tick" x={across.at(tick)} y={height - 8} text-anchor="middle">
          {formatShort(tick)}
        </text>
      ))}
      {sets.map((points, series) => (
        <g key={series} class={`dots series-${series % 8}`}>
          {points.map((one, n) => (
            <circle key={n} cx={across.at(one.x)} cy={up.at(one.y)} r={Math.max(2, Math.min(40, one.r))} />
          ))}
        </g>
      ))}
    </g>
  );
}

function Names({ labels, count, step, y }: { labels: string[]; count: number; step: number; y: number }) {
  const every = Math.max(1, Math.ceil(56 / step));
  return (
    <g>
      {labels.slice(0, count).map((label, n) =>
        n % every ? null : (
          <text key={n} class="tick" x={LEFT + step * (n + 0.5)} y={y} text-anchor="middle">
            {fitText(label, Math.max(4, (step * every) / 8))}
          </text>
        ),
      )}
    </g>
  );
}

/** Every value that must have room. */
function reach(chart: Chart, count: number): number[] {
  if (!chart.stacked) return [0, ...chart.datasets.flatMap((one) => one.data.map((value) => toNumber(value) ?? 0))];
  return [0, ...Array.from({ length: count }, (_, n) => below(chart.datasets, chart.datasets.length, n))];
}

function below(sets: readonly Dataset[], at: number, n: number): number {
  return sets.slice(0, at).reduce((sum, one) => sum + (toNumber(one.data[n]) ?? 0), 0);
}

/** Round numbers over all values, and where each stands. */
function scaleOf(values: readonly number[], start: number, end: number) {
  const low = Math.min(...values, Infinity),
    high = Math.max(...values, -Infinity);
  const span = Number.isFinite(high - low) && high > low ? high - low : 1;
  const rough = span / 4,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const first = Math.floor((Number.isFinite(low) ? low : 0) / step) * step;
  const ticks = Array.from({ length: 7 }, (_, n) => first + n * step).filter(
    (_, n, all) => n === 0 || all[n - 1]! < (Number.isFinite(high) ? high : 1),
  );
  const last = ticks[ticks.length - 1]!;
  return { ticks, at: (value: number) => start + ((value - first) / (last - first || 1)) * (end - start) };
}

export function toNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "string" && value.trim() && Number.isFinite(Number(value))) return Number(value);
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return toNumber((value as { y?: unknown }).y);
  return null;
}

function point(value: unknown, at: number): Point | null {
  const parts = Array.isArray(value)
    ? { x: value[0] as unknown, y: value[1] as unknown, r: value[2] as unknown }
    : typeof value === "object" && value !== null
      ? (value as { x?: unknown; y?: unknown; r?: unknown })
      : { x: at, y: value, r: undefined };
  const x = toNumber(parts.x),
    y = toNumber(parts.y);
  return x === null || y === null ? null : { x, y, r: toNumber(parts.r) ?? 4 };
}

export function formatShort(value: number): string {
  return Intl.NumberFormat(locale(), {
    maximumSignificantDigits: 4,
    notation: Math.abs(value) >= 100_000 ? "compact" : "standard",
  }).format(value);
}

function fitText(text: string, signs: number): string {
  const most = Math.max(3, Math.floor(signs));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
