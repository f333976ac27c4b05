/** What is looked at, whole in the address behind `#`: a link opens the same view. */

/** Each part with what it is where the address says nothing. */
const usual = {
  view: 'chart',
  as_of: '',
  metric: '',
  assets: '',
  interval: '',
  currency: '',
  exchange: '',
  network: '',
  component: '',
  since: '',
  until: '',
  second: '',
  search: '',
  status: '',
  issuer: '',
  chain: '',
  before: '',
  product: '',
  from: '',
  to: '',
  result: '',
  sql: '',
  plot: '',
  ts: '',
  calendar: '',
  metrics: '',
  fields: '',
  universe: '',
  latency: '',
  max_age: '',
  skip_nulls: '',
}

/** The state as the address tells it; names that nobody knows are left out. */
export function readState(hash = location.hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ''))
  return Object.fromEntries(Object.entries(usual).map(([name, value]) => [name, told.get(name) ?? value]))
}

/** The address of a state. */
export function hashOf(state) {
  const told = Object.entries(state).filter(([name, value]) => name in usual && value !== usual[name])
  return `#${new URLSearchParams(told).toString()}`
}

export const state = readState()
const listeners = []
/** Calls with the names of what changed. */
export const onChange = (listener) => void listeners.push(listener)

/** Changes some of it; a slider on its way makes no entries to go back to. */
export function change(changes, passing = false) {
  const names = Object.keys(changes).filter((name) => state[name] !== changes[name])
  if (names.length === 0) return
  Object.assign(state, changes)
  if (hashOf(state) !== location.hash) history[passing ? 'replaceState' : 'pushState'](null, '', hashOf(state))
  for (const listener of listeners) listener(names)
}

addEventListener('popstate', () => {
  if (location.hash === '#main') return
  change(readState(), true)
})
