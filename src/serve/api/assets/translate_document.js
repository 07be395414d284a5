// A document: the server translates its text, and the page offers the file.

const documents = new Requests('document');

// The file's name with the language, as in "letter.de.docx".
function translatedName(name, to) {
  const dot = name.lastIndexOf('.');
  return to === 'und' || dot < 0 ? name : `${name.slice(0, dot)}.${to}${name.slice(dot)}`;
}

function showDocuments({filesTranslation, supportedFilesFormat}) {
  $('document').hidden = !filesTranslation;
  $('file').accept = supportedFilesFormat;
}

// Shows the part of the texts that are translated, from 0 to 1, or nothing.
function showProgress(part) {
  const bar = $('file-progress');
  bar.hidden = part === undefined;
  bar.value = part ?? 0;
}

$('file').onchange = async () => {
  const [file] = $('file').files, state = $('file-state'), link = $('result'), form = new FormData();
  link.hidden = true;
  if (!file) return;
  $('file').value = '';
  const to = $('to').value, fields = {file, source: $('from').value, target: to, stream: true};
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  state.textContent = 'Translating ' + file.name;
  state.className = 'busy';
  const completed = await documents.run(async () => {
    let url;
    for await (const {done, of, translatedFileUrl} of documents.events('/translate_file', form)) {
      url = translatedFileUrl;
      if (of) showProgress(done / of);
    }
    const answer = await documents.send(new URL(url).pathname);
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(await answer.blob());
    link.download = link.textContent = translatedName(file.name, to);
  });
  showProgress();
  link.hidden = !completed;
  state.className = '';
  state.textContent = completed ? 'Translated:' : '';
};
