import { kinds } from '../kinds.ts'
import type { Resource } from '../catalog/catalogue.ts'
import { LakeError, usage } from '../errors.ts'
import { Ledger } from '../ledger/ledger.ts'
import type { Filters } from '../registry/reading.ts'
import { endedBy } from '../ledger/requests.ts'
import type { Value } from '../registry/json.ts'
import { askLook, type RecordBeside, withHeldSide } from '../registry/look.ts'
import { verdictOf } from '../registry/run.ts'
import { hint } from '../suggestion.ts'
import { whole } from '../words/figures.ts'
import { cut } from '../words/table.ts'
import { answering, type Call } from './spec.ts'
import { isBegun } from '../store/begin.ts'
import { noJob } from './registry.ts'
import { besideWorld } from './world.ts'

const resourceArg = {
  '<RESOURCE>': {
    about: 'issuers, products or another one that `registry status` lists',
    kind: kinds.list('resources'),
  },
} as const

/** `registry get`: one record, here and there. */
export const registryGetCommand = answering({
  asks: true,
  args: { ...resourceArg, '<ID>': 'id of the record' },
  options: {},
  details: 'Stores nothing. A * marks each member that differs; new keys and another order of keys are no difference.',
  answer: async (call) => {
    const resource = resourceOf(call)
    const [, id = ''] = call.args
    const { address, records } = await asked(call, resource, { id })
    using ledger = await heldLake(call)
    return await withHeldSide(ledger, resource, async ({ entities, beside }) => {
      const [record] = await beside(new Map([[id, records.get(id) ?? null]]))
      const got = `${id}, which neither the provider nor the lake knows`
      if (!record || (record.held === null && record.offered === null))
        throw usage('registry get', {
          expected: `an id of ${resource.name}`,
          got,
          next: hint(id, [...entities.keys()]),
        })
      return { document: { resource: resource.name, address, ...record }, words: () => recordText(address, record) }
    })
  },
})

/** `registry list`: a list, here and there. */
export const registryListCommand = answering({
  asks: true,
  args: resourceArg,
  options: {
    '--filter KEY=VALUE': {
      kind: kinds.pair('KEY=VALUE'),
      about: 'only what fits; several must all fit',
      repeatable: true,
    },
  },
  details: `Stores nothing. Marks: * differs, + only upstream, - only in the lake. The list of deployments shows verified ones
only, and so does what is laid beside it.`,
  answer: async (call) => {
    const resource = resourceOf(call)
    const filters = filtersOf(call.options.filter, resource)
    const { address, records: shown } = await asked(call, resource, { filters })
    using ledger = await heldLake(call)
    return await withHeldSide(ledger, resource, async ({ fitting, beside }) => {
      const ids = [...new Set([...shown.keys(), ...fitting(filters)])].toSorted()
      const records = await beside(new Map(ids.map((id) => [id, shown.get(id) ?? null])))
      const count = (mark: string): number => records.filter((record) => record.mark === mark).length
      const counts = Object.fromEntries(Object.keys(marks).map((mark) => [mark, count(mark)]))
      const document = { resource: resource.name, filters, address, counts, records }
      return { document, words: () => listText(address, counts, records) }
    })
  },
})

function resourceOf({ args: [name = ''], catalogue: { resources } }: Call): Resource {
  const found = resources.get(name)
  if (found) return found
  const known = [...resources.keys()]
  throw usage('RESOURCE', { expected: known.join(', '), got: name, next: hint(name, known) })
}

function filtersOf(pairs: readonly (readonly [string, string])[], { name, filters }: Resource): Filters {
  const read = new Map<string, string>()
  for (const [key, value] of pairs) {
    const expected = `a filter of ${name}: ${filters.join(', ')}`
    if (!filters.includes(key)) throw usage('--filter', { expected, got: key, next: hint(key, filters) })
    if (read.has(key)) throw usage('--filter', { expected: 'each filter once', got: `${key} twice` })
    read.set(key, value)
  }
  return Object.fromEntries(read)
}

async function asked(call: Call, resource: Resource, what: { id: string } | { filters: Filters }) {
  const got = await askLook({ ...call, ...noJob }, besideWorld(call), { resource, what })
  if (got.kind === 'shown') return got
  if (got.kind === 'refused')
    throw usage('--filter', { expected: 'values that the provider takes', got: JSON.stringify(what) })
  throw verdictOf(endedBy(got)) ?? new LakeError('unexpected', { subject: got.words })
}

/** The lake in the folder; null where none was begun. */
async function heldLake({ settings: { data } }: Call): Promise<Ledger | null> {
  return isBegun(data) ? await Ledger.openToRead(data) : null
}

const marks = {
  same: [' ', 'the same on both sides'],
  differs: ['*', 'differs'],
  only_held: ['-', 'only in the lake'],
  only_upstream: ['+', 'only upstream'],
} as const

const width = 80

function recordText(address: string, record: RecordBeside): string {
  const { mark, differences, held, offered } = record
  const names = [...new Set([...Object.keys(held ?? {}), ...Object.keys(offered ?? {})])]
  const first = Math.min(24, Math.max(6, ...names.map((name) => name.length)))
  const each = Math.floor((width - 2 - first - 4) / 2)
  const line = (sign: string, name: string, here: string, there: string): string =>
    `${sign} ${cut(name, first).padEnd(first)}  ${cut(here, each).padEnd(each)}  ${cut(there, each)}`.trimEnd()
  const rows = names.map((name) =>
    line(differences.includes(name) ? '*' : ' ', name, textOf(held?.[name]), textOf(offered?.[name])),
  )
  const what = mark === 'differs' ? `differs in ${differences.length} of ${names.length} members` : marks[mark][1]
  return `${[cut(`${address}: ${what}`, width), line(' ', 'member', 'held', 'provider now'), ...rows].join('\n')}\n`
}

function listText(address: string, counts: Readonly<Record<string, number>>, records: readonly RecordBeside[]): string {
  const first = Math.min(40, Math.max(2, ...records.map(({ id }) => id.length)))
  const some = Object.entries(counts).flatMap(([name, count]) =>
    count > 0 ? [`${whole(count)} ${name.replaceAll('_', ' ')}`] : [],
  )
  const lines = records.map(({ id, mark, differences }) => {
    const [sign, words] = marks[mark]
    return `${sign} ${cut(id, first).padEnd(first)}  ${words}${mark === 'differs' ? ` in ${differences.join(', ')}` : ''}`
  })
  const head = `${address}: ${whole(records.length)} records, ${some.join(', ') || 'none'}`
  return [head, ...lines].map((line) => `${cut(line, width)}\n`).join('')
}

function textOf(value: Value | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}
