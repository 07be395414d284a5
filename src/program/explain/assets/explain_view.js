"use strict";
// Draws the steps as tables; those that are given can be edited.

const original = document.getElementById("data").textContent;
const read = text => {
  const input = JSON.parse(text);
  if (input.mask) input.mask = map(input.mask, m => m === null ? -Infinity : m);  // JSON has no −∞
  return input;
};
let input = read(original);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Text with W_Q as W and a subscript.
function formulaNodes(text) {
  return text.split(/(_[A-Za-z0-9]+)/).map(part => part[0] === "_" ? element("sub", {textContent: part.slice(1)}) : part);
}

// The matrix in the input that a given step shows.
function matrixOf(id) {
  const [head, name] = id.split(".");
  if (name) return input.heads[head.slice(4) - 1][name];
  if (id === "given_gradient") return input.dO;
  return input.layer && id in input.layer ? input.layer[id] : input[id];
}

function numberText(values) {
  const finite = values.flat().filter(Number.isFinite), largest = Math.max(0, ...finite.map(Math.abs));
  if (largest >= 1e6 || (largest !== 0 && largest < 1e-2)) return x => x.toExponential(3);
  return finite.every(Number.isInteger) ? x => String(x + 0) : x => x.toFixed(3);
}

const shown = (text, value) => value === -Infinity ? "−∞" : Number.isFinite(value) ? text(value) : "not finite";

// Weights are shaded.
function shade(cell, step, value) {
  cell.style.background = step.id.endsWith("weights") ? `rgba(var(--cell), ${(0.35 * value).toFixed(3)})` : "";
}

function cellOf(step, i, j, text) {
  const value = step.values[i][j];
  const cell = element("td");
  if (step.formula) {
    cell.textContent = shown(text, value);
    shade(cell, step, value);
    return cell;
  }
  const row = step.rows[i] ?? i + 1, column = step.columns[j] ?? j + 1;
  const field = element("input", {type: "text", inputMode: "decimal", value: shown(String, value), autocomplete: "off"});
  field.setAttribute("aria-label", `${step.name}, row ${row}, column ${column}`);
  field.addEventListener("input", () => edit(step.id, i, j, field));
  cell.className = "given";
  cell.append(field);
  return cell;
}

function tableOf(step) {
  const table = element("table"), text = numberText(step.values);
  table.setAttribute("aria-label", step.name);
  if (step.columns.length)
    table.append(element("tr", {}, ...(step.rows.length ? [element("td")] : []),
                         ...step.columns.map(label => element("th", {scope: "col", textContent: label}))));
  step.values.forEach((row, i) => table.append(
      element("tr", {}, ...(step.rows.length ? [element("th", {scope: "row", textContent: step.rows[i]})] : []),
              ...row.map((_, j) => cellOf(step, i, j, text)))));
  return table;
}

function figureOf(step) {
  const formula = step.formula ? ["= ", ...formulaNodes(step.formula)] : ["given"];
  const caption = element("figcaption", {}, element("b", {}, ...formulaNodes(step.name)), " ",
                          element("span", {}, ...formula));
  return element("figure", {id: step.id, className: "step"}, caption, tableOf(step));
}

// Lets the keyboard scroll what is wider than the page.
function markScrolling() {
  for (const figure of document.querySelectorAll(".step"))
    figure.scrollWidth > figure.clientWidth ? figure.tabIndex = 0 : figure.removeAttribute("tabindex");
}

function draw() {
  document.getElementById("sections").replaceChildren(...explain(input).map(section => element(
      "section", {}, element("h2", {textContent: section.title}),
      element("div", {className: "steps"}, ...section.steps.map(figureOf)))));
  markScrolling();
}

// Replaces the steps that are computed, so that the field that is edited keeps the focus.
function redraw() {
  for (const section of explain(input))
    for (const step of section.steps)
      if (step.formula) document.getElementById(step.id).replaceWith(figureOf(step));
  markScrolling();
}

function edit(id, i, j, field) {
  const text = field.value.trim().replace("−", "-").replace(",", ".");
  const hides = id === "mask" && /^-(∞|inf)/.test(text);
  const value = hides ? -Infinity : Number(text);
  const wrong = text === "" || (!hides && !Number.isFinite(value));
  field.setCustomValidity(wrong ? "not a number" : "");
  field.setAttribute("aria-invalid", wrong);
  document.getElementById("message").textContent = wrong ? `${field.getAttribute("aria-label")} is not a number` : "";
  if (wrong) return;
  matrixOf(id)[i][j] = value;
  redraw();
}

document.getElementById("reset").addEventListener("click", () => {
  input = read(original);
  document.getElementById("message").textContent = "";
  draw();
});
addEventListener("resize", markScrolling);
draw();
