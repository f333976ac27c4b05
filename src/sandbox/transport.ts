import { type Fault, type FaultEntry, faultTable } from './faults.ts'
import { retryAfterText } from './limits.ts'

/** What an answer of a fault may need to know. */
export interface Scene {
  readonly side: 'metrics' | 'registry'
  readonly requestId: string
  /** The sandbox clock, Unix seconds. */
  readonly now: number
  /** Whether the caller accepts gzip. */
  readonly gzip: boolean
}

/** The answer that a fault gives in place of the provider's own; undefined when it lets the request pass. */
export function insteadOf(faults: readonly Fault[], scene: Scene): Response | undefined {
  return faults.map((fault) => instead(fault, scene)).find((answer) => answer !== undefined)
}

function instead(fault: Fault, scene: Scene): Response | undefined {
  if (fault.kind === 'reset') return Response.error()
  if (fault.kind === 'no-content-204') return new Response(null, { status: 204 })
  if (fault.kind === 'empty-200') return new Response('', { headers: { 'content-type': 'application/json' } })
  if (fault.kind === 'empty-list') return new Response('[]', { headers: { 'content-type': 'application/json' } })
  if (fault.kind === 'html') {
    const page = '<!DOCTYPE html><html><head><title>Attention</title></head><body><h1>Please wait</h1></body></html>\n'
    return new Response(page, { status: fault.status ?? 200, headers: { 'content-type': 'text/html' } })
  }
  const { instead: answers }: FaultEntry = faultTable[fault.kind]
  if (answers === undefined) return undefined
  const [status, code, message] = answers
  const answer = refusalAnswer(scene, status, fault.code ?? code, message)
  const retry = fault.retry ?? (fault.kind === 'status-429' ? 1 : undefined)
  if (retry !== undefined) {
    answer.headers.set('retry-after', retryAfterText(fault.date === true ? 'date' : 'seconds', scene.now, retry))
  }
  return answer
}

/** An error in the words of the API that was asked. */
export function refusalAnswer(
  scene: Pick<Scene, 'side' | 'requestId'>,
  status: number,
  code: string,
  message: string,
): Response {
  if (scene.side === 'metrics') return Response.json({ error: message, code }, { status })
  return Response.json({ error: { code, message }, request_id: scene.requestId }, { status })
}

/** The answer with its body cut, in the order of the faults. */
export async function disturb(response: Response, faults: readonly Fault[], scene: Scene): Promise<Response> {
  let answer = response
  for (const fault of faults) {
    if (answer.body === null) return answer
    if (fault.kind === 'cut-body') answer = await cut(answer, fault)
    else if (fault.kind === 'cut-gzip') {
      answer = scene.gzip
        ? await cutGzip(answer, fault)
        : await cut(answer, { ...fault, kind: 'cut-body', clean: true })
    }
  }
  return answer
}

/** `no-transform` keeps the port from compressing what is meant to arrive exactly so. */
function withBody(response: Response, body: BodyInit): Response {
  const headers = new Headers(response.headers)
  headers.set('cache-control', 'no-transform')
  return new Response(body, { status: response.status, headers })
}

/** The first bytes of the body, then a broken connection, or with `clean` an end that looks like one. */
async function cut(response: Response, fault: Fault): Promise<Response> {
  const whole = new Uint8Array(await response.arrayBuffer())
  const kept = whole.slice(0, Math.min(fault.bytes ?? Math.floor(whole.length / 2), Math.max(0, whole.length - 1)))
  const answer = withBody(response, fault.clean === true ? kept : brokenAfter(kept))
  if (fault.announce === true && fault.clean !== true) answer.headers.set('content-length', String(whole.length))
  return answer
}

async function cutGzip(response: Response, fault: Fault): Promise<Response> {
  if (response.body === null) return response
  const packed = response.body.pipeThrough(new CompressionStream('gzip'))
  const whole = new Uint8Array(await new Response(packed).arrayBuffer())
  const kept = whole.slice(0, Math.min(fault.bytes ?? Math.floor(whole.length / 2), whole.length - 9))
  const answer = withBody(response, kept)
  answer.headers.set('content-encoding', 'gzip')
  return answer
}

/** The bytes, then an error: a port destroys the connection there. */
function brokenAfter(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let sent = bytes.length === 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (sent) controller.error(new Error('cut by a fault'))
        else controller.enqueue(bytes)
        sent = true
      },
    },
    { highWaterMark: 0 },
  )
}
