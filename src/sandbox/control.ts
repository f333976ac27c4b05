import { LakeError, usage } from '../errors.ts'
import { formatInstant, parseDuration, parseInstant } from '../time.ts'
import { type Fault, readFault } from './faults.ts'
import { type SandboxLimits, parseLimit } from './limits.ts'

/** One answered request, as tests count them; it holds no key. */
export interface RequestRecord {
  readonly api: 'metrics' | 'metadata' | 'registry' | 'none'
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** 0 for a connection that was reset. */
  readonly status: number
  /** The provider's clock, Unix seconds. */
  readonly at: number
  /** The faults that struck it. */
  readonly faults: readonly string[]
}

/** What the control endpoint can turn. */
export interface ControlPanel {
  now(): number
  setNow(instant: number): void
  limits: SandboxLimits
  setFaults(faults: readonly Fault[]): void
  readonly script: { readonly faults: readonly Fault[] }
  readonly records: RequestRecord[]
}

/**
 * `GET /control`: clock, limits, faults. `GET /control/requests`: what was asked. `POST /control`: a JSON object with
 * `faults` (list of texts or objects), `now` (instant), `advance` (duration), `limits` (list of texts).
 */
export async function answerControl(request: Request, url: URL, panel: ControlPanel): Promise<Response> {
  if (request.method === 'GET') {
    if (url.pathname === '/control/requests') return Response.json({ requests: panel.records })
    return Response.json(shown(panel))
  }
  if (request.method !== 'POST') return Response.json({ error: 'GET or POST' }, { status: 405 })
  try {
    turn(panel, (await request.json()) as unknown)
    return Response.json(shown(panel))
  } catch (error) {
    const known = error instanceof LakeError || error instanceof SyntaxError
    if (!known) throw error
    return Response.json({ error: error.message }, { status: 400 })
  }
}

function shown(panel: ControlPanel): object {
  return { now: formatInstant(Math.floor(panel.now())), limits: panel.limits, faults: panel.script.faults }
}

/** Reads everything before it changes anything. */
function turn(panel: ControlPanel, body: unknown): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw usage('control', { expected: 'an object with faults, now, advance or limits', got: JSON.stringify(body) })
  }
  const { faults, now, advance, limits, ...rest } = body as Record<string, unknown>
  const unknown = Object.keys(rest)[0]
  if (unknown !== undefined) {
    throw usage('control', { expected: 'faults, now, advance or limits', got: `"${unknown}"` })
  }
  const script = faults === undefined ? undefined : list('faults', faults).map(readFault)
  const wanted = limits === undefined ? [] : list('limits', limits).map(String)
  const next = wanted.reduce((onto, text) => parseLimit(text, onto), panel.limits)
  const instant = now === undefined ? panel.now() : parseInstant(plainText(now))
  if (instant === undefined) throw usage('control now', { expected: 'a date', got: JSON.stringify(now) })
  const by = advance === undefined ? 0 : parseDuration(plainText(advance))
  if (by === undefined) throw usage('control advance', { expected: 'a duration', got: JSON.stringify(advance) })
  panel.limits = next
  if (now !== undefined || by > 0) panel.setNow(instant + by)
  if (script !== undefined) panel.setFaults(script)
}

function list(name: string, value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  throw usage(`control ${name}`, { expected: 'a list', got: JSON.stringify(value) })
}

/** A text or a number as text; everything else as a text that nothing reads. */
function plainText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
