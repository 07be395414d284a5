// Text generation: tokens with their probabilities and alternatives.

const generating = new Requests('generate');
// {span, others}: others are [token, log-probability, whether it was taken].
let tokens = [];
const generated = () => $('tokens').textContent, showCopyText = copies($('copy-text'), generated);
const visible = text => text.replace(/\n/g, '⏎').replace(/^ | $/g, '␣');

// Returns a function that turns tokens into text. A token "bytes:\xe2\x82" is a part of a character, which is shown
// with its last part.
function byteReader() {
  const decoder = new TextDecoder();
  return token => {
    if (!token.startsWith('bytes:')) return token;
    const bytes = [...token.matchAll(/\\x(..)/g)].map(byte => parseInt(byte[1], 16));
    return decoder.decode(new Uint8Array(bytes), {stream: true});
  };
}

function showToken(text, chance, others) {
  const ariaLabel = text.trim() ? null : visible(text) || 'part of a character';
  const span = make(text ? 'span.token' : 'span.token empty', text,
                    {role: 'option', ariaLabel, ariaSelected: false, tabIndex: tokens.length ? -1 : 0});
  tokens.push({span, others});
  $('tokens').append(set(span, 'doubt', 1 - chance));
}

// Shows a token with the others that the model considered.
function consider(token) {
  for (const {span} of tokens) span.ariaSelected = span === token?.span;
  $('token-hint').hidden = Boolean(token);
  $('considered').hidden = !token;
  $('considered').tBodies[0].replaceChildren(...(token?.others ?? []).map(([text, logarithm, taken]) => {
    const chance = Math.exp(logarithm), bar = set(make('i'), 'share', chance);
    return make(taken ? 'tr.taken' : 'tr', [
      make('th', visible(text), {scope: 'row', dir: 'auto'}),
      make('td', [bar, `${(100 * chance).toFixed(1)} %`]),
    ]);
  }));
}

async function generate() {
  const finish = $('finish'), read = byteReader();
  let reason, seed;
  tokens = [];
  consider();
  announce('');
  showCopyText(false);
  $('given').textContent = $('prompt').value;
  $('tokens').replaceChildren();
  $('written').hidden = false;
  finish.textContent = 'Generating';
  finish.classList.add('busy');
  $('go').textContent = 'Stop';
  const completed = await generating.run(async () => {
    const body = {model: $('generator').value, prompt: $('prompt').value, max_tokens: Number($('length').value),
                  temperature: Number($('temperature').value), logprobs: 5, slide: true, stream: true};
    for await (const event of generating.events('/v1/completions', body)) {
      const [choice = {}] = event.choices;
      const {tokens: pieces = [], token_logprobs: own, top_logprobs: top} = choice.logprobs ?? {};
      seed = event.seed ?? seed;
      reason = choice.finish_reason ?? reason;
      pieces.forEach((piece, i) => {
        const others = Object.entries(top?.[i] ?? {}).filter(other => other[0] !== piece);
        showToken(read(piece), Math.exp(own[i]), [[piece, own[i], true], ...others].sort((a, b) => b[1] - a[1]));
      });
    }
  });
  const n = tokens.length;
  finish.classList.remove('busy');
  finish.textContent = !completed ? `Stopped after ${n} tokens.` :
      (reason === 'length' ? `Generated ${n} tokens.` : `The text ended after ${n} tokens.`) +
      (seed === undefined ? '' : ` Seed: ${seed}.`);
  $('go').textContent = 'Generate';
  showCopyText(n > 0);
  if (completed) announce(generated());
}

$('generate-form').onsubmit = event => {
  event.preventDefault();
  if (generating.running) generating.stop();
  else generate();
};
$('temperature').oninput = () => { $('warmth').textContent = Number($('temperature').value).toFixed(2); };
$('prompt').addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) $('generate-form').requestSubmit();
});
const goToToken = rove($('tokens'), () => tokens.map(token => token.span));
const tokenAt = event => tokens.findIndex(token => token.span === event.target);
$('tokens').onpointerover = event => tokenAt(event) >= 0 && consider(tokens[tokenAt(event)]);
$('tokens').addEventListener('focusin', event => consider(tokens[tokenAt(event)]));
$('tokens').onclick = event => tokenAt(event) >= 0 && goToToken(tokenAt(event));
