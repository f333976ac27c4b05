import { globTest } from '../catalog/globs.ts'
import { hashText, unit } from './world/noise.ts'
import { type Fault, faultTable, type FaultKind } from './faults.ts'

/** What a fault's selectors look at. */
export interface Asked {
  readonly side: 'metrics' | 'metadata' | 'registry'
  /** `/v1/metrics/indicators/sopr_pit` */
  readonly path: string
  /** `indicators/sopr_pit`, `registry/changes` */
  readonly shortPath: string
  /** Path and query without the key. */
  readonly address: string
  readonly asset: string | null
  /** The sandbox clock, Unix seconds. */
  readonly now: number
}

interface Counts {
  seen: number
  struck: number
}

/** A list of faults together with how often each one was met; the same requests give the same strikes. */
export interface Script {
  readonly faults: readonly Fault[]
  /** The instant at which the list was set. */
  readonly setAt: number
  readonly counts: Map<string, Counts>
  readonly seed: number
}

/** A script at its beginning. */
export function createScript(faults: readonly Fault[], seed: number, setAt: number): Script {
  return { faults: faults.map(withDefaults), setAt, counts: new Map(), seed }
}

/** A null is filled later only if it is not for ever: without any selector of time or count it comes once. */
function withDefaults(fault: Fault): Fault {
  if (fault.kind !== 'null-filled') return fault
  const { first, times, nth, every, from, until } = fault.match ?? {}
  const limited = [first, times, nth, every, from, until].some((value) => value !== undefined)
  return limited ? fault : { ...fault, match: { ...fault.match, first: 1 } }
}

/** The faults that strike this request, in the order of the list; counts the request. */
export function strike(script: Script, asked: Asked): Fault[] {
  return script.faults.filter((fault, index) => strikes(script, fault, index, asked))
}

function strikes(script: Script, fault: Fault, index: number, asked: Asked): boolean {
  const side = faultTable[fault.kind].side
  if (side !== 'any' && side !== asked.side) return false
  const match = fault.match ?? {}
  // Metadata are asked beside the points: only what means them strikes them.
  if (asked.side === 'metadata' && side === 'any' && match.path?.startsWith('metadata') !== true) return false
  if (match.path !== undefined && !fitsPath(match.path, asked)) return false
  if (match.asset !== undefined && match.asset !== asked.asset) return false
  if (match.from !== undefined && asked.now < match.from) return false
  if (match.until !== undefined && asked.now >= match.until) return false
  const key = match.each === true ? `${index} ${asked.address}` : String(index)
  const counts = script.counts.get(key) ?? { seen: 0, struck: 0 }
  script.counts.set(key, counts)
  counts.seen++
  if (match.nth !== undefined && counts.seen !== match.nth) return false
  if (match.first !== undefined && counts.seen > match.first) return false
  if (match.every !== undefined && counts.seen % match.every !== 0) return false
  if (match.share !== undefined && fraction(`${script.seed} ${key} ${asked.address} ${counts.seen}`) >= match.share) {
    return false
  }
  if (match.times !== undefined && counts.struck >= match.times) return false
  counts.struck++
  return true
}

function fitsPath(glob: string, asked: Asked): boolean {
  if (glob === asked.side) return true
  const fits = globTest(glob)
  return fits(asked.shortPath) || fits(asked.path)
}

/** A number in [0, 1) that depends on nothing but the text. */
export function fraction(text: string): number {
  return unit(hashText(text))
}

/** The first fault of this kind. */
export function pick(faults: readonly Fault[], kind: FaultKind): Fault | undefined {
  return faults.find((fault) => fault.kind === kind)
}
