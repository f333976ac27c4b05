/** From which knowledge a table comes: a chosen or dropped file is compared with all that the lake ever knew. */

import { base64, post, wall } from './ask.js'
import { shell } from './copies.js'
import { partsOf } from './dated.js'
import { button, field, figure, form, html, input, quiet, select } from './dom.js'
import { change } from './state.js'

export const title = 'Date a table'
/** Nothing of it depends on the instant or on other views. */
export const whole = []
export const step = () => undefined

/** Times that the table is said to have. */
const claims = { claimed: 'claimed as_of', claimed_observed: 'claimed observed_as_of' }
/** What is said of a table whose columns are guessed wrong, and what stands in its place until then. */
const options = { metrics: 'column=path', ts: 'column', t: 'column', asset: 'column, or BTC', value: 'column',
  interval: '24h', currency: 'the catalogue’s', exchange: 'the catalogue’s', network: 'the catalogue’s',
  component: '/pointer', latency: '15m', max_age: '3d' }
const choices = { kind: ['', 'panel', 'points', 'vintages', 'universe'], vintage: ['', 'last', 'first'],
  unresolved: ['', 'value', 'null'], skip_nulls: ['', 'true'], follow_renames: ['', 'true'] }
/** The words of the first of each. */
const usual = { kind: 'by its columns', vintage: 'last', unresolved: 'value', skip_nulls: 'false',
  follow_renames: 'false' }

/** Endings of the files that are offered; a browser looks at the last ending of a name, so `.gz` stands for `.csv.gz`. */
const accepted = '.csv,.tsv,.txt,.gz,.zst,.parquet,.parq,.pq'
/** Bytes of the longest request that the server takes. */
const longest = Number(document.documentElement.dataset.longestRequest)
/** Bytes of the largest file that fits into a request with these fields. */
const roomWith = (fields) =>
  Math.floor((longest - new Blob([JSON.stringify({ ...fields, table: '' })]).size) / 4) * 3

/** What is said about the table, by the names of fields; what is empty is not there. */
let said = {}
/** The table: the files as they were given, and the bytes as they were read first. Null until there is one. */
let table = null
/** Ends the question under way: what comes of it is not shown. */
let work = new AbortController()
/** What stands in the view, there also while another one is looked at. */
let shown = []
/** Where it stands. */
let place = null
/** Whether what is said of a wrong guess stands open. */
let openOptions = false

/** Takes files that are dropped anywhere on the page, which a browser would open in place of it. */
export function acceptDrops() {
  // A control that takes files itself goes on to do so.
  const isOurs = ({ target, dataTransfer }) =>
    dataTransfer?.types.includes('Files') && !(target instanceof HTMLInputElement)
  const mark = (dragged) => document.body.toggleAttribute('data-dragged', dragged)
  addEventListener('dragover', (event) => {
    if (!isOurs(event)) return
    event.preventDefault()
    mark(true)
  })
  addEventListener('dragleave', ({ relatedTarget }) => relatedTarget === null && mark(false))
  addEventListener('drop', (event) => {
    mark(false)
    if (!isOurs(event)) return
    event.preventDefault()
    change({ view: 'when' })
    take([...event.dataTransfer.files])
  })
}

export async function draw(main) {
  if (wall !== null)
    return main.replaceChildren(quiet('This server has an as_of limit, so it compares no table with the whole lake.'))
  const chooser = html`<input type="file" hidden accept=${accepted} aria-label="table"
    @change=${({ target }) => {
      take([...target.files])
      // The same file may be chosen again once it is corrected.
      target.value = ''
    }}>`
  const choose = button('Choose a file', () => chooser.click())
  choose.id = 'choose'
  const most = `at most ${figure(Math.floor(roomWith({}) / 1000))} kB`
  const told = Object.entries(claims).map(([name, words]) =>
    field(words, input(words, said[name] ?? '', (value) => say(name, value), { hint: '2024-06-01' })))
  const texts = Object.entries(options).map(([name, hint]) => {
    const size = name === 'metrics' ? 34 : 16
    const words = name.replace('_', ' ')
    return field(words, input(words, said[name] ?? '', (value) => say(name, value), { hint, size }))
  })
  const picks = Object.entries(choices).map(([name, all]) => {
    const words = name.replace('_', ' ')
    const pick = select(all, said[name] ?? '', (value) => say(name, value), words, { '': usual[name] })
    return field(words, pick)
  })
  place = html`<section id="dated" aria-live="polite"></section>`
  main.replaceChildren(form(choose, chooser, told,
    quiet(`Or drop a file anywhere on the page: CSV, also as .gz or .zst, or Parquet, ${most}. pitlake when FILE takes larger ones.`)),
    html`<details class="ways" open=${openOptions} @toggle=${({ target }) => (openOptions = target.open)}>
      <summary>If a guess is wrong</summary>${form(texts, picks)}</details>`, place)
  show(shown)
}

function show(parts) {
  shown = parts
  place?.replaceChildren(...shown)
}

/** Says something about the table, which is compared again then. */
function say(name, value) {
  const { [name]: _, ...others } = said
  said = value === '' ? others : { ...others, [name]: value }
  if (table !== null) void compare()
}

/** Takes the place of the table before. */
function take(files) {
  if (wall !== null || files.length === 0) return
  table = { name: files.length === 1 ? files[0].name : `${files.length} files`, files, bytes: null }
  void compare()
}

/** Compares the table; of several questions only the answer to the last one is shown. */
async function compare() {
  work.abort()
  work = new AbortController()
  const { signal } = work
  const { name } = table
  const fields = said
  show([quiet(`Comparing ${name} with the lake …`)])
  const told = await answerTo(table, fields, signal).catch((error) => error)
  if (signal.aborted) return
  if (told instanceof Error)
    show([html`<h2>${name}</h2>`, html`<p class="refused" role="alert">${told.message}</p>`])
  else show(partsOf(told, name, fields))
}

async function answerTo(own, fields, signal) {
  const { name, files } = own
  if (files.length > 1) throw new Error(`the table: expected one file, got ${files.length}`)
  const [file] = files
  const room = roomWith(fields)
  if (file.size > room)
    throw new Error(`${name}: expected at most ${figure(room)} bytes, which fit into a request to this server, got ${
      figure(file.size)}; pitlake when ${shell(name)} takes larger files`)
  // Read once: what is shown stays about the file as it was then.
  own.bytes ??= base64(file).catch(() => {
    throw new Error(`${name}: expected a CSV or Parquet file, got something that the browser cannot read`)
  })
  return await (await post('when', { ...fields, table: await own.bytes }, signal)).json()
}
