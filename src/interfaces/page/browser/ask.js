/** The only way to the lake: the paths of the server that this page came from. */

import { state } from './state.js'
import { byId } from './dom.js'
import { nameOf, quote } from './questions.js'

// A token in the address is kept for this tab alone, and taken out of what may be passed on.
const given = new URLSearchParams(location.search).get('token')
if (given !== null) {
  sessionStorage.setItem('token', given)
  history.replaceState(null, '', location.pathname + location.hash)
}

/** The wall of the server: nothing later is asked for. Null where there is none. */
export let wall = null
/** What the last answer said of the lake. */
export const lake = { version: '', synthetic: false }

export const standAt = (text) => void (wall = text)

/** Milliseconds of the latest instant that there is to look at. */
export const latest = () => (wall === null ? Date.now() : Date.parse(utc(wall)))

/** An instant as it was typed, with its zone: without one it is UTC. */
export function utc(text) {
  const plain = text.trim().replace(' ', 'T')
  if (/^\d{4}-\d\d-\d\d$/.test(plain)) return `${plain}T00:00:00Z`
  return /(?:Z|[+-]\d\d(?::?\d\d)?)$/i.test(plain) ? plain : `${plain}Z`
}

/** Milliseconds of the instant of knowledge. */
export const knownAt = (asOf = state.as_of) => (asOf === '' ? latest() : Date.parse(utc(asOf)))

/**
 * What a folder that `pitlake serve --export` wrote holds: its instants, and the columns of its charts. Null before a
 * server.
 */
export const recorded = !document.documentElement.hasAttribute('data-recorded')
  ? null : await fetch('data/index.json').then((answer) => answer.json())
if (recorded !== null) {
  Object.assign(lake, recorded.lake)
  wall = recorded.wall
}

/** Questions of the drawing under way. */
let work = new AbortController()

/** Ends the questions of the drawing under way: nothing that comes of them is drawn. */
export function supersede() {
  work.abort()
  work = new AbortController()
}

/** Signal of the drawing under way. */
export const signalNow = () => work.signal

/** Whether work ended because something else is to be drawn. */
export const isSuperseded = (error) => error?.name === 'AbortError'

async function answerOf(sql, asOf) {
  // As one row, which is never empty: why there is none would be looked for in all that is held.
  const whole = `SELECT coalesce(list(own), []) AS told FROM (${sql}) AS own`
  if (recorded === null) return (await (await post('query?format=json', asked(whole, asOf))).json())[0].told
  const answer = await fetch(`data/${nameOf(sql, asOf)}.json`, { signal: work.signal })
  if (!answer.ok) throw new Error('This folder holds no answer to that: pitlake serve answers every question.')
  return await answer.json()
}

const kept = new Map()

/** Asks a path and gives the answer; a refusal is an error in the server's words. */
export async function post(path, body, signal = work.signal) {
  const token = sessionStorage.getItem('token')
  const headers = { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) }
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(path, { headers, signal, ...sent })
  if (answer.status === 401 && askToken()) return post(path, body, signal)
  if (!answer.ok) throw new Error((await answer.text()).trim())
  if (!answer.headers.has('pitlake-lake')) return answer
  // Behind a wall before its commit no version is told.
  const version = answer.headers.get('pitlake-version') ?? ''
  if (version !== lake.version) kept.clear()
  return Object.assign(lake, { version, synthetic: answer.headers.get('pitlake-synthetic') === 'true' }) && answer
}

/** The bytes of a chosen file in base64. */
export async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer())
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

function askToken() {
  const token = prompt('PITLAKE_TOKEN of this server')
  if (!token) return false
  sessionStorage.setItem('token', token)
  return true
}

/** What is said with a query: an empty `as_of` is all that is known, or what the wall lets through. */
const asked = (sql, asOf) => ({ sql, ...(asOf !== '' && { as_of: utc(asOf) }) })

/** The rows of a query as known at an instant; the same question of the same version is answered from here. */
export async function rows(sql, asOf = state.as_of) {
  const key = `${asOf}\n${sql}`
  const held = kept.get(key)
  // What is known now may be more in a while; what was known then stays.
  if (held !== undefined && (asOf !== '' || Date.now() - held.at < 10_000)) return held.told
  const { signal } = work
  const told = await answerOf(sql, asOf)
  signal.throwIfAborted()
  if (kept.size > 300) kept.delete(kept.keys().next().value)
  kept.set(key, { told, at: Date.now() })
  return told
}

/** Rows, and what is to be noted of them. */
export async function noted(path, body) {
  const answer = await post(`${path}?format=json`, body)
  const notes = (answer.headers.get('pitlake-notes') ?? '').split(' ').filter((one) => one !== '')
  return { rows: await answer.json(), notes: notes.map(decodeURIComponent) }
}

/** What a text of a user's asks. */
export const question = asked

/** Hands a whole answer over as a file. */
export async function download(path, body, format, ending) {
  // What is drawn meanwhile does not end it.
  const blob = await (await post(`${path}?format=${format}`, body, null)).blob()
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = `pitlake.${ending}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** The instant in a column of a relation that is next to another one, before or after it. */
export async function beside(column, relation, at, forward) {
  const sql = `SELECT ${forward ? 'min' : 'max'}(${column}) AS at FROM ${relation}
WHERE ${column} ${forward ? '>' : '<'} ${quote(at)}::TIMESTAMPTZ`
  return (await rows(sql, ''))[0].at
}

/** Tells what went wrong, or that nothing does. */
export function trouble(error) {
  if (isSuperseded(error)) return
  const place = byId('trouble')
  place.hidden = error === null
  place.textContent = error === null ? '' : String(error.message ?? error)
}
