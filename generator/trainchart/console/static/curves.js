// Draws one small chart a scalar with uPlot. Names and numbers of others are set as text.

const HEIGHT = 150;
const charts = new Map(); // name → {chart, figure, readout}

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

function describe(curve) {
  const last = curve.steps.length - 1;
  const points = `${curve.steps.length} ${last ? "points" : "point"}`;
  return `${curve.name}: ${spell(curve.values[last])} at step ${curve.steps[last]}, from ${spell(curve.values[0])} at step ${curve.steps[0]}, ${points}`;
}

function makeFigure(curve, holder) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("span");
  const readout = document.createElement("b");
  const canvas = document.createElement("div");
  name.textContent = curve.name;
  name.title = curve.name;
  canvas.setAttribute("role", "img");
  caption.append(name, readout);
  figure.append(caption, canvas);
  holder.append(figure);
  return { figure, readout, canvas };
}

function show(entry, index) {
  const { curve, readout } = entry;
  const at = index ?? curve.steps.length - 1;
  readout.textContent = `${spell(curve.values[at])} @ ${curve.steps[at]?.toLocaleString("en") ?? "–"}`;
}

function makeChart(entry) {
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 28 };
  const isShort = entry.curve.steps.length < 30;
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
      series: [{}, { stroke: colour("--accent"), width: 1.6, points: { show: isShort, size: 4 } }],
      hooks: { setCursor: [(chart) => show(entry, chart.cursor.idx)] },
    },
    [entry.curve.steps, entry.curve.values],
    entry.canvas,
  );
}

export function drawCurves(message) {
  const section = document.getElementById("run-curves");
  const holder = section.querySelector(".curves");
  section.hidden = !message.curves.length;
  document.getElementById("curves-since").textContent = message.since
    ? `since this console first read the run, ${new Date(message.since * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`
    : "by step";
  const wanted = new Set(message.curves.map((curve) => curve.name));
  for (const [name, entry] of charts) {
    if (wanted.has(name)) continue;
    entry.chart.destroy();
    entry.figure.remove();
    charts.delete(name);
  }
  for (const curve of message.curves) {
    let entry = charts.get(curve.name);
    if (entry) {
      entry.curve = curve;
      entry.chart.setData([curve.steps, curve.values]);
    } else {
      entry = { curve, ...makeFigure(curve, holder) };
      entry.chart = makeChart(entry);
      charts.set(curve.name, entry);
    }
    entry.canvas.setAttribute("aria-label", describe(curve));
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
