// Draws one small chart a scalar with uPlot. Names and numbers of others are set as text.

const HEIGHT = 150;
const charts = new Map(); // name → {chart, figure, readout, canvas, shown, data}

// A canvas does not know the page's variables, and a variable is not resolved until a property uses it.
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
const spell = (value) => (value == null ? "–" : Number(value.toPrecision(5)).toLocaleString("en", { maximumFractionDigits: 8 }));
const spellShort = (value) => {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1);
  return value.toLocaleString("en", { maximumFractionDigits: 4 });
};

const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 3], [2, 5], [7, 2, 2, 2]];
// The colours of console.css, by the place of a run on the page.
const colourOf = (line) => colour(line.title ? `--line-${line.number % 8}` : "--accent");

function describeLine(line) {
  const last = line.steps.length - 1;
  const points = `${line.steps.length} ${last ? "points" : "point"}`;
  return `${spell(line.values[last])} at step ${line.steps[last]}, from ${spell(line.values[0])} at step ${line.steps[0]}, ${points}`;
}

function describe(chart) {
  return `${chart.name}: ${chart.lines.map((line) => (line.title ? `${line.title} ` : "") + describeLine(line)).join("; ")}`;
}

// All lines over the same steps: uPlot draws one x axis.
function join(lines) {
  return lines.length === 1 ? [lines[0].steps, lines[0].values] : uPlot.join(lines.map((line) => [line.steps, line.values]));
}

function makeFigure(chart, holder) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("span");
  const readout = document.createElement("b");
  const canvas = document.createElement("div");
  name.textContent = chart.name;
  name.title = chart.name;
  canvas.setAttribute("role", "img");
  caption.append(name, readout);
  figure.append(caption, canvas);
  holder.append(figure);
  return { figure, readout, canvas };
}

function show(entry, index) {
  const { lines } = entry.shown;
  const [steps, ...values] = entry.data;
  const at = index ?? steps.length - 1;
  const step = `step ${steps[at]?.toLocaleString("en") ?? "–"}`;
  if (lines.length === 1) entry.readout.textContent = `${spell(values[0][at])} @ ${step}`;
  else entry.readout.textContent = index == null ? "" : `${step}: ${lines.map((_, number) => spell(values[number][at])).join(" · ")}`;
}

function makeChart(entry) {
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 28 };
  const series = entry.shown.lines.map((line) => ({
    stroke: colourOf(line),
    dash: DASHES[line.number % DASHES.length],
    width: 1.6,
    spanGaps: true,
    points: { show: line.steps.length < 30, size: 4 },
  }));
  return new uPlot(
    {
      width: entry.canvas.clientWidth || 300,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? spellShort(tick) : "")) },
        { ...axis, size: 58, values: (_, ticks) => ticks.map(spellShort) },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [(drawn) => show(entry, drawn.cursor.idx)] },
    },
    entry.data,
    entry.canvas,
  );
}

const linesOf = (chart) => chart.lines.map((line) => `${line.number} ${line.title} ${line.steps.length < 30}`).join("\n");

export function drawCurves(message) {
  const section = document.getElementById("run-curves");
  const holder = section.querySelector(".curves");
  section.hidden = !message.charts.length;
  document.getElementById("curves-since").textContent = message.since
    ? `since this console first read the run, ${new Date(message.since * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`
    : "by step";
  const wanted = new Map(message.charts.map((chart) => [chart.name, linesOf(chart)]));
  for (const [name, entry] of charts) {
    if (wanted.get(name) === linesOf(entry.shown)) continue;
    entry.chart.destroy();
    entry.figure.remove();
    charts.delete(name);
  }
  for (const chart of message.charts) {
    let entry = charts.get(chart.name);
    const data = join(chart.lines);
    if (entry) {
      entry.shown = chart;
      entry.data = data;
      entry.chart.setData(data);
    } else {
      entry = { shown: chart, data, ...makeFigure(chart, holder) };
      entry.chart = makeChart(entry);
      charts.set(chart.name, entry);
    }
    entry.canvas.setAttribute("aria-label", describe(chart));
    show(entry);
  }
}

function redraw() {
  for (const entry of charts.values()) {
    entry.chart.destroy();
    entry.chart = makeChart(entry);
  }
}

document.addEventListener("theme", redraw);
let width = 0;
new ResizeObserver(() => {
  const now = document.documentElement.clientWidth;
  if (now === width) return;
  width = now;
  for (const entry of charts.values()) entry.chart.setSize({ width: entry.canvas.clientWidth, height: HEIGHT });
}).observe(document.documentElement);
