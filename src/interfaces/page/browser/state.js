/** What is looked at, whole in the address behind `#`: a link opens the same view. */

/** Its parts; each is empty where the address says nothing. */
const names = `view as_of metric assets interval currency exchange network component since until second scale sessions
  search status issuer issuer_status class chain before product from to sql plot ts
  calendar metrics fields universe latency max_age skip_nulls`.split(/\s+/)

/** The state as the address tells it; names that nobody knows are left out. */
function readState(hash = location.hash) {
  const told = new URLSearchParams(hash.slice(1))
  return Object.fromEntries(names.map((name) => [name, told.get(name) ?? '']))
}

/** The address of a state. */
function hashOf(state) {
  const told = names.filter((name) => state[name] !== '').map((name) => [name, state[name]])
  return `#${new URLSearchParams(told).toString()}`
}

export const state = readState()
const listeners = []
/** Calls with the names of what changed. */
export const onChange = (listener) => void listeners.push(listener)

/** The instant that is looked at instead of another one: of a folder one that it holds. */
export let snap = (instant) => instant
export const snapBy = (other) => void (snap = other)

/** Changes some of it; a slider on its way makes no entries to go back to. */
export function change(wanted, passing = false) {
  const changes = 'as_of' in wanted ? { ...wanted, as_of: snap(wanted.as_of) } : wanted
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
