/** A metric of some assets as it was known at an instant, and in grey what came later. */

import { beside, knownAt, lake, latest, recorded, rows, utc, wall } from './ask.js'
import { ways } from './copies.js'
import { button, cellOf, field, figure, form, html, input, moment, quiet, select, span, svg, table } from './dom.js'
import { basesOf, extentOf, measureOf, measures, sayings } from './measure.js'
import { axes, lines, logScale, nearest, place, scale } from './picture.js'
import { heat, heatStep } from './heat.js'
import * as sql from './questions.js'
import { change, snap, state } from './state.js'

export const title = 'Chart'
/** Which parts of the state draw all of it anew; another instant moves only what is known. */
export const whole = 'metric assets interval currency exchange network component since until scale sessions'.split(' ')

let metrics = null

/** The metrics that are held, each with its assets, intervals and dimensions. */
export async function heldMetrics() {
  // What the ledger tells costs no look at the points; behind a wall it may tell less than there is.
  metrics ??= await sql.metricsOf(rows, wall === null)
  return metrics
}

/** What is drawn now, and where. */
let held = null

/** From when to when the slider goes. */
export const domain = () => (held?.all.a0 ? [held.all.a0, held.all.a1] : null)

/** The instant of the arrival before or after another one. */
export async function neighbour(at, forward) {
  const { from, where } = sql.relationOf(held.picked)
  return await beside('available_at', `(SELECT available_at FROM ${from} WHERE ${where})`, at, forward)
}

/** Draws all of it anew. */
export async function draw(main) {
  const all = await heldMetrics()
  const picked = sql.chosen(all, state)
  if (picked === undefined)
    return main.replaceChildren(quiet('No points are stored yet: pitlake fetch'))
  const [found] = await rows(sql.extentSql(picked), '')
  if (found.t0 !== null && found.held === 0 && picked.component === '') {
    const [leaf] = await rows(sql.componentSql(picked), '')
    if (leaf?.name) return change({ component: leaf.name }, true)
  }
  const typed = (name, usual) => {
    const at = state[name] === '' ? usual : Date.parse(utc(state[name]))
    if (Number.isNaN(at)) throw new Error(`${name}: expected an instant such as 2024-06-01, UTC, got "${state[name]}"`)
    return at
  }
  const range = [typed('since', found.t0), typed('until', sql.endOf(found.t1, picked.interval))]
  const label = `${picked.metric.metric} of ${picked.assets.join(', ')}; arrow keys walk over its points`
  const frame = html`<div class="chart" tabindex="0" role="img" aria-label=${label}></div>`
  const tip = html`<div class="tip" role="status" hidden></div>`
  const legend = html`<div id="newest"></div>`
  const vintages = html`<div></div>`
  const saying = html`<div id="saying" role="status"></div>`
  const kind = state.scale in measures ? state.scale : ''
  held = { picked, all: found, range, frame, tip, legend, vintages, saying, kind, told: [] }
  main.replaceChildren(controls(all, picked), html`<div class="framed">${frame}${tip}</div>`, saying, vintages, legend)
  if (found.t0 === null) return frame.append(quiet('No point of this was known.'))
  await lay()
}

/** What stays while the slider goes: the axes, and in grey all that came until now or the wall. */
async function lay() {
  const { picked, range, frame, kind } = held
  const width = Math.max(280, Math.floor(frame.clientWidth))
  const height = Math.round(Math.min(900, Math.max(260, Math.min(width * 0.42, innerHeight * 0.7))))
  const box = { left: 62, right: width - 14, top: 12, bottom: height - 30 }
  // A folder holds the answers of one width.
  const columns = recorded === null ? box.right - box.left : recorded.columns
  const all = sql.columnsSql(picked, range, columns)
  const [later, disputes] = await Promise.all([rows(all, ''), violations(picked, range)])
  const x = scale(range, [box.left, box.right])
  const [pauses] = picked.sessions === '' ? [{ pause: 0 }] : await rows(sql.pauseSql(picked, range), '')
  const longestStep = Math.max(1.6 * sql.lengthOf(picked.interval), pauses.pause ?? 0)
  const gap = Math.max(3, (x(longestStep) - x(0)) * 1.0001)
  const measure = measureOf(kind, basesOf(later))
  Object.assign(held, { x, box, columns, later, measure, disputes, gap, width, up: null, version: lake.version })
  held.picture = svg`<svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" aria-hidden="true"
    data-x=${range.join()} data-scale=${kind} data-columns=${columns}>
    <g class="ground"></g><g class="later"></g><g class="second"></g>
    <g class="known"></g><g class="disputes"></g><line class="cursor" y1=${box.top} y2=${box.bottom}></line>
    <line class="cursor lag"></line></svg>`
  frame.replaceChildren(held.picture)
  raise([{ told: later, measure }])
  listen(frame)
  held.vintages.replaceChildren(await heat(picked, range, columns, width))
  await step()
}

/** The axis upwards, with room for all that is drawn, and the grey lines; both stay while nothing leaves that room. */
function raise(layers) {
  const { kind, disputes, measure, later, box, range, x, picture } = held
  const others = disputes.map(({ asset, other }) => ({ asset, lo: other, hi: other, least: other > 0 ? other : null }))
  const up = extentOf(kind, [...layers, { told: others, measure }])
  if (held.up?.join() === up.join()) return
  held.up = up
  const y = (kind === 'log' ? logScale : scale)(up, [box.bottom, box.top])
  held.placed = (measured) => (asset, value) => {
    const at = measured(asset, value)
    return at === null ? null : y(at)
  }
  picture.dataset.y = up.join()
  picture.querySelector('.ground').replaceChildren(axes({ x, y, box, range, up, logged: kind === 'log' }))
  picture.querySelector('.later').replaceChildren(...lines(later, held, held.placed(measure)))
}

/** What is known at the instant, drawn over the grey; one step of the slider. */
export async function step() {
  const { range, kind, later, measure, x, box, picture } = held ?? {}
  if (picture === undefined) return
  const asOf = state.as_of
  const [told, second] = await Promise.all([asOf, state.second === '' ? null : snap(state.second)].map(columnsAt))
  await heatStep()
  const knownMeasure = measureOf(kind, basesOf(told))
  const secondMeasure = measureOf(kind, basesOf(second))
  Object.assign(held, { told, knownMeasure })
  raise([{ told: later, measure }, { told, measure: knownMeasure }, { told: second, measure: secondMeasure }])
  const at = knownAt(asOf)
  const line = svg`<line class="instant" x1=${x(at)} x2=${x(at)} y1=${box.top} y2=${box.bottom}></line>`
  const layer = (name, ...parts) => picture.querySelector(name).replaceChildren(...parts)
  layer('.known', ...lines(told, held, held.placed(knownMeasure)), ...(at > range[0] && at < range[1] ? [line] : []))
  layer('.second', ...lines(second, held, held.placed(secondMeasure)))
  layer('.disputes', ...held.disputes.flatMap((one) => disputeMarks(one, at)))
  picture.dataset.asOf = asOf
  held.saying.replaceChildren(...saidOf(told).map((one) => html`<p class="quiet">${one}</p>`))
  held.legend.replaceChildren(newest(told, asOf, at), ways(sql.pointsSql(held.picked, range), 'points'))
}

/** What has to be known to read the picture right. */
function saidOf(told) {
  const { picked, kind, later } = held
  const years = sql.sessionYears.join(' to ')
  const closes = `Only points in whose interval a session of ${picked.sessions} closes. `
    + `Sessions are listed from ${years}.`
  return [...(picked.sessions === '' ? [] : [closes]), ...sayings(kind, picked.assets, { told, later })]
}

/** What was known at an instant: of columns whose last arrival came before all; SQL is asked of those it falls into. */
async function columnsAt(asOf) {
  if (asOf === null) return []
  const { picked, range, columns, later, version } = held
  const at = knownAt(asOf)
  // Of a revisable series the vintage before the last may have been known; of an exchange a session cancelled later.
  const isWhole = recorded !== null || version !== lake.version || at > latest() || picked.metric.revisable
    || picked.sessions !== ''
  if (asOf === '' || isWhole)
    return await rows(sql.columnsSql(picked, range, columns), asOf)
  const open = later.filter(({ a0, a1 }) => a0 <= at && a1 >= at)
  const done = later.filter(({ a1 }) => a1 < at)
  if (open.length === 0) return done
  const part = open.reduce(([a, b], { t0, t1 }) => [Math.min(a, t0), Math.max(b, t1 + 1)], [Infinity, -Infinity])
  const told = await rows(sql.columnsSql(picked, range, columns, part), asOf)
  const isOpen = (row) => open.some(({ asset, px }) => asset === row.asset && px === row.px)
  return [...done, ...told.filter(isOpen)].sort((a, b) => a.px - b.px)
}

/** Values that the provider told otherwise later. */
async function violations(picked, range) {
  const number = (text) => (text === null || !/^-?\d/.test(text) ? null : Number(text))
  const told = await rows(sql.disputesSql(picked, range), '')
  return told.map((one) => ({ ...one, held: number(one.stored), other: number(one.offered) }))
}

/** Both values of a violation, and a line between them; grey where it was not known yet. */
function disputeMarks({ at, held: stored, other, asset, kind, offered, stored: said, offered_at, t }, known) {
  const { x, placed, measure } = held
  const place = placed(measure)
  const returnedAt = place(asset, other)
  const storedAt = place(asset, stored)
  if (returnedAt === null && storedAt === null) return []
  const words = `${asset} ${moment(t)}: stored ${said}, returned ${offered} on ${moment(offered_at)} (${kind})`
  const px = x(at)
  const from = storedAt ?? returnedAt
  const to = returnedAt ?? storedAt
  const late = Date.parse(offered_at) > known ? 'late' : ''
  return svg`<g class="dispute ${late}" data-t=${at} data-v=${other}><title>${words}</title>
    <line x1=${px} x2=${px} y1=${from} y2=${to}></line><path d="M${px - 4},${to - 4}l8,8m0,-8l-8,8"></path></g>`
}

/** The newest value of each asset, and how old it is. */
function newest(told, asOf, at) {
  const { picked, disputes, later, kind, knownMeasure } = held
  const lines = picked.assets.map((asset, n) => {
    const last = told.findLast((row) => row.asset === asset)
    if (last === undefined) return { asset, n, value: 'nothing known' }
    const { v, t, available_at, observed_at, basis } = last.l
    const age = span(at - sql.endOf(last.t1, picked.interval))
    const index = knownMeasure(asset, v)
    const counted = index === null ? '' : figure(Number(index.toPrecision(6)))
    return { asset, n, value: figure(v), index: counted, t, known_since: available_at, observed_at, age, basis }
  })
  const cell = (value, name, { n }) => name === 'asset' ? cellOf('td', [html`<i class="key c${n % 8}"></i>`, value])
    : cellOf('td', moment(value), ['value', 'index'].includes(name) ? 'number' : '')
  const values = kind === 'index' ? ['value', 'index'] : ['value']
  const columns = ['asset', ...values, 't', 'known_since', 'observed_at', 'age', 'basis']
  const [known, all] = [told, later].map((own) => own.reduce((sum, { n }) => sum + n, 0).toLocaleString('en'))
  const until = wall === null ? 'now' : moment(wall)
  const other = disputes.filter(({ offered_at }) => Date.parse(offered_at) <= at).length
  return html`<section><h2>${asOf === '' ? 'Newest, of all that is known' : `Newest as of ${moment(asOf)}`}</h2>
    ${table(lines, 'Newest values', { columns, cell })}
    <p class="quiet">${known} points known, ${all} until ${until}; age is counted from the end of the interval.
    ${other > 0 ? `${other} values differed upstream later (×).` : ''}</p></section>`
}

/** Pointer and keys: which column is looked at, and which range is wanted. */
function listen(frame) {
  let from = null
  const across = (event) => event.clientX - frame.getBoundingClientRect().left
  const { box } = held
  const instantAt = (px) => sql.isoOf(Math.round(held.x.invert(Math.min(box.right, Math.max(box.left, px)))))
  frame.addEventListener('pointermove', (event) =>
    look(across(event), event.clientY - frame.getBoundingClientRect().top))
  frame.addEventListener('pointerleave', hide)
  // A folder holds the answers of one range.
  frame.addEventListener('pointerdown', (event) => void (from = recorded === null ? across(event) : null))
  frame.addEventListener('dblclick', () => change({ since: '', until: '' }))
  frame.addEventListener('pointerup', (event) => {
    const [a, b] = [from, across(event)].sort((p, q) => p - q)
    if (from !== null && b - a > 8) change({ since: instantAt(a), until: instantAt(b) })
    from = null
  })
  frame.addEventListener('keydown', (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (event.key === 'Escape') hide()
    if (way === undefined || held.told.length === 0) return
    event.preventDefault()
    const own = held.told.filter(({ asset }) => asset === (held.looked?.asset ?? held.told[0].asset))
    const index = held.looked === undefined ? own.length - 1 : own.findIndex(({ px }) => px === held.looked.px) + way
    show(own[Math.min(own.length - 1, Math.max(0, index))])
  })
}

function hide() {
  held.tip.hidden = true
  held.picture.classList.remove('looked')
  held.looked = undefined
}

/** Tells all about the point that is nearest, of those known by then or of those that came later. */
function look(px, py) {
  const { told, later, placed, knownMeasure, measure, x } = held
  const found = nearest(told, px, py, x, placed(knownMeasure)) ?? nearest(later, px, py, x, placed(measure))
  return found === undefined ? hide() : show(found)
}

function show(found) {
  const { asset, n, lo, hi, l, t1 } = found
  const { x, placed, tip, picture, kind, told: known, knownMeasure, measure } = held
  const drawnMeasure = known.includes(found) ? knownMeasure : measure
  const late = Date.parse(l.available_at) > knownAt() ? ' later' : ''
  const facts = { t: l.t, value: figure(l.v), 'known since': l.available_at, observed: l.observed_at, basis: l.basis }
  const index = kind === 'index' ? drawnMeasure(asset, l.v) : null
  if (index !== null) facts.index = figure(Number(index.toPrecision(8)))
  if (n > 1) facts[`${n} points`] = `${figure(lo)} … ${figure(hi)}`
  const said = Object.entries(facts).map(([name, value]) => [html`<dt>${name}</dt>`, html`<dd>${moment(value)}</dd>`])
  tip.replaceChildren(html`<strong>${asset}${late}</strong>`, html`<dl>${said}</dl>`)
  tip.hidden = false
  held.looked = found
  tip.style.left = `${Math.max(2, Math.min(held.width - tip.offsetWidth - 4, x(t1) + 12))}px`
  tip.style.top = '14px'
  place(picture.querySelector('.cursor'), { x1: x(t1), x2: x(t1) })
  const until = Math.min(Date.parse(l.available_at), held.range[1])
  const up = placed(drawnMeasure)(asset, l.v) ?? held.box.bottom
  place(picture.querySelector('.lag'), { x1: x(t1), x2: x(until), y1: up, y2: up })
  picture.classList.add('looked')
}

/** What is drawn, to choose from: of a folder what it holds the answers to. */
function controls(all, picked) {
  const { metric } = picked
  const set = (name) => (value) => change({ [name]: value })
  const another = (value) => change({ metric: value, component: '', since: '', until: '' })
  const scaled = state.scale in measures ? state.scale : ''
  const kinds = select(Object.keys(measures), scaled, set('scale'), 'axis', measures)
  const second = input('second as of', state.second, set('second'), { hint: 'a second line' })
  if (recorded !== null)
    return form(field('metric', select(recorded.charts, metric.metric, another, 'metric'), 'wide'),
      field('axis', kinds), field('second as of', second))
  const boxes = metric.asset.map((asset) => {
    const wanted = (on) => metric.asset.filter((one) => (one === asset ? on : picked.assets.includes(one))).join(',')
    return html`<label><input type="checkbox" checked=${picked.assets.includes(asset)} aria-label="asset ${asset}"
      @change=${(event) => change({ assets: wanted(event.target.checked) })}>${asset}</label>`
  })
  const several = sql.dimensions.filter((name) => metric[name].length > 1)
  const instants = [['since', 'from t', 'all'], ['until', 'to t', 'all']]
  const sessions = { '': 'all points', ...sql.exchanges }
  return form(html`<datalist id="metrics">${all.map((one) => new Option(one.metric))}</datalist>`,
    field('metric', input('metric', metric.metric, another, { size: 34, list: 'metrics' }), 'wide'),
    several.map((name) => field(name, select(metric[name], picked[name], set(name), name))),
    picked.component === '' ? [] : field('component', input('component', picked.component, set('component'))),
    field('axis', kinds),
    !sql.hasSessions(picked) ? [] : field('closes of sessions',
      select(Object.keys(sessions), picked.sessions, set('sessions'), 'closes of sessions', sessions)),
    instants.map(([name, words, hint]) => field(words, input(words, state[name], set(name), { hint }))),
    field('second as of', second),
    button('whole range', () => change({ since: '', until: '' }), 'or two clicks on the chart'),
    html`<fieldset class="assets"><legend>assets</legend>${boxes}</fieldset>`)
}
