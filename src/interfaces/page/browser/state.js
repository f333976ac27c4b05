/** What the page shows. All of it is in the address behind `#`, so that a link opens the same view. */

/** Names of its parts. A part is empty if the address does not name it. */
const names = `view as_of metric assets interval currency exchange network component since until second scale sessions
  search status issuer issuer_status class chain before product from to sql plot ts
  calendar metrics fields universe with latency max_age back skip_nulls`.split(/\s+/)

/** Reads the state from an address; unknown names are ignored. */
function readState(hash = location.hash) {
  const parameters = new URLSearchParams(hash.slice(1))
  return Object.fromEntries(names.map((name) => [name, parameters.get(name) ?? '']))
}

/** The address of a state. */
function hashOf(shown) {
  const entries = names.filter((name) => shown[name] !== '').map((name) => [name, shown[name]])
  return `#${new URLSearchParams(entries).toString()}`
}

export const state = readState()
const listeners = []
/** Adds a listener, which is called with the names of the parts that changed. */
export const onChange = (listener) => void listeners.push(listener)

/** Moves an instant to one that can be shown: an exported folder has only some. */
export let snap = (instant) => instant
export const snapBy = (snapInstant) => void (snap = snapInstant)

/** Changes parts of the state. A passing change, such as of a slider that moves, adds no entry to the history. */
export function change(parts, isPassing = false) {
  const newParts = 'as_of' in parts ? { ...parts, as_of: snap(parts.as_of) } : parts
  const changed = Object.keys(newParts).filter((name) => state[name] !== newParts[name])
  if (changed.length === 0) return
  Object.assign(state, newParts)
  if (hashOf(state) !== location.hash) history[isPassing ? 'replaceState' : 'pushState'](null, '', hashOf(state))
  for (const listener of listeners) listener(changed)
}

addEventListener('popstate', () => {
  if (location.hash === '#main') return
  change(readState(), true)
})
