import { type Diagnosis, examine } from '../../src/maintenance/upkeep/doctor.ts'
import { verify, type VerifySummary } from '../../src/maintenance/upkeep/verify.ts'
import { exitCode, type LakeError } from '../../src/base/errors.ts'
import { depsAt, type Rig, settingsAt } from './fetching.ts'
import { commitDeps } from './lakes/drafts.ts'
import { catalogue } from './sandbox-client.ts'

type Doctor = Parameters<typeof examine>
type Verify = Parameters<typeof verify>

/**
 * What the doctor says of every byte of a lake at an instant (Unix seconds), and what it mends if it is told to; views
 * are left alone.
 */
export async function examined(
  root: string,
  now: number,
  flags: Partial<Doctor[0]> = {},
  deps: Partial<Doctor[1]> = {},
): Promise<Diagnosis> {
  const world = { ...commitDeps({ nowMicros: () => Math.floor(now * 1e6) }), ...deps }
  return await examine({ data: root, thorough: true, ...flags }, world)
}

/** Asks a provider again, a minute later, whether it still says what the lake holds: all of it, whatever it costs. */
export async function askedAgain(
  rig: Pick<Rig, 'root' | 'url' | 'clock'>,
  changes: Partial<Verify[0]> = {},
  deps: Partial<Verify[1]> = {},
): Promise<VerifySummary> {
  const { root, url, clock } = rig
  clock.now += 60
  const place = { root, url, now: () => clock.now }
  const scope = { paths: null, assets: null, since: null, until: null }
  const usual = { settings: settingsAt(place), catalogue, now: clock.now, maxRequests: null, providerMoved: false }
  return await verify({ ...usual, scope, budget: null, spreadDays: null, ...changes }, { ...depsAt(place), ...deps })
}

/** Exit code and words of what work is refused with; 0 where it is not. */
export async function failure(work: Promise<unknown>): Promise<[number, string]> {
  try {
    await work
    return [0, '']
  } catch (error) {
    return [exitCode(error), error instanceof Error ? error.message : '']
  }
}

/** What a command ends with that is judged so. */
export const exitOf = (verdict: LakeError | null): number => (verdict === null ? 0 : exitCode(verdict))
