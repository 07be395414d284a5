// The attention maps of a translation, and the marks in the source.

// Returns pieces as the words of attention_view.js. "▁" begins a word.
function grouped(pieces) {
  const marked = pieces.some(piece => piece.startsWith('▁')), found = [];
  const alone = piece => /^<(?!unk>|0x..>).+>$/s.test(piece);
  pieces.forEach((piece, i) => {
    const text = piece.replace(/^▁(?=.)/s, '');
    const begins = !marked || !i || piece.startsWith('▁') || alone(piece) || alone(pieces[i - 1]);
    if (begins) found.push({word: '', pieces: []});
    found.at(-1).word += text;
    found.at(-1).pieces.push(text);
  });
  return found;
}

// Shows the maps of a sentence and its translation, of words or of pieces. A chain has none.
async function attend(sentence, merged = $('words').checked) {
  const {pivot} = languagesOf($('translator').value);
  if (pivot) $('attention').hidden = true;
  if (pivot || !sentence.translation) return;
  await attending.run(async () => {
    const {text, translation: target} = sentence;
    const answer = await attending.json('/v1/attend', {...translator(), text, target, words: merged});
    const maps = sentence.maps = answer.attention.map(({kind, rows, columns, layers}) => ({
      name: kind, causal: kind === 'decoder', rows: grouped(rows), columns: grouped(columns),
      layers: layers.map(heads => heads.map(head => Float32Array.from(head.flat()))),
    }));
    const cross = maps.findIndex(map => map.name === 'cross'), {layers} = maps[cross];
    const start = attended ? {kind: state.kind} : {kind: cross, layer: layers.length - 1, head: layers.at(-1).length};
    attended = sentence;
    $('attention').hidden = false;
    $('attention-of').textContent = `${text.trim()} → ${target}`;
    showAttention({kinds: maps, weightsOf: head => head}, {...start, words: merged});
  });
  if (attending.note.textContent) $('attention').hidden = true;
}

// Returns [start, end] of each token in a text, or null for a token that the text does not contain as it is.
function rangesOf(text, list) {
  let at = 0;
  return list.map(token => {
    const found = text.slice(at, at + token.text.length + 40).indexOf(token.text);
    return found < 0 ? null : [at + found, at += found + token.text.length];
  });
}

// Returns the numbers of the tokens that a word of the translation consists of.
function rowsOf(word, list) {
  return rangesOf(word.sentence.translation, list).flatMap((range, i) =>
      range && range[0] < word.end && word.start < range[1] ? [i] : []);
}

// Returns the source tokens with the weights that a word of the translation gives them, in the layer and head that are
// selected for cross-attention, else in the mean of the last layer.
function lookedAt(word) {
  const kind = word.sentence.maps.find(map => map.name === 'cross'), selected = view().kind === kind;
  const rows = axis(kind.rows, true), columns = axis(kind.columns, true), own = rowsOf(word, rows);
  const heads = kind.layers.at(selected ? state.layer : -1), head = selected && heads[state.head] || mean(heads);
  const weights = merge(head, rows, columns);
  return columns.map(({text}, j) => ({
    text, weight: own.reduce((sum, i) => sum + weights[i * columns.length + j] / own.length, 0),
  }));
}

// Marks what a word of the translation looked at, in the source and in a line of text.
function pointAt(word) {
  pointed = word;
  for (const other of words) other.span.classList.toggle('here', other === word);
  markSource();
  $('looked').replaceChildren();
  if (!word || word.sentence !== attended) return;
  const {text, start} = attended, looked = lookedAt(word), ranges = rangesOf(text, looked);
  const most = Math.max(...looked.map((token, j) => ranges[j] ? token.weight : 1e-9));
  markSource(ranges.flatMap((range, j) =>
      range && looked[j].weight > .08 * most ? [[start + range[0], start + range[1], looked[j].weight / most]] : []));
  const best = looked.sort((a, b) => b.weight - a.weight).slice(0, 3);
  $('looked').append(make('bdi', word.span.textContent), ' looks at ', ...best.flatMap((token, k) =>
      [k ? ', ' : '', make('bdi', token.text), ' ' + token.weight.toFixed(2)]));
}

// Points at a word, also in the map if it is one of cross-attention.
function follows(word) {
  pointAt(word);
  if (word.sentence !== attended || view().kind.name !== 'cross') return;
  const [row] = rowsOf(word, view().rows);
  if (row >= 0) point(row, strongest(row));
}

function showTable() {
  if (!$('as-table').open) return;
  const v = view(), C = v.columns.length, weights = chosen();
  const head = (token, scope) => make('th', token.text, {scope, dir: 'auto'});
  const cells = i => v.columns.map((_, j) => make('td', hidden(v, i, j) ? '' : weights[i * C + j].toFixed(3)));
  const table = make('table', [
    make('tr', [head({text: 'Token'}, 'col'), ...v.columns.map(token => head(token, 'col'))]),
    ...v.rows.map((token, i) => make('tr', [head(token, 'row'), ...cells(i)])),
  ]);
  $('table').replaceChildren(v.rows.length * C > 20000 ? 'This map is too large for a table.' : table);
}

$('words').checked = true;
// The maps of words have no pieces.
$('words').addEventListener('change', () => {
  if (!$('words').checked) attend(attended, false);
});
$('map').addEventListener('drawn', () => {
  showTable();
  pointAt(pointed);
});
$('as-table').ontoggle = showTable;
// The readout is said while the user moves in the map, not when a map is drawn.
$('readout').ariaLive = 'off';
$('map').onfocus = () => { $('readout').ariaLive = 'polite'; };
$('map').onblur = () => { $('readout').ariaLive = 'off'; };
