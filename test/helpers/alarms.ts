import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { alarmsOf, newAlarms, staleName } from '../../src/interfaces/report/alarms.ts'
import { check, readStanding } from '../../src/interfaces/report/status.ts'
import { showsOf } from '../../src/interfaces/commands/status.ts'
import type { Routes } from '../../src/interfaces/server/listen.ts'
import { settingsAt } from './fetching.ts'
import type { OwnProvider } from './provider.ts'
import { catalogue } from './sandbox-client.ts'
import { partOf } from './part-of.ts'

/** What the interfaces say of a lake at one instant. */
export interface AlarmLook {
  /** Exit code of `status --check`. */
  readonly code: number
  /** Lines of `status --check`. */
  readonly lines: readonly string[]
  /** Whether `/healthz` answers that all is well, and the kinds of its reasons. */
  readonly ok: boolean
  readonly kinds: readonly string[]
  /** What hooks would report anew. */
  readonly told: readonly string[]
}

/** Looks at the lake through `status --check`, `/healthz` and the hooks; what hooks reported counts as reported. */
export async function lookAtAlarms(own: OwnProvider, schedule: number | null = null): Promise<AlarmLook> {
  const place = { root: own.root, url: own.url, now: () => own.clock.now }
  const usual = settingsAt(place)
  const settings = { ...usual, check: { ...usual.check, schedule } }
  const now = (): number => own.clock.now * 1000
  using ledger = await Ledger.openToRead(own.root)
  const input = { settings, catalogue, now: own.clock.now, arrivals: false }
  const { standing } = await readStanding(ledger, input)
  const alarms = await alarmsOf(ledger, { settings, catalogue, now: own.clock.now })
  const news = await newAlarms(own.root, alarms, [])
  const context = partOf<Parameters<typeof showsOf>[0]>({ settings, catalogue, now, elapsed: () => 0 })
  const question = {} as Parameters<Routes[string]>[0]
  const health = await showsOf(context)['/healthz']?.(question)
  const body = health?.body
  if (typeof body !== 'string') throw new TypeError('/healthz answers with text')
  const { ok, reasons } = JSON.parse(body) as { ok: boolean; reasons: { kind: string }[] }
  const told = [...news.stale.map(staleName), ...news.violations.map(({ id }) => id)]
  return { ...check(standing), ok, kinds: reasons.map(({ kind }) => kind), told }
}
