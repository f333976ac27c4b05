/** The rows of a view in SQL, in Python and on a command line: each text runs as it stands. */

import { utc, wall } from './requests.js'
import { flagTexts, opened, python } from './command-texts.js'
import { button, html } from './dom.js'
import { quote } from './questions.js'
import { state } from './state.js'

/**
 * Settings for the instant that the page shows. With `ofLedger` they also limit facts about the lake itself, such as
 * coverage and versions.
 */
export function knowledge(ofLedger = false) {
  const at = state.as_of === '' ? wall : state.as_of
  if (at === null) return {}
  return { as_of: utc(at), ...(ofLedger && { observed_as_of: utc(at) }) }
}

/** SQL that sets the state of knowledge. */
export const settingsSql = (settings) =>
  Object.entries(settings).map(([name, at]) => `SET VARIABLE ${name} = ${quote(at)};\n`).join('')

/** A query in Python, in SQL and on a command line. */
function queryTexts(query, ofLedger) {
  const settings = knowledge(ofLedger)
  const flags = flagTexts(settings).map((text) => `${text} `)
  // The line that ends the text for a shell must not occur in the query.
  let endLine = 'SQL'
  while (query.split('\n').includes(endLine)) endLine += '_'
  const isPlain = !query.includes('\\') && !query.includes('"""')
  return {
    Python: `${opened(settings)}\nframe = lake.sql(${isPlain ? `"""\n${query}\n"""` : python(query)}).df()`,
    SQL: `${settingsSql(settings)}${query};`,
    'Command line': `pitlake sql ${flags.join('')}--format csv <<'${endLine}'\n${query}\n${endLine}`,
  }
}

/** One text, and a button that copies it. */
export function textBlock(name, text, about) {
  const outcome = html`<span class="copied" aria-live="polite"></span>`
  const block = html`<pre data-way=${name} data-about=${about} tabindex="0" role="region"
    aria-label="${name} of ${about}">${text}</pre>`
  const select = () => {
    block.focus()
    getSelection().selectAllChildren(block)
    outcome.textContent = 'selected: copy it with Ctrl+C'
  }
  const copy = () => navigator.clipboard === undefined ? select()
    : navigator.clipboard.writeText(text).then(() => (outcome.textContent = 'copied'), select)
  const copyButton = button('copy', copy)
  copyButton.ariaLabel = `copy ${name} of ${about}`
  return html`<div><h3>${name} ${copyButton} ${outcome}</h3>${block}</div>`
}

/** What the unfolded texts are about; they stay unfolded when the view is redrawn. */
const unfolded = new Set()

/** Texts by their names, which a reader can unfold. */
export function foldedTexts(texts, about, names) {
  const remember = ({ target }) => (target.open ? unfolded.add(about) : unfolded.delete(about))
  return html`<details class="ways" open=${unfolded.has(about)} @toggle=${remember}>
    <summary>Copy ${about} as ${names}</summary>
    ${Object.entries(texts).map(([name, text]) => textBlock(name, text, about))}</details>`
}

/** A query as texts to copy. */
export const copies = (query, about, { ofLedger = false } = {}) =>
  foldedTexts(queryTexts(query, ofLedger), about, 'Python, SQL or a command line')
