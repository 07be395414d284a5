"use strict";
// The steps of attention on small matrices, arrays of rows. The library computes the same: src/program/explain.

const zip = (A, B, f) => A.map((row, i) => row.map((a, j) => f(a, B[i][j])));
const map = (A, f) => A.map((row, i) => row.map((a, j) => f(a, i, j)));
const transposed = A => A[0].map((_, j) => A.map(row => row[j]));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const timesTransposed = (A, B) => A.map(a => B.map(b => dot(a, b)));
const times = (A, B) => timesTransposed(A, transposed(B));
const plus = (A, B) => zip(A, B, (a, b) => a + b);
const sideBySide = tables => tables[0].map((_, i) => tables.flatMap(table => table[i]));
const columnsOf = (A, begin, end) => A.map(row => row.slice(begin, end));
const sum = row => row.reduce((total, x) => total + x, 0);

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

// Collects steps under the ids of a prefix.
class Steps {
  constructor(prefix = "") { this.prefix = prefix; this.all = []; }
  add(id, name, formula, rows, columns, values) {
    this.all.push({id: this.prefix + id, name, formula, rows, columns, values});
    return values;
  }
  // Adds a matrix of the input.
  given(id, name, rows, columns, values) { return this.add(id, name, "", rows, columns, values); }
}

const factorOf = input => input.scale || 1 / Math.sqrt(input.heads[0].W_Q[0].length);
const keysFrom = input => input.memory || input.X;
const keyLabels = input => input.memory ? input.memory_tokens : input.tokens;
const whichHead = (input, h) => input.heads.length === 1 ? "" : `, head ${h + 1} of ${input.heads.length}`;

function maskedScores(input, S) {
  return map(S, (s, i, j) => input.causal && j > i ? -Infinity : s + (input.mask ? input.mask[i][j] : 0));
}

function headForward(steps, input, W) {
  const rows = input.tokens, keys = keyLabels(input), from = input.memory ? "M" : "X", factor = factorOf(input);
  for (const name of ["W_Q", "W_K", "W_V"]) steps.given(name, name, [], [], W[name]);
  const Q = steps.add("Q", "Q", "X W_Q", rows, [], times(input.X, W.W_Q));
  const K = steps.add("K", "K", `${from} W_K`, keys, [], times(keysFrom(input), W.W_K));
  const V = steps.add("V", "V", `${from} W_V`, keys, [], times(keysFrom(input), W.W_V));
  let S = map(steps.add("scores", "scores", "Q Kᵀ", rows, keys, timesTransposed(Q, K)), s => factor * s);
  const formula = input.scale ? `${input.scale} Q Kᵀ`
      : `Q Kᵀ / √d_k, with √d_k = √${Q[0].length} = ${(1 / factor).toFixed(3)}`;
  steps.add("scaled", "S", formula, rows, keys, S);
  if (input.causal || input.mask) S = steps.add("masked", "S", "S + mask", rows, keys, maskedScores(input, S));
  const shifts = S.flat().some(s => s > 100);
  const largest = S.map(row => { const m = Math.max(...row); return shifts && m !== -Infinity ? m : 0; });
  const E = steps.add("exp", "E", shifts ? "exp(S − the largest of the row)" : "exp(S)", rows, keys,
                      map(S, (s, i) => Math.exp(s - largest[i])));
  steps.add("row_sums", "row sums", "Σⱼ Eᵢⱼ", rows, [], E.map(row => [sum(row)]));
  const A = steps.add("weights", "A", "softmax(S): E divided by its row sums", rows, keys,
                      E.map(row => row.map(e => sum(row) ? e / sum(row) : 0)));
  const O = steps.add("output", "O", "A V", rows, [], times(A, V));
  return {Q, K, V, A, O};
}

function forward(input, sections) {
  const inputs = new Steps(), rows = input.tokens;
  inputs.given("X", "X", rows, [], input.X);
  if (input.memory) inputs.given("memory", "M", input.memory_tokens, [], input.memory);
  if (input.mask) inputs.given("mask", "mask", rows, keyLabels(input), input.mask);
  const given = input.layer ? "dN_2" : input.W_O ? "dY" : "dO";
  if (input.dO) inputs.given("given_gradient", given, rows, [], input.dO);
  sections.push({title: "Inputs", steps: inputs.all});
  const heads = input.heads.map((W, h) => {
    const steps = new Steps(`head${h + 1}.`);
    const head = headForward(steps, input, W);
    sections.push({title: "Attention" + whichHead(input, h), steps: steps.all});
    return head;
  });
  const steps = new Steps();
  let O = sideBySide(heads.map(head => head.O));
  if (heads.length > 1) steps.add("concat", "O", "outputs of the heads, side by side", rows, [], O);
  if (input.W_O) {
    steps.given("W_O", "W_O", [], [], input.W_O);
    O = steps.add("output", "Y", "O W_O", rows, [], times(O, input.W_O));
  }
  if (steps.all.length) sections.push({title: "Output of all heads", steps: steps.all});
  return {heads, O};
}

function norm(steps, input, R, number) {
  const {[`gamma_${number}`]: gamma, [`beta_${number}`]: beta, epsilon} = input.layer;
  steps.given(`gamma_${number}`, `γ_${number}`, [], [], gamma);
  steps.given(`beta_${number}`, `β_${number}`, [], [], beta);
  const statistics = R.map(row => {
    const mean = sum(row) / row.length;
    return [mean, Math.sqrt(sum(row.map(x => (x - mean) ** 2)) / row.length + epsilon)];
  });
  steps.add(`statistics_${number}`, "μ, σ", "mean and √(variance + ε) of each row", input.tokens, ["μ", "σ"],
            statistics);
  const Z = map(R, (x, i) => (x - statistics[i][0]) / statistics[i][1]), sigma = statistics.map(row => row[1]);
  const formula = `γ_${number} ∘ (R_${number} − μ) / σ + β_${number}`;
  const N = steps.add(`norm_${number}`, `N_${number}`, formula, input.tokens, [],
                      map(Z, (z, i, j) => gamma[0][j] * z + beta[0][j]));
  return {Z, sigma, N};
}

function layerForward(input, attention, sections) {
  const {layer, tokens} = input, withBias = (X, b) => map(X, (x, i, j) => x + b[0][j]);
  let steps = new Steps();
  const R1 = steps.add("residual_1", "R_1", `X + ${input.W_O ? "Y" : "O"}`, tokens, [], plus(input.X, attention));
  const norm1 = norm(steps, input, R1, 1), N1 = norm1.N;
  sections.push({title: "Residual sum and norm", steps: steps.all});
  steps = new Steps();
  for (const name of ["W_1", "b_1", "W_2", "b_2"]) steps.given(name, name, [], [], layer[name]);
  const hidden = steps.add("hidden", "H", "N_1 W_1 + b_1", tokens, [], withBias(times(N1, layer.W_1), layer.b_1));
  const active = steps.add("activation", "φ(H)", layer.activation, tokens, [],
                           map(hidden, x => ACTIVATIONS[layer.activation](x)));
  const F = steps.add("feed_forward", "F", "φ(H) W_2 + b_2", tokens, [], withBias(times(active, layer.W_2), layer.b_2));
  sections.push({title: "Feed-forward network", steps: steps.all});
  steps = new Steps();
  const norm2 = norm(steps, input, steps.add("residual_2", "R_2", "N_1 + F", tokens, [], plus(N1, F)), 2);
  sections.push({title: "Residual sum and norm: the output of the layer", steps: steps.all});
  return {norm1, norm2, hidden, active};
}

const columnSums = A => [transposed(A).map(sum)];

function normBackward(steps, input, {Z, sigma}, dN, number) {
  const gamma = input.layer[`gamma_${number}`], normalized = `(R_${number} − μ) / σ`;
  steps.add(`dgamma_${number}`, `dγ_${number}`, `Σᵢ dN_${number} ∘ ${normalized}`, [], [],
            columnSums(zip(dN, Z, (d, z) => d * z)));
  steps.add(`dbeta_${number}`, `dβ_${number}`, `Σᵢ dN_${number}`, [], [], columnSums(dN));
  const G = map(dN, (d, i, j) => gamma[0][j] * d), mean = row => sum(row) / row.length;
  const formula = `(G − mean(G) − Z mean(G ∘ Z)) / σ, G = γ_${number} ∘ dN_${number}, Z = ${normalized}, ` +
      "means of each row";
  return steps.add(`dR_${number}`, `dR_${number}`, formula, input.tokens, [], G.map((g, i) => {
    const ofG = mean(g), ofProduct = mean(g.map((x, j) => x * Z[i][j]));
    return g.map((x, j) => (x - ofG - Z[i][j] * ofProduct) / sigma[i]);
  }));
}

// Returns dR_1, the gradient of the attention's output.
function layerBackward(input, {norm1, norm2, hidden, active}, sections) {
  const {layer, tokens} = input;
  let steps = new Steps();
  const dR2 = normBackward(steps, input, norm2, input.dO, 2);
  sections.push({title: "Backward: second norm", steps: steps.all});
  steps = new Steps();
  steps.add("dW_2", "dW_2", "φ(H)ᵀ dR_2", [], [], times(transposed(active), dR2));
  steps.add("db_2", "db_2", "Σᵢ dR_2", [], [], columnSums(dR2));
  const dactive = steps.add("dactivation", "dφ(H)", "dR_2 W_2ᵀ", tokens, [], timesTransposed(dR2, layer.W_2));
  const dH = steps.add("dH", "dH", "φ′(H) ∘ dφ(H)", tokens, [],
                       zip(hidden, dactive, (h, d) => SLOPES[layer.activation](h) * d));
  steps.add("dW_1", "dW_1", "N_1ᵀ dH", [], [], times(transposed(norm1.N), dH));
  steps.add("db_1", "db_1", "Σᵢ dH", [], [], columnSums(dH));
  const dN1 = steps.add("dN_1", "dN_1", "dR_2 + dH W_1ᵀ", tokens, [], plus(dR2, timesTransposed(dH, layer.W_1)));
  sections.push({title: "Backward: feed-forward network", steps: steps.all});
  steps = new Steps();
  const dR1 = normBackward(steps, input, norm1, dN1, 1);
  sections.push({title: "Backward: first norm", steps: steps.all});
  return dR1;
}

function headBackward(steps, input, {Q, K, V, A}, dO) {
  const rows = input.tokens, keys = keyLabels(input), from = input.memory ? "Mᵀ" : "Xᵀ", factor = factorOf(input);
  if (input.heads.length > 1) steps.add("dO", "dO", "the columns of dO that belong to this head", rows, [], dO);
  const dV = steps.add("dV", "dV", "Aᵀ dO", keys, [], times(transposed(A), dO));
  const dA = steps.add("dA", "dA", "dO Vᵀ", rows, keys, timesTransposed(dO, V));
  const J = A.map((a, i) => steps.add(`jacobian${i + 1}`, `J, ${rows[i]}`, "diag(a) − aᵀ a, a the row of A", keys, keys,
                                      a.map((x, j) => a.map((y, k) => x * ((j === k) - y)))));
  const dS = steps.add("dS", "dS", "each row of dA times its J", rows, keys, dA.map((row, i) => times([row], J[i])[0]));
  const dscores = steps.add("dscores", "d(Q Kᵀ)", input.scale ? `${input.scale} dS` : "dS / √d_k", rows, keys,
                            map(dS, s => factor * s));
  const dQ = steps.add("dQ", "dQ", "d(Q Kᵀ) K", rows, [], times(dscores, K));
  const dK = steps.add("dK", "dK", "d(Q Kᵀ)ᵀ Q", keys, [], times(transposed(dscores), Q));
  steps.add("dW_Q", "dW_Q", "Xᵀ dQ", [], [], times(transposed(input.X), dQ));
  steps.add("dW_K", "dW_K", `${from} dK`, [], [], times(transposed(keysFrom(input)), dK));
  steps.add("dW_V", "dW_V", `${from} dV`, [], [], times(transposed(keysFrom(input)), dV));
  return {dQ, dK, dV};
}

// output: the gradient of the attention's output.
function backward(input, {heads}, output, sections) {
  const outputSteps = new Steps(), name = input.W_O ? "dY" : "dO";
  let dO = output;
  if (input.layer) outputSteps.add(name, name, "dR_1", input.tokens, [], output);
  if (input.W_O) {
    const O = sideBySide(heads.map(head => head.O));
    outputSteps.add("dW_O", "dW_O", "Oᵀ dY", [], [], times(transposed(O), output));
    dO = outputSteps.add("dO", "dO", "dY W_Oᵀ", input.tokens, [], timesTransposed(output, input.W_O));
  }
  if (outputSteps.all.length) sections.push({title: "Backward: output", steps: outputSteps.all});
  const width = heads[0].O[0].length;
  let dX = input.layer ? output : map(input.X, () => 0), dM = map(keysFrom(input), () => 0);
  heads.forEach((head, h) => {
    const steps = new Steps(`head${h + 1}.`), W = input.heads[h];
    const {dQ, dK, dV} = headBackward(steps, input, head, columnsOf(dO, h * width, (h + 1) * width));
    dX = plus(dX, timesTransposed(dQ, W.W_Q));
    dM = plus(dM, plus(timesTransposed(dK, W.W_K), timesTransposed(dV, W.W_V)));
    sections.push({title: "Backward: attention" + whichHead(input, h), steps: steps.all});
  });
  const steps = new Steps(), residual = input.layer ? "dR_1 + " : "";
  const ofHeads = heads.length === 1 ? "" : ", summed over the heads";
  if (input.memory) {
    steps.add("dX", "dX", residual + "dQ W_Qᵀ" + ofHeads, input.tokens, [], dX);
    steps.add("dM", "dM", "dK W_Kᵀ + dV W_Vᵀ" + ofHeads, input.memory_tokens, [], dM);
  } else {
    steps.add("dX", "dX", residual + "dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ" + ofHeads, input.tokens, [], plus(dX, dM));
  }
  sections.push({title: "Backward: inputs", steps: steps.all});
}

// Returns [{title, steps: [{id, name, formula, rows, columns, values}]}].
function explain(input) {
  const sections = [], results = forward(input, sections);
  const layer = input.layer && layerForward(input, results.O, sections);
  if (input.dO) backward(input, results, layer ? layerBackward(input, layer, sections) : input.dO, sections);
  return sections;
}
