// The frame of the page: helpers for its elements, tabs, and the models that the server has.

// Makes an element from its name and class, as in 'span.word', and its text or its children.
function make(name, content = '', properties = {}) {
  const [tag, className = ''] = name.split('.');
  return element(tag, {className, ...properties}, [content].flat());
}

const decimal = number => number.toFixed(2).replace('-', '−');

function set(target, name, value) {
  target.style.setProperty('--' + name, value);
  return target;
}

// Makes a screen reader say a text when it is idle.
function announce(text, lang = 'en') {
  $('status').lang = lang;
  $('status').textContent = text;
}

// Moves the focus among elements by the arrow keys, Home and End. One of them is reached by Tab. Returns the function
// that moves the focus to the element with a given number.
function rove(target, all) {
  const go = to => {
    const list = all(), chosen = list.at(to % list.length);
    for (const other of list) other.tabIndex = other === chosen ? 0 : -1;
    chosen?.focus();
  };
  onArrows(target, (down, right) => {
    const now = document.activeElement, forward = getComputedStyle(now).direction === 'rtl' ? -right : right;
    go(all().indexOf(now) + down + forward);
  });
  target.addEventListener('keydown', event => {
    if (event.key !== 'Home' && event.key !== 'End') return;
    event.preventDefault();
    go(event.key === 'Home' ? 0 : -1);
  });
  return go;
}

// Returns a function that shows or hides a button, which copies a text.
function copies(button, text) {
  button.onclick = async () => {
    await navigator.clipboard.writeText(text());
    button.textContent = 'Copied';
  };
  return show => {
    button.hidden = !show || !navigator.clipboard;
    button.textContent = 'Copy';
  };
}

// Fills a list of choices and keeps what was chosen, if possible. One choice alone is shown in `alone` instead.
function fill(select, values, text = value => value, alone = {}) {
  const before = select.value;
  select.replaceChildren(...values.map(value => make('option', text(value), {value})));
  if (values.includes(before)) select.value = before;
  (select.closest('.options label') ?? select).hidden = values.length < 2;
  alone.textContent = values.length === 1 ? text(values[0]) : '';
}

// ---- Tabs and models

const page = new Requests('page');
const kindOf = {translate: 'translator', recommend: 'recommender', generate: 'language_model'};
let models = [], info = {}, languages = [];
const modelsOf = id => models.filter(model => model.kind === kindOf[id]).map(model => model.id);
const panelOf = tab => tab.getAttribute('aria-controls');

function openPage(id) {
  for (const tab of $('pages').children) {
    const open = panelOf(tab) === id;
    $(panelOf(tab)).hidden = !open;
    tab.ariaSelected = open;
    tab.tabIndex = open ? 0 : -1;
  }
  history.replaceState(null, '', '#' + id);
  if (id === 'translate' && attention) showMap();
  if (id === 'recommend' && !answered) suggest();
}
rove($('pages'), () => [...$('pages').children]);
for (const tab of $('pages').children) tab.onfocus = tab.onclick = () => openPage(panelOf(tab));

page.run(async () => {
  models = (await page.json('/v1/models')).data;
  info = await page.json('/v1/info');
  languages = await page.json('/languages');
  showDocuments(await page.json('/frontend/settings'));
  for (const tab of [...$('pages').children])
    if (!modelsOf(panelOf(tab)).length) tab.remove();
  fill($('recommender'), modelsOf('recommend'));
  fill($('generator'), modelsOf('generate'));
  showLanguages();
  const served = [...$('pages').children].map(panelOf), wanted = location.hash.slice(1);
  if (served.length) openPage(served.includes(wanted) ? wanted : served[0]);
  else page.say('This server has no model for this page. The file /openapi.json describes its interface.', true);
  $('pages').hidden = !served.length;
  $('served').textContent = `${info.version}: ` + models.map(model =>
      `${model.id} (${model.kind.replace('_', ' ')}, ${model.parameters.toLocaleString('en')} parameters)`).join(', ');
});
