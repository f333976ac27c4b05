import { createHash } from 'node:crypto'
import type { Json, Rules } from '../ledger/entry.ts'
import { heldCoverage, heldSeries } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { describeOutcome } from '../net/outcome.ts'
import type { Ask, Blocked, Plan } from './plan.ts'
import { standingRefusal } from '../ledger/refusals.ts'
import { type Asking, type AskingState, newAskingState } from './asking.ts'
import { isListingDue } from './assets.ts'
import type { Answered } from './answered.ts'
import { type BatchContext, commitBatch } from './batch.ts'
import { execute, type Execution } from './execute.ts'
import { unmapped } from './prepare.ts'
import type { Known } from './refused.ts'
import { settleWhole } from './settle.ts'
import { windowsOf } from './tally.ts'
import { type Bench, learn, list, named, type Tools } from './tools.ts'

/**
 * Executes the plan. Names that are placeholders are asked last, and only once an answer has shown that the sandbox is
 * there; the listing of assets comes after the points, and nothing depends on it.
 */
export async function work(tools: Tools, plan: Plan): Promise<void> {
  const { asker, tell, bench } = tools
  const { input, deps, tally } = bench
  const state = newAskingState()
  const drain = () => asker.drain()
  deps.signal.addEventListener('abort', drain)
  if (deps.signal.aborted) drain()
  tell({ kind: 'planned', plan })
  const asking = askingOf(tools, state)
  const committing = committer(tools)
  const execution: Execution = {
    concurrency: input.settings.metrics.concurrency,
    commitNow: committing.commitNow,
    onSettled: (ask) => tell({ kind: 'settled', ask }),
  }
  const { settings, catalogue } = input
  const reasonOf = ({ series, endpoint }: Ask): string | null => unmapped(settings, catalogue, series, endpoint)
  const guarded = plan.asks.filter((ask) => reasonOf(ask) !== null)
  const others = guarded.length === 0 ? plan.asks : plan.asks.filter((ask) => reasonOf(ask) === null)
  try {
    await execute(asking, others, execution)
    await listIfDue(tools, state, guarded.length > 0 || committing.holdsBack())
    if (typeof tools.who.sandbox === 'string') await execute(asking, guarded, execution)
    const refused = tools.who.sandbox === null ? guarded.map((ask) => refusal(ask, reasonOf(ask))) : []
    await committing.finish(unasked(bench, [...plan.blocked, ...refused]))
    if (committing.holdsBack()) state.stopped ??= { by: 'unreachable', until: null, words: 'no answer was usable' }
  } finally {
    tally.close(asker.sent(), state)
    deps.signal.removeEventListener('abort', drain)
  }
}

/** The listing, at most once a day; at once where nothing else has shown yet who answers. */
async function listIfDue(tools: Tools, state: AskingState, unsure: boolean): Promise<void> {
  const { bench, asker, who } = tools
  const { input, deps, ledger } = bench
  if (state.stopped !== null || deps.signal.aborted) return
  const spent = input.maxRequests !== null && asker.sent() >= input.maxRequests
  const probing = unsure && who.sandbox === undefined
  const due = bench.job.name === 'fetch' && isListingDue(ledger, deps.nowMicros())
  if (!probing && (spent || !due)) return
  const { outcome } = await list(tools)
  if (probing && who.sandbox === undefined)
    state.stopped = { by: 'unreachable', until: null, words: describeOutcome(outcome) }
}

interface Committer {
  readonly commitNow: Execution['commitNow']
  /** Whether answers wait because nobody has said yet who answers. */
  readonly holdsBack: () => boolean
  /** Commits these together with all that waits. */
  readonly finish: (last: readonly Answered[]) => Promise<void>
}

/** Commits batches under the provider's name; what comes before the name is known waits, lest a lake gets a wrong one. */
function committer(tools: Tools): Committer {
  let waiting: Answered[] = []
  const commitNow = async (batch: readonly Answered[]): Promise<readonly Ask[]> => {
    const all = [...waiting, ...batch]
    if (all.length === 0) return []
    const provider = named(tools)
    waiting = provider === null ? all : []
    if (provider === null) return []
    const { bench, engine, spool, tell } = tools
    const done = await commitBatch({ ...contextOf(bench), engine, spool, provider }, all)
    bench.tally.add(done)
    bench.job.onBatch(done)
    const { version, points_added: points, files_added: files } = done.version
    const windows = windowsOf(done.coverage)
    tell({ kind: 'committed', version, points, files, windows, violations: done.violations.length })
    return done.again
  }
  return {
    commitNow,
    holdsBack: () => waiting.length > 0,
    finish: async (last) => void (await commitNow(last)),
  }
}

function askingOf(tools: Tools, state: AskingState): Asking {
  const { bench, asker, spool, attempts, tell } = tools
  const { input, deps, ledger, run, url, tally, job } = bench
  let priced = 0
  return {
    run,
    base: url,
    settings: input.settings,
    catalogue: input.catalogue,
    asker,
    spool,
    known: (series) => knownOf(ledger, series),
    now: deps.now,
    onRequest: (id, ask, address) => tell({ kind: 'request', id, ask, url: address }),
    onAnswer: (ask, outcome) => {
      if ('sandbox' in outcome) learn(tools, outcome.sandbox)
      tally.answered(ask, outcome)
      tell({ kind: 'answered', ask, outcome })
    },
    affords: (credits) => {
      if (job.budget !== null && priced + credits > job.budget) return false
      priced += credits
      return true
    },
    comparesNothing: job.name === 'verify',
    attempts: (id) => {
      const times = attempts.get(id) ?? 0
      attempts.delete(id)
      return times
    },
    state,
  }
}

/** What the ledger says of a series now. */
function knownOf(ledger: Ledger, series: string): Known {
  const coverage = heldCoverage(ledger, [series]).get(series) ?? []
  return {
    points: heldSeries(ledger, [series]).get(series)?.points ?? 0,
    coverage,
    standing: standingRefusal(coverage),
  }
}

function contextOf(bench: Bench): Omit<BatchContext, 'engine' | 'spool' | 'provider'> {
  const { input, deps, ledger, run, job } = bench
  const { timestamp, weekStart } = input.settings.metrics
  const { providerMoved } = input
  return {
    job: job.name,
    ledger,
    run,
    providerMoved,
    timestamp,
    weekStart,
    rules: rulesOf(bench),
    deps,
    secrets: input.settings.secrets,
  }
}

/** The availability rules in force, as the journal keeps them. */
function rulesOf({ input }: Bench): Rules {
  const rules = Object.fromEntries([...input.catalogue.endpoints].map(([path, endpoint]) => [path, endpoint.rules]))
  const text = JSON.stringify(rules)
  return { digest: createHash('sha256').update(text).digest('hex'), rules: JSON.parse(text) as Json }
}

function refusal({ series, endpoint, interval, settles }: Ask, reason: string | null): Blocked {
  return { series, endpoint, interval, window: settles, reason: reason ?? '', refusal: null }
}

/** What is recorded of windows that are not asked: a refusal that stands keeps the instant at which it was told. */
function unasked({ run, deps, input }: Bench, blocked: readonly Blocked[]): Answered[] {
  const at = Math.floor(deps.now() / 1000)
  const { weekStart } = input.settings.metrics
  return blocked.map(({ series, endpoint, interval, window, reason, refusal }, i) => {
    const ask: Ask = { series, endpoint, interval, window, settles: window, points: 0, credits: 0 }
    const { state, asked_at, request } = refusal ?? { state: 'unsupported', asked_at: at, request: `${run}-b${i}` }
    const rows = settleWhole(ask, state, reason, { at, request: '', weekStart })
    return {
      ask,
      request: null,
      body: null,
      again: false,
      coverage: rows.map((row) => ({ ...row, asked_at, request })),
    }
  })
}
