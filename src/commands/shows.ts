import { Ledger } from '../ledger/ledger.ts'
import { patience } from '../report/freshness.ts'
import { metricsText } from '../report/metrics.ts'
import { statusPage } from '../report/page/page.ts'
import { readStatusPage } from '../report/status-page.ts'
import type { StatusInput } from '../report/facts.ts'
import { check, judgedReasons, type LakeStanding, readStanding } from '../report/status.ts'
import type { Shown, Shows } from '../door/listen.ts'
import { type CommandContext, type Deps, documentText } from './spec.ts'
import { instantNow } from './context.ts'
import { programName } from './program.ts'

/** How the lake stands now, as a door tells it. */
export async function standingNow(
  { settings, catalogue, now }: CommandContext & Pick<Deps, 'now'>,
  how: Pick<StatusInput, 'patience'> = {},
): Promise<LakeStanding> {
  using ledger = await Ledger.openToRead(settings.data)
  const asked = { settings, catalogue, now: instantNow({ now }), arrivals: false, ...how }
  return (await readStanding(ledger, asked)).standing
}

/** An answer is shown again for so many times as long as it took to make, */
const share = 20
/** and at least for so many milliseconds. */
const least = { check: 1000, metrics: 5000, page: 10_000 }

/**
 * The numbers (with what a watch may spend a UTC day; null: any number), the judgement and the page of a lake, each made when
 * somebody asks. One is made at a time and shown to all
 * who ask meanwhile, so that readers take a twentieth of the process at most; a lake is only read, without its locks.
 */
export function showsOf(
  { settings, catalogue, now, elapsed }: CommandContext & Pick<Deps, 'now' | 'elapsed'>,
  creditsPerDay: number | null = null,
): Shows {
  let last: Promise<unknown> = Promise.resolve()
  const shared = (atLeast: number, make: (ledger: Ledger, input: StatusInput) => Promise<Shown>) => {
    let made: { readonly shown: Promise<Shown>; until: number } | null = null
    return async (): Promise<Shown> => {
      if (made !== null && elapsed() < made.until) return await made.shown
      const after = last
      const begin = async (): Promise<Shown> => {
        await after
        const begun = elapsed()
        using ledger = await Ledger.openToRead(settings.data)
        const shown = await make(ledger, { settings, catalogue, now: instantNow({ now }) })
        own.until = elapsed() + Math.max(atLeast, share * (elapsed() - begun))
        return shown
      }
      const own = { shown: begin(), until: Infinity }
      made = own
      last = own.shown.catch(() => void (own.until = elapsed() + atLeast))
      return await own.shown
    }
  }
  return {
    '/': shared(least.page, async (ledger, input) => {
      const asked = { ...input, arrivals: true }
      const page = await readStatusPage(ledger, asked, await readStanding(ledger, asked), programName())
      return { status: 200, type: 'text/html', body: statusPage(page) }
    }),
    '/metrics': shared(least.metrics, async (ledger, input) => {
      const body = metricsText(await readStanding(ledger, input), input.now, creditsPerDay)
      return { status: 200, type: 'text/plain; version=0.0.4', body }
    }),
    '/healthz': shared(least.check, async (ledger, input) => {
      const { standing } = await readStanding(ledger, { ...input, arrivals: false, patience })
      const { lines, code } = check(standing)
      const { version, committed_at, trust, synthetic } = standing
      const [text = ''] = lines
      const [word = ''] = text.split(':')
      const reasons = judgedReasons(standing.reasons)
      const document = { ok: code === 0, word, text, version, committed_at, trust, synthetic, reasons }
      return { status: code === 0 ? 200 : 503, type: 'application/json', body: documentText(document) }
    }),
  }
}
