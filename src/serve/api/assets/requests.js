// Requests to the server: the key, errors, a server that is busy, streams. The first part of the page's script, after
// attention_view.js, which has `$`, `element`, `onArrows` and the maps.

// The key, as the user typed it.
let secret = '';
// A promise while the dialog is open.
let asking;

// Asks for the key. Resolves to false if the user cancels.
function askForKey() {
  return asking ??= new Promise(resolve => {
    const dialog = $('ask'), field = $('secret');
    $('ask-label').textContent = secret ? 'This key was not accepted' : 'This server requires a key';
    field.value = dialog.returnValue = '';
    dialog.onclose = () => {
      const given = dialog.returnValue === 'use';
      if (given) secret = field.value;
      field.value = '';
      asking = undefined;
      resolve(given);
    };
    dialog.showModal();
  });
}
$('cancel').onclick = () => $('ask').close('');

// Returns an Error with the message of a refused request, its status, and the milliseconds to wait until the next try.
async function refusal(answer) {
  let message = '';
  try {
    const {error} = await answer.json();
    message = String(error.message ?? error);
  } catch {}
  const after = name => Number(answer.headers.get(name));
  const wait = Math.max(0, Math.min(60000, after('retry-after-ms') || 1000 * after('retry-after') || 1000));
  const error = new Error(message || `The server answered with status ${answer.status}`);
  return Object.assign(error, {status: answer.status, wait});
}

// Sends a request, as POST if it has a body: an object for JSON, or a form. Throws an Error unless the answer is one of success.
async function send(path, body, signal) {
  for (;;) {
    const used = secret, headers = {};
    if (used) headers.Authorization = 'Bearer ' + used;
    const isForm = body instanceof FormData;
    if (body && !isForm) headers['Content-Type'] = 'application/json';
    const sent = isForm ? body : JSON.stringify(body);
    const answer = await fetch(path, {method: body ? 'POST' : 'GET', headers, body: sent, signal})
        .catch(error => {
          throw signal.aborted ? error : new Error('The server cannot be reached');
        });
    if (answer.ok) return answer;
    if (answer.status !== 401 || (used === secret && !await askForKey())) throw await refusal(answer);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

// A part of the page whose requests replace each other: a new one aborts the one before. Errors are shown in its note.
class Requests {
  constructor(part) {
    this.note = $(part + '-note');
  }

  say(text, waiting = false) {
    this.note.textContent = text;
    this.note.classList.toggle('waiting', waiting);
  }

  stop() {
    this.running?.abort();
    this.running = undefined;
    this.say('');
  }

  // Calls `work`, which sends requests with the functions below. Returns whether it was completed.
  async run(work) {
    this.stop();
    const own = this.running = new AbortController();
    try {
      await work();
      return true;
    } catch (error) {
      const unreadable = error instanceof TypeError || error instanceof SyntaxError;
      if (!own.signal.aborted) this.say(unreadable ? 'The answer of the server cannot be read' : error.message);
      return false;
    } finally {
      if (this.running === own) this.running = undefined;
    }
  }

  // Sends a request. If the server is busy, says when it is sent again, and does so once.
  async send(path, body) {
    const {signal} = this.running;
    try {
      return await send(path, body, signal);
    } catch (error) {
      if (error.status !== 429 && error.status !== 503) throw error;
      this.say(`${error.message}. Trying again in ${Math.ceil(error.wait / 1000)} s.`, true);
      await pause(error.wait, signal);
      this.say('');
      return send(path, body, signal);
    }
  }

  async json(path, body) {
    return (await this.send(path, body)).json();
  }

  // Yields the objects of a stream of server-sent events, up to [DONE].
  async* events(path, body) {
    const {signal} = this.running, answer = await this.send(path, body);
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    const cut = new Error('The connection ended before the text was complete');
    let text = '', complete = false;
    try {
      for (;;) {
        const {value, done} = await reader.read().catch(error => {
          throw signal.aborted ? error : cut;
        });
        if (done) break;
        const parts = (text + decoder.decode(value, {stream: true})).split('\n\n');
        text = parts.pop();
        for (const part of parts) {
          // A comment keeps the connection open.
          if (!part.startsWith('data: ') || complete) continue;
          complete = part === 'data: [DONE]';
          const event = complete ? {} : JSON.parse(part.slice(6));
          if (event.error) throw new Error(event.error.message);
          if (!complete) yield event;
        }
      }
      if (!complete) throw cut;
    } finally {
      reader.cancel().catch(() => {});
    }
  }
}
