// Search over sections, best first by BM25 (Robertson and Zaragoza, 2009), with words of titles counted several times.
'use strict';

const stopWords = new Set(('a an and are as at be by can do does for from get have how i if in into is it its me my of ' +
  'on or own that the this to use using was what when where which who why will with you your').split(' '));
const listWeight = 0.7;  // of pages that few readers want first: lists of names, the design, tables of results
const titleWeight = 6, k1 = 1.2, b = 0.5, shown = 25;

// Words in lower case without common endings, so that "training" finds "train".
function wordsOf(text) {
  const words = text.toLowerCase().normalize('NFKD').match(/[\p{L}\p{N}]+/gu) || [];
  return words.map(word =>
    word.length > 4 ? word.replace(/(?:ies|y)$/, 'i').replace(/(?:ings?|ed|es|s|e)$/, '') : word);
}

function countsOf(words, weight, counts = new Map()) {
  for (const word of words) counts.set(word, (counts.get(word) || 0) + weight);
  return counts;
}

const pages = sections.map(([page, title, url, text]) => {
  const body = wordsOf(text);
  const counts = countsOf(wordsOf(page), title === page ? titleWeight : 2,
                          countsOf(wordsOf(title), title === page ? 0 : titleWeight, countsOf(body, 1)));
  const weight = /^(?:reference\/(?:cpp|python|http)|design\/|results\/)/.test(url) ? listWeight : 1;
  return {page, title, url, text, weight, counts, length: body.length + 20};
});
const meanLength = pages.reduce((sum, page) => sum + page.length, 0) / pages.length;

// The number of times that a page has the word, or for the last word, which may be unfinished, a word that begins so.
function frequency(page, word, isLast) {
  const count = page.counts.get(word) || 0;
  if (count || !isLast || word.length < 3) return count;
  for (const [other, times] of page.counts) if (other.startsWith(word)) return times / 2;
  return 0;
}

function search(query) {
  const all = [...new Set(wordsOf(query))];
  const words = all.filter(word => !stopWords.has(word));
  const scores = pages.map(() => 0);
  (words.length ? words : all).forEach((word, i, {length}) => {
    const found = pages.map(page => frequency(page, word, i === length - 1));
    const matches = found.filter(Boolean).length;
    const rarity = Math.log(1 + (pages.length - matches + 0.5) / (matches + 0.5));
    found.forEach((n, p) => {
      scores[p] += pages[p].weight * rarity * n * (k1 + 1) / (n + k1 * (1 - b + b * pages[p].length / meanLength));
    });
  });
  const order = pages.map((_, p) => p).filter(p => scores[p] > 0).sort((p, q) => scores[q] - scores[p]);
  return {words, found: order.map(p => pages[p])};
}

// The part of the text with the most words of the query, in which they are marked.
function excerpt(text, words) {
  const parts = text.split(/(?<=\s)/);
  const hits = parts.map(part => wordsOf(part).some(word => words.includes(word)));
  let best = 0, most = -1;
  for (let i = 0; i < parts.length; i += 5) {
    const count = new Set(parts.slice(i, i + 35).filter((_, j) => hits[i + j])).size;
    if (count > most) [best, most] = [i, count];
  }
  const line = document.createElement('p');
  if (best) line.append('… ');
  parts.slice(best, best + 35).forEach((part, j) => {
    const node = hits[best + j] ? document.createElement('mark') : document.createElement('span');
    node.textContent = hits[best + j] ? part.trimEnd() : part;
    line.append(node, hits[best + j] ? ' ' : '');
  });
  if (best + 35 < parts.length) line.append('…');
  return line;
}

function show(query) {
  const {words, found} = search(query);
  const items = found.slice(0, shown).map(({page, title, url, text}) => {
    const item = document.createElement('li'), link = document.createElement('a');
    link.href = document.documentElement.dataset.content_root + url;
    link.textContent = title === page ? page : `${page}: ${title}`;
    item.append(link, excerpt(text, words));
    return item;
  });
  document.getElementById('search-results').replaceChildren(...items);
  document.getElementById('search-hint').hidden = !query.trim() || found.length > 0;
  document.getElementById('search-status').textContent =
    !query.trim() ? '' : found.length === 1 ? '1 section' :
    found.length > shown ? `The best ${shown} of ${found.length} sections` : `${found.length || 'No'} sections`;
}

const field = document.getElementById('query');
field.value = new URLSearchParams(location.search).get('q') || '';
field.addEventListener('input', () => show(field.value));
field.form.addEventListener('submit', event => event.preventDefault());
show(field.value);
