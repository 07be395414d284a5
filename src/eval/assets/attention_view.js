// Draws attention maps in the elements of attention_view.html. showAttention starts it; `view` and `chosen` return what is
// displayed, `choose` and `point` change it. The event "drawn" on the map reports that another map is displayed.
'use strict';
const $ = id => document.getElementById(id);
let attention;  // {kinds: [{name, causal, rows, columns, layers}], weightsOf}: an element of layers is an array of heads,
                // and weightsOf(head) returns its weights, row by row
const about = {
  encoder: ['Encoder self-attention', 'Each source token (row) attends to all source tokens (columns).'],
  decoder: ['Decoder self-attention', 'Each target token (row) attends to itself and to the target tokens before it ' +
            '(columns). Later tokens are masked: the upper triangle is empty.'],
  cross: ['Cross-attention', 'Each target token (row) attends to the source tokens (columns) that it is ' +
          'translated from.'],
};
const title = kind => Object.hasOwn(about, kind.name) ? about[kind.name][0] : kind.name;
const state = {kind: 0, layer: 0, head: 0, words: false, row: 0, column: 0};  // head = heads.length: the mean

// ---- Data

// The tokens of an axis: text, whether it continues the previous word, and the number of its pieces.
function axis(words, merged) {
  if (merged) return words.map(w => ({text: w.word, more: false, size: w.pieces.length}));
  return words.flatMap(w => w.pieces.map((text, i) => ({text, more: i > 0, size: 1})));
}

// Merges pieces into words: columns of a word are summed, its rows averaged.
function merge(weights, rows, columns) {
  const merged = new Float32Array(rows.length * columns.length);
  let at = 0;
  rows.forEach((row, i) => {
    for (let k = 0; k < row.size; k++)
      columns.forEach((column, j) => {
        for (let n = 0; n < column.size; n++) merged[i * columns.length + j] += weights[at++] / row.size;
      });
  });
  return merged;
}

function mean(heads) {
  return heads[0].map((_, i) => heads.reduce((sum, w) => sum + w[i], 0) / heads.length);
}

// The current kind as displayed: tokens of both axes and layers[layer][head], with the mean as the last head.
const shown = new Map();
function view() {
  const key = state.kind + (state.words ? 'w' : 'p');
  if (!shown.has(key)) {
    const kind = attention.kinds[state.kind];
    const rows = axis(kind.rows, state.words), columns = axis(kind.columns, state.words);
    const layers = kind.layers.map(layer => {
      const heads = layer.map(attention.weightsOf).map(w => state.words ? merge(w, rows, columns) : w);
      return [...heads, mean(heads)];
    });
    shown.set(key, {kind, rows, columns, layers});
  }
  return shown.get(key);
}
const chosen = () => view().layers[state.layer][state.head];
const hidden = (v, i, j) => v.kind.causal && j > i;

// ---- Colour: by the square root of the weight, so that small weights are visible; all maps share one scale

let stops, colours;
function readColours() {
  stops = getComputedStyle(document.documentElement).getPropertyValue('--ramp').split(',').map(s => s.trim());
  const rgb = stops.map(s => [1, 3, 5].map(k => parseInt(s.slice(k, k + 2), 16)));
  colours = Array.from({length: 256}, (_, k) => {
    const x = k / 255 * (rgb.length - 1), n = Math.min(Math.floor(x), rgb.length - 2);
    return rgb[n].map((c, m) => Math.round(c + (x - n) * (rgb[n + 1][m] - c)));
  });
  $('scale').style.background = `linear-gradient(to right, ${stops.join(', ')})`;
}
const colour = weight => colours[Math.round(255 * Math.sqrt(Math.min(1, weight)))];

function drawThumb(canvas, v, weights) {
  const R = v.rows.length, C = v.columns.length;
  canvas.width = C;
  canvas.height = R;
  const image = new ImageData(C, R);
  for (let i = 0; i < R; i++)
    for (let j = 0; j < C; j++)
      if (!hidden(v, i, j)) image.data.set([...colour(weights[i * C + j]), 255], 4 * (i * C + j));
  canvas.getContext('2d').putImageData(image, 0, 0);
}

// Returns black or white, the one with the larger contrast (WCAG 2.2): at least 4.5 on any colour.
function readable(rgb) {
  const linear = rgb.map(c => c <= 10 ? c / 3295 : ((c / 255 + .055) / 1.055) ** 2.4);
  return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2] > .179 ? '#000000' : '#ffffff';
}

let cell = 20;  // pixels
function drawMap(v, weights) {
  const R = v.rows.length, C = v.columns.length, canvas = $('cells').querySelector('canvas');
  const sharp = Math.min(window.devicePixelRatio || 1, 8192 / (cell * Math.max(R, C)));  // limit of canvases
  canvas.width = C * cell * sharp;
  canvas.height = R * cell * sharp;
  canvas.style.width = C * cell + 'px';
  canvas.style.height = R * cell + 'px';
  const context = canvas.getContext('2d');
  context.scale(sharp, sharp);
  for (let i = 0; i < R; i++)
    for (let j = 0; j < C; j++) {
      if (hidden(v, i, j)) continue;
      context.fillStyle = `rgb(${colour(weights[i * C + j])})`;
      context.fillRect(j * cell, i * cell, cell - 1, cell - 1);
    }
}

// ---- Page

function element(name, properties = {}, children = []) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}
function label(name, token, properties = {}) {
  return element(name, {dir: 'auto', ...properties},
                 token.more ? [element('span', {className: 'more', textContent: '\u00b7'}), token.text] : [token.text]);
}

function showTabs() {
  $('tabs').replaceChildren(...attention.kinds.map((kind, k) => {
    const tab = element('button', {type: 'button', textContent: title(kind), onclick: () => choose({kind: k})});
    tab.setAttribute('role', 'tab');
    return tab;
  }));
}

function showGrid() {
  const v = view(), H = Math.max(...v.layers.map(heads => heads.length - 1)), grid = $('grid');
  const note = (text, className = '') => element('span', {textContent: text, className});
  const cells = [note('')];
  for (let h = 0; h < H; h++) cells.push(note(h + 1));
  cells.push(note('mean', 'mean'));
  v.layers.forEach((heads, l) => {
    cells.push(note(l + 1));
    heads.forEach((weights, h) => {
      const isMean = h === heads.length - 1;
      const canvas = element('canvas');
      const button = element('button', {type: 'button', className: isMean ? 'mean' : '', title: name(l, h),
                                        onclick: () => choose({layer: l, head: h})}, [canvas]);
      button.setAttribute('aria-label', name(l, h));
      if (isMean) button.style.gridColumn = H + 2;
      drawThumb(canvas, v, weights);
      cells.push(button);
    });
  });
  grid.style.gridTemplateColumns = `repeat(${H + 2}, auto)`;
  grid.style.setProperty('--thumb', Math.max(26, Math.min(72, Math.floor(430 / (H + 1)) - 7)) + 'px');
  grid.replaceChildren(...cells);
  grid.parentElement.hidden = v.layers.length === 1 && H === 1;  // it would show the selected map again
}
function name(layer, head) {
  return `Layer ${layer + 1}, ` + (head === view().layers[layer].length - 1 ? 'mean of all heads' : `head ${head + 1}`);
}

function showMap() {
  // Cells are as large as fits, but large enough to read the tokens; the map scrolls if necessary.
  const v = view(), wide = ($('map').parentElement.clientWidth - 170) / v.columns.length;
  const high = (window.innerHeight - 500) / v.rows.length;
  cell = Math.floor(Math.max(16, Math.min(38, wide, Math.max(24, high))));
  $('map').style.setProperty('--cell', cell + 'px');
  $('map').style.setProperty('--label', Math.min(14, cell - 4) + 'px');
  $('columns').replaceChildren(...v.columns.map(token =>
      element('div', {title: token.text}, [label('span', token), element('i')])));
  $('rows').replaceChildren(...v.rows.map((token, i) => {
    const row = label('div', token, {title: token.text});
    row.onpointerenter = () => point(i, strongest(i));
    return row;
  }));
  $('chips').replaceChildren(...v.columns.map(token => label('span', token, {title: ''})));
  drawMap(v, chosen());
  point(state.row, state.column);
  $('map').dispatchEvent(new Event('drawn'));
}

function strongest(i) {
  const C = view().columns.length, row = chosen().subarray(i * C, (i + 1) * C);
  return row.indexOf(Math.max(...row));
}

// Highlights row i and shows the weight of column j.
function point(i, j) {
  const v = view(), C = v.columns.length, weights = chosen();
  state.row = i;
  state.column = j;
  const value = hidden(v, i, j) ? 'masked: later token' : weights[i * C + j].toFixed(3);
  $('readout').replaceChildren(element('bdi', {textContent: v.rows[i].text}), ' \u2192 ',
                               element('bdi', {textContent: v.columns[j].text}), ': ' + value);
  [...$('rows').children].forEach((e, k) => e.classList.toggle('here', k === i));
  [...$('columns').children].forEach((e, k) => {
    e.classList.toggle('here', k === j);
    e.lastChild.style.setProperty('--weight', hidden(v, i, k) ? 0 : weights[i * C + k]);
  });
  [...$('chips').children].forEach((e, k) => {
    const rgb = colour(weights[i * C + k]);
    e.classList.toggle('here', k === j);
    e.style.background = hidden(v, i, k) ? '' : `rgb(${rgb})`;
    e.style.color = hidden(v, i, k) ? 'var(--faint)' : readable(rgb);
  });
  const visible = v.kind.causal ? i + 1 : C;
  Object.assign($('row').style, {left: 0, top: i * cell + 'px', width: visible * cell - 1 + 'px',
                                 height: cell - 1 + 'px'});
  Object.assign($('cell').style, {left: j * cell + 'px', top: i * cell + 'px', width: cell - 1 + 'px',
                                  height: cell - 1 + 'px'});
}

// Applies a change of the state, keeps the state within bounds, and redraws.
function choose(change) {
  Object.assign(state, change);
  const v = view(), clamp = (x, n) => Math.max(0, Math.min(n - 1, x | 0));
  state.layer = clamp(state.layer, v.layers.length);
  state.head = clamp(state.head, v.layers[state.layer].length);
  if ('kind' in change || 'words' in change) {
    state.row = v.rows.length >> 1;
    state.column = strongest(state.row);
    showGrid();
  }
  [...$('tabs').children].forEach((tab, k) => {
    tab.setAttribute('aria-selected', k === state.kind);
    tab.tabIndex = k === state.kind ? 0 : -1;
  });
  const at = v.layers.slice(0, state.layer).reduce((sum, heads) => sum + heads.length, 0) + state.head;
  [...$('grid').querySelectorAll('button')].forEach((button, k) => {
    button.setAttribute('aria-pressed', k === at);
    button.tabIndex = k === at ? 0 : -1;
  });
  $('words').checked = state.words;
  $('dot').hidden = ![...v.rows, ...v.columns].some(token => token.more);
  $('about').textContent = Object.hasOwn(about, v.kind.name) ? about[v.kind.name][1] : '';
  $('name').textContent = name(state.layer, state.head);
  showMap();
}

// ---- Keys and mouse

const arrows = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
function onArrows(target, move) {
  target.addEventListener('keydown', event => {
    if (!Object.hasOwn(arrows, event.key) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    move(...arrows[event.key]);
  });
}
onArrows($('tabs'), (down, right) => {
  choose({kind: (state.kind + down + right + attention.kinds.length) % attention.kinds.length});
  $('tabs').children[state.kind].focus();
});
onArrows($('grid'), (down, right) => {
  choose({layer: state.layer + down, head: state.head + right});
  $('grid').querySelector('[aria-pressed=true]').focus();
});
onArrows($('map'), (down, right) => {
  const v = view();
  point(Math.max(0, Math.min(v.rows.length - 1, state.row + down)),
        Math.max(0, Math.min(v.columns.length - 1, state.column + right)));
  $('cell').scrollIntoView({block: 'nearest', inline: 'nearest'});
});
function follow(event) {
  const v = view(), box = $('cells').getBoundingClientRect();
  const i = Math.floor((event.clientY - box.top) / cell), j = Math.floor((event.clientX - box.left) / cell);
  if (i >= 0 && i < v.rows.length && j >= 0 && j < v.columns.length && (i !== state.row || j !== state.column))
    point(i, j);
}
$('cells').addEventListener('pointermove', follow);
$('cells').addEventListener('pointerdown', follow);
$('words').addEventListener('change', () => choose({words: $('words').checked}));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  if (!attention) return;
  readColours();
  showGrid();
  choose({});
});
addEventListener('resize', () => {
  if (attention) showMap();
});
for (const weight of [0, .02, .1, .25, .5, 1])
  $('ticks').append(element('span', {textContent: weight, style: `left: ${100 * Math.sqrt(weight)}%`}));

// Shows maps, with `start` as the changes of the state.
function showAttention(maps, start) {
  attention = maps;
  shown.clear();
  readColours();
  showTabs();
  choose(start);
}
