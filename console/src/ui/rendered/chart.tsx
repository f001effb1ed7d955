/** Charts, drawn from the plain data that the server took out of a reply; the data itself is one press away. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { mount } from "./mount";
import { AxesChart, type Chart } from "./chart-axes";
import { RoundChart } from "./chart-round";
import { words } from "./words";

const HEIGHT = 280;

export function drawChart(figure: HTMLElement): void {
  const chart = parseChart(figure.dataset["chart"] ?? "");
  const table = figure.querySelector(".slides");
  if (!chart || !table) return;
  const fold = document.createElement("details");
  const name = document.createElement("summary");
  name.textContent = words().data;
  table.replaceWith(fold);
  fold.append(name, table);
  const host = document.createElement("div");
  fold.before(host);
  mount(host, <ChartFigure chart={chart} name={figure.querySelector("figcaption")?.textContent || words().chart} />);
}

function ChartFigure({ chart, name }: { chart: Chart; name: string }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  useEffect(() => {
    const sizes = new ResizeObserver(() => (width.value = box.current?.clientWidth ?? 0));
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, [width]);
  const round = /^(pie|doughnut|polararea|radar)$/.test(chart.type);
  const legend = /^(pie|doughnut|polararea)$/.test(chart.type) ? chart.labels : chart.datasets.map((one) => one.label);
  return (
    <div ref={box} class="chart-box">
      <svg
        role="img"
        aria-label={name}
        width={width.value}
        height={HEIGHT}
        viewBox={`0 0 ${Math.max(1, width.value)} ${HEIGHT}`}
      >
        {width.value > 0 &&
          (round ? (
            <RoundChart chart={chart} width={width.value} height={HEIGHT} />
          ) : (
            <AxesChart chart={chart} width={width.value} height={HEIGHT} />
          ))}
      </svg>
      {legend.some(Boolean) && (
        <ul class="legend">
          {legend.slice(0, 20).map((label, at) => (
            <li key={at} class={`series-${at % 8}`}>
              <i aria-hidden="true" />
              {label}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function parseChart(text: string): Chart | null {
  try {
    const value = JSON.parse(text) as Partial<Chart>;
    if (!Array.isArray(value.labels) || !Array.isArray(value.datasets) || typeof value.type !== "string") return null;
    return {
      type: value.type,
      labels: value.labels.map(String),
      datasets: value.datasets.map((one) => ({
        label: String(one.label ?? ""),
        data: Array.isArray(one.data) ? one.data : [],
        type: one.type,
      })),
      stacked: value.stacked === true,
      horizontal: value.horizontal === true,
    };
  } catch {
    return null;
  }
}
