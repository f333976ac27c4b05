/** Requests to the server that this page came from, or to the files of an exported folder. */

import { state } from './state.js'
import { byId } from './dom.js'
import { nameOf, quote } from './questions.js'

// A token in the address is stored for this tab alone, and removed from the address that a user may pass on.
const tokenInAddress = new URLSearchParams(location.search).get('token')
if (tokenInAddress !== null) {
  sessionStorage.setItem('token', tokenInAddress)
  history.replaceState(null, '', location.pathname + location.hash)
}

/** The `as_of` limit of the server, as text; null if it has none. */
export let wall = null
export const setWall = (text) => void (wall = text)

/** Facts about the lake from the newest answer. */
export const lake = { version: '', synthetic: false }

/** Milliseconds of the latest instant that there is to look at. */
export const latestInstant = () => (wall === null ? Date.now() : Date.parse(utc(wall)))

/** An instant as it was typed, with its zone: without one it is UTC. */
export function utc(text) {
  const plain = text.trim().replace(' ', 'T')
  if (/^\d{4}-\d\d-\d\d$/.test(plain)) return `${plain}T00:00:00Z`
  return /(?:Z|[+-]\d\d(?::?\d\d)?)$/i.test(plain) ? plain : `${plain}Z`
}

/** Milliseconds of an instant that a user typed under a name. */
export function parseInstant(name, text) {
  const at = Date.parse(utc(text))
  if (Number.isNaN(at))
    throw new Error(`${name}: expected an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC, got "${text}"`)
  return at
}

/** Milliseconds of the instant of knowledge. */
export const knownAt = (asOf = state.as_of) => (asOf === '' ? latestInstant() : Date.parse(utc(asOf)))

/**
 * Contents of a folder that `pitlake serve --export` wrote: its instants, charts, and the columns of pixels of each
 * chart. Null if the page came from a server.
 */
export const recording = !document.documentElement.hasAttribute('data-recorded')
  ? null : await fetch('data/index.json').then((answer) => answer.json())
if (recording !== null) {
  Object.assign(lake, recording.lake)
  wall = recording.wall
}

/** Requests of one kind, of which only the answer to the last one is wanted. */
export class RequestSeries {
  #controller = new AbortController()

  /** Signal of the last request. */
  get signal() {
    return this.#controller.signal
  }

  /** Ends the request before, and returns the signal of a new one. */
  next() {
    this.#controller.abort()
    this.#controller = new AbortController()
    return this.#controller.signal
  }
}

/** Requests of the drawing under way; a new state of the page ends them. */
export const drawingRequests = new RequestSeries()

/** Whether a request ended because its answer is no longer wanted. */
export const isSuperseded = (error) => error?.name === 'AbortError'

/** Requests a path, with a body by POST, and returns the answer; a refusal is an error in the server's words. */
export async function request(path, body, signal = drawingRequests.signal) {
  const token = sessionStorage.getItem('token')
  const headers = { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) }
  const posted = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(path, { headers, signal, ...posted })
  if (answer.status === 401 && askToken()) return request(path, body, signal)
  if (!answer.ok) throw new Error((await answer.text()).trim())
  if (answer.headers.has('pitlake-lake')) readLakeFacts(answer.headers)
  return answer
}

function askToken() {
  const token = prompt('PITLAKE_TOKEN of this server')
  if (!token) return false
  sessionStorage.setItem('token', token)
  return true
}

function readLakeFacts(headers) {
  // Under an as_of limit before the newest commit, the server reports no version.
  const version = headers.get('pitlake-version') ?? ''
  if (version !== lake.version) storedAnswers.clear()
  Object.assign(lake, { version, synthetic: headers.get('pitlake-synthetic') === 'true' })
}

/** Fields of a request with a query: an empty `as_of` means all that is known, or what the wall lets through. */
export const queryFields = (sql, asOf) => ({ sql, ...(asOf !== '' && { as_of: utc(asOf) }) })

/** Rows of recent answers of one version of the lake, by instant and SQL, each with the time at which it came. */
const storedAnswers = new Map()
const mostStoredAnswers = 300
/** Milliseconds for which an answer about all that is known counts as current. */
const currentFor = 10_000

/** The rows of a query as known at an instant. */
export async function rows(sql, asOf = state.as_of) {
  const key = `${asOf}\n${sql}`
  const stored = storedAnswers.get(key)
  if (stored !== undefined && (asOf !== '' || Date.now() - stored.at < currentFor)) return stored.answer
  const { signal } = drawingRequests
  const answer = await (recording === null ? queriedRows : recordedRows)(sql, asOf, signal)
  signal.throwIfAborted()
  if (storedAnswers.size > mostStoredAnswers) storedAnswers.delete(storedAnswers.keys().next().value)
  storedAnswers.set(key, { answer, at: Date.now() })
  return answer
}

async function queriedRows(sql, asOf, signal) {
  // The answer is one row, which is never empty: for an empty answer the server would look for the reasons.
  const oneRow = `SELECT coalesce(list(own), []) AS all_rows FROM (${sql}) AS own`
  const answer = await request('query?format=json', queryFields(oneRow, asOf), signal)
  return (await answer.json())[0].all_rows
}

async function recordedRows(sql, asOf, signal) {
  const answer = await fetch(`data/${nameOf(sql, asOf)}.json`, { signal })
  if (!answer.ok) throw new Error('This folder has no answer to that: pitlake serve answers every query.')
  return await answer.json()
}

/** The notes of an answer. */
export function notesOf({ headers }) {
  return (headers.get('pitlake-notes') ?? '').split(' ').filter((note) => note !== '').map(decodeURIComponent)
}

/** Saves the answer of a path as a file. A new state of the page does not end it. */
export async function download(path, body, format, ending) {
  const blob = await (await request(`${path}?format=${format}`, body, null)).blob()
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = `pitlake.${ending}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** The instant in a column of a relation that comes next after an instant, or before it. */
export async function neighbourOf(column, relation, at, forward) {
  const sql = `SELECT ${forward ? 'min' : 'max'}(${column}) AS at FROM ${relation}
WHERE ${column} ${forward ? '>' : '<'} ${quote(at)}::TIMESTAMPTZ`
  return (await rows(sql, ''))[0].at
}

/** Shows an error above the view; null removes the one that is shown. */
export function showTrouble(error) {
  if (isSuperseded(error)) return
  const place = byId('trouble')
  place.hidden = error === null
  place.textContent = error === null ? '' : String(error.message ?? error)
}
