/** Elements, and the texts of numbers and instants. */

/**
 * Makes an element from a template with values in it: texts, elements, lists of them, attributes, and listeners after
 * `@click=` and the like. A value is never read as markup.
 */
export const html = (parts, ...values) => elementOf(parts, values, (text) => text).firstElementChild
/** Makes an element of a picture likewise. */
export const svg = (parts, ...values) =>
  elementOf(parts, values, (text) => `<svg>${text}</svg>`).firstElementChild.firstElementChild

/** Begins a placeholder for a value in markup; its number follows. */
const placeholder = '\u0001'
const entities = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' }
const escapeText = (text) => String(text).replaceAll(/[&"<>]/g, (sign) => entities[sign])

/** Parses the markup of a template with placeholders, and puts the values in their places. */
function elementOf(parts, values, wrap) {
  let text = ''
  parts.forEach((part, n) => {
    text += part
    if (n === values.length) return
    const isInTag = text.lastIndexOf('<') > text.lastIndexOf('>')
    if (!isInTag) text += `<!--${placeholder}${n}-->`
    else text += part.endsWith('=') ? `"${placeholder}${n}"` : escapeText(values[n])
  })
  const template = document.createElement('template')
  template.innerHTML = wrap(text.trim())
  const walker = document.createTreeWalker(template.content, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_COMMENT)
  // The walk ends before nodes are replaced, so that it does not enter the values.
  const nodes = []
  while (walker.nextNode()) nodes.push(walker.currentNode)
  for (const node of nodes) {
    if (node.nodeType !== Node.COMMENT_NODE) {
      for (const attribute of [...node.attributes]) setValue(node, attribute, values)
    } else if (node.data.startsWith(placeholder)) node.replaceWith(...childrenOf(values[Number(node.data.slice(1))]))
  }
  return template.content
}

const isAbsent = (value) => value === null || value === undefined || value === false
const childrenOf = (value) => [value].flat(3).filter((child) => !isAbsent(child))

/** Puts a value in the place of an attribute's placeholder: as a listener, a property or an attribute. */
function setValue(element, { name, value: text }, values) {
  if (!text.startsWith(placeholder)) return
  const value = values[Number(text.slice(1))]
  element.removeAttribute(name)
  if (name.startsWith('@')) element.addEventListener(name.slice(1), value)
  else if (['value', 'checked', 'selected'].includes(name)) element[name] = value
  else if (!isAbsent(value)) element.setAttribute(name, value === true ? '' : value)
}

/** A less prominent sentence. */
export const quiet = (words) => html`<p class="quiet">${words}</p>`
/** A part under its title. */
export const section = (title, ...parts) => html`<section><h2>${title}</h2>${parts}</section>`
/** Controls in their order; the form is never submitted. */
export const form = (...parts) =>
  html`<form class="controls" @submit=${(event) => event.preventDefault()}>${parts}</form>`
/** A list of sentences. */
export const list = (texts) => html`<ul>${texts.map((text) => html`<li>${text}</li>`)}</ul>`

export const byId = (id) => document.getElementById(id)

/** The text of a number with a sensible number of digits. */
export function figure(value) {
  if (value === null || value === undefined) return 'null'
  if (typeof value !== 'number') return String(value)
  const isLong = Number.isInteger(value) || Math.abs(value) >= 1e6
  return value.toLocaleString('en', isLong ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 8 })
}

/** The text of an instant of SQL without zeros and parts that add nothing; a different text is returned unchanged. */
export function moment(text) {
  if (text === null || text === undefined) return ''
  if (!/^\d{4}-\d\d-\d\dT/.test(text)) return String(text)
  return text.replace(/\.0+Z$/, 'Z').replace('T00:00:00Z', '').replace(/:00Z$/, 'Z').replace('T', ' ')
}

/** A length of time in its two largest units. */
export function span(ms) {
  const minutes = Math.floor(Math.abs(ms) / 60_000)
  const parts = [[Math.floor(minutes / 1440), 'd'], [Math.floor(minutes / 60) % 24, 'h'], [minutes % 60, 'min']]
  const shown = parts.filter(([count]) => count > 0).slice(0, 2).map((part) => part.join(' '))
  return (ms < 0 ? '−' : '') + (shown.join(' ') || '0 min')
}

/** One value as a cell. */
export function plainCell(value) {
  if (typeof value === 'number') return cellOf('td', figure(value), 'number')
  const text = value !== null && typeof value === 'object' ? JSON.stringify(value) : value
  return cellOf('td', value === null ? 'null' : moment(text), value === null ? 'null' : '')
}

/**
 * Rows as a table, which can be scrolled by keyboard, too. `cell` makes the cell of a value, and `row` returns the
 * attributes of a line.
 */
export function table(rows, label, { columns = Object.keys(rows[0] ?? {}), cell = plainCell, row = () => ({}) } = {}) {
  const lines = rows.map((values) => {
    const line = document.createElement('tr')
    line.append(...columns.map((name) => cell(values[name], name, values)))
    for (const [name, value] of Object.entries(row(values))) line.setAttribute(name, value)
    return line
  })
  const kindOf = (n) => (lines.some(({ cells }) => cells[n].classList.contains('number')) ? 'number' : '')
  // A null in a column of numbers is aligned like them.
  columns.forEach((_, n) => {
    if (kindOf(n) === 'number')
      for (const { cells } of lines) if (cells[n].className === 'null') cells[n].classList.add('number')
  })
  const head = columns.map((name, n) => cellOf('th', name.replaceAll('_', ' '), kindOf(n)))
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${head}</tr></thead>
    <tbody>${lines}</tbody></table></div>`
}

/** A cell of a table. A template cannot make it, because a parser accepts cells only within a table. */
export function cellOf(tag, content, kind = '') {
  const cell = document.createElement(tag)
  if (tag === 'th') cell.scope = 'col'
  if (kind !== '') cell.className = kind
  cell.append(...childrenOf(content))
  return cell
}

/** A control with its label. */
export const field = (name, control, kind = '') =>
  html`<label class="field ${kind}"><span>${name}</span>${control}</label>`

/** A field of text; `change` gets its trimmed value. `hint` is shown in the empty field, `help` over it. */
export function input(name, value, change, { hint = '', help = null, size = 20, list = null } = {}) {
  return html`<input value=${value} placeholder=${hint} title=${help} size=${size} list=${list} spellcheck="false" autocomplete="off"
    aria-label=${name} @change=${(event) => change(event.target.value.trim())}>`
}

/** A choice of words. `labels` has the texts that are shown in place of words. */
export function select(words, chosen, change, name, labels = { '': 'all' }) {
  const options = words.map((word) => new Option(labels[word] ?? word, word, false, word === chosen))
  return html`<select aria-label=${name} @change=${(event) => change(event.target.value)}>${options}</select>`
}

export const button = (words, click, title = null) =>
  html`<button type="button" title=${title} @click=${click}>${words}</button>`

/**
 * Returns a function that runs work, never twice at a time. Calls during a run make one further run after it; the
 * promise of each call ends after the last run.
 */
export function coalesced(work) {
  let running = null
  let isRequested = false
  const run = async () => {
    while (isRequested) {
      isRequested = false
      await work()
    }
    running = null
  }
  return () => {
    isRequested = true
    running ??= run()
    return running
  }
}
