/** The page: its address decides what is drawn, and every control changes the address. */

import { drawingRequests, knownAt, lake, latestInstant, parseInstant, recording, rows, setWall, showTrouble, utc, wall }
  from './requests.js'
import { byId, coalesced, html, moment, quiet } from './dom.js'
import { isoOf, standingSql } from './questions.js'
import { change, onChange, snapBy, state } from './state.js'
import * as chart from './chart.js'
import * as universe from './universe.js'
import * as versions from './versions.js'
import * as sql from './sql.js'
import * as panel from './panel.js'
import * as coverage from './coverage.js'
import * as when from './when.js'

/** A view that an exported folder does not have, because it runs no queries. */
const serverOnly = ({ title }) => ({ title, draw: async (main) =>
  main.replaceChildren(quiet(`${title}: files cannot run queries. Start pitlake serve --listen 127.0.0.1:8460 instead.`)) })

/**
 * The views by their names in the address. A view has a `title` and `draw`. It may have `step`, which draws only what
 * depends on the instant; `whole`, the parts of the state that redraw all of it; `domain`, the range of the slider; and
 * `neighbour`, the next instant at which something became known.
 */
const views = recording === null ? { chart, universe, versions, sql, panel, coverage, when }
  : { chart, universe, versions: serverOnly(versions), sql: serverOnly(sql), panel: serverOnly(panel), coverage }
const currentView = () => views[state.view] ?? chart

/** Does work that may fail, and shows its error. Returns whether it succeeded. */
async function attempt(work) {
  try {
    await work()
    showTrouble(null)
    return true
  } catch (error) {
    showTrouble(error)
    return false
  }
}

/** Draws the buttons of the views once, so that the one that a user pressed keeps the focus, and marks the open one. */
function drawNav() {
  const nav = byId('views')
  if (nav.childElementCount === 0)
    nav.append(...Object.entries(views).map(([name, { title }], n) => html`<button type="button"
      title="${title} (${n + 1})" @click=${() => change({ view: name })}>${title}</button>`))
  for (const [n, view] of Object.values(views).entries()) {
    if (view === currentView()) nav.children[n].setAttribute('aria-current', 'page')
    else nav.children[n].removeAttribute('aria-current')
  }
  document.title = `${currentView().title} · pitlake`
}

/** Whether the next drawing redraws the whole view, not only what depends on the instant. */
let needsWhole = true
/** The view whose content the page shows; null while it shows none. */
let drawnView = null

/** The element that a drawing of a view fills; a drawing that is no longer wanted is stopped. */
function stageOf(view, signal) {
  const replaceChildren = (...parts) => {
    signal.throwIfAborted()
    byId('main').replaceChildren(...parts)
    drawnView = view
  }
  return { replaceChildren }
}

/** Draws the state. Drawings follow each other; of the states that come meanwhile only the last is drawn. */
const drawState = coalesced(async () => {
  const view = currentView()
  const { signal } = drawingRequests
  const isWhole = needsWhole || view.step === undefined
  needsWhole = false
  const label = document.activeElement?.closest('#main [aria-label]')?.getAttribute('aria-label')
  const isDone = await attempt(async () => {
    showTime()
    if (state.as_of !== '') parseInstant('as_of', state.as_of)
    await (isWhole ? view.draw(stageOf(view, signal)) : view.step())
    showTime()
  })
  // A drawing that failed is repeated as a whole, whatever changes next.
  if (!isDone) needsWhole ||= isWhole
  if (signal.aborted) return
  // Content from before a failed drawing answers a different state.
  byId('main').toggleAttribute('data-stale', !isDone && drawnView !== null)
  if (drawnView === null) byId('main').replaceChildren(quiet(isDone ? 'Nothing to show.' : 'No answer.'))
  // A user who typed in a field goes on in the redrawn one.
  else if (isWhole && label) byId('main').querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus()
})

let busyTimer = null
/** Shows that the page waits for answers, if they do not come at once. */
function showBusy(isBusy) {
  clearTimeout(busyTimer)
  document.body.toggleAttribute('data-slow', false)
  byId('busy').textContent = ''
  if (!isBusy) return document.body.removeAttribute('aria-busy')
  document.body.setAttribute('aria-busy', 'true')
  busyTimer = setTimeout(() => {
    document.body.toggleAttribute('data-slow', true)
    byId('busy').textContent = 'asking the lake …'
  }, 250)
}

/** Identity of the last call of `draw`: only this call ends the sign of a busy page. */
let lastDraw = null

/** Draws the state. A change of anything but the instant ends the drawing under way. */
async function draw(isWhole, endsDrawing = isWhole) {
  needsWhole ||= isWhole
  if (endsDrawing) drawingRequests.next()
  drawNav()
  if (drawnView !== null && drawnView !== currentView()) {
    drawnView = null
    byId('main').replaceChildren(quiet('Asking the lake …'))
  }
  const thisDraw = (lastDraw = {})
  if (!document.body.hasAttribute('aria-busy') || endsDrawing) showBusy(true)
  await drawState()
  if (lastDraw !== thisDraw) return
  document.body.dataset.drawn = location.hash
  showBusy(false)
}

/** The last range of the slider that a view had. */
let sliderRange = null
/** The range of the slider, up to the wall: that of the view, else of the view before, else five years. */
function currentRange() {
  sliderRange = currentView().domain?.() ?? sliderRange
  const [from, to] = sliderRange ?? [latestInstant() - 5 * 365 * 864e5, latestInstant()]
  return [from, Math.min(Math.max(to, from), latestInstant())]
}

/** Position of the slider at its right end, which means all that is known. */
const sliderEnd = 1000

/** The instant at a position of the slider. */
function instantAt(position) {
  const [from, to] = currentRange()
  if (position >= sliderEnd) return ''
  return isoOf(Math.round((from + ((to - from) * position) / sliderEnd) / 1000) * 1000)
}

function showTime() {
  const [from, to] = currentRange()
  const field = byId('as_of')
  const slider = byId('slider')
  if (document.activeElement !== field) field.value = state.as_of
  field.placeholder = wall === null ? 'now' : moment(utc(wall))
  const share = (knownAt() - from) / (to - from || 1)
  const position = state.as_of === '' ? sliderEnd : Math.max(0, Math.min(sliderEnd - 1, share * sliderEnd))
  if (document.activeElement !== slider || state.as_of === '') slider.value = position
  slider.setAttribute('aria-valuetext', state.as_of === '' ? 'all that is known' : moment(state.as_of))
  byId('lake').textContent = [lake.version && `version ${lake.version}`, lake.synthetic && 'SYNTHETIC DATA',
    wall !== null && `as_of limit ${moment(utc(wall))}`].filter(Boolean).join(' · ')
}

/** Sets the typed instant, or shows why it cannot be set. */
function setTypedInstant() {
  const text = byId('as_of').value.trim()
  if (text === '' || text === 'now') return change({ as_of: '' })
  try {
    const at = parseInstant('as_of', text)
    if (wall !== null && at > latestInstant())
      throw new Error(`as_of: expected at most ${wall}, the as_of limit of this server`)
    change({ as_of: text })
  } catch (error) {
    showTrouble(error)
  }
}

/** Moves to the next instant at which something became known, or to the one before. */
async function stepInstant(isForward) {
  const before = state.as_of
  const at = before === '' ? (wall ?? isoOf(latestInstant())) : before
  const next = recording === null ? await currentView().neighbour?.(utc(at), isForward) : recordedNeighbour(at, isForward)
  // A user who chose a different instant meanwhile keeps it.
  if (state.as_of !== before) return
  if (next) change({ as_of: next })
  else if (isForward) change({ as_of: '' })
}

function recordedNeighbour(at, isForward) {
  const { instants } = recording
  return isForward ? instants.find((instant) => instant > at) : instants.findLast((instant) => instant < at)
}

/** Identity of the playing that is under way; null if none is. */
let playing = null
/** Moves the slider on by a two-hundredth of its range, each time after the step before is drawn. */
async function play() {
  const button = byId('play')
  if (playing !== null) return void (playing = null)
  const thisPlaying = (playing = {})
  button.setAttribute('aria-pressed', 'true')
  button.textContent = '❚❚'
  const from = state.as_of === '' ? 0 : Number(byId('slider').value)
  for (let position = from; position < sliderEnd && playing === thisPlaying; position += sliderEnd / 200) {
    byId('slider').value = position
    change({ as_of: instantAt(position) }, true)
    await Promise.all([draw(false), new Promise((done) => setTimeout(done, 80))])
  }
  if (playing === thisPlaying) change({ as_of: '' })
  playing = null
  button.setAttribute('aria-pressed', 'false')
  button.textContent = '▶'
}

function listen() {
  byId('as_of').addEventListener('change', setTypedInstant)
  byId('slider').addEventListener('input', () => change({ as_of: instantAt(Number(byId('slider').value)) }, true))
  const clicks = { earlier: () => attempt(() => stepInstant(false)), later: () => attempt(() => stepInstant(true)), play,
    now: () => change({ as_of: '' }), skip: (event) => (event.preventDefault(), byId('main').focus()) }
  for (const [id, click] of Object.entries(clicks)) byId(id).addEventListener('click', click)
  addEventListener('keydown', pressShortcut)
  if (recording === null) when.acceptDrops()
  let width = innerWidth
  addEventListener('resize', () => {
    if (innerWidth !== width) void draw(true)
    width = innerWidth
  })
  onChange((changed) => {
    const { whole } = currentView()
    const others = changed.filter((name) => name !== 'as_of')
    const isWhole = others.some((name) => whole === undefined || whole.includes(name) || name === 'view')
    void draw(isWhole, others.length > 0)
  })
}

/** Keys of the buttons for the instant; digits open views. */
const shortcuts = { ',': 'earlier', '.': 'later', p: 'play', n: 'now' }
function pressShortcut(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select')) return
  if (event.key in shortcuts) byId(shortcuts[event.key]).click()
  const view = Object.keys(views)[Number(event.key) - 1]
  if (view !== undefined) change({ view })
}

await attempt(async () => {
  listen()
  if (recording === null) setWall((await rows(standingSql, ''))[0].wall)
  else snapBy((at) => at === '' ? ''
    : recording.instants.findLast((instant) => instant <= utc(at)) ?? recording.instants[0])
  change({ as_of: state.as_of }, true)
})
await draw(true)
