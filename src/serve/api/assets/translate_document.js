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
  const [file] = $('file').files, state = $('state'), bar = $('bar'), link = $('result');
  link.hidden = true;
  if (!file) return;
  $('file').value = '';
  const to = $('to').value, form = new FormData();
  for (const [name, value] of Object.entries({file, source: $('from').value, target: to, stream: true}))
    form.append(name, value);
  bar.value = 0;
  bar.hidden = false;
  state.textContent = 'Translating ' + file.name;
  const completed = await documents.run(async () => {
    let last;
    for await (last of documents.events('/translate_file', form)) bar.value = last.done / last.of || 1;
    const answer = await documents.send(new URL(last.translatedFileUrl).pathname);
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(await answer.blob());
    link.download = link.textContent = translatedName(file.name, to);
  });
  bar.hidden = true;
  link.hidden = !completed;
  state.textContent = completed ? 'Done:' : '';
};
