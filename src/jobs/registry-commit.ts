import { commit, type CommitDeps, type Draft, type StagedFile, type Ticket, type Version } from '../lake/commit.ts'
import type { Engine } from '../lake/engine.ts'
import type { Provider, RequestRow } from '../lake/entry.ts'
import { liveFiles } from '../lake/held.ts'
import { registryFile } from '../lake/layout.ts'
import type { Ledger } from '../lake/ledger.ts'
import { readFindings, readKeys, readTexts } from '../lake/registry-held.ts'
import { datedColumns, type LayerPlan, type Layers, unseen, writeDated } from '../lake/registry-layers.ts'
import { type Constants, type Lines, writeParquet } from '../lake/registry-lines.ts'
import { writeSteps } from '../lake/registry-steps.ts'
import type { Spool } from '../lake/sweep.ts'
import type { Resources } from '../registry/bodies.ts'
import { type Finding, type Memory, type Poll, settle, type Settled, suspects } from '../registry/history.ts'
import type { RawBody } from './registry-asking.ts'
import { oldRaw, stageRaw } from './registry-raw.ts'
import {
  registryState,
  type RegistryState,
  softDraft,
  type SoftFacts,
  stateDraft,
  type Tags,
} from './registry-state.ts'

/** What a poll is committed with. */
export interface PollContext {
  readonly ledger: Ledger
  readonly engine: Engine
  readonly spool: Spool
  readonly resources: Resources
  readonly run: string
  readonly job: string
  readonly provider: Provider
  readonly providerMoved: boolean
  readonly rawDays: number
  readonly secrets: readonly string[]
  readonly deps: CommitDeps
}

/** A poll that is over, ready to become a version. */
export interface FinishedPoll {
  readonly poll: Poll
  readonly lines: Lines
  readonly as_of: string | null
  readonly raws: readonly RawBody[]
  /** What the state says afterwards, if there is news. */
  readonly cursor: string
  readonly epoch: number
  /** Set where a whole state was read: it becomes a dated snapshot. */
  readonly whole: 'snapshot' | 'lists' | null
  /** The feed was read up to the cursor of this very snapshot: differences contradict it. */
  readonly contradicts: boolean
  readonly disagreeing: readonly string[]
  readonly requests: readonly RequestRow[]
  readonly soft: Partial<SoftFacts>
  readonly tags: Tags
}

/** What became of it. */
export interface Committed {
  readonly version: Version
  /** The date of the snapshot; null for a feed, or where it added nothing. */
  readonly date: string | null
  readonly opened: number
  readonly updated: number
  readonly closed: number
  readonly findings: readonly Finding[]
  readonly newKeys: number
  readonly records: Readonly<Record<string, number>>
}

/** Folds a poll into steps of history and commits them with cursor, bodies and, for a whole state, its dated tables. */
export async function commitPoll(context: PollContext, finished: FinishedPoll): Promise<Committed> {
  const { ledger, engine, resources } = context
  const { poll, lines } = finished
  const wanted = finished.whole === null ? suspects(poll) : union(suspects(poll), unseen(poll))
  const memory: Memory = {
    resources,
    texts: await readTexts(ledger, engine, wanted),
    keys: await readKeys(ledger, engine),
  }
  const settled = await withFindings(context, finished, settle(poll, memory))
  writeSteps(lines, settled)
  const state = registryState(ledger)
  let date: string | null = null
  const version = await commit(
    ledger,
    async (ticket) => {
      const draft = new PollDraft(context, finished, memory, settled, state, ticket)
      const made = await draft.make()
      date = draft.dated ? draft.date : null
      return made
    },
    context.deps,
  )
  const own = settled.steps.filter((step) => !step.child)
  return {
    version,
    date,
    opened: own.filter(({ op }) => op !== null && op !== 'updated').length,
    updated: own.filter(({ op }) => op === 'updated').length,
    closed: own.filter(({ closedBy }) => closedBy !== null).length,
    findings: settled.findings,
    newKeys: settled.newKeys.filter(({ initial }) => !initial).length,
    records: recordsAfter(state, settled),
  }
}

function union(a: Map<string, Set<string>>, b: ReadonlyMap<string, ReadonlySet<string>>): Map<string, Set<string>> {
  for (const [key, ids] of b) a.set(key, (a.get(key) ?? new Set<string>()).union(ids))
  return a
}

/** Adds what two answers of the registry say against each other; what is on record already is left out. */
async function withFindings(context: PollContext, finished: FinishedPoll, settled: Settled): Promise<Settled> {
  const found = [...settled.findings]
  if (finished.contradicts)
    for (const step of settled.steps)
      if (!step.child) {
        const detail = `the snapshot says ${step.closedBy === null ? step.op : 'gone'}, the feed up to its cursor did not`
        found.push({ kind: 'feed_disagrees', resource: step.table, id: step.id, detail })
      }
  for (const id of finished.disagreeing)
    found.push({
      kind: 'embedded_disagrees',
      resource: 'deployments',
      id,
      detail: 'the array of deployments and the product that embeds it differ; the array is kept',
    })
  if (found.length === 0) return settled
  const known = await readFindings(context.ledger, context.engine)
  const repeats = new Set(['embedded_disagrees'])
  const fresh = found.filter(
    ({ kind, resource, id, detail }) => !repeats.has(kind) || !known.has([kind, resource, id, detail].join('\n')),
  )
  return { ...settled, findings: fresh }
}

/** Open rows of each table after the steps. */
function recordsAfter(state: RegistryState, { steps }: Settled): Record<string, number> {
  const records: Record<string, number> = { ...state.records }
  for (const { table, op } of steps) {
    const change = op === null ? -1 : op === 'updated' ? 0 : 1
    records[table] = (records[table] ?? 0) + change
  }
  return records
}

/** `YYYY-MM-DD` of an instant in microseconds, UTC. */
function dateOf(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString().slice(0, 10)
}

/** RFC 3339 with any offset as microseconds; without a zone it is UTC; null where it cannot be read. */
export function microsOf(text: string | null): number | null {
  const match = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?)? *([Zz]|[+-]\d\d:?\d\d)?$/.exec(
    text ?? '',
  )
  if (!match) return null
  const [, day, time = '00:00', fraction = '', zone = 'Z'] = match
  const at = Date.parse(`${day}T${time}${zone.toUpperCase()}`)
  return Number.isNaN(at) ? null : at * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6))
}

/** The draft of one poll under the commit lock. */
class PollDraft {
  readonly #context: PollContext
  readonly #finished: FinishedPoll
  readonly #memory: Memory
  readonly #settled: Settled
  readonly #state: RegistryState
  readonly #ticket: Ticket
  readonly #files: StagedFile[] = []
  readonly date: string
  dated = false

  constructor(
    context: PollContext,
    finished: FinishedPoll,
    memory: Memory,
    settled: Settled,
    state: RegistryState,
    ticket: Ticket,
  ) {
    this.#context = context
    this.#finished = finished
    this.#memory = memory
    this.#settled = settled
    this.#state = state
    this.#ticket = ticket
    this.date = dateOf(ticket.committed_at)
  }

  async make(): Promise<Draft> {
    const { job, run, provider, providerMoved, ledger, rawDays } = this.#context
    const { requests, soft, whole, lines } = this.#finished
    const base: Draft = { job, run, provider, providerMoved, requests, soft: softDraft(soft) }
    const fresh = this.#appended().some((table) => lines.rows(table) > 0)
    const { cursor, epoch } = this.#finished
    const moved = cursor !== this.#state.cursor || epoch !== this.#state.epoch
    const again = whole !== null && epoch === this.#state.epoch && this.#isShown()
    if (!fresh && (again || (whole === null && !moved))) return base
    const first = whole !== null && !this.#state.first
    for (const table of this.#appended()) await this.#append(table)
    const layers = whole === null ? undefined : await this.#snapshotTables()
    const tags = await this.#raw(fresh)
    const last = { date: this.date, observed_at: this.#ticket.committed_at, as_of: this.#finished.as_of, source: whole }
    const state: Partial<RegistryState> = {
      cursor,
      epoch,
      records: recordsAfter(this.#state, this.#settled),
      ...(layers && { layers, last: last as NonNullable<RegistryState['last']> }),
      ...(first && { first: last as NonNullable<RegistryState['first']> }),
    }
    const before = dateOf(this.#ticket.committed_at - rawDays * 86_400_000_000)
    const old = oldRaw(ledger, before).filter((path) => !this.#files.some((file) => file.path === path))
    return {
      ...base,
      add: this.#files,
      remove: old,
      state: stateDraft(state),
      soft: softDraft({
        ...soft,
        tags: Object.fromEntries(Object.entries(tags).filter(([, tag]) => !old.includes(tag.raw))),
      }),
    }
  }

  /** Whether the dated tables of this date show what is held already. */
  #isShown(): boolean {
    const { last } = this.#state
    if (last?.date !== this.date) return false
    for (const entities of this.#finished.poll.held.values())
      for (const { at } of entities.values()) if (at > last.observed_at) return false
    return true
  }

  #appended(): readonly string[] {
    const tables = [...this.#context.resources.keys(), 'provenance', 'documents', 'listings']
    return [...tables.map((table) => `history.${table}`), 'absorbed', 'schema_changes', 'registry_findings', 'events']
  }

  #name(): string {
    return `${String(this.#ticket.version).padStart(10, '0')}-${this.#context.run}`
  }

  /** Writes the lines of this name as a file of the table. */
  async #write(
    table: string,
    lines: string,
    place: {
      readonly id: string
      readonly date: string | null
      readonly constants: Constants
      readonly made?: Readonly<Record<string, string>>
      readonly meta: StagedFile['meta']
    },
  ): Promise<StagedFile | null> {
    const file = this.#finished.lines.file(lines)
    if (file === undefined) return null
    const { spool, engine } = this.#context
    const temporary = `${table}-${place.id}.parquet`
    const { constants, id, date, meta } = place
    await writeParquet(engine, {
      table,
      lines: file,
      longest: this.#finished.lines.longest(lines),
      constants,
      made: place.made ?? {},
      out: spool.file(temporary),
      ticket: this.#ticket,
    })
    const staged: StagedFile = {
      temporary: spool.path(temporary),
      path: registryFile(table, id, date),
      table,
      label: date ?? '',
      metric: null,
      interval: null,
      rows: this.#finished.lines.rows(lines),
      min_t: null,
      max_t: null,
      digest: null,
      meta,
    }
    this.#files.push(staged)
    return staged
  }

  async #append(table: string): Promise<void> {
    const { as_of } = this.#finished
    const history = table.startsWith('history.')
    const constants: Constants = {
      at: this.#ticket.committed_at,
      ...(history && { as_of, as_of_at: microsOf(as_of) }),
    }
    await this.#write(table, table, { id: this.#name(), date: null, constants, meta: {} })
  }

  async #snapshotTables(): Promise<Record<string, Layers>> {
    const { lines, poll } = this.#finished
    const { layers, last } = this.#state
    const input = { poll, settled: this.#settled, memory: this.#memory, layers, lastAt: last?.observed_at ?? 0 }
    const next: Record<string, Layers> = {}
    for (const plan of writeDated(lines, input)) {
      const made = await this.#layer(plan, layers[plan.table])
      if (made) next[plan.table] = made
    }
    this.#manifest(next)
    const { as_of, whole } = this.#finished
    const constants: Constants = {
      snapshot_date: this.date,
      observed_at: this.#ticket.committed_at,
      as_of,
      as_of_at: microsOf(as_of),
      source: whole,
    }
    await this.#write('snapshots', 'snapshots', { id: this.#name(), date: null, constants, meta: {} })
    this.dated = true
    return next
  }

  #manifest(layers: Readonly<Record<string, Layers>>): void {
    for (const [resource, { base, delta, rows }] of Object.entries(layers)) {
      const layer = (path: string | null): string | null =>
        path
          ?.split('/')
          .at(-1)
          ?.replace(/\.parquet$/, '') ?? null
      this.#finished.lines.add('snapshots', { resource, base: layer(base), delta: layer(delta), rows })
      for (const path of [base, delta]) if (path !== null) this.#listAgain(resource, path)
    }
  }

  async #layer(plan: LayerPlan, held: Layers | undefined): Promise<Layers | null> {
    const { table, kind, rows } = plan
    if (kind === 'same') return held ? { ...held, rows } : null
    const id = `${this.#name()}-${kind}`
    const { as_of } = this.#finished
    const constants: Constants = {
      layer: id,
      as_of,
      as_of_at: microsOf(as_of),
      observed_at: this.#ticket.committed_at,
    }
    const meta = { layer: kind }
    const made = plan.lines === `dated.${table}` ? {} : datedColumns(table, this.#context.resources)
    const staged = await this.#write(table, plan.lines, { id, date: this.date, constants, made, meta })
    if (kind === 'delta') return held ? { ...held, delta: staged?.path ?? held.delta, rows } : null
    return staged ? { base: staged.path, base_at: this.#ticket.committed_at, delta: null, rows } : null
  }

  /** Lists a file of the lake under this date, if it is not. */
  #listAgain(table: string, path: string): void {
    if (this.#files.some((file) => file.path === path)) return
    const listed = liveFiles(this.#context.ledger, { table }).filter((file) => file.path === path)
    const [first] = listed
    if (!first || listed.some((file) => file.label === this.date)) return
    const { rows, min_t, max_t, digest, meta } = first
    const frame = { metric: null, interval: null, rows, min_t, max_t, digest, meta }
    this.#files.push({ temporary: null, path, table, label: this.date, ...frame })
  }

  /** The bodies as received; those of an unchanged registry are listed again. Gives the entity tags to ask with. */
  async #raw(fresh: boolean): Promise<Tags> {
    const { raws, whole, tags } = this.#finished
    const { spool, secrets, ledger } = this.#context
    const next: Record<string, Tags[string]> = { ...tags }
    for (const body of raws) if (body.known) this.#listAgain('raw', tags[body.address]?.raw ?? '')
    const received = raws.filter((body) => !body.known)
    if (received.length === 0) return next
    if (whole === null || whole === 'lists') {
      const feed = received.filter(({ address }) => address.startsWith('/changes?'))
      if (fresh && feed.length > 0)
        this.#files.push(await stageRaw(spool, 'feed', this.#name(), this.date, feed, secrets))
    }
    const held = liveFiles(ledger, { table: 'raw' }).findLast((file) => file.meta['kind'] === 'snapshot')
    if (whole === 'snapshot' && !fresh && held) {
      this.#listAgain('raw', held.path)
      return next
    }
    const others = received.filter(({ address }) => !address.startsWith('/changes'))
    for (const [i, body] of others.entries()) {
      const name = whole === 'snapshot' ? this.#name() : `${this.#name()}-${i}`
      const staged = await stageRaw(spool, whole ?? 'feed', name, this.date, [body], secrets)
      this.#files.push(staged)
      if (body.etag !== null) next[body.address] = { etag: body.etag, raw: staged.path }
    }
    return next
  }
}
