/** Charts around a middle: pie, doughnut, polar area, radar. */
import { toNumber, formatShort, type Chart } from "./chart-axes";

export function RoundChart({ chart, width, height }: { chart: Chart; width: number; height: number }) {
  const middle = { x: width / 2, y: height / 2, r: Math.min(width, height) / 2 - (chart.type === "radar" ? 26 : 8) };
  return chart.type === "radar" ? <RadarChart chart={chart} {...middle} /> : <Slices chart={chart} {...middle} />;
}

interface Middle {
  chart: Chart;
  x: number;
  y: number;
  r: number;
}

function Slices({ chart, x, y, r }: Middle) {
  const values = (chart.datasets[0]?.data ?? []).map((value) => Math.max(0, toNumber(value) ?? 0));
  const total = values.reduce((sum, value) => sum + value, 0) || 1,
    most = Math.max(...values, 1e-9);
  const polar = chart.type === "polararea";
  let turned = 0;
  return (
    <g>
      {values.map((value, at) => {
        const from = turned,
          to = (turned += polar ? 1 / values.length : value / total);
        const far = polar ? r * Math.sqrt(value / most) : r;
        return (
          <path key={at} class={`slice series-${at % 8}`} d={slice(x, y, far, from, Math.min(to, from + 0.99999))}>
            <title>{`${chart.labels[at] ?? at + 1}: ${formatShort(value)}`}</title>
          </path>
        );
      })}
      {chart.type === "doughnut" && <circle class="hole" cx={x} cy={y} r={r * 0.55} />}
    </g>
  );
}

function RadarChart({ chart, x, y, r }: Middle) {
  const count = Math.max(chart.labels.length, 3);
  const most = Math.max(...chart.datasets.flatMap((one) => one.data.map((value) => toNumber(value) ?? 0)), 1e-9);
  const at = (n: number, far: number) => ({
    x: x + Math.sin((2 * Math.PI * n) / count) * far,
    y: y - Math.cos((2 * Math.PI * n) / count) * far,
  });
  const ring = (far: (n: number) => number) =>
    Array.from({ length: count }, (_, n) => {
      const p = at(n, far(n));
      return `${p.x},${p.y}`;
    }).join(" ");
  return (
    <g>
      {[0.25, 0.5, 0.75, 1].map((part) => (
        <polygon key={part} class="grid-line" points={ring(() => r * part)} />
      ))}
      {chart.labels.map((label, n) => {
        const p = at(n, r + 12);
        return (
          <text
            key={n}
            class="tick"
            x={p.x}
            y={p.y}
            dy="0.32em"
            text-anchor={Math.abs(p.x - x) < 6 ? "middle" : p.x > x ? "start" : "end"}
          >
            {label.slice(0, 16)}
          </text>
        );
      })}
      {chart.datasets.map((one, series) => (
        <polygon
          key={series}
          class={`area series-${series % 8}`}
          points={ring((n) => (r * Math.max(0, toNumber(one.data[n]) ?? 0)) / most)}
        />
      ))}
    </g>
  );
}

/** A slice between two parts of a turn. */
function slice(x: number, y: number, r: number, from: number, to: number): string {
  const edge = (part: number) => `${x + Math.sin(2 * Math.PI * part) * r} ${y - Math.cos(2 * Math.PI * part) * r}`;
  return `M${x} ${y}L${edge(from)}A${r} ${r} 0 ${to - from > 0.5 ? 1 : 0} 1 ${edge(to)}Z`;
}
