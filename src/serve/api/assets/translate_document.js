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

$('file').onchange = async () => {
  const [file] = $('file').files, state = $('file-state'), link = $('result'), form = new FormData();
  link.hidden = true;
  if (!file) return;
  $('file').value = '';
  const to = $('to').value;
  for (const [name, value] of Object.entries({file, source: $('from').value, target: to})) form.append(name, value);
  state.textContent = 'Translating ' + file.name;
  state.className = 'busy';
  const completed = await documents.run(async () => {
    const {translatedFileUrl} = await documents.json('/translate_file', form);
    const answer = await documents.send(new URL(translatedFileUrl).pathname);
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(await answer.blob());
    link.download = link.textContent = translatedName(file.name, to);
  });
  link.hidden = !completed;
  state.className = '';
  state.textContent = completed ? 'Translated:' : '';
};
