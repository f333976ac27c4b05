/** The tokenized products as known at an instant: which there are, which joined and left, and the history of one. */

import { isSuperseded, knownAt, latestInstant, neighbourOf, parseInstant, recording, rows } from './requests.js'
import { copies } from './copies.js'
import { button, cellOf, field, figure, form, html, input, moment, quiet, section, select, svg, table }
  from './dom.js'
import { facetOf, facets, fittingSql, historySql, isoOf, productsSql, productsThat, registrySql } from './questions.js'
import { change, snap, state } from './state.js'

export const title = 'Universe'

/** Times of the first snapshot of the registry and the last change; null if there is no snapshot. */
let registryRange = null
export const domain = () => registryRange

/** The change of the registry before or after an instant. */
export const neighbour = (at, forward) => neighbourOf('at', `(SELECT valid_from AS at FROM history.products
UNION ALL SELECT valid_to FROM history.products WHERE isfinite(valid_to))`, at, forward)

/** Maximum number of ids that are listed of the products that joined or left. */
const mostIds = 40

export async function draw(main) {
  const [{ a: first, b: last }] = await rows(registrySql, '')
  registryRange = first === null ? null : [first, last > first ? last : latestInstant()]
  const products = await rows(productsSql)
  const found = productsThat(products, state)
  const none = registryRange === null ? 'The registry was not read: pitlake registry snapshot'
    : 'No known product fits.'
  main.replaceChildren(controls(products), await changes(), await productHistory().catch(noHistory),
    section(`${figure(found.length)} ${found.length === 1 ? 'product' : 'products'}`,
      found.length === 0 ? quiet(none) : productTable(found), copies(fittingSql(state), 'products')))
}

function controls(products) {
  const set = (name) => (value) => change({ [name]: value })
  const choices = Object.entries(facets).map(([name, [label]]) => {
    const values = facetOf(products, state, name)
    const labels = { '': 'all', ...Object.fromEntries(values.map(([value, n]) => [value, `${value} (${n})`])) }
    return field(label, select(['', ...values.map(([value]) => value)], state[name], set(name), label, labels))
  })
  const search = input('search', state.search, set('search'), { hint: 'name, symbol, issuer, class', size: 30 })
  const before = input('compare with', state.before, set('before'), { hint: 'an earlier instant' })
  return form(field('search', search, 'wide'), choices, field('compare with', before))
}

function productTable(products) {
  const columns = Object.keys(products[0]).filter((name) => name !== 'sought')
  const row = ({ product_id: id }) => ({ 'data-pick': id, 'aria-selected': String(id === state.product) })
  const idButton = (product) => button(product, () => change({ product }), 'its history')
  const cell = (value, name) =>
    cellOf('td', name === 'product_id' ? idButton(value) : moment(Array.isArray(value) ? value.join(', ') : value))
  return table(products, 'Products', { columns, cell, row })
}

/** A note in place of a history that an exported folder does not have. */
function noHistory(error) {
  if (isSuperseded(error)) throw error
  return quiet(error.message)
}

/** The products that joined and left between two instants, or have a different status. */
async function changes() {
  if (state.before === '') return ''
  parseInstant('compare with', state.before)
  const statusesAt = async (instant) =>
    new Map(productsThat(await rows(productsSql, instant), state).map(({ product_id: id, status }) => [id, status]))
  const before = await statusesAt(snap(state.before))
  const now = await statusesAt(state.as_of)
  const changed = [...now.keys()].filter((id) => before.has(id) && before.get(id) !== now.get(id))
  const groups = {
    joined: [...now.keys()].filter((id) => !before.has(id)),
    left: [...before.keys()].filter((id) => !now.has(id)),
    'with a different status': changed.map((id) => `${id}: ${before.get(id)} → ${now.get(id)}`),
  }
  const paragraphs = Object.entries(groups).map(([name, ids]) => html`<p data-group=${name}>
    <strong class=${name}>${figure(ids.length)} ${name}</strong>
    ${ids.slice(0, mostIds).join(', ')}${ids.length > mostIds ? ' …' : ''}</p>`)
  return section(`Since ${moment(state.before)}`, paragraphs)
}

/** The versions of one product until the instant, as a strip and as a table. */
async function productHistory() {
  if (state.product === '') return ''
  // An exported folder has each history once, so that later versions are removed here.
  const stored = await rows(historySql(state.product), recording === null ? state.as_of : '')
  const versions = stored.filter(({ a }) => a <= knownAt()).map((version) =>
    version.b !== null && version.b > knownAt() ? { ...version, b: null, valid_to: 'infinity', closed_by: null } : version)
  if (versions.length === 0) return section(state.product, quiet('Not known by then.'))
  const from = versions[0].a
  const until = knownAt()
  const x = (at) => ((at - from) / Math.max(1, until - from)) * 1000
  const bars = versions.map(({ a, b, status, op }) => svg`<rect class=${status === 'active' ? 'active' : 'inactive'}
    x=${x(a)} y="2" width=${Math.max(2, x(b ?? until) - x(a))} height="20"
    data-from=${a}><title>${status} from ${isoOf(a)} (${op})</title></rect>`)
  const strip = svg`<svg class="strip" width="100%" height="24" viewBox="0 0 1000 24" preserveAspectRatio="none"
    role="img" aria-label="history of ${state.product}">${bars}</svg>`
  const columns = ['valid_from', 'valid_to', 'status', 'name', 'op', 'closed_by', 'inferred']
  return section(state.product, strip, table(versions, `versions of ${state.product}`, { columns }))
}
