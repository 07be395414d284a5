// Recommendations: the history, and suggestions with the events behind them.

const searching = new Requests('search'), suggesting = new Requests('recommend');
// answered: whether suggestions were shown; past: {item, title}, oldest first; offered: items that the search found;
// active: the selected one.
let answered = false, past = [], offered = [], active = -1, searchTimer;
const titleOf = entry => entry.title || entry.item;

function showFound(entries) {
  offered = entries;
  active = -1;
  $('found').hidden = !entries.length;
  $('search').ariaExpanded = entries.length > 0;
  $('search').removeAttribute('aria-activedescendant');
  $('found').replaceChildren(...entries.map((entry, i) => make('li', titleOf(entry), {
    id: `found-${i}`, role: 'option', ariaSelected: false, dir: 'auto', onclick: () => add(entry),
  })));
}

async function find() {
  const q = $('search').value.trim();
  await searching.run(async () => {
    const query = new URLSearchParams({q, n: 10, model: $('recommender').value});
    const {items} = q ? await searching.json('/v1/items?' + query) : {items: []};
    showFound(document.activeElement === $('search') ? items : []);
    if (q && !items.length) searching.say('No item was found', true);
  });
}

function add(entry) {
  clearTimeout(searchTimer);
  searching.stop();
  past.push(entry);
  $('search').value = '';
  showFound([]);
  changed();
}

// Shows the history and asks for suggestions.
function changed() {
  const move = (from, to, place) => {
    past.splice(to, 0, ...past.splice(from, 1));
    changed();
    focus(to, place);
  };
  const remove = i => {
    past.splice(i, 1);
    changed();
    focus(Math.min(i, past.length - 1), 2);
  };
  const focus = (i, place) => {
    const buttons = [...$('history').children[i]?.querySelectorAll('button') ?? []];
    (buttons[place]?.disabled ? buttons[1 - place] : buttons[place] ?? $('search')).focus();
  };
  $('empty').hidden = past.length > 0;
  $('history').replaceChildren(...past.map((entry, i) => {
    const button = (text, label, onclick, disabled = false) =>
        make('button.quiet', text, {type: 'button', ariaLabel: `${label} ${titleOf(entry)}`, disabled, onclick});
    return make('li', [
      make('span', titleOf(entry), {dir: 'auto'}),
      button('↑', 'Move up', () => move(i, i - 1, 0), !i),
      button('↓', 'Move down', () => move(i, i + 1, 1), i === past.length - 1),
      button('×', 'Remove', () => remove(i)),
    ]);
  }));
  suggest();
}

$('search').addEventListener('input', () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(find, 150);
});
$('search').addEventListener('keydown', event => {
  const n = offered.length, move = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (event.key === 'Escape') showFound([]);
  if (event.key === 'Enter' && n) add(offered[Math.max(0, active)]);
  if (!move || !n) return;
  event.preventDefault();
  active = active < 0 && move < 0 ? n - 1 : (active + move + n) % n;
  const option = $('found').children[active];
  for (const other of $('found').children) other.ariaSelected = other === option;
  $('search').setAttribute('aria-activedescendant', option.id);
  option.scrollIntoView({block: 'nearest'});
});
$('search').onblur = () => showFound([]);
$('found').onpointerdown = event => event.preventDefault();  // the field keeps the focus

// ---- Suggestions

async function suggest() {
  answered = true;
  $('suggestions').className = 'old';
  announce('');
  await suggesting.run(async () => {
    const body = {model: $('recommender').value, history: past.map(entry => entry.item), top: 10, explain: true};
    showSuggestions(await suggesting.json('/v1/recommend', body));
    announce(`${$('suggestions').children.length} suggestions`);
  });
  $('suggestions').className = '';
}
const titleOfItem = item => titleOf(past.find(entry => entry.item === item) ?? {item});

function showSuggestions({items, popular, read = [], unknown = []}) {
  const list = $('suggestions'), focused = [...list.children].findIndex(line => line.contains(document.activeElement));
  const most = Math.max(1e-9, ...items.flatMap(entry => entry.effects ?? []).map(Math.abs));
  $('basis').textContent = (popular ? 'The most popular items, with the number of their events.' :
      `Based on ${read.length} ${read.length === 1 ? 'event' : 'events'}. Bars show what an event adds to a score.`) +
      (unknown.length ? ` Unknown to the model: ${unknown.map(titleOfItem).join(', ')}.` : '');
  const score = entry => make('small', popular ? entry.score.toLocaleString('en') : decimal(entry.score));
  list.replaceChildren(...items.map(entry => make('li', [
    make('span.rank', entry.rank),
    make('span.item', [titleOf(entry), score(entry)], {dir: 'auto'}),
    effects(read, entry.effects ?? [], most),
    make('button.quiet', 'Add', {type: 'button', ariaLabel: `Add ${titleOf(entry)}`, onclick: () => add(entry)}),
  ])));
  list.children[focused]?.querySelector('button').focus();
}

// Shows the three events with the largest effects on a suggestion.
function effects(read, values, most) {
  const order = values.map((_, i) => i).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, 3);
  return make('span.effects', order.flatMap(i => [
    make('bdi', titleOfItem(read[i])),
    set(make(values[i] < 0 ? 'i.less' : 'i'), 'share', Math.abs(values[i]) / most),
    make('span', (values[i] < 0 ? '' : '+') + decimal(values[i])),
  ]));
}

$('recommender').onchange = () => {
  past = [];
  changed();
};
