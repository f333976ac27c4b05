/** The tokenized products as known at an instant: who they are, what joined and left, and what each was. */

import { beside, knownAt, latest, quote, rows } from './ask.js'
import { button, cellOf, field, figure, form, html, input, isoOf, moment, quiet, section, select, svg, table }
  from './dom.js'
import { change, state } from './state.js'

export const title = 'Universe'

let known = null
/** From the first snapshot to the last change. */
export const domain = () => known

/** The change of the registry before or after an instant. */
export const neighbour = (at, forward) => beside('at', `(SELECT valid_from AS at FROM history.products
UNION ALL SELECT valid_to FROM history.products WHERE isfinite(valid_to))`, at, forward)

/** One row a product; its chains as a list. */
const products = `(SELECT product_id, name, symbol, asset_class, issuer_name AS issuer, jurisdiction, status,
  list_sort(list_distinct(list_transform(deployments, lambda d: d.chain_id))) AS chains, first_seen FROM universe)`

/** The values of each facet, and its condition. */
const facets = {
  status: ['status', (value) => `status = ${value}`],
  issuer: ['issuer', (value) => `issuer = ${value}`],
  chain: ['unnest(chains)', (value) => `list_contains(chains, ${value})`],
}

/** The condition of all facets but one, and of what is sought. */
function condition(but) {
  const set = Object.keys(facets).filter((name) => name !== but && state[name] !== '')
  const own = set.map((name) => facets[name][1](quote(state[name])))
  const text = `lower(concat_ws(' ', product_id, name, symbol, issuer, asset_class))`
  return [...own, `contains(${text}, ${quote(state.search.toLowerCase())})`].join(' AND ')
}

export async function draw(main) {
  const ends = 'SELECT epoch_ms(min(valid_from)) AS a, epoch_ms(max(valid_from)) AS b FROM history.products'
  const [range] = await rows(ends, '')
  known = range.a === null ? null : [range.a, range.b > range.a ? range.b : latest()]
  const choices = await Promise.all(Object.entries(facets).map(async ([name, [value]]) => {
    const told = await rows(`SELECT value, count(*) AS n FROM (SELECT ${value} AS value FROM ${products}
WHERE ${condition(name)}) WHERE value IS NOT NULL GROUP BY value ORDER BY n DESC, value`)
    const one = select(['', ...told.map((row) => row.value)], state[name], (word) => change({ [name]: word }))
    told.forEach(({ n }, place) => (one.options[place + 1].text += ` (${n})`))
    return field(name, one)
  }))
  const found = await rows(`SELECT * FROM ${products} WHERE ${condition()} ORDER BY product_id`)
  const row = ({ product_id: id }) => ({ 'data-pick': id, 'aria-selected': String(id === state.product) })
  const choose = (product) => button(product, () => change({ product }), 'its history')
  const cell = (value, name) =>
    cellOf('td', name === 'product_id' ? choose(value) : moment(Array.isArray(value) ? value.join(', ') : value))
  const set = (name) => (value) => change({ [name]: value })
  const search = input('search', state.search, set('search'), { hint: 'name, symbol, issuer, class', size: 30 })
  const before = input('compare with', state.before, set('before'), { hint: 'an earlier instant' })
  const none = known === null ? 'The registry was not read: pitlake registry snapshot' : 'None was known that fits.'
  main.replaceChildren(form(field('search', search, 'wide'), choices, field('compare with', before)),
    await changes(), await story(),
    section(`${figure(found.length)} products`,
      found.length === 0 ? quiet(none) : table(found, 'Products', { cell, row })))
}

/** What joined and left between two instants. */
async function changes() {
  if (state.before === '') return ''
  const sql = `SELECT product_id, status FROM ${products} WHERE ${condition()} ORDER BY product_id`
  const at = async (instant) => new Map((await rows(sql, instant)).map((one) => [one.product_id, one.status]))
  const [before, now] = [await at(state.before), await at(state.as_of)]
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
  const versions = await rows(`SELECT epoch_ms(valid_from) AS a, epoch_ms(if(isfinite(valid_to), valid_to, NULL)) AS b,
  valid_from, valid_to, status, name, op, closed_by, inferred
FROM history.products WHERE id = ${quote(state.product)} ORDER BY valid_from`)
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
