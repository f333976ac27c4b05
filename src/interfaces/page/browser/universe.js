/** The tokenized products as known at an instant: who they are, what joined and left, and what each was. */

import { beside, isSuperseded, knownAt, latest, recorded, rows } from './ask.js'
import { ways } from './copies.js'
import { button, cellOf, field, figure, form, html, input, moment, quiet, section, select, svg, table }
  from './dom.js'
import { facetOf, facets, fittingSql, historySql, isoOf, productsSql, productsThat, registrySql } from './questions.js'
import { change, snap, state } from './state.js'

export const title = 'Universe'

let known = null
/** From the first snapshot to the last change. */
export const domain = () => known

/** The change of the registry before or after an instant. */
export const neighbour = (at, forward) => beside('at', `(SELECT valid_from AS at FROM history.products
UNION ALL SELECT valid_to FROM history.products WHERE isfinite(valid_to))`, at, forward)

export async function draw(main) {
  const [range] = await rows(registrySql, '')
  known = range.a === null ? null : [range.a, range.b > range.a ? range.b : latest()]
  const products = await rows(productsSql)
  const choices = Object.entries(facets).map(([name, [words]]) => {
    const told = facetOf(products, state, name)
    const counted = { '': 'all', ...Object.fromEntries(told.map(([value, n]) => [value, `${value} (${n})`])) }
    const values = ['', ...told.map(([value]) => value)]
    return field(words, select(values, state[name], (word) => change({ [name]: word }), words, counted))
  })
  const found = productsThat(products, state)
  const row = ({ product_id: id }) => ({ 'data-pick': id, 'aria-selected': String(id === state.product) })
  const choose = (product) => button(product, () => change({ product }), 'its history')
  const cell = (value, name) =>
    cellOf('td', name === 'product_id' ? choose(value) : moment(Array.isArray(value) ? value.join(', ') : value))
  const set = (name) => (value) => change({ [name]: value })
  const search = input('search', state.search, set('search'), { hint: 'name, symbol, issuer, class', size: 30 })
  const before = input('compare with', state.before, set('before'), { hint: 'an earlier instant' })
  const columns = Object.keys(found[0] ?? {}).filter((name) => name !== 'sought')
  const none = known === null ? 'The registry was not read: pitlake registry snapshot' : 'None was known that fits.'
  main.replaceChildren(form(field('search', search, 'wide'), choices, field('compare with', before)),
    await changes(), await story().catch(without),
    section(`${figure(found.length)} products`,
      found.length === 0 ? quiet(none) : table(found, 'Products', { columns, cell, row }),
      ways(fittingSql(state), 'products')))
}

/** What is read in place of a history that there is no answer to. */
function without(error) {
  if (isSuperseded(error)) throw error
  return quiet(error.message)
}

/** What joined and left between two instants. */
async function changes() {
  if (state.before === '') return ''
  const at = async (instant) =>
    new Map(productsThat(await rows(productsSql, instant), state).map((one) => [one.product_id, one.status]))
  const [before, now] = [await at(snap(state.before)), await at(state.as_of)]
  const both = [...now.keys()].filter((id) => before.has(id) && before.get(id) !== now.get(id))
  const groups = {
    joined: [...now.keys()].filter((id) => !before.has(id)),
    left: [...before.keys()].filter((id) => !now.has(id)),
    'of another status': both.map((id) => `${id}: ${before.get(id)} → ${now.get(id)}`),
  }
  const told = Object.entries(groups).map(([words, ids]) => html`<p data-group=${words}>
    <strong class=${words}>${figure(ids.length)} ${words}</strong>
    ${ids.slice(0, 40).join(', ')}${ids.length > 40 ? ' …' : ''}</p>`)
  return section(`Since ${moment(state.before)}`, told)
}

/** Every version of one product as a strip, until the instant. */
async function story() {
  if (state.product === '') return ''
  // A folder holds histories once: what was not known by then is cut here.
  const found = await rows(historySql(state.product), recorded === null ? state.as_of : '')
  const open = (one) => (one.b !== null && one.b > knownAt() ? { b: null, valid_to: 'infinity', closed_by: null } : {})
  const versions = found.filter(({ a }) => a <= knownAt()).map((one) => ({ ...one, ...open(one) }))
  if (versions.length === 0) return section(state.product, quiet('Not known by then.'))
  const [from, until] = [versions[0].a, knownAt()]
  const place = (at) => ((at - from) / Math.max(1, until - from)) * 1000
  const parts = versions.map(({ a, b, status, op }) => svg`<rect class=${status === 'active' ? 'active' : 'inactive'}
    x=${place(a)} y="2" width=${Math.max(2, place(b ?? until) - place(a))} height="20"
    data-from=${a}><title>${status} from ${isoOf(a)} (${op})</title></rect>`)
  const strip = svg`<svg class="strip" width="100%" height="24" viewBox="0 0 1000 24" preserveAspectRatio="none"
    role="img" aria-label="history of ${state.product}">${parts}</svg>`
  const columns = ['valid_from', 'valid_to', 'status', 'name', 'op', 'closed_by', 'inferred']
  return section(state.product, strip, table(versions, `versions of ${state.product}`, { columns }))
}
