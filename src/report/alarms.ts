import { z } from 'zod'
import type { Catalogue } from '../catalog/catalogue.ts'
import type { Check } from '../config/health.ts'
import { heldCoverage, heldSeries, heldWeekStart } from '../ledger/held.ts'
import { jsonOf } from '../json.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isOpenViolation, type Listed, listViolations } from '../ledger/violations.ts'
import { isOpenFinding, type ListedFinding, listFindings } from '../registry/accepted.ts'
import { registryFacts } from '../registry/status.ts'
import { realDisk } from '../store/disk.ts'
import { textOf } from '../store/files.ts'
import { inLake, places } from '../store/layout.ts'
import type { Instant } from '../time.ts'
import { judgeSeries, type Late, lateOf, patience, silenceOf } from './freshness.ts'

/** What is stale: the series of an endpoint and interval, or the registry; the names are relied on by hooks. */
export type Stale =
  | (Pick<Late, 'metric' | 'interval' | 'series'> & { readonly late_seconds: number })
  | { readonly registry: true; readonly late_seconds: number }

/** Something upstream that a person has to look at: in points, or in records of the registry. */
export type UpstreamDifference = Listed | ListedFinding

/** What a person may want to be woken for. */
export interface Alarms {
  readonly version: number
  readonly synthetic: boolean
  /** What differs upstream or is refused, and nobody has accepted. */
  readonly violations: readonly UpstreamDifference[]
  readonly stale: readonly Stale[]
}

/** What they are judged by. */
interface AlarmsInput {
  readonly catalogue: Catalogue
  readonly check: Check
  readonly now: Instant
}

/** How the lake stands; reads no points, and of the registry only what verifies found. */
export async function alarmsOf(ledger: Ledger, { catalogue, check, now }: AlarmsInput): Promise<Alarms> {
  const { version, provider } = ledger.head()
  const series = heldSeries(ledger).values()
  const judged = judgeSeries(series, heldCoverage(ledger), new Map(), catalogue, now, heldWeekStart(ledger))
  const late = lateOf(judged, check, patience).late.map(
    ({ seconds, ...of }): Stale => ({ ...of, late_seconds: seconds }),
  )
  const silent = Math.round(silenceOf(registryFacts(ledger), now))
  const violations = listViolations(ledger, { paths: null, assets: null })
  const findings = ((await findingsIfReadable(ledger)) ?? []).filter(isOpenFinding)
  return {
    version,
    synthetic: provider?.synthetic ?? false,
    violations: [...violations.filter(isOpenViolation), ...findings],
    stale: [...late, ...(silent > check.maxFeedAge ? [{ registry: true, late_seconds: silent } as const] : [])],
  }
}

/** What verifies found in the registry; null where a file of it cannot be read, of which others have to tell. */
export async function findingsIfReadable(ledger: Ledger): Promise<readonly ListedFinding[] | null> {
  return await listFindings(ledger, null).catch(() => null)
}

/** What has been told and lasts. */
interface ToldAlarms {
  readonly violations: readonly string[]
  readonly stale: readonly string[]
}

const toldShape = z.object({ violations: z.array(z.string()), stale: z.array(z.string()) })

/** What was told of this lake, by whatever job; null where nothing ever was, or cannot be read. */
async function readTold(root: string): Promise<ToldAlarms | null> {
  const text = await textOf(inLake(root, places.alarms))
  return (text === undefined ? undefined : toldShape.safeParse(jsonOf(text)).data) ?? null
}

const nameOf = (stale: Stale): string => ('registry' in stale ? 'registry' : `${stale.metric} ${stale.interval}`)

/**
 * What of the alarms nobody was told yet; from now on it counts as told, until it is over. What stood `before` the job
 * began is no news of a lake of which nothing was ever told. One at a time.
 */
export async function newAlarms(
  root: string,
  { violations, stale }: Alarms,
  before: readonly UpstreamDifference[],
): Promise<Pick<Alarms, 'violations' | 'stale'>> {
  const told = await readTold(root)
  const known = new Set(told?.violations ?? before.map(({ id }) => id))
  const lasting = new Set(told?.stale)
  const now: ToldAlarms = { violations: violations.map(({ id }) => id), stale: stale.map(nameOf) }
  const file = inLake(root, places.alarms)
  const text = `${JSON.stringify(now)}\n`
  if (told === null || text !== `${JSON.stringify(told)}\n`) {
    await realDisk.write(`${file}.part`, text)
    await realDisk.move(`${file}.part`, file)
  }
  return {
    violations: violations.filter(({ id }) => !known.has(id)),
    stale: stale.filter((one) => !lasting.has(nameOf(one))),
  }
}
