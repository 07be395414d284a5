"use strict";
// Computes the steps of an explanation from their origins, on matrices that are arrays of rows, and writes the
// arithmetic of a value. The library computes the same: src/program/explain.

const zip = (A, B, f) => A.map((row, i) => row.map((a, j) => f(a, B[i][j])));
const map = (A, f) => A.map((row, i) => row.map((a, j) => f(a, i, j)));
const transposed = A => A[0].map((_, j) => A.map(row => row[j]));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const times = (A, B) => { const columns = transposed(B); return A.map(a => columns.map(b => dot(a, b))); };
const sum = row => row.reduce((total, x) => total + x, 0);
const mean = row => sum(row) / row.length;

// Φ of the normal distribution for gelu: by the series of erf near 0, by its continued fraction further away.
function erf(x) {
  const z = Math.abs(x);
  let result = 0;
  if (z < 3) {
    let term = z;
    for (let n = 0; Math.abs(term) > 1e-17 * Math.abs(result) && n < 200; n++) {
      result += term / (2 * n + 1);
      term *= -z * z / (n + 1);
    }
    result *= 2 / Math.sqrt(Math.PI);
  } else {
    let fraction = 0;
    for (let n = 60; n > 0; n--) fraction = n / 2 / (z + fraction);
    result = 1 - Math.exp(-z * z) / Math.sqrt(Math.PI) / (z + fraction);
  }
  return x < 0 ? -result : result;
}

const logistic = x => 1 / (1 + Math.exp(-x));
const tanhArgument = x => Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3);

const ACTIVATIONS = {
  relu: x => Math.max(0, x),
  gelu: x => x * (1 + erf(x / Math.SQRT2)) / 2,
  silu: x => x * logistic(x),
  gelu_tanh: x => x * (1 + Math.tanh(tanhArgument(x))) / 2,
};

// The derivatives.
const SLOPES = {
  relu: x => x > 0 ? 1 : 0,
  gelu: x => (1 + erf(x / Math.SQRT2)) / 2 + x * Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI),
  silu: x => logistic(x) * (1 + x * (1 - logistic(x))),
  gelu_tanh: x => {
    const s = logistic(2 * tanhArgument(x)), slope = Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * x * x);
    return s * (1 + 2 * x * (1 - s) * slope);
  },
};

// The rows of a norm: (x − μ) / σ. The statistics are μ and σ of each row, or only σ.
const normalized = (x, statistics) =>
    map(x, (a, i) => (a - (statistics[i].length === 2 ? statistics[i][0] : 0)) / statistics[i].at(-1));

// The numbers that the exponentials of each row are relative to: its largest, or 0 if that is −∞. Null if all of these are
// from −limit to limit.
function shifts(S, limit) {
  const largest = S.map(row => Math.max(...row)).map(most => most === -Infinity ? 0 : most);
  return largest.some(most => Math.abs(most) > limit) ? largest : null;
}

// The sum, which is −∞ only if the mask hides the key.
const maskedScore = (score, mask) => mask !== -Infinity && score + mask === -Infinity ? NaN : score + mask;

function statisticsOf(row, epsilon, rms) {
  if (rms) return [Math.sqrt(mean(row.map(x => x * x)) + epsilon)];
  const mu = mean(row);
  return [mu, Math.sqrt(mean(row.map(x => (x - mu) ** 2)) + epsilon)];
}

// The gradient of a norm's rows: (G − mean(G) − Z mean(G ∘ Z)) / σ.
function normParts(d, x, statistics, gamma) {
  const G = map(d, (value, _, j) => gamma[0][j] * value), Z = normalized(x, statistics);
  return {G, Z, mean: G.map(mean), product: G.map((g, i) => mean(g.map((value, j) => value * Z[i][j])))};
}

function termValues({left, right, turned, repeated}, get, rows) {
  if (repeated) return Array.from({length: rows}, () => get(left)[0]);
  const side = (id, turn) => turn ? transposed(get(id)) : get(id);
  return right ? times(side(left, turned[0]), side(right, turned[1])) : side(left, turned[0]);
}

function lossOf(z, q) {
  const most = Math.max(...z), lse = most + Math.log(sum(z.map(x => Math.exp(x - most))));
  return sum(z.map((x, j) => q[j] * (lse - x)));
}

// The values of a step, by the kind of its origin. A, B, C and D are the matrices that it follows from.
const VALUES = {
  sum: ({terms}, get) => terms.slice(1).reduce(
      (total, term) => zip(total, termValues(term, get, total.length), (a, b) => a + b), termValues(terms[0], get)),
  difference: (_, get, A, B) => zip(A, B, (a, b) => a - b),
  times: (_, get, A, B) => zip(A, B, (a, b) => a * b),
  scaled: ({number}, get, A) => map(A, a => number * a),
  masked: ({flag}, get, A, B) => map(A, (a, i, j) => flag && j > i ? -Infinity : maskedScore(a, B ? B[i][j] : 0)),
  exponential: ({number}, get, A) => { const by = shifts(A, number); return map(A, (a, i) => Math.exp(a - (by?.[i] ?? 0))); },
  row_sums: (_, get, A) => A.map(row => [sum(row)]),
  shares: (_, get, A, B) => map(A, (a, i) => B[i][0] ? a / B[i][0] : 0),
  jacobian: ({index}, get, A) => A[index].map((a, j) => A[index].map((b, k) => a * ((j === k) - b))),
  row_products: ({of}, get, A) => A.map((row, i) => times([row], get(of[i + 1]))[0]),
  columns: ({index}, get, A, B, C, D, width) => A.map(row => row.slice(index, index + width)),
  side_by_side: ({of}, get, A) => A.map((_, i) => of.flatMap(id => get(id)[i])),
  statistics: ({number, flag}, get, A) => A.map(row => statisticsOf(row, number, flag)),
  norm: (_, get, A, B, C, D) => map(normalized(A, B), (z, i, j) => C[0][j] * z + (D ? D[0][j] : 0)),
  norm_gradient: ({flag}, get, A, B, C, D) => {
    const {G, Z, mean, product} = normParts(A, B, C, D);
    return map(G, (g, i, j) => (g - (flag ? 0 : mean[i]) - Z[i][j] * product[i]) / C[i].at(-1));
  },
  gain_gradient: (_, get, A, B, C) => [transposed(zip(A, normalized(B, C), (d, z) => d * z)).map(sum)],
  column_sums: (_, get, A) => [transposed(A).map(sum)],
  activation: ({activation}, get, A) => map(A, ACTIVATIONS[activation]),
  activation_gradient: ({activation}, get, A, B) => zip(A, B, (a, b) => SLOPES[activation](a) * b),
  losses: (_, get, A, B) => A.map((z, i) => [lossOf(z, B[i])]),
  largest: (_, get, A) => A.map(row => [Math.max(...row)]),
};

// x with a number of digits after the point. toFixed rounds what is half way up, the library to an even digit.
function fixed(x, digits) {
  const scaled = Math.abs(x) * 10 ** digits, below = Math.floor(scaled);
  const half = Number.isInteger(x * 16) && scaled - below === 0.5 && below % 2 === 0;
  return half ? (Math.sign(x) * below / 10 ** digits).toFixed(digits) : x.toFixed(digits);
}

const exponential = x => x.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");

// A number of the arithmetic: at most three digits after the point, or an exponential form.
function number(x) {
  if (!Number.isFinite(x)) return x === -Infinity ? "−∞" : "not finite";
  if (x === 0) return "0";
  if (Math.abs(x) >= 1e6 || Math.abs(x) < 1e-2) return exponential(x);
  return fixed(x, 3).replace(/\.?0+$/, "");
}

const operand = x => x < 0 ? `(${number(x)})` : number(x);
const product = (a, b) => `${operand(a)}×${operand(b)}`;
const joined = terms => terms.join(" + ");

// The factors of an entry of a product.
function factors({left, right, turned}, get, i, j) {
  const L = get(left), R = get(right);
  const a = turned[0] ? L.map(row => row[i]) : L[i], b = turned[1] ? R[j] : R.map(row => row[j]);
  return a.map((x, k) => [x, b[k]]);
}

function sumText({terms}, get, i, j, columns) {
  const inOrder = columns ? [...terms.filter(t => t.repeated), ...terms.filter(t => !t.repeated)] : terms;
  return joined(inOrder.flatMap(term => {
    if (term.repeated) return [operand(get(term.left)[0][j])];
    if (!term.right) return [operand(get(term.left)[i][j])];
    return factors(term, get, i, j).map(([a, b]) => columns ? product(b, a) : product(a, b));
  }));
}

function statisticsText(row, mu, {number: epsilon, flag}, j) {
  if (j === 0 && !flag) return `(${joined(row.map(operand))}) / ${row.length}`;
  const squares = row.map(x => flag ? `${operand(x)}²` : `(${operand(x)} − ${operand(mu)})²`);
  return `√((${joined(squares)}) / ${row.length} + ${number(epsilon)})`;
}

function lossText(q, p) {
  const terms = q.flatMap((x, v) => x === 0 ? [] : [`${x === 1 ? "" : operand(x) + "×"}log ${number(p[v])}`]);
  return terms.length === 1 ? "−" + terms[0] : `−(${joined(terms)})`;
}

// The text to the left of "=", by the kind of the origin; a kind that is absent copies values.
const TEXTS = {
  sum: sumText,
  difference: (_, get, i, j, columns, A, B) => `${operand(A[i][j])} − ${operand(B[i][j])}`,
  times: (_, get, i, j, columns, A, B) => product(A[i][j], B[i][j]),
  scaled: ({number: factor, index}, get, i, j, columns, A) =>
      index ? `${operand(A[i][j])} / √${index}` : product(factor, A[i][j]),
  masked: ({flag}, get, i, j, columns, A, B) =>
      `${operand(A[i][j])} + ${operand(flag && j > i ? -Infinity : B ? B[i][j] : 0)}`,
  exponential: ({number: limit}, get, i, j, columns, A) => {
    const by = shifts(A, limit);
    return by ? `exp(${operand(A[i][j])} − ${operand(by[i])})` : `exp(${number(A[i][j])})`;
  },
  row_sums: (_, get, i, j, columns, A) => joined(A[i].map(operand)),
  shares: (_, get, i, j, columns, A, B) => B[i][0] ? `${number(A[i][j])} / ${number(B[i][0])}` : "",
  jacobian: ({index}, get, i, j, columns, A) => i === j ? `${number(A[index][i])}×(1 − ${number(A[index][i])})`
      : `−${number(A[index][i])}×${number(A[index][j])}`,
  row_products: ({of}, get, i, j, columns, A) => joined(get(of[i + 1]).map(
      (row, k) => columns ? product(row[j], A[i][k]) : product(A[i][k], row[j]))),
  statistics: (origin, get, i, j, columns, A) =>
      statisticsText(A[i], statisticsOf(A[i], origin.number, origin.flag)[0], origin, j),
  norm: (_, get, i, j, columns, A, B, C, D) => B[i].length === 1
      ? `${operand(C[0][j])}×${operand(A[i][j])} / ${number(B[i][0])}`
      : `${operand(C[0][j])}×(${operand(A[i][j])} − ${operand(B[i][0])}) / ${number(B[i][1])} + ${operand(D[0][j])}`,
  norm_gradient: ({flag}, get, i, j, columns, A, B, C, D) => {
    const {G, Z, mean, product: products} = normParts(A, B, C, D);
    return `(${operand(G[i][j])} − ${flag ? "" : operand(mean[i]) + " − "}${product(Z[i][j], products[i])}) / ` +
        number(C[i].at(-1));
  },
  gain_gradient: (_, get, i, j, columns, A, B, C) => {
    const Z = normalized(B, C);
    return joined(A.map((row, n) => product(row[j], Z[n][j])));
  },
  column_sums: (_, get, i, j, columns, A) => joined(A.map(row => operand(row[j]))),
  activation: ({activation}, get, i, j, columns, A) =>
      activation === "relu" ? `max(0, ${number(A[i][j])})` : `${activation}(${number(A[i][j])})`,
  activation_gradient: ({activation}, get, i, j, columns, A, B) => product(SLOPES[activation](A[i][j]), B[i][j]),
  losses: (_, get, i, j, columns, A, B, C) => lossText(B[i], C[i]),
  largest: (_, get, i, j, columns, A) => `max(${A[i].map(number).join(", ")})`,
};

const given = (input, path) => path.reduce((value, name) => value[name], input);

function valuesOf({origin, values, width}, input, get) {
  if (origin.kind === "given") return given(input, origin.path);
  if (origin.kind === "constant") return values;
  const [A, B, C, D] = origin.of.map(get);
  const computed = VALUES[origin.kind](origin, get, A, B, C, D, width);
  return origin.kind === "masked" ? computed : map(computed, x => x === -Infinity ? NaN : x);  // a sum too large
}

// The formula of exponentials says whether they are relative to the largest.
function formulaOf({formulas, origin}, get, columns) {
  if (origin.kind !== "exponential") return formulas[columns ? 1 : 0];
  const name = /^exp\((\S+?)[) ]/.exec(formulas[0])[1], line = columns ? "column" : "row";
  return shifts(get(origin.of[0]), origin.number) ? `exp(${name} − the largest of the ${line})` : `exp(${name})`;
}

// Row labels of the largest values name their columns.
function rowLabels({rows, origin}, steps) {
  if (origin.kind !== "largest") return rows;
  const from = steps.get(origin.of[0]);
  return from.values.map((row, i) => `${from.rows[i]} → ${from.columns[row.indexOf(Math.max(...row))]}`);
}

// Computes [{title, steps}] from what the library recorded, for an input. Each step has {id, name, formula, rows,
// columns, values, origin}, with tokens as rows; name and formula are those of the form.
function explain({sections}, input, columns) {
  const steps = new Map(), get = id => steps.get(id).values;
  return sections.map(section => ({title: section.title, steps: section.steps.map(step => {
    const values = valuesOf(step, input, get), name = step.names[columns ? 1 : 0];
    const computed = {...step, values, name, formula: formulaOf(step, get, columns), rows: rowLabels(step, steps)};
    steps.set(step.id, computed);
    return computed;
  })}));
}

// The arithmetic of a value, such as "1×1 + 0×2 = 1", or an empty text.
function arithmetic({origin, values}, i, j, get, columns) {
  const text = TEXTS[origin.kind];
  if (!text) return "";
  const [A, B, C, D] = origin.of.map(get);
  const left = text(origin, get, i, j, columns, A, B, C, D);
  return left ? `${left} = ${number(values[i][j])}` : "";
}

// The values that a value follows from: [{id, row, column}], where a row or a column that is absent means all.
function sources({origin, values}, i, j, get) {
  const {kind, of, index, terms} = origin;
  if (kind === "jacobian") return [...new Set([i, j])].map(column => ({id: of[0], row: index, column}));
  const ofRow = kind === "statistics" || (kind === "exponential" && shifts(get(of[0]), origin.number));
  if (ofRow) return [{id: of[0], row: i}];
  if (kind === "norm")
    return [{id: of[0], row: i, column: j}, {id: of[1], row: i}, ...of.slice(2).map(id => ({id, column: j}))];
  if (kind === "norm_gradient") return [...of.slice(0, 3).map(id => ({id, row: i})), {id: of[3]}];
  if (kind === "row_products") return [{id: of[0], row: i}, {id: of[i + 1], column: j}];
  if (kind === "column_sums") return [{id: of[0], column: j}];
  if (kind === "gain_gradient") return [{id: of[0], column: j}, {id: of[1], column: j}, {id: of[2]}];
  if (kind === "columns") return [{id: of[0], row: i, column: j + index}];
  if (kind === "side_by_side") {
    const width = get(of[0])[0].length;
    return [{id: of[Math.floor(j / width)], row: i, column: j % width}];
  }
  if (kind === "sum")
    return terms.flatMap(({left, right, turned, repeated}) => {
      if (repeated) return [{id: left, column: j}];
      if (!right) return [{id: left, row: i, column: j}];
      return [turned[0] ? {id: left, column: i} : {id: left, row: i},
              turned[1] ? {id: right, row: j} : {id: right, column: j}];
    });
  return of.map(id => ({id, row: get(id).length === 1 ? undefined : i,
                        column: get(id)[0].length === values[0].length ? j : undefined}));
}
