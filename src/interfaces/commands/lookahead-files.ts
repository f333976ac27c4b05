import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { type Advised, gravestOf, LakeError, usage } from '../../base/errors.ts'
import { several } from '../../base/figures.ts'
import { readBytes } from '../../lake/store/files.ts'
import { Engine } from '../../lake/store/engine.ts'
import { putOut } from '../../lake/store/output.ts'
import { openQuery, type SessionVariables } from '../../query/lake.ts'
import { statementsOf } from '../../query/statements.ts'
import type { LookaheadProof } from '../../trust/lookahead/lookahead.ts'
import type { OwnFile } from '../../trust/lookahead/own-files.ts'
import {
  judgedItem,
  type JudgedItem,
  plainVerdict,
  researchReport,
  type ResearchReport,
  storedVerdict,
  type StoredVerdict,
} from '../../trust/research/judged-item.ts'
import { findResearchFiles } from '../../trust/research/research-files.ts'
import { itemsOf, type ResearchItem, unreadItem } from '../../trust/research/research-items.ts'
import { VerdictCache, verdictKey } from '../../trust/research/verdict-cache.ts'
import { annotationText, junitText, type ReportFormat, reportText } from '../report/lookahead-report.ts'
import { readGiven } from '../cli/context.ts'
import { programVersion } from '../cli/process.ts'
import { type CommandAnswer, type Deps, showLive } from '../cli/spec.ts'
import { askPython, changedSince, type FunctionAnswers } from './research-tools.ts'

/** Default options of a query's trial, which its text may override. */
export interface QueryDefaults {
  readonly ts: string
  readonly labels: readonly string[]
  readonly cutoffs: number | undefined
  readonly tolerance: number
  readonly set: SessionVariables
  readonly own: readonly OwnFile[]
}

/** A look at the files of a research repository. */
export interface ResearchLook {
  /** Files and folders that were named. */
  readonly named: readonly string[]
  /** Folder of the lake. */
  readonly folder: string
  readonly defaults: QueryDefaults
  /** Revision of git; only files that differ from it are looked at. */
  readonly changedSince: string | undefined
  /** File for the report as JUnit. */
  readonly junit: string | undefined
  readonly format: ReportFormat
  /** File of the verdicts of earlier runs; undefined for the usual place. */
  readonly cache: string | undefined
  /** Whether verdicts of earlier runs are set aside. */
  readonly fresh: boolean
  /** Folder for the folders that show leaks: a leak is then found again, whatever an earlier run found. */
  readonly reproduce: string | undefined
  /** Tries one query. */
  readonly prove: (item: ResearchItem, defaults: QueryDefaults) => Promise<LookaheadProof>
}

/** Judges every query, cell and marked function of files and folders. */
export async function answerFiles(look: ResearchLook, call: Deps): Promise<CommandAnswer<ResearchReport>> {
  const report = await judgeFiles(look, call)
  if (look.junit !== undefined) await putOut(resolve(call.cwd, look.junit), junitText(report), look.folder, '--junit')
  const words = (): string => `${look.format === 'github' ? annotationText(report) : ''}${reportText(report)}`
  return { document: report, words, error: reportError(report) }
}

/** Builds the error of a report; null if there is no finding. Items that are no query are no finding. */
function reportError({ counts, items }: ResearchReport): LakeError | null {
  const leaks: readonly Advised[] = items
    .filter(({ verdict }) => verdict === 'leak')
    .map(({ file, line, reason }) => ({
      subject: `${file}:${line} looks ahead`,
      got: reason ?? undefined,
      next: `use the pit joins, then run pitlake lookahead ${file} again`,
    }))
  const open = counts.undecided + counts['not checked']
  const next = 'correct what the table names, or leave a query out with the comment `-- pitlake: skip REASON`'
  return gravestOf([
    leaks.length === 0 ? null : new LakeError('integrity', leaks),
    open === 0 ? null : new LakeError('incomplete', { subject: `${several(open, 'item')} without a verdict`, next }),
  ])
}

async function judgeFiles(look: ResearchLook, call: Deps): Promise<ResearchReport> {
  const { folder, named } = look
  const lake = await lakeIdentity(folder)
  const found = await findResearchFiles(named, (path) => resolve(call.cwd, path))
  const files = look.changedSince === undefined ? found : await changedSince(look.changedSince, found, call)
  const items = files.flatMap((file) => itemsIn(file, call))
  const cacheFile = look.cache === undefined ? usualCache(call) : resolve(call.cwd, look.cache)
  const cache = cacheFile === undefined ? undefined : await VerdictCache.open(cacheFile)
  const python = new Map<string, FunctionAnswers>()
  const judged: JudgedItem[] = []
  using parser = await Engine.open(':memory:', { threads: 1 })
  for (const [n, item] of items.entries()) {
    if (call.signal.aborted) throw new LakeError('stopped', { subject: 'the look-ahead was cancelled' })
    showLive(call, `${n + 1} of ${items.length} items: ${item.file}`)
    if (item.skipped !== null) judged.push(judgedItem(item, plainVerdict('skipped', item.skipped)))
    else if (item.kind === 'function') judged.push(await judgeFunction(item, { folder, python, call }))
    else judged.push(await judgeQuery(item, { look, lake, cache, parser, call }))
  }
  showLive(call, '')
  const unsaved = (await cache?.save()) ?? null
  if (unsaved !== null) call.stderr(`note: the verdicts cannot be stored in ${cacheFile ?? ''}: ${unsaved}\n`)
  return researchReport(judged)
}

/** Reads version and digest of the lake: the digest covers every commit. */
async function lakeIdentity(folder: string): Promise<Readonly<Record<string, unknown>>> {
  using engine = await openQuery(folder)
  const [row] = await engine.rows('SELECT CAST(lake_version() AS VARCHAR) AS version, lake_digest() AS digest')
  return row ?? {}
}

function itemsIn(file: string, call: Deps): readonly ResearchItem[] {
  try {
    return itemsOf(file, readGiven(call, file, 'a file with a query'))
  } catch (error) {
    if (!(error instanceof LakeError)) throw error
    return [unreadItem(file, error.complaints[0]?.got ?? error.message)]
  }
}

/** Returns the cache file in the user's folder for data that can be made again; undefined if there is no home. */
function usualCache({ env }: Deps): string | undefined {
  const { XDG_CACHE_HOME: named, HOME: home } = env
  const base = named !== undefined && named !== '' ? named : home === undefined ? undefined : join(home, '.cache')
  return base === undefined ? undefined : join(base, 'pitlake', 'lookahead.json')
}

interface QueryMeans {
  readonly look: ResearchLook
  readonly lake: Readonly<Record<string, unknown>>
  readonly cache: VerdictCache | undefined
  /** Engine without a lake, whose parser alone is used. */
  readonly parser: Engine
  readonly call: Deps
}

async function judgeQuery(item: ResearchItem, { look, lake, cache, parser, call }: QueryMeans): Promise<JudgedItem> {
  const strange = await syntaxError(parser, item.text)
  if (strange !== undefined) return judgedItem(item, plainVerdict('skipped', `no query: ${strange}`))
  const defaults = { ...look.defaults, ...item.own }
  const files = await Promise.all(defaults.own.map(async ([name, file]) => [name, await fileDigest(file)]))
  const key = verdictKey({ text: item.text, ...defaults, own: files, lake, program: programVersion() })
  const earlier = look.fresh ? undefined : cache?.find(key)
  const isRepeated = earlier?.verdict === 'leak' && look.reproduce !== undefined
  if (earlier !== undefined && !isRepeated) return judgedItem(item, earlier, true)
  try {
    const verdict = storedVerdict(await look.prove(item, defaults))
    cache?.store(key, verdict)
    return judgedItem(item, verdict)
  } catch (error) {
    return judgedItem(item, unjudged(error, call))
  }
}

/** Builds the verdict on a query that could not be tried; an error that stops all of them is thrown again. */
function unjudged(error: unknown, { signal }: Deps): StoredVerdict {
  if (!(error instanceof Error) || signal.aborted) throw error
  if (!(error instanceof LakeError)) return plainVerdict('undecided', error.message.split('\n')[0] ?? '')
  if (error.kind === 'integrity' || error.kind === 'busy') throw error
  if (error.kind === 'stopped') return plainVerdict('undecided', 'not finished in time; raise --timeout')
  return plainVerdict('undecided', error.message.split('\n')[0] ?? '')
}

/** Returns the complaint of the engine's parser about a text; undefined if it reads it. */
async function syntaxError(parser: Engine, text: string): Promise<string | undefined> {
  try {
    for (const statement of statementsOf(text)) await parser.parse(statement.text)
    return undefined
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
  }
}

async function fileDigest(file: string): Promise<string> {
  const bytes = await readBytes(file).catch((cause: unknown) => {
    const { code } = cause as NodeJS.ErrnoException
    throw usage('--own', { expected: 'a file that can be read', got: `${file} (${code ?? 'an error'})`, cause })
  })
  return createHash('sha256').update(bytes).digest('hex')
}

interface FunctionMeans {
  readonly folder: string
  /** Answers by file: Python imports each file once. */
  readonly python: Map<string, FunctionAnswers>
  readonly call: Deps
}

/** Judges a function: its text does not show all it depends on, so its verdict is computed again each time. */
async function judgeFunction(item: ResearchItem, { folder, python, call }: FunctionMeans): Promise<JudgedItem> {
  const answers = python.get(item.file) ?? (await askPython(item.file, folder, call))
  python.set(item.file, answers)
  const verdict = item.name === null ? undefined : answers.verdicts.get(item.name)
  const why = answers.missing ?? 'Python finds no marked function of this name in the file'
  return judgedItem(item, verdict ?? plainVerdict('not checked', why))
}
