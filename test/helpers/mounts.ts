import { HttpRequestInterceptor } from '@mswjs/interceptors/http'
import { http } from 'msw/http'
import { defineNetwork, InterceptorSource } from 'msw/experimental'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'

/** A running sandbox and its two addresses. */
export interface Mounted {
  readonly metricsUrl: string
  readonly registryUrl: string
  stop(): Promise<void>
}

/** One of the two ways to reach a sandbox. */
export interface Mount {
  readonly name: 'msw' | 'port'
  start(sandbox: Sandbox): Promise<Mounted>
}

const interceptedOrigin = 'http://sandbox.test'

/** Under msw: undici and fetch are both seen only by the interceptor of raw HTTP requests. */
async function startUnderMsw(sandbox: Sandbox): Promise<Mounted> {
  const network = defineNetwork({
    sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
    handlers: [http.all(`${interceptedOrigin}/*`, async ({ request }) => framed(await sandbox.handle(request)))],
    onUnhandledFrame: 'bypass',
    context: { quiet: true },
  })
  network.enable()
  return {
    metricsUrl: interceptedOrigin,
    registryUrl: `${interceptedOrigin}/registry/v1`,
    stop: async () => network.disable(),
  }
}

/** Says the framing that a port would use; without it a body that breaks off would count as ended by the close. */
function framed(response: Response): Response {
  const lengthUnknown = response.body !== null && !response.headers.has('content-length')
  if (lengthUnknown) response.headers.set('transfer-encoding', 'chunked')
  return response
}

async function startOnPort(sandbox: Sandbox): Promise<Mounted> {
  const served = await serve(sandbox, { port: 0 })
  return { metricsUrl: served.url, registryUrl: `${served.url}/registry/v1`, stop: () => served.close() }
}

/** Every way to reach a sandbox; a suite runs once per mount. */
export const mounts: readonly Mount[] = [
  { name: 'msw', start: startUnderMsw },
  { name: 'port', start: startOnPort },
]
