import { day, hour, type Interval, minute } from '../../time.ts'
import { hashText, mix, unit } from './noise.ts'

/** When a metric's points are computed: some seconds after the interval's end, or at a clock time some days after `t`. */
interface Timing {
  readonly match: RegExp
  /** Seconds of the day, for clock times; else counted from the end of the interval. */
  readonly clock?: number
  readonly from: number
  readonly to: number
}

const entityBased = { from: 10 * minute, to: 115 * minute }
const labelled = { from: 15 * minute, to: 100 * minute }

const timings: readonly Timing[] = [
  { match: /^(signals\/altcoin_index|market\/btc_dominance)_pit$/, clock: 10 * hour + 15 * minute, from: 0, to: 120 },
  { match: /^signals\/btc_sharpe_signal_pit$/, clock: 4 * hour, from: 0, to: 120 },
  { match: /^signals\/btc_bss_(indicator_|goldilocks_pit)/, clock: 4 * hour, from: 3 * minute, to: 95 * minute },
  { match: /^(signals|entities|distribution)\//, ...entityBased },
  { match: /^(addresses|indicators)\/accumulation_/, ...entityBased },
  { match: /coinjoin/, ...entityBased },
  { match: /^breakdowns\/|^addresses\/(loss|profit)_count/, ...labelled },
  { match: /^(bridges|protocols)\/|_bridges_|_defi_/, ...labelled },
  { match: /cost_basis_distribution/, from: hour, to: 5 * hour },
  { match: /marketcap_altcoins|apac_/, from: 5 * hour, to: 11 * hour },
  // Two slow ones: later than a cautious guess of half an hour, so that such a guess can be disproved.
  { match: /^indicators\/asol_/, from: 22 * minute, to: 45 * minute },
  { match: /contract_calls_internal/, from: 12 * minute, to: 38 * minute },
]

const usual = { from: 2 * minute, to: 10 * minute }
const usualShort = { from: 90, to: 14 * minute }

/** Metrics that were published before most others; the rest began between 2021 and the middle of 2023. */
const early = /^(supply\/current|addresses\/(active_count|non_zero)|blockchain\/|options\/|derivatives\/)/
const earlyLaunch = Date.UTC(2019, 2, 1) / 1000
const firstLaunch = Date.UTC(2021, 0, 1) / 1000
const launchSpan = 900

/** The instant (Unix seconds) from which a metric is published; its earlier history was computed in one batch then. */
export function launchOf(path: string): number {
  const hash = hashText(`launch/${path}`)
  if (early.test(path)) return earlyLaunch + (hash % 240) * day + 9 * hour
  return firstLaunch + (hash % launchSpan) * day + 9 * hour
}

/** From `(t, end of its interval, hash of the point)` to the whole second at which the point is computed. */
export type Publication = (t: number, close: number, hash: number) => number

const lateShare = 0.01

/** The publication of a series; never before the interval's end nor before a clock time, about 1 % hours to days late. */
export function publicationOf(path: string, interval: Interval, series: number): Publication {
  const timing = timings.find((row) => row.match.test(path)) ?? {
    ...(interval === '10m' ? usualShort : usual),
    clock: undefined,
  }
  const { clock, from } = timing
  const span = timing.to - from + 1
  const launch = launchOf(path)
  const batch = launch + (series % (6 * hour))
  return (t, close, hash) => {
    const base = clock === undefined ? close : Math.max(close, Math.floor(t / day) * day + day + clock)
    const delay = mix(hash ^ 0x27d4eb2f)
    let at = base + from + Math.floor(unit(delay) * span)
    const late = mix(delay ^ 0x165667b1)
    // An hour to five days, short delays more often.
    if (unit(late) < lateShare) at += Math.floor(hour * Math.pow(120, unit(mix(late))))
    return at < launch ? Math.max(batch, base) : at
  }
}
