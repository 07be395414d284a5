// Translation: languages, the text, and the translation as it grows.

// The languages of a translator, as codes. "und" stands for an unknown one. pivot: the models of a chain.
function languagesOf(id) {
  const known = info.models?.find(model => model.id === id);
  return {id, pivot: known?.pivot, from: known?.source_languages ?? ['und'], to: known?.target_languages ?? ['und']};
}
const english = new Intl.DisplayNames('en', {type: 'language'});

// Returns the name of a language. The server names the languages that it translates from.
function languageName(code) {
  if (code === 'und') return '';
  try {
    return languages.find(language => language.code === code)?.name ?? english.of(code);
  } catch {
    // The code has another form than those of browsers, such as "eng_Latn".
    return code;
  }
}

function showLanguages() {
  const unique = codes => [...new Set(codes)], all = modelsOf('translate').map(languagesOf);
  fill($('from'), unique(all.flatMap(model => model.from)), languageName, $('from-name'));
  const from = $('from').value, able = all.filter(model => model.from.includes(from));
  const targets = unique(able.flatMap(model => model.to)), others = targets.filter(code => code !== from);
  fill($('to'), others.length ? others : targets, languageName, $('to-name'));
  const to = $('to').value;
  fill($('translator'), able.filter(model => model.to.includes(to)).map(model => model.id));
  $('source').lang = $('mirror').lang = from;
  $('translation').lang = to;
  $('swap').hidden = from === to || !all.some(model => model.from.includes(to) && model.to.includes(from));
}

// The fields of a request that say who translates.
function translator() {
  const model = $('translator').value, {from, to} = languagesOf(model);
  const several = from.length > 1 || to.length > 1;
  return several ? {model, source_language: $('from').value, target_language: $('to').value} : {model};
}

// ---- The text and its translation

const translating = new Requests('translate'), attending = new Requests('attention');
const offering = new Requests('alternatives');
// sentences: those of the source, lines with text until they are translated: {text, start, line, before, translation,
// after, maps}. start is a place in the source, before and after are white space around a translation.
// words: those of the translation: {span, sentence, start, end}.
let timer, sentences = [], words = [];
// One of the words, and the sentence whose maps are shown.
let pointed, attended;

const translationText = () => [...$('translation').children].map(line => line.textContent).join('\n');
const showCopy = copies($('copy'), translationText);

// Shows the source behind the text field, with the ranges [start, end, weight] marked.
function markSource(ranges = []) {
  const text = $('source').value, parts = [];
  let at = 0;
  for (const [start, end, weight] of ranges) {
    parts.push(text.slice(at, start), set(make('mark', text.slice(start, end)), 'weight', weight));
    at = end;
  }
  $('mirror').replaceChildren(...parts, text.slice(at), '\n');
}

// Splits the source into lines, of which those with text are the sentences. Returns an element for each line.
function readSource() {
  let start = 0;
  sentences = [];
  return $('source').value.split('\n').map(text => {
    const line = make('p', '', {dir: 'auto'});
    if (text.trim()) sentences.push({text, start, line, before: '', translation: '', after: ''});
    start += text.length + 1;
    return line;
  });
}

// Returns the sentences of a translated line. pairs: {source, text} of each, or none of a line that is one sentence.
function sentencesOf(whole, pairs = []) {
  let at = 0, done = 0;
  const found = pairs.map(({source, text}) => {
    const begin = whole.text.indexOf(source, at), end = whole.translation.indexOf(text, done);
    const before = whole.translation.slice(done, end);
    at = begin + source.length;
    done = end + text.length;
    return {...whole, text: source, start: whole.start + begin, before, translation: text};
  });
  if (found.length) found.at(-1).after = whole.translation.slice(done);
  return found.length ? found : [whole];
}

async function translate() {
  clearTimeout(timer);
  for (const requests of [translating, attending, offering]) requests.stop();
  words = [];
  pointAt();
  announce('');
  showCopy(false);
  $('alternatives').hidden = $('details').hidden = true;
  const lines = readSource(), mine = sentences, progress = $('progress');
  progress.textContent = '';
  if (!mine.length) {
    $('translation').replaceChildren();
    $('attention').hidden = true;
    return;
  }
  $('translation').className = 'old';
  progress.textContent = 'Translating';
  progress.className = 'busy';
  let translated = [];
  const completed = await translating.run(async () => {
    const text = mine.length > 1 ? mine.map(sentence => sentence.text) : mine[0].text;
    const body = {...translator(), text, beam: Number($('beam').value), stream: true};
    for await (const event of translating.events('/v1/translate', body)) {
      const {translations, line, translation, usage, notes = []} = event;
      if (lines[0] !== $('translation').firstChild) $('translation').replaceChildren(...lines);
      $('translation').className = '';
      if (!translations) mine[line].line.textContent = event.text ?? translation.hypotheses[0].text;
      else {
        translated = [translations].flat().flatMap(({hypotheses: [best]}, i) =>
            sentencesOf({...mine[i], translation: best.text}, best.sentences));
        progress.textContent = [`${usage.target_tokens} tokens`, ...notes].join('. ');
      }
    }
  });
  if (mine !== sentences) return;
  progress.className = '';
  if (!completed) {
    progress.textContent = '';
    return;
  }
  sentences = translated;
  showWords();
  announce(translationText(), $('translation').lang);
  attend(sentences[0]);
}

// Turns the words of the translation into buttons.
function showWords() {
  const segmenter = new Intl.Segmenter(undefined, {granularity: 'word'});
  words = [];
  for (const {line} of sentences) line.replaceChildren();
  for (const sentence of sentences) {
    const parts = [...segmenter.segment(sentence.translation)].map(({segment, index, isWordLike}) => {
      if (!isWordLike) return segment;
      const span = make('span.word', segment, {role: 'button', tabIndex: words.length ? -1 : 0});
      span.setAttribute('aria-describedby', 'looked');
      words.push({span, sentence, start: index, end: index + segment.length});
      return span;
    });
    sentence.line.append(sentence.before, ...parts, sentence.after);
  }
  $('details').hidden = false;
  showCopy(true);
}
const wordOf = event => words.find(word => word.span === event.target);
const goToWord = rove($('translation'), () => words.map(word => word.span));
