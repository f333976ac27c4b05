/** The page: what stands in the address decides what is drawn, and every control changes the address. */

import { knownAt, lake, latest, recorded, rows, signalNow, standAt, supersede, trouble, utc, wall } from './ask.js'
import { byId, coalesced, html, moment, quiet } from './dom.js'
import { isoOf, standingSql } from './questions.js'
import { change, onChange, snapBy, state } from './state.js'
import * as chart from './chart.js'
import * as universe from './universe.js'
import * as versions from './versions.js'
import * as sql from './sql.js'
import * as panel from './builder.js'
import * as coverage from './coverage.js'
import * as when from './when.js'

/** What a folder cannot show, since nobody answers there. */
const elsewhere = (title) => ({ title, draw: async (main) =>
  main.replaceChildren(quiet(`${title}: files cannot run queries. Start pitlake serve --listen 127.0.0.1:8460 instead.`)) })
const engine = { versions, sql, panel }
const without = Object.fromEntries(Object.entries(engine).map(([name, { title }]) => [name, elsewhere(title)]))
/** No file is compared with a folder, so that it has no such view. */
const dating = recorded === null ? { when } : {}
const views = { chart, universe, ...(recorded === null ? engine : without), coverage, ...dating }
const shown = () => views[state.view] ?? chart

/** Does what may fail, and tells why. */
const attempt = async (work) => await work().then(() => (trouble(null), true), (error) => (trouble(error), false))

/** The buttons of the views stay, so that who pressed one by keyboard is still there. */
function drawNav() {
  const place = byId('views')
  if (place.childElementCount === 0)
    place.append(...Object.entries(views).map(([name, { title }], n) => html`<button type="button"
      title="${title} (${n + 1})" @click=${() => change({ view: name })}>${title}</button>`))
  for (const [n, view] of Object.values(views).entries()) {
    if (view === shown()) place.children[n].setAttribute('aria-current', 'page')
    else place.children[n].removeAttribute('aria-current')
  }
  document.title = `${shown().title} · pitlake`
}

/** Whether all of the view is to be drawn anew, not only what moves with the instant. */
let anew = true
/** The view whose rows stand on the page; null while none do. */
let standing = null

/** Where a drawing puts what it made; one that is no longer wanted is refused. */
function stageOf(view, signal) {
  const replaceChildren = (...parts) => {
    signal.throwIfAborted()
    byId('main').replaceChildren(...parts)
    standing = view
  }
  return { replaceChildren }
}

/** Draws what the state says, one state at a time: of those that come meanwhile the last. */
const drawState = coalesced(async () => {
  const view = shown()
  const signal = signalNow()
  const whole = anew || view.step === undefined
  anew = false
  const label = document.activeElement?.closest('#main [aria-label]')?.getAttribute('aria-label')
  const done = await attempt(async () => {
    showTime()
    await (whole ? view.draw(stageOf(view, signal)) : view.step())
    showTime()
  })
  // What was not drawn is still to be drawn, whatever moves next.
  if (!done) anew ||= whole
  if (signal.aborted) return
  // What stands there may be the answer to a question before this one.
  byId('main').toggleAttribute('data-stale', !done && standing !== null)
  if (standing === null) byId('main').replaceChildren(quiet(done ? 'Nothing to show.' : 'No answer.'))
  // Who typed goes on in the same place.
  else if (whole && label) byId('main').querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus()
})

let sign = null
/** Tells that answers are awaited, if they do not come at once. */
function showBusy(busy) {
  clearTimeout(sign)
  document.body.toggleAttribute('data-slow', false)
  byId('busy').textContent = ''
  if (!busy) return document.body.removeAttribute('aria-busy')
  document.body.setAttribute('aria-busy', 'true')
  sign = setTimeout(() => {
    document.body.toggleAttribute('data-slow', true)
    byId('busy').textContent = 'asking the lake …'
  }, 250)
}

/** Draws the state; other questions than those of an instant end a drawing that is under way. */
async function draw(whole, other = whole) {
  anew ||= whole
  if (other) supersede()
  drawNav()
  if (standing !== null && standing !== shown()) {
    standing = null
    byId('main').replaceChildren(quiet('Asking the lake …'))
  }
  const mine = (draw.last = {})
  if (!document.body.hasAttribute('aria-busy') || other) showBusy(true)
  await drawState()
  if (draw.last !== mine) return
  document.body.dataset.drawn = location.hash
  showBusy(false)
}

let ends = null
/** Where the slider ends, in a view without an end of its own where it ended before: never beyond the wall. */
function scaleOf() {
  ends = shown().domain?.() ?? ends
  const [from, to] = ends ?? [latest() - 5 * 365 * 864e5, latest()]
  return [from, Math.min(Math.max(to, from), latest())]
}

/** The instant at a place of the slider; its right end is all that is known. */
function instantAt(place) {
  const [from, to] = scaleOf()
  return place >= 1000 ? '' : isoOf(Math.round((from + ((to - from) * place) / 1000) / 1000) * 1000)
}

function showTime() {
  const [from, to] = scaleOf()
  const field = byId('as_of')
  if (document.activeElement !== field) field.value = state.as_of
  field.placeholder = wall === null ? 'now' : moment(utc(wall))
  const place = state.as_of === '' ? 1000 : Math.max(0, Math.min(999, ((knownAt() - from) / (to - from || 1)) * 1000))
  if (document.activeElement !== byId('slider') || state.as_of === '') byId('slider').value = place
  byId('slider').setAttribute('aria-valuetext', state.as_of === '' ? 'all that is known' : moment(state.as_of))
  byId('lake').textContent = [lake.version && `version ${lake.version}`, lake.synthetic && 'SYNTHETIC DATA',
    wall !== null && `as_of limit ${moment(utc(wall))}`].filter(Boolean).join(' · ')
}

/** Sets the instant as typed; one that is none, or lies beyond the wall, is refused in words. */
function typed() {
  const text = byId('as_of').value.trim()
  const at = text === '' || text === 'now' ? null : Date.parse(utc(text))
  if (Number.isNaN(at))
    trouble({ message: `as_of: expected an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC, got "${text}"` })
  else if (at !== null && wall !== null && at > latest())
    trouble({ message: `as_of: expected at most ${wall}, the as_of limit of this server` })
  else change({ as_of: at === null ? '' : text })
}

async function stepBy(forward) {
  const at = state.as_of === '' ? (wall ?? isoOf(latest())) : state.as_of
  const { instants } = recorded ?? {}
  const stored = () => (forward ? instants.find((one) => one > at) : instants.findLast((one) => one < at))
  const next = recorded === null ? await shown().neighbour?.(utc(at), forward) : stored()
  if (next) change({ as_of: next })
  else if (forward) change({ as_of: '' })
}

let playing = null
/** Goes on by a two-hundredth of the scale, each step once the one before is drawn. */
async function play() {
  const button = byId('play')
  if (playing !== null) return void (playing = null)
  const mine = (playing = {})
  button.setAttribute('aria-pressed', 'true')
  button.textContent = '❚❚'
  const from = state.as_of === '' ? 0 : Number(byId('slider').value)
  for (let place = from; place < 1000 && playing === mine; place += 5) {
    byId('slider').value = place
    change({ as_of: instantAt(place) }, true)
    await Promise.all([draw(false), new Promise((done) => setTimeout(done, 80))])
  }
  if (playing === mine) change({ as_of: '' })
  playing = null
  button.setAttribute('aria-pressed', 'false')
  button.textContent = '▶'
}

function listen() {
  byId('as_of').addEventListener('change', typed)
  byId('slider').addEventListener('input', () => change({ as_of: instantAt(Number(byId('slider').value)) }, true))
  const clicks = { earlier: () => attempt(() => stepBy(false)), later: () => attempt(() => stepBy(true)), play,
    now: () => change({ as_of: '' }), skip: (event) => (event.preventDefault(), byId('main').focus()) }
  for (const [id, click] of Object.entries(clicks)) byId(id).addEventListener('click', click)
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select')) return
    const keys = { ',': 'earlier', '.': 'later', p: 'play', n: 'now' }
    if (event.key in keys) byId(keys[event.key]).click()
    const view = Object.keys(views)[Number(event.key) - 1]
    if (view !== undefined) change({ view })
  })
  if (recorded === null) when.acceptDrops()
  let width = innerWidth
  addEventListener('resize', () => {
    if (innerWidth !== width) void draw(true)
    width = innerWidth
  })
  onChange((names) => {
    const only = shown().whole
    const others = names.filter((name) => name !== 'as_of')
    void draw(others.some((name) => only === undefined || only.includes(name) || name === 'view'), others.length > 0)
  })
}

await attempt(async () => {
  listen()
  if (recorded === null) standAt((await rows(standingSql, ''))[0].wall)
  else snapBy((at) => (at === '' ? '' : recorded.instants.findLast((one) => one <= utc(at)) ?? recorded.instants[0]))
  change({ as_of: state.as_of }, true)
})
await draw(true)
