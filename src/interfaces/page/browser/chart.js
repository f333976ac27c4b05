/** A metric of some assets as it was known at an instant, and in grey the values that became known later. */

import { knownAt, lake, latestInstant, neighbourOf, parseInstant, recording, rows, wall } from './requests.js'
import { copies } from './copies.js'
import { button, cellOf, field, figure, form, html, input, moment, quiet, select, span, svg, table } from './dom.js'
import { axisLabels, axisNotes, basesOf, extentOf, measureOf } from './measure.js'
import { axes, lines, logScale, nearest, scale, setAttributes } from './picture.js'
import { heat, heatStep } from './heat.js'
import * as sql from './questions.js'
import { change, snap, state } from './state.js'

export const title = 'Chart'
/** Parts of the state that redraw the whole view; a different instant changes only what is known. */
export const whole = 'metric assets interval currency exchange network component since until scale sessions'.split(' ')

/** The metrics in the lake; null before they are read. */
let metrics = null

/** The metrics in the lake, each with its assets, intervals and dimensions. */
export async function storedMetrics() {
  // Coverage is faster to read than the points. Under an as_of limit it may lack metrics that have points.
  metrics ??= await sql.metricsOf(rows, wall === null)
  return metrics
}

/** The chart that is shown: what it shows, its axes and its elements. Null before the first one. */
let shownChart = null

/** Range of the slider: the times at which the points became known. */
export const domain = () => (shownChart?.extent.a0 ? [shownChart.extent.a0, shownChart.extent.a1] : null)

/** The arrival before or after an instant. */
export async function neighbour(at, forward) {
  const { from, where } = sql.relationOf(shownChart.picked)
  return await neighbourOf('available_at', `(SELECT available_at FROM ${from} WHERE ${where})`, at, forward)
}

export async function draw(main) {
  const all = await storedMetrics()
  const picked = sql.chosen(all, state)
  if (picked === undefined)
    return main.replaceChildren(quiet('No points are stored yet: pitlake fetch'))
  const [extent] = await rows(sql.extentSql(picked), '')
  if (extent.t0 !== null && extent.value_count === 0 && picked.component === '') {
    const [component] = await rows(sql.componentSql(picked), '')
    if (component?.name) return change({ component: component.name }, true)
  }
  const instantOf = (name, defaultInstant) => (state[name] === '' ? defaultInstant : parseInstant(name, state[name]))
  const range = [instantOf('since', extent.t0), instantOf('until', sql.endOf(extent.t1, picked.interval))]
  if (extent.t0 !== null && range[0] >= range[1])
    throw new Error(`until: expected an instant after ${sql.isoOf(range[0])}, where the chart begins, got ${
      sql.isoOf(range[1])}`)
  const label = `${picked.metric.metric} of ${picked.assets.join(', ')}; arrow keys walk over its points`
  const frame = html`<div class="chart" tabindex="0" role="img" aria-label=${label}></div>`
  const tip = html`<div class="tip" role="status" hidden></div>`
  const legend = html`<div id="newest"></div>`
  const vintages = html`<div></div>`
  const notes = html`<div id="saying" role="status"></div>`
  const kind = state.scale in axisLabels ? state.scale : ''
  shownChart = { picked, extent, range, frame, tip, legend, vintages, notes, kind, knownColumns: [] }
  main.replaceChildren(controls(all, picked), html`<div class="framed">${frame}${tip}</div>`, notes, vintages, legend)
  if (extent.t0 === null) return frame.append(quiet('No point of this was known.'))
  await drawGround()
}

/** Draws what does not depend on the instant: the axes, and in grey everything known by now, or by the wall. */
async function drawGround() {
  const { picked, range, frame, kind } = shownChart
  const width = Math.max(280, Math.floor(frame.clientWidth))
  const height = Math.round(Math.min(900, Math.max(260, Math.min(width * 0.42, innerHeight * 0.7))))
  const box = { left: 62, right: width - 14, top: 12, bottom: height - 30 }
  // An exported folder has the answers for one width.
  const columns = recording === null ? box.right - box.left : recording.columns
  const columnsSql = sql.columnsSql(picked, range, columns)
  const [allColumns, disputes] = await Promise.all([rows(columnsSql, ''), violations(picked, range)])
  const x = scale(range, [box.left, box.right])
  const [{ pause }] = picked.sessions === '' ? [{ pause: 0 }] : await rows(sql.pauseSql(picked, range), '')
  const longestStep = Math.max(1.6 * sql.lengthOf(picked.interval), pause ?? 0)
  const gap = Math.max(3, (x(longestStep) - x(0)) * 1.0001)
  const measure = measureOf(kind, basesOf(allColumns))
  Object.assign(shownChart,
    { x, box, columns, allColumns, measure, disputes, gap, width, up: null, version: lake.version })
  shownChart.picture = svg`<svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" aria-hidden="true"
    data-x=${range.join()} data-scale=${kind} data-columns=${columns}>
    <g class="ground"></g><g class="later"></g><g class="second"></g>
    <g class="known"></g><g class="disputes"></g><line class="cursor" y1=${box.top} y2=${box.bottom}></line>
    <line class="cursor lag"></line></svg>`
  frame.replaceChildren(shownChart.picture)
  drawUpAxis([{ columns: allColumns, measure }])
  listen(frame)
  shownChart.vintages.replaceChildren(await heat(picked, range, columns, width))
  await step()
}

/** Draws the axis upwards, with room for all layers, and the grey lines; both stay as long as the room suffices. */
function drawUpAxis(layers) {
  const { kind, disputes, measure, allColumns, box, range, x, picture } = shownChart
  const offered = disputes.map(({ asset, offeredValue: value }) =>
    ({ asset, lo: value, hi: value, least: value > 0 ? value : null }))
  const up = extentOf(kind, [...layers, { columns: offered, measure }])
  if (shownChart.up?.join() === up.join()) return
  shownChart.up = up
  const y = (kind === 'log' ? logScale : scale)(up, [box.bottom, box.top])
  // For a measure the function that gives the place of a value of an asset on the axis; null if it has none.
  shownChart.placesBy = (measureValue) => (asset, value) => {
    const measured = measureValue(asset, value)
    return measured === null ? null : y(measured)
  }
  picture.dataset.y = up.join()
  picture.querySelector('.ground').replaceChildren(axes({ x, y, box, range, up, logged: kind === 'log' }))
  picture.querySelector('.later').replaceChildren(...lines(allColumns, shownChart, shownChart.placesBy(measure)))
}

/** Draws what is known at the instant over the grey lines. */
export async function step() {
  const { range, kind, allColumns, measure, x, box, picture } = shownChart ?? {}
  if (picture === undefined) return
  const asOf = state.as_of
  if (state.second !== '') parseInstant('second as of', state.second)
  const secondAsOf = state.second === '' ? null : snap(state.second)
  const [knownColumns, secondColumns] = await Promise.all([asOf, secondAsOf].map(columnsAt))
  await heatStep()
  const knownMeasure = measureOf(kind, basesOf(knownColumns))
  const secondMeasure = measureOf(kind, basesOf(secondColumns))
  Object.assign(shownChart, { knownColumns, knownMeasure })
  drawUpAxis([{ columns: allColumns, measure }, { columns: knownColumns, measure: knownMeasure },
    { columns: secondColumns, measure: secondMeasure }])
  const { placesBy, disputes } = shownChart
  const at = knownAt(asOf)
  const instantLine = svg`<line class="instant" x1=${x(at)} x2=${x(at)} y1=${box.top} y2=${box.bottom}></line>`
  const fillLayer = (name, ...parts) => picture.querySelector(name).replaceChildren(...parts)
  fillLayer('.known', ...lines(knownColumns, shownChart, placesBy(knownMeasure)),
    ...(at > range[0] && at < range[1] ? [instantLine] : []))
  fillLayer('.second', ...lines(secondColumns, shownChart, placesBy(secondMeasure)))
  fillLayer('.disputes', ...disputes.flatMap((dispute) => disputeMarks(dispute, at)))
  picture.dataset.asOf = asOf
  shownChart.notes.replaceChildren(...chartNotes(knownColumns).map(quiet))
  shownChart.legend.replaceChildren(newestValues(knownColumns, asOf, at),
    copies(sql.pointsSql(shownChart.picked, range), 'points'))
}

/** Sentences that a reader needs to read the picture right. */
function chartNotes(knownColumns) {
  const { picked, kind, allColumns } = shownChart
  const years = sql.sessionYears.join(' to ')
  const closes = `Only points in whose interval a session of ${picked.sessions} closes. `
    + `Sessions are listed from ${years}.`
  const unknown = `No point of ${state.metric} is stored, so this is ${picked.metric.metric}.`
  return [...(['', picked.metric.metric].includes(state.metric) ? [] : [unknown]),
    ...(picked.sessions === '' ? [] : [closes]),
    ...axisNotes(kind, picked.assets, { known: knownColumns, all: allColumns })]
}

/**
 * The columns as known at an instant. Columns whose last point was known by then are those that are drawn in grey; only
 * the range of the others is queried.
 */
async function columnsAt(asOf) {
  if (asOf === null) return []
  const { picked, range, columns, allColumns, version } = shownChart
  const at = knownAt(asOf)
  // A revisable series may have had an earlier vintage then, and an exchange a session that was cancelled later.
  const needsAll = recording !== null || version !== lake.version || at > latestInstant() || picked.metric.revisable
    || picked.sessions !== ''
  if (asOf === '' || needsAll)
    return await rows(sql.columnsSql(picked, range, columns), asOf)
  const complete = allColumns.filter(({ a1 }) => a1 < at)
  const partial = allColumns.filter(({ a0, a1 }) => a0 <= at && a1 >= at)
  if (partial.length === 0) return complete
  const part = partial.reduce(([from, to], { t0, t1 }) => [Math.min(from, t0), Math.max(to, t1 + 1)],
    [Infinity, -Infinity])
  const queried = await rows(sql.columnsSql(picked, range, columns, part), asOf)
  const isPartial = (column) => partial.some(({ asset, px }) => asset === column.asset && px === column.px)
  return [...complete, ...queried.filter(isPartial)].sort((a, b) => a.px - b.px)
}

/** Violations in a range: stored values for which the provider returned a different one later. */
async function violations(picked, range) {
  const numberIn = (text) => (text === null || !/^-?\d/.test(text) ? null : Number(text))
  const found = await rows(sql.disputesSql(picked, range), '')
  return found.map((violation) =>
    ({ ...violation, storedValue: numberIn(violation.stored), offeredValue: numberIn(violation.offered) }))
}

/** Both values of a violation, and a line between them; grey if it became known after an instant. */
function disputeMarks({ at, storedValue, offeredValue, asset, kind, offered, stored, offered_at, t }, instant) {
  const { x, placesBy, measure } = shownChart
  const placeOf = placesBy(measure)
  const offeredPlace = placeOf(asset, offeredValue)
  const storedPlace = placeOf(asset, storedValue)
  if (offeredPlace === null && storedPlace === null) return []
  const words = `${asset} ${moment(t)}: stored ${stored}, returned ${offered} on ${moment(offered_at)} (${kind})`
  const px = x(at)
  const from = storedPlace ?? offeredPlace
  const to = offeredPlace ?? storedPlace
  const late = Date.parse(offered_at) > instant ? 'late' : ''
  return svg`<g class="dispute ${late}" data-t=${at} data-v=${offeredValue}><title>${words}</title>
    <line x1=${px} x2=${px} y1=${from} y2=${to}></line><path d="M${px - 4},${to - 4}l8,8m0,-8l-8,8"></path></g>`
}

/** Table of the newest known value of each asset, and how old it is. */
function newestValues(knownColumns, asOf, at) {
  const { picked, disputes, allColumns, kind, knownMeasure } = shownChart
  const valueRows = picked.assets.map((asset, n) => {
    const lastColumn = knownColumns.findLast((column) => column.asset === asset)
    if (lastColumn === undefined) return { asset, n, value: 'nothing known' }
    const { v, t, available_at, observed_at, basis } = lastColumn.l
    const age = span(at - sql.endOf(lastColumn.t1, picked.interval))
    const index = knownMeasure(asset, v)
    const indexText = index === null ? '' : figure(Number(index.toPrecision(6)))
    return { asset, n, value: figure(v), index: indexText, t, known_since: available_at, observed_at, age, basis }
  })
  const cell = (value, name, { n }) => name === 'asset' ? cellOf('td', [html`<i class="key c${n % 8}"></i>`, value])
    : cellOf('td', moment(value), ['value', 'index'].includes(name) ? 'number' : '')
  const valueNames = kind === 'index' ? ['value', 'index'] : ['value']
  const columns = ['asset', ...valueNames, 't', 'known_since', 'observed_at', 'age', 'basis']
  const pointCount = (drawnColumns) => drawnColumns.reduce((sum, { n }) => sum + n, 0).toLocaleString('en')
  const until = wall === null ? 'now' : moment(wall)
  const differing = disputes.filter(({ offered_at }) => Date.parse(offered_at) <= at).length
  return html`<section><h2>${asOf === '' ? 'Newest, of all that is known' : `Newest as of ${moment(asOf)}`}</h2>
    ${table(valueRows, 'Newest values', { columns, cell })}
    <p class="quiet">${pointCount(knownColumns)} points known, ${pointCount(allColumns)} until ${until}; age is counted
    from the end of the interval.
    ${differing > 0 ? `${differing} values differed upstream later (×).` : ''}</p></section>`
}

/** Lets the pointer and keys show single columns, and a dragged pointer choose a range. */
function listen(frame) {
  let dragStart = null
  const across = (event) => event.clientX - frame.getBoundingClientRect().left
  const { box } = shownChart
  const instantAt = (px) => sql.isoOf(Math.round(shownChart.x.invert(Math.min(box.right, Math.max(box.left, px)))))
  frame.addEventListener('pointermove', (event) =>
    look(across(event), event.clientY - frame.getBoundingClientRect().top))
  frame.addEventListener('pointerleave', hideTip)
  // An exported folder has the answers for one range.
  frame.addEventListener('pointerdown', (event) => void (dragStart = recording === null ? across(event) : null))
  frame.addEventListener('dblclick', () => change({ since: '', until: '' }))
  frame.addEventListener('pointerup', (event) => {
    const left = Math.min(dragStart, across(event))
    const right = Math.max(dragStart, across(event))
    if (dragStart !== null && right - left > 8) change({ since: instantAt(left), until: instantAt(right) })
    dragStart = null
  })
  frame.addEventListener('keydown', (event) => {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (event.key === 'Escape') hideTip()
    const { knownColumns, looked } = shownChart
    if (direction === undefined || knownColumns.length === 0) return
    event.preventDefault()
    const columns = knownColumns.filter(({ asset }) => asset === (looked?.asset ?? knownColumns[0].asset))
    const index = looked === undefined ? columns.length - 1
      : columns.findIndex(({ px }) => px === looked.px) + direction
    showTip(columns[Math.min(columns.length - 1, Math.max(0, index))])
  })
}

function hideTip() {
  shownChart.tip.hidden = true
  shownChart.picture.classList.remove('looked')
  shownChart.looked = undefined
}

/** Shows the column nearest to a place: a known one, else one that became known later. */
function look(px, py) {
  const { knownColumns, allColumns, placesBy, knownMeasure, measure, x } = shownChart
  const column = nearest(knownColumns, px, py, x, placesBy(knownMeasure))
    ?? nearest(allColumns, px, py, x, placesBy(measure))
  return column === undefined ? hideTip() : showTip(column)
}

/** Shows the facts of the last point of a column next to it, and a line from its t to the time it became known. */
function showTip(column) {
  const { asset, n, lo, hi, l, t1 } = column
  const { x, placesBy, tip, picture, kind, knownColumns, knownMeasure, measure, range, box, width } = shownChart
  const drawnMeasure = knownColumns.includes(column) ? knownMeasure : measure
  const late = Date.parse(l.available_at) > knownAt() ? ' later' : ''
  const facts = { t: l.t, value: figure(l.v), 'known since': l.available_at, observed: l.observed_at, basis: l.basis }
  const index = kind === 'index' ? drawnMeasure(asset, l.v) : null
  if (index !== null) facts.index = figure(Number(index.toPrecision(8)))
  if (n > 1) facts[`${n} points`] = `${figure(lo)} … ${figure(hi)}`
  const terms = Object.entries(facts).map(([name, value]) => [html`<dt>${name}</dt>`, html`<dd>${moment(value)}</dd>`])
  tip.replaceChildren(html`<strong>${asset}${late}</strong>`, html`<dl>${terms}</dl>`)
  tip.hidden = false
  shownChart.looked = column
  tip.style.left = `${Math.max(2, Math.min(width - tip.offsetWidth - 4, x(t1) + 12))}px`
  tip.style.top = '14px'
  setAttributes(picture.querySelector('.cursor'), { x1: x(t1), x2: x(t1) })
  const until = Math.min(Date.parse(l.available_at), range[1])
  const up = placesBy(drawnMeasure)(asset, l.v) ?? box.bottom
  setAttributes(picture.querySelector('.lag'), { x1: x(t1), x2: x(until), y1: up, y2: up })
  picture.classList.add('looked')
}

/** Controls of what is drawn; for an exported folder only those that it has the answers to. */
function controls(all, picked) {
  const { metric } = picked
  const set = (name) => (value) => change({ [name]: value })
  const setMetric = (value) => change({ metric: value, component: '', since: '', until: '' })
  const kind = state.scale in axisLabels ? state.scale : ''
  const axisChoice = select(Object.keys(axisLabels), kind, set('scale'), 'axis', axisLabels)
  const second = input('second as of', state.second, set('second'), { hint: 'a second line' })
  if (recording !== null)
    return form(field('metric', select(recording.charts, metric.metric, setMetric, 'metric'), 'wide'),
      field('axis', axisChoice), field('second as of', second))
  const dimensions = sql.dimensions.filter((name) => metric[name].length > 1)
  const instants = [['since', 'from t', 'all'], ['until', 'to t', 'all']]
  const sessions = { '': 'all points', ...sql.exchanges }
  return form(html`<datalist id="metrics">${all.map(({ metric: path }) => new Option(path))}</datalist>`,
    field('metric', input('metric', metric.metric, setMetric, { size: 34, list: 'metrics' }), 'wide'),
    dimensions.map((name) => field(name, select(metric[name], picked[name], set(name), name))),
    picked.component === '' ? [] : field('component', input('component', picked.component, set('component'))),
    field('axis', axisChoice),
    !sql.hasSessions(picked) ? [] : field('closes of sessions',
      select(Object.keys(sessions), picked.sessions, set('sessions'), 'closes of sessions', sessions)),
    instants.map(([name, label, hint]) => field(label, input(label, state[name], set(name), { hint }))),
    field('second as of', second),
    button('whole range', () => change({ since: '', until: '' }), 'or two clicks on the chart'),
    html`<fieldset class="assets"><legend>assets</legend>${metric.asset.map((asset) => assetBox(asset, picked))}
    </fieldset>`)
}

function assetBox(asset, { metric, assets }) {
  const toggle = ({ target }) => {
    const shown = metric.asset.filter((other) => (other === asset ? target.checked : assets.includes(other)))
    change({ assets: shown.join(',') })
  }
  return html`<label><input type="checkbox" checked=${assets.includes(asset)} aria-label="asset ${asset}"
    @change=${toggle}>${asset}</label>`
}
