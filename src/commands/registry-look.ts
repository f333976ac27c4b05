import { kinds } from '../kinds.ts'
import type { Resource } from '../catalog/catalogue.ts'
import { LakeError, usage } from '../errors.ts'
import { Ledger } from '../ledger/ledger.ts'
import type { Filters, Stopped } from '../registry/reading.ts'
import { endedBy } from '../ledger/requests.ts'
import type { Value } from '../registry/json.ts'
import { askLook, type RecordBeside, withHeldSide } from '../registry/look.ts'
import { type RegistryInput, verdictOf } from '../registry/run.ts'
import { hint } from '../suggestion.ts'
import { whole } from '../words/figures.ts'
import { answering, type Deps } from './spec.ts'
import { isBegun } from '../store/begin.ts'
import { besideWorld } from './world.ts'

const resourceArg = {
  name: 'RESOURCE',
  about: 'issuers, products or another one that `registry status` lists',
  required: true,
  kind: kinds.list('resources'),
} as const

/** `registry get`: one record, here and there. */
export const getRecordCommand = answering({
  name: 'registry get',
  ends: [3, 4, 5, 6],
  asks: true,
  args: [resourceArg, { name: 'ID', about: 'id of the record', required: true }],
  options: {},
  details: 'Stores nothing. A * marks each member that differs; new keys and another order of keys are no difference.',
  answer: async (input, context, deps) => {
    const job = { ...context, ...noJob }
    const resource = resourceOf(job, input.args[0] ?? '')
    const id = input.args[1] ?? ''
    const shown = await asked(job, deps, resource, { id })
    using ledger = await heldLake(job.settings.data)
    return await withHeldSide(ledger, resource, async ({ entities, beside }) => {
      const [record] = await beside(new Map([[id, shown.records.get(id) ?? null]]))
      if (!record || (record.held === null && record.offered === null))
        throw usage('registry get', {
          expected: `an id of ${resource.name}`,
          got: `${id}, which neither the provider nor the lake knows`,
          next: hint(id, [...entities.keys()]),
        })
      const document = { resource: resource.name, address: shown.address, ...record }
      return { document, words: () => recordText(shown.address, record) }
    })
  },
})

/** `registry list`: a list, here and there. */
export const listRecordsCommand = answering({
  name: 'registry list',
  ends: [3, 4, 5, 6],
  asks: true,
  args: [resourceArg],
  options: {
    '--filter KEY=VALUE': {
      kind: kinds.pair('KEY=VALUE'),
      about: 'only what fits; several must all fit',
      repeatable: true,
    },
  },
  details: `Stores nothing. Marks: * differs, + only upstream, - only in the lake. The list of deployments shows verified ones
only, and so does what is laid beside it.`,
  answer: async (input, context, deps) => {
    const job = { ...context, ...noJob }
    const resource = resourceOf(job, input.args[0] ?? '')
    const filters = filtersOf(input.options.filter, resource)
    const shown = await asked(job, deps, resource, { filters })
    using ledger = await heldLake(job.settings.data)
    return await withHeldSide(ledger, resource, async ({ fitting, beside }) => {
      const ids = [...new Set([...shown.records.keys(), ...fitting(filters)])].toSorted()
      const records = await beside(new Map(ids.map((id) => [id, shown.records.get(id) ?? null])))
      const count = (mark: string): number => records.filter((record) => record.mark === mark).length
      const counts = Object.fromEntries(Object.keys(marks).map((mark) => [mark, count(mark)]))
      const document = { resource: resource.name, filters, address: shown.address, counts, records }
      return { document, words: () => listText(shown.address, counts, records) }
    })
  },
})

const noJob = { acceptShrink: false, maxRequests: null, providerMoved: false } as const

function resourceOf({ catalogue }: RegistryInput, name: string): Resource {
  const found = catalogue.resources.get(name)
  if (found) return found
  const known = [...catalogue.resources.keys()]
  throw usage('RESOURCE', { expected: known.join(', '), got: name, next: hint(name, known) })
}

function filtersOf(pairs: readonly (readonly [string, string])[], { name, filters }: Resource): Filters {
  const read = new Map<string, string>()
  for (const [key, value] of pairs) {
    if (!filters.includes(key))
      throw usage('--filter', {
        expected: `a filter of ${name}: ${filters.join(', ')}`,
        got: key,
        next: hint(key, filters),
      })
    if (read.has(key)) throw usage('--filter', { expected: 'each filter once', got: `${key} twice` })
    read.set(key, value)
  }
  return Object.fromEntries(read)
}

async function asked(job: RegistryInput, deps: Deps, resource: Resource, what: { id: string } | { filters: Filters }) {
  const got = await askLook(job, besideWorld(deps), { resource, what })
  if (got.kind === 'shown') return got
  if (got.kind === 'refused')
    throw usage('--filter', { expected: 'values that the provider takes', got: JSON.stringify(what) })
  throw errorOf(got)
}

function errorOf(stopped: Stopped): LakeError {
  const fallback = new LakeError('unexpected', { subject: stopped.words })
  return verdictOf(endedBy(stopped)) ?? fallback
}

/** The lake in the folder; null where none was begun. */
async function heldLake(root: string): Promise<Ledger | null> {
  return isBegun(root) ? await Ledger.openToRead(root) : null
}

const marks = {
  same: [' ', 'the same on both sides'],
  differs: ['*', 'differs'],
  only_held: ['-', 'only in the lake'],
  only_upstream: ['+', 'only upstream'],
} as const

const width = 80

function recordText(address: string, { mark, differences, held, offered }: RecordBeside): string {
  const names = [...new Set([...Object.keys(held ?? {}), ...Object.keys(offered ?? {})])]
  const first = Math.min(24, Math.max(6, ...names.map((name) => name.length)))
  const each = Math.floor((width - 2 - first - 4) / 2)
  const line = (sign: string, ...[name, here, there]: [string, string, string]): string =>
    `${sign} ${cut(name, first).padEnd(first)}  ${cut(here, each).padEnd(each)}  ${cut(there, each)}`.trimEnd()
  const rows = names.map((name) =>
    line(differences.includes(name) ? '*' : ' ', name, textOf(held?.[name]), textOf(offered?.[name])),
  )
  const what = mark === 'differs' ? `differs in ${differences.length} of ${names.length} members` : marks[mark][1]
  return `${[cut(`${address}: ${what}`, width), line(' ', 'member', 'held', 'provider now'), ...rows].join('\n')}\n`
}

function listText(address: string, counts: Readonly<Record<string, number>>, records: readonly RecordBeside[]): string {
  const first = Math.min(40, Math.max(2, ...records.map(({ id }) => id.length)))
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  const lines = records.map(({ id, mark, differences }) => {
    const what = mark === 'differs' ? `differs in ${differences.join(', ')}` : marks[mark][1]
    return cut(`${marks[mark][0]} ${cut(id, first).padEnd(first)}  ${what}`, width)
  })
  const counted = some.map(([name, count]) => `${whole(count)} ${name.replaceAll('_', ' ')}`).join(', ')
  return `${[cut(`${address}: ${whole(records.length)} records, ${counted || 'none'}`, width), ...lines].join('\n')}\n`
}

function textOf(value: Value | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}
