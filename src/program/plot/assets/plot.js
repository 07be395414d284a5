"use strict";
// Shows the values of all runs at a place of a chart, by pointer or arrow keys, and hides runs.

const data = JSON.parse(document.getElementById("data").textContent);
const LEFT = 54, RIGHT = 398, WIDTH = 420, TOP = 30, BOTTOM = 212;  // of a chart, as the library draws it
const hidden = new Set();
const shown = x => Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(4)));

// The point of a curve whose x is nearest.
function nearest(points, x) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = low + high >> 1;
    if (points[middle][0] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - points[low - 1][0] < points[low][0] - x ? points[low - 1] : points[low];
}

function valuesAt(curves, x) {
  const lines = data.runs.map((run, r) => {
    if (hidden.has(r)) return "";
    const values = curves.filter(name => run.curves[name].length).map(name => {
      const [at, value] = nearest(run.curves[name], x);
      return `${name === "dev_score" ? run.score : data.words[name]} ${shown(value)} at ${shown(at)}`;
    });
    return values.length ? `${run.name}: ${values.join(", ")}` : "";
  });
  return lines.filter(line => line).join("; ");
}

function follow(figure) {
  const chart = figure.querySelector(".chart"), values = figure.querySelector(".values");
  const curves = chart.dataset.curves.split(" "), low = Number(chart.dataset.low), high = Number(chart.dataset.high);
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
  cursor.setAttribute("class", "cursor");
  chart.append(cursor);
  let place = LEFT;
  const show = to => {
    place = Math.min(RIGHT, Math.max(LEFT, to));
    cursor.setAttribute("d", `M${place} ${TOP}V${BOTTOM}`);
    values.textContent = valuesAt(curves, low + (place - LEFT) / (RIGHT - LEFT) * (high - low));
  };
  const hide = () => { cursor.removeAttribute("d"); values.textContent = ""; };
  chart.setAttribute("tabindex", "0");
  const point = event => {
    const box = chart.getBoundingClientRect();
    show((event.clientX - box.left) / box.width * WIDTH);
  };
  chart.addEventListener("pointerdown", point);
  chart.addEventListener("pointermove", point);
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("focus", () => show(place));
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", event => {
    const step = {ArrowLeft: -4, ArrowRight: 4, Home: -WIDTH, End: WIDTH}[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(place + step);
  });
}

// The lines of one run are those of its colour, with or without dashes.
function toggle(button) {
  const run = Number(button.dataset.run), hides = !hidden.has(run);
  hides ? hidden.add(run) : hidden.delete(run);
  button.setAttribute("aria-pressed", String(!hides));
  const again = run >= 8;
  for (const line of document.querySelectorAll(`.chart .run${run % 8}`))
    if (line.classList.contains("again") === again) line.style.display = hides ? "none" : "";
}

document.querySelectorAll("figure").forEach(follow);
document.querySelectorAll("button[data-run]").forEach(button => button.addEventListener("click", () => toggle(button)));
