/** The rows of a view in SQL, in Python and on a command line: each text runs as it stands. */

import { utc, wall } from './ask.js'
import { button, html } from './dom.js'
import { quote } from './questions.js'
import { state } from './state.js'

/** A text as a shell reads it. */
export const shell = (text) => (/^[\w.,:/=#+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** A value as Python writes it. */
export function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.entries(value).map(([name, one]) => `${python(name)}: ${python(one)}`).join(', ')}}`
}

/**
 * The state of knowledge of what is shown, by the names of its settings. What the lake itself did, as coverage and
 * versions tell it, stands here at the same instant.
 */
export function knowledge(ofLedger = false) {
  const at = state.as_of === '' ? wall : state.as_of
  if (at === null) return {}
  return { as_of: utc(at), ...(ofLedger && { observed_as_of: utc(at) }) }
}

/** Opens a lake in Python. */
export const opened = (known) =>
  `import pitlake\n\nlake = pitlake.open(${['"data"', ...Object.entries(known).map(([name, at]) =>
    `${name}=${python(at)}`)].join(', ')})`

/** SQL that sets the state of knowledge first. */
export const known = (settings) =>
  Object.entries(settings).map(([name, at]) => `SET VARIABLE ${name} = ${quote(at)};\n`).join('')

/** A query in each of the three. */
function spelt(query, ofLedger) {
  const settings = knowledge(ofLedger)
  const flags = Object.entries(settings).map(([name, at]) => `--${name.replaceAll('_', '-')} ${shell(at)} `)
  let end = 'SQL'
  while (query.split('\n').includes(end)) end += '_'
  const plain = !query.includes('\\') && !query.includes('"""')
  return {
    Python: `${opened(settings)}\nframe = lake.sql(${plain ? `"""\n${query}\n"""` : python(query)}).df()`,
    SQL: `${known(settings)}${query};`,
    'Command line': `pitlake sql ${flags.join('')}--format csv <<'${end}'\n${query}\n${end}`,
  }
}

/** One text, and a button that copies it. */
export function way(name, text, about) {
  const said = html`<span class="copied" aria-live="polite"></span>`
  const place = html`<pre data-way=${name} data-about=${about} tabindex="0" role="region"
    aria-label="${name} of ${about}">${text}</pre>`
  const select = () => {
    place.focus()
    getSelection().selectAllChildren(place)
    said.textContent = 'selected: copy it with Ctrl+C'
  }
  const copy = () => navigator.clipboard === undefined ? select()
    : navigator.clipboard.writeText(text).then(() => (said.textContent = 'copied'), select)
  const press = button('copy', copy)
  press.ariaLabel = `copy ${name} of ${about}`
  return html`<div><h3>${name} ${press} ${said}</h3>${place}</div>`
}

/** What is open stays open while the view is drawn anew. */
const open = new Set()

/** Texts by their names, which open on demand. */
export function folded(texts, about, names) {
  const turn = ({ target }) => (target.open ? open.add(about) : open.delete(about))
  return html`<details class="ways" open=${open.has(about)} @toggle=${turn}>
    <summary>Copy ${about} as ${names}</summary>
    ${Object.entries(texts).map(([name, text]) => way(name, text, about))}</details>`
}

/** A query as the three texts. */
export const ways = (query, about, { ofLedger = false } = {}) =>
  folded(spelt(query, ofLedger), about, 'Python, SQL or a command line')
