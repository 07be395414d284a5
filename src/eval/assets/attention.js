const data = JSON.parse($('data').textContent);

function decode(base64) {
  const bytes = atob(base64), weights = new Float32Array(bytes.length / 2);
  for (let i = 0; i < weights.length; i++)
    weights[i] = (bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8) / 65535;
  return weights;
}

if (data.kinds.length === 1)  // the map of a language model
  document.querySelectorAll('.sentences dt').forEach((dt, i) => { dt.textContent = ['Text', 'Continuation'][i]; });
for (const side of ['source', 'target']) {
  $(side).textContent = data[side];
  if (!data[side]) $(side).hidden = $(side).previousElementSibling.hidden = true;
}
document.querySelector('.sentences').hidden = !data.source && !data.target;
const isSplit = word => word.pieces.length > 1;
$('words').parentElement.hidden = !data.kinds.some(kind => kind.rows.some(isSplit) || kind.columns.some(isSplit));
if (data.source) document.title = 'Attention: ' + data.source;

// The fragment of the URL may select kind/layer/head/words, as in #cross/6/1/words. By default, as in the terminal, the
// last kind, a translator's cross-attention, with its last layer and first head.
const [kind, layer, head, words] = location.hash.slice(1).split('/');
const named = data.kinds.findIndex(k => k.name === kind), opened = named < 0 ? data.kinds.length - 1 : named;
showAttention({kinds: data.kinds, weightsOf: decode},
              {kind: opened, layer: (layer || data.kinds[opened].layers.length) - 1, head: head - 1,
               words: words === 'words'});
