// The page works without this: it only saves reloading.
'use strict';

const part = (id) => document.getElementById(id);

// Fetches parts of the page and puts each in the place of the one with its id.
async function update(path) {
  try {
    const answer = await fetch(path, { cache: 'no-store' });
    if (!answer.ok) throw new Error(answer.statusText);
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    for (const element of [...fresh.body.children]) part(element.id)?.replaceWith(element);
    part('offline').hidden = true;
  } catch {
    part('offline').hidden = false;
  }
}

const read = (reader) => update(`/entries/${reader}`);

for (const form of document.querySelectorAll('form[data-read]')) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const reader = form.dataset.read;
    await read(reader);
    await update('/live');
    part('said').textContent = part(reader).querySelector('.answer')?.innerText ?? '';
  });
}

// Each second: who still misses the new entry reads again, and so does the visitor whose
// context has just stopped keeping him on the primary.
async function tick() {
  if (!document.hidden) {
    const was_sticky = 'sticky' in part('sticky').dataset;
    for (const reader of ['you', 'other']) {
      if ('missing' in part(reader).dataset) await read(reader);
    }
    await update('/live');
    if (was_sticky && !('sticky' in part('sticky').dataset)) {
      await read('you');
      await update('/live');
    }
  }
  setTimeout(tick, 1000);
}
setTimeout(tick, 1000);
