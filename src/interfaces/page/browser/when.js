/** From which knowledge a table comes: a chosen or dropped file is compared with all that the lake ever knew. */

import { wall } from './requests.js'
import { partsOf } from './dating.js'
import { button, field, figure, form, html, input, quiet, select } from './dom.js'
import { change } from './state.js'
import { AnswerPlace, ChosenFile, fileRoom } from './uploads.js'

export const title = 'Date a table'
/** No part of the state redraws this view, because it depends neither on `as_of` nor on other views. */
export const whole = []
export const step = () => undefined

/** Fields for the times that the table is said to have, with their labels. */
const claimLabels = { claimed: 'claimed as_of', claimed_observed: 'claimed observed_as_of' }
/** Fields of text about a table whose columns are guessed wrong, with their placeholders. */
const textHints = { metrics: 'column=path', ts: 'column', t: 'column', asset: 'column, or BTC', value: 'column',
  interval: '24h', currency: 'the catalogue’s', exchange: 'the catalogue’s', network: 'the catalogue’s',
  component: '/pointer', latency: '15m', max_age: '3d' }
/** Fields with a choice of words; the empty word is the default. */
const choices = { kind: ['', 'panel', 'points', 'vintages', 'universe'], vintage: ['', 'last', 'first'],
  unresolved: ['', 'value', 'null'], skip_nulls: ['', 'true'], follow_renames: ['', 'true'] }
/** Labels of the defaults of those fields. */
const defaultLabels = { kind: 'by its columns', vintage: 'last', unresolved: 'value', skip_nulls: 'false',
  follow_renames: 'false' }

/** Endings of the files that are offered. A browser compares the last ending of a name: `.gz` stands for `.csv.gz`. */
const acceptedEndings = '.csv,.tsv,.txt,.gz,.zst,.parquet,.parq,.pq'

const answerPlace = new AnswerPlace('dated')
/** Values of the fields, without the empty ones. */
let fieldValues = {}
/** Files that were chosen last; empty until there are some. */
let chosenFiles = []
/** Whether the fields about wrong guesses are unfolded. */
let areOptionsOpen = false

/** Takes files that are dropped anywhere on the page, because a browser would open them in place of it. */
export function acceptDrops() {
  // A file input takes dropped files itself.
  const isForPage = ({ target, dataTransfer }) =>
    dataTransfer?.types.includes('Files') && !(target instanceof HTMLInputElement)
  const mark = (isDragged) => document.body.toggleAttribute('data-dragged', isDragged)
  addEventListener('dragover', (event) => {
    if (!isForPage(event)) return
    event.preventDefault()
    mark(true)
  })
  addEventListener('dragleave', ({ relatedTarget }) => relatedTarget === null && mark(false))
  addEventListener('drop', (event) => {
    mark(false)
    if (!isForPage(event)) return
    event.preventDefault()
    change({ view: 'when' })
    chooseFiles([...event.dataTransfer.files])
  })
}

export async function draw(main) {
  if (wall !== null)
    return main.replaceChildren(quiet('This server has an as_of limit, so it compares no table with the whole lake.'))
  const fileInput = html`<input type="file" hidden accept=${acceptedEndings} aria-label="table"
    @change=${({ target }) => {
      chooseFiles([...target.files])
      // Without this a corrected file of the same name would not count as a change.
      target.value = ''
    }}>`
  const fileButton = button('Choose a file', () => fileInput.click())
  fileButton.id = 'choose'
  const claimFields = Object.entries(claimLabels).map(([name, label]) => textField(name, label, { hint: '2024-06-01' }))
  const textFields = Object.entries(textHints).map(([name, hint]) =>
    textField(name, name.replaceAll('_', ' '), { hint, size: name === 'metrics' ? 34 : 16 }))
  const choiceFields = Object.entries(choices).map(([name, words]) => {
    const label = name.replaceAll('_', ' ')
    const labels = { '': defaultLabels[name] }
    return field(label, select(words, fieldValues[name] ?? '', (value) => setField(name, value), label, labels))
  })
  const limit = `at most ${figure(Math.floor(fileRoom('table') / 1000))} kB`
  main.replaceChildren(form(fileButton, fileInput, claimFields,
    quiet(`Or drop a file anywhere on the page: CSV, also as .gz or .zst, or Parquet, ${limit}. pitlake when FILE takes larger ones.`)),
    html`<details class="ways" open=${areOptionsOpen} @toggle=${({ target }) => (areOptionsOpen = target.open)}>
      <summary>If a guess is wrong</summary>${form(textFields, choiceFields)}</details>`, answerPlace.section())
}

function textField(name, label, look) {
  return field(label, input(label, fieldValues[name] ?? '', (value) => setField(name, value), look))
}

/** Sets a field, and compares the table again with it. */
function setField(name, value) {
  const { [name]: _, ...others } = fieldValues
  fieldValues = value === '' ? others : { ...others, [name]: value }
  compareTable()
}

/** Takes files in place of those before, and compares the table. */
function chooseFiles(files) {
  if (wall !== null || files.length === 0) return
  chosenFiles = files.map((file) => new ChosenFile(file))
  compareTable()
}

/** Compares the chosen table with the lake, and shows the answer. */
function compareTable() {
  if (chosenFiles.length === 0) return
  const [table] = chosenFiles
  const { length: count } = chosenFiles
  const name = count === 1 ? table.name : `${count} files`
  const fields = fieldValues
  void answerPlace.answer(name, `Comparing ${name} with the lake …`, async (signal) => {
    if (count > 1) throw new Error(`the table: expected one file, got ${count}`)
    return partsOf(await table.send('when', 'table', { fields, command: 'pitlake when', signal }), name, fields)
  })
}
