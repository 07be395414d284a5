"use strict";
// Draws the steps as tables; those that are given can be edited, and the others show their arithmetic.

const page = JSON.parse(document.getElementById("data").textContent);
const original = JSON.stringify(page.input);
const HINT = "Point at a computed number, or move to it by the keyboard, to see its arithmetic.";
const $ = id => document.getElementById(id);

function read(text) {
  const input = JSON.parse(text);
  for (const attention of [input, input.cross])  // JSON has no −∞
    if (attention?.mask) attention.mask = map(attention.mask, m => m === null ? -Infinity : m);
  return input;
}

let input = read(original), columns = page.input.form === "columns";
let steps = new Map();  // by id
let edited = false;     // since notes, which are of the original numbers, were written
let chosen = null;      // {id, i, j} of the value whose arithmetic is shown; i and j as with tokens as rows

const valuesOfStep = id => steps.get(id).values;

function compute() {
  const sections = explain(page, input, columns);
  steps = new Map(sections.flatMap(section => section.steps.map(step => [step.id, step])));
  return sections;
}

// A step as it is shown.
const shown = ({id, name, formula, rows, columns: labels, values}) => columns
    ? {id, name, formula, rows: labels, columns: rows, values: transposed(values)}
    : {id, name, formula, rows, columns: labels, values};

// All that is shown, with the arithmetic of each value.
const shownSections = () => compute().map(({title, steps: all}) => ({title, steps: all.map(step => {
  const texts = map(step.values, (_, i, j) => arithmetic(step, i, j, valuesOfStep, columns));
  return {...shown(step), arithmetic: columns ? transposed(texts) : texts};
})}));

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Text with W_Q as W and a subscript.
function formulaNodes(text) {
  return text.split(/(_[A-Za-z0-9]+)/)
      .map(part => part[0] === "_" ? element("sub", {textContent: part.slice(1)}) : part);
}

function numberText(values) {
  const finite = values.flat().filter(Number.isFinite), largest = Math.max(0, ...finite.map(Math.abs));
  if (largest >= 1e6 || (largest !== 0 && largest < 1e-2)) return x => x.toExponential(3);
  return finite.every(Number.isInteger) ? x => String(x + 0) : x => fixed(x, 3);
}

const valueText = (text, value) => value === -Infinity ? "−∞" : Number.isFinite(value) ? text(value) : "not finite";

// The place of a value as screen readers hear it. i, j: as shown.
const placeText = ({name, rows, columns: labels}, i, j) =>
    `${name}, row ${rows[i] ?? i + 1}, column ${labels[j] ?? j + 1}`;

function fieldOf(step, view, i, j, value) {
  const field = element("input", {type: "text", inputMode: "decimal", autocomplete: "off",
                                  value: valueText(String, value)});
  field.setAttribute("aria-label", placeText(view, i, j));
  field.addEventListener("input", () => edit(step.origin.path, ...(columns ? [j, i] : [i, j]), field));
  return field;
}

// A cell of a table; i, j: as shown.
function cellOf(step, view, i, j, text) {
  const value = view.values[i][j], cell = element("td"), [row, column] = columns ? [j, i] : [i, j];
  cell.dataset.row = row, cell.dataset.column = column;
  if (step.origin.kind === "given") {
    cell.className = "given";
    cell.append(fieldOf(step, view, i, j, value));
    return cell;
  }
  cell.textContent = valueText(text, value);
  if (step.origin.kind === "shares") cell.style.background = `rgba(var(--cell), ${(0.35 * value).toFixed(3)})`;
  if (!TEXTS[step.origin.kind]) return cell;
  cell.className = "computed";
  cell.tabIndex = i || j ? -1 : 0;
  const choose = () => show({id: step.id, i: row, j: column});
  cell.addEventListener("pointerenter", choose);
  cell.addEventListener("focus", choose);
  cell.addEventListener("keydown", event => move(event, cell));
  return cell;
}

function tableOf(step) {
  const view = shown(step), table = element("table"), text = numberText(step.values);
  table.setAttribute("aria-label", view.name);
  if (TEXTS[step.origin.kind]) table.setAttribute("role", "grid");
  if (view.columns.length)
    table.append(element("tr", {}, ...(view.rows.length ? [element("td")] : []),
                         ...view.columns.map(label => element("th", {scope: "col", textContent: label}))));
  view.values.forEach((row, i) => table.append(
      element("tr", {}, ...(view.rows.length ? [element("th", {scope: "row", textContent: view.rows[i]})] : []),
              ...row.map((_, j) => cellOf(step, view, i, j, text)))));
  return table;
}

function figureOf(step) {
  const formula = step.formula ? ["= ", ...formulaNodes(step.formula)] : ["given"];
  const caption = element("figcaption", {}, element("b", {}, ...formulaNodes(step.name)), " ",
                          element("span", {}, ...formula));
  const note = step.note && !edited ? [element("p", {className: "note", textContent: step.note})] : [];
  return element("figure", {id: step.id, className: "step"}, caption, tableOf(step), ...note);
}

const cellAt = ({id, i, j}) => $(id)?.querySelector(`td[data-row="${i}"][data-column="${j}"]`);

// Moves to the cell that an arrow key points at.
function move(event, cell) {
  const turns = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!turns) return;
  event.preventDefault();
  const [down, right] = columns ? [turns[1], turns[0]] : turns, id = cell.closest("figure").id;
  const next = cellAt({id, i: Number(cell.dataset.row) + down, j: Number(cell.dataset.column) + right});
  if (!next) return;
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// Marks a value and what it follows from, and writes its arithmetic.
function show(place) {
  chosen = place;
  for (const cell of document.querySelectorAll(".chosen, .source")) cell.classList.remove("chosen", "source");
  if (!place) return void ($("arithmetic").textContent = HINT);
  const step = steps.get(place.id), {i, j} = place;
  cellAt(place).classList.add("chosen");
  for (const {id, row, column} of sources(step, i, j, valuesOfStep))
    for (const cell of $(id).querySelectorAll("td[data-row]"))
      if ((row === undefined || Number(cell.dataset.row) === row) &&
          (column === undefined || Number(cell.dataset.column) === column)) cell.classList.add("source");
  const text = arithmetic(step, i, j, valuesOfStep, columns) || "no key is visible: 0";
  $("arithmetic").textContent = `${placeText(shown(step), ...(columns ? [j, i] : [i, j]))}: ${text}`;
}

// Lets the keyboard scroll what is wider than the page.
function markScrolling() {
  for (const figure of document.querySelectorAll(".step"))
    figure.scrollWidth > figure.clientWidth ? figure.tabIndex = 0 : figure.removeAttribute("tabindex");
}

function symbolsTable() {
  const cell = (tag, text) => element(tag, tag === "th" ? {scope: "col"} : {}, ...formulaNodes(text));
  return element("table", {className: "symbols"},
                 element("tr", {}, ...["rows", "columns", "meaning"].map(name => cell("th", name))),
                 ...page.symbols.map(symbol => element("tr", {}, cell("td", symbol.rows), cell("td", symbol.columns),
                                                       cell("td", symbol.meaning))));
}

function draw() {
  $("form").setAttribute("aria-pressed", columns);
  $("symbols").replaceChildren(...(columns ? [symbolsTable()] : []));
  $("sections").replaceChildren(...compute().map(section => element(
      "section", {}, element("h2", {textContent: section.title}),
      element("div", {className: "steps"}, ...section.steps.map(figureOf)))));
  show(null);
  markScrolling();
}

// Replaces the steps that are computed, so that the field that is edited keeps the focus.
function redraw() {
  compute();
  for (const step of steps.values())
    if (step.origin.kind !== "given") $(step.id).replaceWith(figureOf(step));
  show(chosen);
  markScrolling();
}

function edit(path, i, j, field) {
  const text = field.value.trim().replace("−", "-").replace(",", ".");
  const hides = path.at(-1) === "mask" && /^-(∞|inf)/.test(text);
  const value = hides ? -Infinity : Number(text);
  const wrong = text === "" || (!hides && !Number.isFinite(value));
  field.setCustomValidity(wrong ? "not a number" : "");
  field.setAttribute("aria-invalid", wrong);
  $("message").textContent = wrong ? `${field.getAttribute("aria-label")} is not a number` : "";
  if (wrong) return;
  given(input, path)[i][j] = value;
  edited = true;
  redraw();
}

$("reset").addEventListener("click", () => {
  input = read(original);
  edited = false;
  $("message").textContent = "";
  draw();
});
$("form").addEventListener("click", () => {
  columns = !columns;
  input.form = columns ? "columns" : "rows";
  draw();
});
addEventListener("resize", markScrolling);
draw();
