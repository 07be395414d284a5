// Alternatives to a translation, and the keys and the mouse of the translation.

// Offers translations that begin as this one does up to the word.
async function offer(word) {
  const {sentence, start} = word, prefix = sentence.translation.slice(0, start).trimEnd(), {lang} = $('translation');
  $('alternatives').hidden = false;
  $('alternatives-label').textContent = `Alternatives from “${word.span.textContent}”`;
  $('choices').replaceChildren();
  $('close').onclick = () => {
    offering.stop();
    $('alternatives').hidden = true;
    goToWord(Math.max(0, words.findLastIndex(other => other.sentence === sentence && other.start <= start)));
  };
  await offering.run(async () => {
    const body = {...translator(), text: sentence.text, prefix, alternatives: true, n_best: 5, beam: 4};
    const found = [(await offering.json('/v1/translate', body)).translations].flat()[0].hypotheses;
    if (!found.some(other => other.text === sentence.translation)) found.unshift({text: sentence.translation});
    $('choices').replaceChildren(...found.map(({text, score}) => {
      const same = text.startsWith(prefix) ? prefix : '', next = /^\s*\S*/.exec(text.slice(same.length))[0];
      const input = make('input', '', {type: 'radio', name: 'choice', checked: text === sentence.translation});
      input.onchange = () => {
        sentence.translation = text;
        showWords();
        attend(sentence);
      };
      const shown = make('span', [same, make('b', next), text.slice(same.length + next.length)], {lang, dir: 'auto'});
      return make('label', [input, shown, make('small', score === undefined ? '' : 'score ' + decimal(score))]);
    }));
    $('choices').querySelector(':checked').focus();
  });
}

function translateSoon(event) {
  markSource();
  clearTimeout(timer);
  if (!event.isComposing) timer = setTimeout(translate, 300);
}
markSource();
$('source').addEventListener('input', translateSoon);
$('source').addEventListener('compositionend', translateSoon);
$('beam').onchange = $('translator').onchange = translate;
$('from').onchange = $('to').onchange = () => {
  showLanguages();
  translate();
};
$('swap').onclick = () => {
  const from = $('to').value, to = $('from').value, text = translationText();
  for (const [id, code] of [['from', from], ['to', to]]) {
    $(id).value = code;
    showLanguages();
  }
  if (text.trim()) $('source').value = text;
  translate();
};
$('translation').onpointerover = event => wordOf(event) && follows(wordOf(event));
$('translation').onpointerleave = () => pointAt(words.find(word => word.span === document.activeElement));
$('translation').addEventListener('focusout', () => pointAt());
$('translation').addEventListener('focusin', event => {
  const word = wordOf(event);
  if (!word) return;
  if (word.sentence !== attended) attend(word.sentence);
  follows(word);
});
$('translation').onclick = event => {
  const at = words.findIndex(word => word.span === event.target);
  if (at < 0 || String(getSelection())) return;
  goToWord(at);
  offer(words[at]);
};
$('translation').addEventListener('keydown', event => {
  if (event.key !== 'Enter' && event.key !== ' ') return;
  if (!wordOf(event)) return;
  event.preventDefault();
  offer(wordOf(event));
});
$('alternatives').addEventListener('keydown', event => {
  if (event.key === 'Escape') $('close').click();
});
