import { expect } from 'vitest'
import { answerRegistry } from '../../src/sandbox/registry/handler.ts'
import { parseInstant } from '../../src/base/time.ts'

type RegistryEnv = Parameters<typeof answerRegistry>[1]

/** A decoded answer. */
export type Json = Record<string, ReturnType<typeof JSON.parse>>

/** A Tuesday at noon. */
export const autumn = parseInstant('2026-10-20T12:00:00Z') as number
let ids = 0

/** The registry of seed 5 at an instant. */
export function env(at: number, more: Partial<RegistryEnv> = {}): RegistryEnv {
  const requestId = `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`
  return { seed: 5, key: 'good', now: () => at, scale: 'demo', requestId, ...more }
}

/** Asks with the good key, unless the headers say otherwise. */
export function ask(path: string, from: RegistryEnv, headers: Record<string, string> = {}, method = 'GET'): Response {
  const all = { authorization: `Bearer ${from.key}`, ...headers }
  return answerRegistry(new Request(`http://127.0.0.1/registry/v1${path}`, { method, headers: all }), from)
}

/** The decoded body of an answer that must be 200. */
export async function body(path: string, from: RegistryEnv): Promise<Json> {
  const response = ask(path, from)
  expect(response.status, path).toBe(200)
  return (await response.json()) as Json
}

/** Status and code of a refusal, whose body and headers must be whole. */
export async function refused(path: string, from: RegistryEnv, headers?: Record<string, string>) {
  const response = ask(path, from, headers)
  const answer = (await response.json()) as Json
  expect(answer['request_id']).toBe(response.headers.get('x-request-id'))
  expect(answer['error'].message).not.toBe('')
  return [response.status, answer['error'].code]
}
