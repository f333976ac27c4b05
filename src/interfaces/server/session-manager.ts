import pLimit from 'p-limit'
import { usage } from '../../base/errors.ts'
import { closing, openQuery, setMoment, setVariables, strangeViews } from '../../query/lake.ts'
import type { Knowledge } from '../../query/question.ts'
import type { RunDeps } from '../../query/run.ts'
import { statOf } from '../../lake/store/disk.ts'
import type { Engine, Row } from '../../lake/store/engine.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { microsOf } from '../../base/time.ts'
import { unopenedLake } from './refusal.ts'
import { type Asker, Turns } from './turns.ts'

/** Identity and version of the lake that answered: equal digests are equal lakes. */
export interface LakeFacts {
  readonly lake: string
  /** Number of the newest commit in the answer; null if that commit came after the limit of the server. */
  readonly version: number | null
  /** Digest of that commit; null where its number is. */
  readonly digest: string | null
  /** Whether the data are made up. */
  readonly synthetic: boolean
}

/** Session on one version of the lake, which stays that version until it is released. */
export interface Seat extends Disposable {
  readonly engine: Engine
  readonly facts: LakeFacts
  /**
   * Number of times that this session manager had opened the lake when it opened this version: later versions have
   * larger numbers.
   */
  readonly opening: number
}

/** Limits and options of a session manager. */
export interface DeskMeans {
  readonly folder: string
  /** Maximum bytes of memory of the process. */
  readonly memory: number
  /** Maximum bytes that all sessions of a version together may spill to the disk. */
  readonly spill: number
  readonly threads?: number | undefined
  /**
   * Whether facts about the lake's own work (coverage, requests, versions …) are those of now, not those at `as_of`.
   */
  readonly ledgerNow: boolean
  /** The limit: nothing that was known later than at this timestamp is answered. */
  readonly wall?: string | undefined
  /** Whether an answer always has a limit: that of the server, or the timestamp that a question must name. */
  readonly limited: boolean
  /** Settings that show later facts earlier, and that questions may use although there is a limit. */
  readonly allowed: readonly LateSetting[]
}

/** Settings of a question under which it is answered with facts that were known only later. */
export const lateSettings = ['backfill', 'registry_backfill'] as const

/** One of these settings; derived, so that `lateSettings` is the one list of them. */
export type LateSetting = (typeof lateSettings)[number]

/** Dependencies of a session manager on the outside world. */
interface DeskDeps {
  readonly sleep: (ms: number) => Promise<unknown>
  /** Draws a name that cannot be guessed. */
  readonly draw: () => string
  /** Called when the turn of a question begins. */
  readonly begun: (gone: AbortSignal) => void
  /** Called with the reason why the lake cannot be opened, once for each reason. */
  readonly note: (words: string) => void
}

/** Number of questions answered at once, each on all cores; one thread of the system's pool is left for files. */
const atOnce = 3

/** Share of the memory, of what the session leaves, for each of them that writes Parquet. */
export const writerPart: number = 1 / 2 / atOnce

/** A version of the lake that is open for questions. */
interface OpenedVersion {
  readonly engine: Engine
  readonly facts: LakeFacts
  readonly stamp: string
  readonly opening: number
  /** Number of users, including the session manager while it is the newest. */
  users: number
}

/**
 * A lake that many ask at the same time. They share one engine for each version, so that all of them together use the
 * memory of one; each has a session of its own, which sees the newest version at its beginning and keeps it. Reading
 * takes no lock: commits go on meanwhile.
 */
export class Desk {
  readonly means: DeskMeans
  readonly #deps: DeskDeps
  /** Mark of the views in every session of this session manager. */
  readonly #mark: string
  readonly #turns = new Turns(atOnce)
  readonly #opening = pLimit(1)
  #openedVersion: OpenedVersion | undefined
  #openings = 0
  /** Reason why the lake could not be opened at the last try. */
  #unopened = ''

  constructor(means: DeskMeans, deps: DeskDeps) {
    this.means = means
    this.#deps = deps
    this.#mark = `mark_${deps.draw()}${deps.draw()}`.replaceAll('-', '')
  }

  /** Opens the newest version before the first question; an error is reported in whole. */
  async begin(): Promise<void> {
    release(await this.#opening(async () => this.#newest()))
  }

  /** Takes a seat on the newest version, in a state of knowledge. */
  async sit(wantedKnowledge: Knowledge): Promise<Seat> {
    refuseLate(wantedKnowledge, this.means)
    const knowledge = behind(wantedKnowledge, this.means.wall)
    // One after the other, so that a new version is opened once for all who ask.
    const opened = await this.#opening(async () => this.#hiding(async () => await this.#newest()))
    let engine: Engine | undefined
    let isGone = false
    const leave = (): void => {
      if (isGone) return
      isGone = true
      engine?.close()
      release(opened)
    }
    const { facts, opening } = opened
    const seat = { facts, opening, [Symbol.dispose]: leave }
    return await closing(seat, async () => {
      engine = await opened.engine.session()
      await setVariables(engine, knowledge)
      if (!this.means.ledgerNow) await setMoment(engine, 'ledger_as_of', knowledge.asOf)
      return { ...seat, engine }
    })
  }

  /** Runs work when it is the client's turn; a client that goes away cancels it. */
  async turn<T>(asker: Asker, work: (run: RunDeps) => Promise<T>): Promise<T> {
    const { begun, sleep } = this.#deps
    const { closed: gone } = asker
    return await this.#turns.take(asker, async () => {
      begun(gone)
      return await work({ folder: this.means.folder, door: 'fields', mark: this.#mark, signal: gone, sleep })
    })
  }

  /** Opens a separate engine on the newest version. */
  async open(threads = this.means.threads): Promise<Engine> {
    return await this.#hiding(async () => await this.#openEngine(threads))
  }

  /** Opens the lake for a client, without revealing why that fails. */
  async #hiding<T>(work: () => Promise<T>): Promise<T> {
    try {
      const opened = await work()
      this.#unopened = ''
      return opened
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error)
      if (words !== this.#unopened) this.#deps.note(words)
      this.#unopened = words
      throw unopenedLake(error)
    }
  }

  async #openEngine(threads = this.means.threads): Promise<Engine> {
    const { folder, spill } = this.means
    return await openQuery(folder, { spillLimit: spill, threads, mark: this.#mark })
  }

  async #newest(): Promise<OpenedVersion> {
    const { folder, wall } = this.means
    const stamp = await stampOf(folder)
    let openedVersion = this.#openedVersion
    if (openedVersion === undefined || openedVersion.stamp !== stamp) {
      const engine = await this.#openEngine()
      const facts = await factsOf(engine, folder, wall)
      const opened = { engine, facts, stamp, opening: ++this.#openings, users: 1 }
      if (openedVersion !== undefined) release(openedVersion)
      openedVersion = this.#openedVersion = opened
    }
    openedVersion.users++
    return openedVersion
  }
}

/**
 * Refuses settings that would show later facts behind the limit, unless the operator of the server has allowed them.
 */
function refuseLate({ backfill, registryBackfill }: Knowledge, { limited, allowed }: DeskMeans): void {
  if (!limited) return
  const refuse = (name: LateSetting, expected: string, got: string): void => {
    if (allowed.includes(name)) return
    const next = `it shows later facts behind as_of: only whoever starts the server allows it, with --allow ${name}`
    throw usage(name, { expected, got, next })
  }
  if (backfill === 'rule') refuse('backfill', 'strict', 'rule')
  if (registryBackfill === true) refuse('registry_backfill', 'false', 'true')
}

/** Limits the knowledge of a question to the as_of limit of a session manager. */
function behind(knowledge: Knowledge, wall: string | undefined): Knowledge {
  const { asOf = wall } = knowledge
  if (asOf === undefined || wall === undefined) return knowledge
  if (microsOf(asOf) > microsOf(wall))
    throw usage('as_of', { expected: `at most ${wall}, the limit of this server (--as-of)`, got: asOf })
  return { ...knowledge, asOf }
}

function release(opened: OpenedVersion): void {
  if (--opened.users === 0) opened.engine.close()
}

/** Identifies the views in place: it changes when they are rebuilt, because they are replaced as a whole. */
async function stampOf(folder: string): Promise<string> {
  const stats = await Promise.all(
    [places.database, places.script].map(async (place) => await statOf(inLake(folder, place))),
  )
  return stats.map((stat) => `${stat?.ino} ${stat?.mtimeMs} ${stat?.size}`).join(', ')
}

interface FactsRow extends Row {
  readonly lake: string
  readonly version: bigint | null
  readonly synthetic: boolean | null
  readonly digest: string | null
}

/** Reads the facts of the lake for answers: the views themselves hide a commit that came after the limit. */
async function factsOf(engine: Engine, folder: string, wall: string | undefined): Promise<LakeFacts> {
  try {
    // Variables belong to a connection: the sessions of the questions have their own.
    await setMoment(engine, 'ledger_as_of', wall)
    const [row] = await engine.rows<FactsRow>('SELECT lake, version, synthetic, lake_digest() AS digest FROM lake_info')
    if (row === undefined) throw new RangeError('lake_info has no row')
    const { version } = row
    return { ...row, version: version === null ? null : Number(version), synthetic: row.synthetic === true }
  } catch (cause) {
    engine.close()
    throw strangeViews(folder, 'views of this program', 'older ones', cause)
  }
}
