/** What all parts draw with: elements, figures and instants as people read them. */

/** An element from a text with holes: texts, elements, or after `@click=` and its like what listens. */
export const html = (parts, ...holes) => filled(parts, holes, (text) => text, 0)
/** The same of a picture. */
export const svg = (parts, ...holes) => filled(parts, holes, (text) => `<svg>${text}</svg>`, 1)

const hole = '\u0001'
const signs = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' }
const escaped = (text) => String(text).replaceAll(/[&"<>]/g, (sign) => signs[sign])

function filled(parts, holes, wrapped, depth) {
  let text = ''
  parts.forEach((part, n) => {
    text += part
    if (n === holes.length) return
    const inTag = text.lastIndexOf('<') > text.lastIndexOf('>')
    text += !inTag ? `<!--${hole}${n}-->` : part.endsWith('=') ? `"${hole}${n}"` : escaped(holes[n])
  })
  const template = document.createElement('template')
  template.innerHTML = wrapped(text.trim())
  const nodes = document.createTreeWalker(template.content, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_COMMENT)
  const found = []
  while (nodes.nextNode()) found.push(nodes.currentNode)
  for (const node of found) {
    if (node.nodeType !== Node.COMMENT_NODE) for (const one of [...node.attributes]) fill(node, one, holes)
    else if (node.data.startsWith(hole)) node.replaceWith(...childrenOf(holes[Number(node.data.slice(1))]))
  }
  return depth === 0 ? template.content.firstElementChild : template.content.firstElementChild.firstElementChild
}

const childrenOf = (value) => [value].flat(3).filter((one) => one !== null && one !== undefined && one !== false)

function fill(element, { name, value }, holes) {
  if (!value.startsWith(hole)) return
  const given = holes[Number(value.slice(1))]
  element.removeAttribute(name)
  if (name.startsWith('@')) element.addEventListener(name.slice(1), given)
  else if (['value', 'checked', 'selected'].includes(name)) element[name] = given
  else if (given !== null && given !== undefined && given !== false)
    element.setAttribute(name, given === true ? '' : given)
}

/** Words beside the matter. */
export const quiet = (words) => html`<p class="quiet">${words}</p>`
/** A part under its title. */
export const section = (title, ...parts) => html`<section><h2>${title}</h2>${parts}</section>`
/** Controls in their order; nothing is sent. */
export const form = (...parts) =>
  html`<form class="controls" @submit=${(event) => event.preventDefault()}>${parts}</form>`
/** What is to be noted of an answer. */
export const list = (texts) => html`<ul>${texts.map((text) => html`<li>${text}</li>`)}</ul>`

export const byId = (id) => document.getElementById(id)

/** A number with as many digits as tell something. */
export function figure(value) {
  if (value === null || value === undefined) return 'null'
  if (typeof value !== 'number') return String(value)
  const many = Number.isInteger(value) || Math.abs(value) >= 1e6
  return value.toLocaleString('en', many ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 8 })
}

/** An instant of SQL as it is read, without what says nothing; any other text as it is. */
export function moment(text) {
  if (text === null || text === undefined) return ''
  if (!/^\d{4}-\d\d-\d\dT/.test(text)) return String(text)
  return text.replace(/\.0+Z$/, 'Z').replace('T00:00:00Z', '').replace(/:00Z$/, 'Z').replace('T', ' ')
}

/** A length of time in its two largest units. */
export function span(ms) {
  const minutes = Math.floor(Math.abs(ms) / 60_000)
  const parts = [[Math.floor(minutes / 1440), 'd'], [Math.floor(minutes / 60) % 24, 'h'], [minutes % 60, 'min']]
  const told = parts.filter(([count]) => count > 0).slice(0, 2).map((part) => part.join(' '))
  return (ms < 0 ? '−' : '') + (told.join(' ') || '0 min')
}

/** One value as a cell. */
export function plainCell(value) {
  if (typeof value === 'number') return cellOf('td', figure(value), 'number')
  const text = value !== null && typeof value === 'object' ? JSON.stringify(value) : value
  return cellOf('td', value === null ? 'null' : moment(text), value === null ? 'null' : '')
}

/** Rows as a table that can be scrolled by keyboard, too. */
export function table(rows, label, { columns = Object.keys(rows[0] ?? {}), cell = plainCell, row = () => ({}) } = {}) {
  const lines = rows.map((one) => {
    const line = document.createElement('tr')
    line.append(...columns.map((name) => cell(one[name], name, one)))
    for (const [name, value] of Object.entries(row(one))) line.setAttribute(name, value)
    return line
  })
  const kind = (n) => (lines.some(({ cells }) => cells[n].className === 'number') ? 'number' : '')
  const head = columns.map((name, n) => cellOf('th', name.replaceAll('_', ' '), kind(n)))
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${head}</tr></thead>
    <tbody>${lines}</tbody></table></div>`
}

/** A cell; parts of tables stand in no text of their own. */
export function cellOf(tag, content, kind = '') {
  const cell = document.createElement(tag)
  if (tag === 'th') cell.scope = 'col'
  if (kind !== '') cell.className = kind
  cell.append(...childrenOf(content))
  return cell
}

/** A control with its name. */
export const field = (name, control, kind = '') =>
  html`<label class="field ${kind}"><span>${name}</span>${control}</label>`

/** A text that changes a part of the state. */
export function input(name, value, change, { hint = '', size = 20, list = null } = {}) {
  return html`<input value=${value} placeholder=${hint} size=${size} list=${list} spellcheck="false" autocomplete="off"
    aria-label=${name} @change=${(event) => change(event.target.value.trim())}>`
}

/** A choice of words under a name; `told` has what is read in place of them. */
export function select(words, chosen, change, name, told = { '': 'all' }) {
  const options = words.map((word) => new Option(told[word] ?? word, word, false, word === chosen))
  return html`<select aria-label=${name} @change=${(event) => change(event.target.value)}>${options}</select>`
}

export const button = (words, click, title = null) =>
  html`<button type="button" title=${title} @click=${click}>${words}</button>`

/** Runs work one at a time; of what is wanted meanwhile only the last is done. */
export function coalesced(work) {
  let [running, wanted] = [null, false]
  const run = async () => {
    for (; wanted; await work()) wanted = false
    running = null
  }
  return () => ((wanted = true), (running ??= run()))
}
