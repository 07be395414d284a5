'use strict';
const $ = id => document.getElementById(id);
const data = JSON.parse($('data').textContent);

function element(tag, text, properties) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  return Object.assign(made, properties);
}
const number = (value, digits = 3) => value.toFixed(digits).replace('-', '−');
const signed = value => (value >= 0 ? '+' : '') + number(value, 4);
const offsetOf = n => n > 0 ? `+${n}` : `${n}`.replace('-', '−');
const change = c => `${signed(c.value)} (95 %: ${signed(c.low)} to ${signed(c.high)})`;
const nameOf = head => `${head.kind} attention, layer ${head.layer}, head ${head.head}`;
const plural = (n, noun) => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;

const parts = {encoder: 'encoder self-attention', decoder: 'decoder self-attention', cross: 'decoder cross-attention'};
const removed = new Map(data.ablations.filter(a => a.head).map(a => [`${a.part}/${a.layer}/${a.head}`, a]));
const effectOf = head => removed.get(`${parts[head.kind]}/${head.layer}/${head.head}`);

// ---- The grids of heads

const measures = {'the strength of the role': head => head.strength};
if (data.heads.some(head => head.importance !== undefined)) measures['the importance by gradient'] = head => head.importance;
if (removed.size) measures['the loss without the head'] = head => effectOf(head).loss.value;
for (const name of new Set(data.heads.flatMap(head => Object.keys(head.scores))))
  measures[`the score ${name}`] = head => head.scores[name] ? head.scores[name].value : 0;
for (const name of Object.keys(measures)) $('measure').append(element('option', name));

const buttons = [];
function addGrid(kind) {
  const heads = data.heads.filter(head => head.kind === kind), width = Math.max(...heads.map(head => head.head));
  if (!heads.length) return;
  const panel = element('section', undefined, {className: 'panel'});
  const grid = element('div', undefined, {className: 'grid'});
  panel.setAttribute('aria-label', `${kind} attention`);
  grid.setAttribute('role', 'group');
  grid.setAttribute('aria-label', `Heads of ${kind} attention`);
  grid.style.gridTemplateColumns = `auto repeat(${width}, minmax(92px, 1fr))`;
  grid.append(element('span'));
  for (let h = 1; h <= width; h++) grid.append(element('span', h));
  for (const head of heads) {
    if (head.head === 1) grid.append(element('span', head.layer));
    const button = element('button', undefined, {type: 'button', tabIndex: head === heads[0] ? 0 : -1});
    button.append(element('span', head.role));
    const meter = element('span', undefined, {className: 'meter'});
    meter.append(element('i'));
    button.append(meter);
    button.setAttribute('aria-label', `${nameOf(head)}: ${head.role}`);
    button.addEventListener('click', () => select(buttons.findIndex(b => b.button === button)));
    buttons.push({button, head, kind, width});
    grid.append(button);
  }
  panel.append(element('h2', `${kind[0].toUpperCase()}${kind.slice(1)} attention: layers and heads`), grid);
  $('grids').append(panel);
}

function drawMeters() {
  const value = measures[$('measure').value], most = Math.max(...data.heads.map(value), 1e-12);
  for (const {button, head} of buttons)
    button.querySelector('i').style.width = `${Math.max(0, Math.min(1, value(head) / most)) * 100}%`;
}

// ---- The selected head

function tableOf(header, rows) {
  const table = element('table'), head = element('tr');
  for (const text of header) head.append(element('th', text, {scope: 'col'}));
  table.append(head);
  for (const row of rows) {
    const line = element('tr');
    for (const cell of row) {
      const made = element('td');
      made.append(cell);
      line.append(made);
    }
    table.append(line);
  }
  const scroll = element('div', undefined, {className: 'scroll', tabIndex: 0});
  scroll.setAttribute('role', 'region');
  scroll.setAttribute('aria-label', header[0]);
  scroll.append(table);
  return scroll;
}

const shown = piece => piece.length > 1 ? piece.replace(/^[▁Ġ]/, '') : piece;

// A map whose rows are selected with the pointer or the arrow keys; the caption says where the row attends to.
function mapOf(example, number_) {
  const figure = element('figure', undefined, {className: 'map'}), caption = element('figcaption');
  const scroll = element('div', undefined, {className: 'scroll', tabIndex: 0});
  const cells = element('div', undefined, {className: 'cells'});
  scroll.setAttribute('role', 'application');
  scroll.setAttribute('aria-label', `Weights on text ${example.line}: select a row with the arrow keys`);
  cells.setAttribute('aria-hidden', 'true');
  cells.style.gridTemplateColumns = `max-content repeat(${example.columns.length}, 15px)`;
  cells.append(element('span'));
  for (const piece of example.columns) cells.append(element('span', shown(piece), {className: 'column', title: piece}));
  const labels = [];
  example.weights.forEach((weights, i) => {
    labels.push(element('span', shown(example.rows[i]), {className: 'row', title: example.rows[i]}));
    cells.append(labels[i]);
    for (const weight of weights) {
      const cell = element('i');
      cell.style.opacity = Math.max(0.03, weight);
      cell.addEventListener('pointerenter', () => showRow(i));
      cells.append(cell);
    }
  });
  let row = 0;
  function showRow(i) {
    labels[row].classList.remove('on');
    row = i;
    labels[row].classList.add('on');
    const best = example.weights[i].map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w > 0);
    caption.textContent = `Text ${example.line}: “${shown(example.rows[i])}” attends to ` +
        best.map(([w, j]) => `“${shown(example.columns[j])}” ${number(w, 2)}`).join(', ');
  }
  scroll.addEventListener('keydown', event => {
    const step = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!step) return;
    event.preventDefault();
    showRow(Math.max(0, Math.min(example.rows.length - 1, row + step)));
  });
  caption.setAttribute('aria-live', 'polite');
  showRow(Math.floor(example.rows.length / 2));
  scroll.append(cells);
  figure.append(element('h3', `Example ${number_}`), caption, scroll);
  return figure;
}

let selected = -1;
function select(place, focus) {
  if (selected >= 0) buttons[selected].button.setAttribute('aria-pressed', 'false');
  selected = place;
  const {button, head, kind} = buttons[place];
  for (const other of buttons) if (other.kind === kind) other.button.tabIndex = -1;
  button.setAttribute('aria-pressed', 'true');
  button.tabIndex = 0;
  if (focus) button.focus();
  $('name').textContent = nameOf(head)[0].toUpperCase() + nameOf(head).slice(1);
  $('role').textContent = head.role === 'broad' ? 'Attends to most tokens about equally.'
      : head.role === 'mixed' ? 'No role stands out.' : `Mostly: ${head.role} (strength ${number(head.strength, 2)}).`;
  const effect = effectOf(head), effects = [];
  if (effect) effects.push(`Loss without it: ${change(effect.loss)} nats per token.`);
  if (effect && effect.ndcg10) effects.push(`NDCG@10 without it: ${change(effect.ndcg10)}.`);
  if (effect && effect.bleu) effects.push(`BLEU without it: ${change(effect.bleu)}.`);
  if (head.importance !== undefined) effects.push(`Importance by gradient: ${number(head.importance, 4)} nats per token.`);
  $('effects').replaceChildren(...effects.map(text => element('p', text)));
  $('examples').replaceChildren(...(head.examples || []).map((example, i) => mapOf(example, i + 1)));
  const tables = [element('h3', 'Scores'), tableOf(['score', 'this head', 'uniform attention'],
      Object.entries(head.scores).map(([name, s]) => [name, number(s.value), number(s.uniform)]))];
  if (head.agreements)
    tables.push(element('h3', 'Most attended word'), tableOf(['relation', 'pairs', 'right', 'fixed offset'],
        head.agreements.map(a => [`${a.relation}, ${a.direction}`, a.pairs, number(a.share), number(a.baseline)])));
  $('tables').replaceChildren(...tables);
}

$('grids').addEventListener('keydown', event => {
  const place = buttons.findIndex(b => b.button === event.target);
  if (place < 0) return;
  const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -buttons[place].width, ArrowDown: buttons[place].width}[event.key];
  if (!step) return;
  event.preventDefault();
  if (buttons[place + step]) select(place + step, true);
});

// ---- The best head for each relation

const intervalOf = c => `${signed(c.low)} to ${signed(c.high)}`;

// A button that selects a head in its grid.
function linkTo(best) {
  const place = buttons.findIndex(b => b.head.kind === best.kind && b.head.layer === best.layer && b.head.head === best.head);
  const link = element('button', nameOf(best), {type: 'button', className: 'link'});
  link.addEventListener('click', () => {
    select(place);
    $('one').scrollIntoView({block: 'nearest'});
  });
  return link;
}

function drawBest() {
  const withLoss = data.best.some(best => best.loss);
  const rows = data.best.map(best => [
    best.direction ? `${best.relation}, ${best.direction}` : best.relation, linkTo(best), number(best.value),
    `${number(best.baseline)} ${best.offset === undefined ? 'uniform' : `offset ${offsetOf(best.offset)}`}`,
    ...(best.loss ? [signed(best.loss.value), intervalOf(best.loss)] : [])]);
  const header = ['relation', 'head', 'score', 'baseline', ...(withLoss ? ['loss without it', '95 %'] : [])];
  $('best-table').replaceChildren(...tableOf(header, rows).firstChild.childNodes);
  $('best-about').textContent = 'Scores are weights on tokens, or shares of words whose most attended word is the right one' +
      ` (with the best fixed offset as baseline). A head below its baseline does not follow the relation.${withLoss ? ' Changes of the loss are in nats per token.' : ''}`;
}

// ---- The page

const sides = [data.source_tokens && plural(data.source_tokens, data.target_tokens ? 'source token' : 'token'),
               data.target_tokens && plural(data.target_tokens, data.source_tokens ? 'target token' : 'token')];
$('about').textContent = `${data.run}: ${plural(data.texts, data.kind === 'recommender' ? 'user' : 'text')}, ` +
    `${sides.filter(Boolean).join(', ')}${data.own_translations ? ' of its own translations' : ''}.`;
document.title = `Attention heads of ${data.run}`;
for (const kind of ['encoder', 'decoder', 'cross']) addGrid(kind);
drawBest();
$('measure').addEventListener('change', drawMeters);
drawMeters();
select(buttons.length - 1);
$('parts').hidden = !data.ablations.length;
if (data.ablations.length) {
  $('parts-about').textContent = `Change of the loss per token (${number(data.loss, 4)} nats) when the output of a part is ` +
      `replaced by ${data.replace_by === 'mean' ? 'its mean' : 'zeros'}; most needed parts first.`;
  const rows = [...data.ablations].sort((a, b) => b.loss.value - a.loss.value).map(a => [
    `${a.part}, layer ${a.layer}${a.head ? `, head ${a.head}` : ''}`, signed(a.loss.value),
    intervalOf(a.loss), ...[a.ndcg10, a.bleu].filter(Boolean).flatMap(c => [signed(c.value), intervalOf(c)])]);
  const other = data.ndcg10 !== undefined ? ['NDCG@10', '95 %'] : data.bleu !== undefined ? ['BLEU', '95 %'] : [];
  const header = ['part', 'loss', '95 %', ...other];
  $('parts-table').replaceChildren(...tableOf(header, rows).firstChild.childNodes);
}
