import { expect, test } from 'vitest'

/*
 * The order of writes as a model, every state of it: two writers (one adds a file, one merges all into a new one), a
 * vacuum that folds the journal and removes what nobody names and may be killed, another vacuum after it, and a power cut
 * between any two steps that keeps any of the changes of names that were not forced. The law: the newest version that can
 * be read again is not older than one that was told, and every file that it names is whole.
 */

/** The steps that force something to the disk; the model is run without each of them, too. */
const forces = [
  'data of a file',
  'names of files',
  'data of an entry',
  'names of entries before telling',
  'data of a checkpoint',
  'names of the journal before removing',
] as const
type Force = (typeof forces)[number]

/** `points/b`, `journal/2`, `journal/c2`: what is on the disk, or will be. */
type Name = string

interface World {
  /** Names as every process sees them. */
  readonly seen: readonly Name[]
  /** Names that a power cut leaves for certain. */
  readonly safe: readonly Name[]
  /** Changes of names since, `+name` and `-name`, in their order. */
  readonly pending: readonly string[]
  /** What was written and not forced. */
  readonly torn: readonly Name[]
  readonly told: number
  /** Who holds the lock under which everybody commits. */
  readonly lock: string | null
  readonly actors: Readonly<Record<string, Actor>>
}

/** How far somebody is, and what he goes by. */
interface Actor {
  readonly at: number
  readonly version: number
  readonly going: readonly Name[]
}

type Step = (world: World, own: Actor) => Partial<World> & { readonly own?: Partial<Actor> }

/** What each version names, by the order in which the two writers come: adding keeps all, merging replaces all. */
const orders = {
  adds: [[], ['points/a'], ['points/a', 'points/b'], ['points/m']],
  merges: [[], ['points/a'], ['points/m'], ['points/b', 'points/m']],
} as const
type Versions = readonly (readonly Name[])[]

const folderOf = (name: Name): string => name.slice(0, name.indexOf('/'))

const make =
  (name: Name) =>
  ({ seen, pending, torn }: World): Partial<World> =>
    seen.includes(name) ? {} : { seen: [...seen, name].toSorted(), pending: [...pending, `+${name}`], torn }

const remove = ({ seen, pending }: World, names: readonly Name[]): Partial<World> => ({
  seen: seen.filter((name) => !names.includes(name)),
  pending: [...pending, ...names.filter((name) => seen.includes(name)).map((name) => `-${name}`)],
})

function changed(names: readonly Name[], changes: readonly string[]): Name[] {
  const left = new Set(names)
  for (const change of changes) {
    if (change.startsWith('+')) left.add(change.slice(1))
    else left.delete(change.slice(1))
  }
  return [...left].toSorted()
}

function forceNames({ safe, pending }: World, folder: string): Partial<World> {
  const ours = (change: string): boolean => folderOf(change.slice(1)) === folder
  return { safe: changed(safe, pending.filter(ours)), pending: pending.filter((change) => !ours(change)) }
}

/** The newest version that names give: from the best checkpoint on, entry by entry, as far as they are whole. */
function newest(names: readonly Name[], torn: readonly Name[]): number {
  const whole = new Set(names.filter((name) => !torn.includes(name)))
  const folded = [...whole].flatMap((name) => (name.startsWith('journal/c') ? [Number(name.slice(9))] : []))
  let version = Math.max(0, ...folded)
  while (whole.has(`journal/${version + 1}`)) version++
  return version
}

/** A writer that brings a file. */
function writer(data: Name, without: Force | null): Step[] {
  const entry = (own: Actor): Name => `journal/${own.version}`
  const force = (what: Force, step: Step): Step[] => (what === without ? [] : [step])
  return [
    ({ seen, torn }) => {
      const version = newest(seen, []) + 1
      return { own: { version }, torn: [...torn, data] }
    },
    ...force('data of a file', ({ torn }) => ({ torn: torn.filter((name) => name !== data) })),
    (world) => make(data)(world),
    ...force('names of files', (world) => forceNames(world, 'points')),
    ({ torn }, own) => ({ torn: [...torn, entry(own)] }),
    ...force('data of an entry', ({ torn }, own) => ({ torn: torn.filter((name) => name !== entry(own)) })),
    (world, own) => make(entry(own))(world),
    ...force('names of entries before telling', (world) => forceNames(world, 'journal')),
    (_, own) => ({ told: own.version, lock: null }),
  ]
}

/** Folds the journal, forgets what the checkpoint holds, removes the files that the newest version does not name. */
function vacuum(contents: Versions, without: Force | null): Step[] {
  const point = (own: Actor): Name => `journal/c${own.version}`
  const force = (what: Force, step: Step): Step[] => (what === without ? [] : [step])
  return [
    ({ seen, torn }) => {
      const version = newest(seen, [])
      const stands = seen.includes(`journal/c${version}`)
      return { own: { version }, torn: stands ? torn : [...torn, `journal/c${version}`] }
    },
    ...force('data of a checkpoint', ({ torn }, own) => ({ torn: torn.filter((name) => name !== point(own)) })),
    (world, own) => make(point(own))(world),
    ({ seen }, own) => {
      const old = seen.filter((name) => /^journal\/\d/.test(name) && Number(name.slice(8)) <= own.version)
      const named = contents[own.version] ?? []
      const unnamed = seen.filter((name) => name.startsWith('points/') && !named.includes(name))
      return { own: { going: [...unnamed, ...old] } }
    },
    ...force('names of the journal before removing', (world) => forceNames(world, 'journal')),
    () => ({ lock: null }),
    (world, own) => remove(world, own.going),
  ]
}

/** Every subset of the changes that were not forced. */
function* subsets(changes: readonly string[]): Generator<string[]> {
  for (let mask = 0; mask < 1 << changes.length; mask++) yield changes.filter((_, i) => (mask & (1 << i)) !== 0)
}

/** What a power cut would break in a world; undefined: nothing. */
function broken({ safe, pending, torn, told }: World, contents: Versions): string | undefined {
  for (const kept of subsets(pending)) {
    const names = changed(safe, kept)
    const version = newest(names, torn)
    if (version < told) return `version ${told} was told, ${version} is left of ${names.join(' ')}`
    for (const file of contents[version] ?? [])
      if (!names.includes(file) || torn.includes(file)) return `version ${version} names ${file}, which is not whole`
  }
  return undefined
}

/** Goes through every world that can be reached; what it found first, and how many worlds there are. */
function explore(without: Force | null): { readonly worlds: number; readonly found: string | undefined } {
  let found: string | undefined
  let worlds = 0
  // What the versions name depends on who comes first; each order is a walk of its own.
  for (const [first, contents] of Object.entries(orders)) {
    const programs: Record<string, Step[]> = {
      adds: writer('points/b', without),
      merges: writer('points/m', without),
      killed: vacuum(contents, without),
      vacuum: vacuum(contents, without),
    }
    const idle: Actor = { at: 0, version: 0, going: [] }
    const names = ['journal/1', 'points/a']
    const begin: World = {
      seen: names,
      safe: names,
      pending: [],
      torn: [],
      told: 1,
      lock: null,
      actors: { adds: idle, merges: idle, killed: idle, vacuum: idle },
    }
    const known = new Set<string>()
    const open = [begin]
    for (let world = open.pop(); world; world = open.pop()) {
      const key = JSON.stringify(world)
      if (known.has(key)) continue
      known.add(key)
      found ??= broken(world, contents)
      for (const [name, program] of Object.entries(programs)) {
        const own = world.actors[name] ?? idle
        const step = program[own.at]
        if (!step || own.at < 0) continue
        const late = first === 'adds' ? 'merges' : 'adds'
        if (name === late && (world.actors[first]?.at ?? 0) < (programs[first]?.length ?? 0)) continue
        if (world.lock !== null && world.lock !== name) continue
        const unlocked = name === 'vacuum' || name === 'killed' ? own.at === program.length - 1 : false
        const { own: next = {}, ...rest } = step(world, own)
        const after: World = {
          ...world,
          lock: unlocked ? world.lock : name,
          ...rest,
          actors: { ...world.actors, [name]: { ...own, at: own.at + 1, ...next } },
        }
        open.push(after)
        if (name !== 'killed') continue
        const dead = { ...world.actors, killed: { ...own, at: -1 } }
        open.push({ ...world, lock: world.lock === 'killed' ? null : world.lock, actors: dead })
      }
    }
    worlds += known.size
  }
  return { worlds, found }
}

test('no power cut, whoever is at work, takes back what was told or a file that it names', () => {
  const { worlds, found } = explore(null)
  expect(found).toBeUndefined()
  expect(worlds).toBeGreaterThan(1000)
})

test.each(forces)('without the force of the %s it would', (force) => expect(explore(force).found).toBeDefined())
